/** Parses requests. Parameters that are unknown, repeated or malformed are rejected with an error that names the field. */
import { parse } from "node:querystring";
import type { Request } from "express";
import type { z, ZodType } from "zod";
import { canonicalHost, type DomainName, parseDomainName } from "../domain-name.js";
import { type FieldError, invalidField, type Reason, ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import { type Action, ACTIONS } from "../upstream/contract.js";
import type { QuoteItem } from "../storefront/quotes.js";
import { quoteRequestShape } from "../wire/visitors.js";

/** A hostile query can have thousands of parameters, each with an error longer than itself. */
const MAX_ERRORS = 20;
/** Other names of parameters and fields are not echoed, since they may be hostile. */
const PLAIN_NAME = /^[\w.-]{1,40}$/;

export type Query<K extends string> = Readonly<Partial<Record<K, string>>>;

/** A query string as parsed by Express and node:querystring. */
export type ParsedQuery = Readonly<Record<string, unknown>>;

/** Parses a whole query string, whose length Node limits. The default limit of 1,000 parameters would silently drop the rest. */
export function parseQuery(text: string): ParsedQuery {
  return parse(text, "&", "=", { maxKeys: 0 });
}

/** The query's parameters, each given at most once and none unknown. */
export function readQuery<K extends string>(query: ParsedQuery, allowed: readonly K[]): Query<K> {
  const read: Partial<Record<K, string>> = {};
  const errors: FieldError[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (errors.length === MAX_ERRORS) break;
    const known = allowed.find((candidate) => candidate === name);
    if (known === undefined) {
      errors.push({
        field: PLAIN_NAME.test(name) ? name : "query",
        reason: "unknown",
        message: `isn't a known parameter; allowed: ${allowed.join(", ") || "none"}`,
      });
    } else if (typeof value !== "string") {
      errors.push({ field: known, reason: "duplicate", message: "must be given once" });
    } else {
      read[known] = value;
    }
  }
  if (errors.length > 0) throw invalid(errors);
  return read;
}

/** The canonical `:domain` of a path, which must be the name itself, unlike a query parameter that may be a pasted URL. */
export function hostInPath({ params: { domain } }: Request): string {
  const host = typeof domain === "string" ? canonicalHost(domain) : null;
  if (host === null) throw invalidField("domain", "not_a_name", "isn't a domain name");
  return host;
}

export function required(value: string | undefined, field: string): string {
  if (value === undefined || value === "") throw invalidField(field, "required", "is missing");
  return value;
}

export function readYears(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^[1-9]\d?$/.test(value)) throw invalidField("years", "malformed", "must be a whole number of years");
  return Number(value);
}

/** Whether the answer must come from memory alone: `only=known`. */
export function readOnlyKnown(value: string | undefined): boolean {
  if (value !== undefined && value !== "known") throw invalidField("only", "malformed", 'must be "known"');
  return value === "known";
}

/** A name under one of `tlds`, in a script that its registry takes. */
export function readName(
  text: string,
  tlds: readonly string[],
  policy: RetailPolicy,
  field: string,
): DomainName {
  const name = parseDomainName(text, tlds, field);
  if (!policy.takes(name)) throw otherScript(field);
  return name;
}

export function otherScript(field: string): ServiceError {
  return invalidField(field, "script", "has letters of another script, or of more than one");
}

/** A TLD sold, with its leading dot, in any case. */
export function readTld(value: string, policy: RetailPolicy, field: string): string {
  const tld = /^[\x21-\x7e]{1,64}$/.test(value) ? value.toLowerCase() : "";
  if (!policy.soldTlds.includes(tld))
    throw invalidField(field, "not_sold", `must be one of ${policy.soldTlds.join(", ")}`);
  return tld;
}

/** A comma-separated list of TLDs; all that are sold if the parameter is absent. */
export function readTlds(text: string | undefined, policy: RetailPolicy): readonly string[] {
  if (text === undefined) return policy.soldTlds;
  return [...new Set(text.split(",").map((tld) => readTld(tld.trim(), policy, "tlds")))];
}

export function readAction(value: string): Action {
  const action = ACTIONS.find((known) => known === value);
  if (action === undefined) throw invalidField("action", "not_sold", `must be one of ${ACTIONS.join(", ")}`);
  return action;
}

/** A term that is sold for at least one TLD and action; undefined if the parameter is absent. */
export function readTermSold(value: string | undefined, policy: RetailPolicy): number | undefined {
  const years = readYears(value);
  const combinations = policy.combinations();
  if (years === undefined || combinations.some((what) => what.years === years)) return years;
  const sold = new Set(combinations.map((what) => what.years).sort((a, b) => a - b));
  throw invalidField("years", "not_sold", `must be one of ${[...sold].join(", ")}`);
}

/** The requested term, or the shortest one sold. `subject`: the field at fault if no term is sold. */
export function termOf(
  years: number | undefined,
  what: { readonly tld: string; readonly action: Action },
  policy: RetailPolicy,
  subject: string,
  yearsField = "years",
): number {
  const { tld, action } = what;
  const sold = policy.yearsSold(tld, action);
  const [shortest] = sold;
  if (shortest === undefined) throw invalidField(subject, "not_sold", `${action} is not sold under ${tld}`);
  if (years !== undefined && !sold.includes(years)) {
    const message = `must be one of ${sold.join(", ")} for ${action} under ${tld}`;
    throw invalidField(yearsField, "not_sold", message);
  }
  return years ?? shortest;
}

/** The cart of `POST /v1/quotes`. Reports every fault of every item at once. */
export function readCart(body: unknown, policy: RetailPolicy): QuoteItem[] {
  const cart = readBody(body, quoteRequestShape);
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const items = cart.items.flatMap(({ domain, action, years }, index): QuoteItem[] => {
    try {
      const name = readName(domain, policy.soldTlds, policy, `items[${index}].domain`);
      if (seen.has(name.ascii)) throw invalidField(`items[${index}].domain`, "duplicate", "appears twice");
      seen.add(name.ascii);
      const what = { tld: name.tld, action };
      const term = termOf(years, what, policy, `items[${index}].action`, `items[${index}].years`);
      return [{ name, action, years: term }];
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      errors.push(...error.errors);
      return [];
    }
  });
  if (errors.length > 0) throw invalid(errors);
  return items;
}

export function readBody<T>(body: unknown, shape: ZodType<T>): T {
  const result = shape.safeParse(body, { reportInput: true });
  if (result.success) return result.data;
  throw invalid(result.error.issues.flatMap(errorsOf).slice(0, MAX_ERRORS));
}

function errorsOf(issue: z.core.$ZodIssue): FieldError[] {
  const field = fieldName(issue.path);
  if (issue.code === "invalid_type" && issue.expected === "object")
    return [{ field, reason: reasonOf(issue), message: "must be an object" }];
  if (issue.code !== "unrecognized_keys") return [{ field, reason: reasonOf(issue), message: issue.message }];
  return issue.keys.map((key) => ({
    field,
    reason: "unknown",
    message: `has an unknown field${PLAIN_NAME.test(key) ? `: ${key}` : ""}`,
  }));
}

function reasonOf(issue: z.core.$ZodIssue): Reason {
  const isSize = issue.code === "too_small" || issue.code === "too_big";
  if (isSize && issue.origin === "string") return issue.code === "too_big" ? "too_long" : "required";
  if (isSize && issue.origin === "array") return issue.code === "too_big" ? "too_many" : "too_short";
  if (isSize) return "out_of_range";
  if (issue.code === "invalid_type" && issue.input === undefined) return "required";
  return issue.code === "invalid_value" && issue.path.at(-1) === "action" ? "not_sold" : "malformed";
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path.reduce<string>(
    (text, key) =>
      typeof key === "number" ? `${text}[${key}]` : `${text}${text === "" ? "" : "."}${String(key)}`,
    "",
  );
  return name === "" ? "body" : name;
}

function invalid(errors: readonly FieldError[]): ServiceError {
  const [first] = errors;
  return new ServiceError(
    "invalid_request",
    first ? `${first.field}: ${first.message}` : "The request is invalid.",
    { errors },
  );
}
