/** Parses requests. Parameters that are unknown, repeated or malformed are rejected with an error that names the field. */
import { parse } from "node:querystring";
import type { Request } from "express";
import type { z, ZodType } from "zod";
import { canonicalHost, type DomainName, parseDomainName } from "../domain-name.js";
import { type FieldError, invalidField, type Reason, ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { Action } from "../upstream/contract.js";
import type { QuoteItem } from "../shop/quotes.js";
import { quoteRequestShape } from "../wire/visitors.js";

/** A hostile query can have thousands of parameters, each with an error longer than itself. */
const MAX_ERRORS = 20;
/** Other names of parameters and fields are not echoed, since they may be hostile. */
const PLAIN_NAME = /^[\w.-]{1,40}$/;

/** A query string as parsed by Express and node:querystring. */
export type ParsedQuery = Readonly<Record<string, unknown>>;

/** Parses a whole query string, whose length Node limits. The default limit of 1,000 parameters would silently drop the rest. */
export function parseQuery(text: string): ParsedQuery {
  return parse(text, "&", "=", { maxKeys: 0 });
}

/** The query's parameters as this shape reads them, each given at most once and none unknown. */
export function readQuery<T>(query: ParsedQuery, shape: z.ZodObject & ZodType<T>): T {
  const allowed = Object.keys(shape.shape);
  const errors = Object.entries(query).flatMap(([name, value]): FieldError[] => {
    if (!allowed.includes(name))
      return [
        {
          field: PLAIN_NAME.test(name) ? name : "query",
          reason: "unknown",
          message: `isn't a known parameter; allowed: ${allowed.join(", ") || "none"}`,
        },
      ];
    return typeof value === "string"
      ? []
      : [{ field: name, reason: "duplicate", message: "must be given once" }];
  });
  if (errors.length > 0) throw invalid(errors.slice(0, MAX_ERRORS));
  return read({ ...query }, shape, 1);
}

/** The canonical `:domain` of a path, which must be the name itself, unlike a query parameter that may be a pasted URL. */
export function hostInPath({ params: { domain } }: Request): string {
  const host = typeof domain === "string" ? canonicalHost(domain) : null;
  if (host === null) throw invalidField("domain", "not_a_name", "isn't a domain name");
  return host;
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
  return invalidField(field, "script", "has letters or digits of another script, or of more than one");
}

/** A TLD sold, with its leading dot, in any case. */
export function readTld(value: string, policy: RetailPolicy, field: string): string {
  const tld = /^[\x21-\x7e]{1,64}$/.test(value) ? value.toLowerCase() : "";
  if (!policy.soldTlds.includes(tld))
    throw invalidField(field, "not_sold", `must be one of ${policy.soldTlds.join(", ")}`);
  return tld;
}

/** All TLDs that are sold if the parameter is absent. */
export function readTlds(list: readonly string[] | undefined, policy: RetailPolicy): readonly string[] {
  if (list === undefined) return policy.soldTlds;
  return [...new Set(list.map((tld) => readTld(tld.trim(), policy, "tlds")))];
}

/** Refuses a term that isn't sold for any TLD and action. */
export function refuseUnsoldTerm(years: number | undefined, policy: RetailPolicy): void {
  const combinations = policy.combinations();
  if (years === undefined || combinations.some((what) => what.years === years)) return;
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
  return read(body, shape, MAX_ERRORS);
}

function read<T>(given: unknown, shape: ZodType<T>, maxErrors: number): T {
  const result = shape.safeParse(given, { reportInput: true });
  if (result.success) return result.data;
  throw invalid(result.error.issues.flatMap(errorsOf).slice(0, maxErrors));
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
