/**
 * Reads what is sold and the price rules from YAML. Returns a consistent config, or all faults with their paths. Unknown keys, bare numbers as
 * amounts and combinations without a rule are faults.
 */
import { z } from "zod";
import { type Action, ACTIONS, type Combination } from "../upstream/contract.js";
import { nameOf } from "../domain-name.js";
import { currencyDigits, decimal, type Decimal, hasDigits } from "../money.js";
import { readYaml } from "./retail-yaml.js";
import { identitySchema, nameSchema, namesSchema, type ShopIdentity } from "./shop-identity.js";

export type { Combination } from "../upstream/contract.js";

/** A key that is absent matches everything. */
export interface Match {
  readonly tld?: string | undefined;
  readonly action?: Action | undefined;
  readonly years?: number | undefined;
}

/** All amounts are plain decimal strings in the shown currency. At most one of `ending` and `step` is present. */
export interface Pricing {
  readonly markupPercent: string;
  readonly addFixed: string;
  readonly minMargin: string;
  readonly ending?: string | undefined;
  readonly step?: string | undefined;
}

export interface Rule extends Pricing {
  readonly match: Match;
}

export interface Promotion {
  readonly id: string;
  readonly match: Match;
  readonly percentOff: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface CatalogEntry {
  readonly tld: string;
  readonly years: { readonly [A in Action]?: readonly number[] | undefined };
}

/** Text to add before or after a taken label. */
export interface Affixes {
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  /** The maximum number of variants per search. */
  readonly most: number;
}

export interface RetailConfig {
  /** Shown to visitors. */
  readonly currency: string;
  /** Upstream currency → shown currency. */
  readonly rates: Readonly<Record<string, string>>;
  readonly catalog: readonly CatalogEntry[];
  readonly rules: readonly Rule[];
  /** Null: premium names follow the ordinary rules. */
  readonly premium: Pricing | null;
  readonly promotions: readonly Promotion[];
  /** How long promised prices are valid. */
  readonly promise: { readonly validMs: number };
  /** Null: no alternatives to a taken name are suggested. */
  readonly suggestions: Affixes | null;
  readonly shop: ShopIdentity;
}

export type RetailConfigResult =
  { readonly ok: true; readonly config: RetailConfig } | { readonly ok: false; readonly faults: string[] };

const MAX_FAULTS = 100;

const PLAIN_DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/;

function decimalText(problem: (value: Decimal) => string | null) {
  return z.unknown().transform((value, context): string => {
    const message = typeof value === "string" ? decimalProblem(value, problem) : notText(value);
    if (message === null && typeof value === "string") return value;
    context.addIssue({ code: "custom", message: message ?? "" });
    return z.NEVER;
  });
}

function notText(value: unknown): string {
  if (value === undefined) return "is missing";
  if (typeof value === "number") {
    if (value < 0) return "must not be negative";
    return `is a bare number; put it in quotes, such as "${value}", so that it stays exact`;
  }
  return 'must be a decimal in quotes, such as "1.25"';
}

function decimalProblem(text: string, problem: (value: Decimal) => string | null): string | null {
  if (text.startsWith("-")) return "must not be negative";
  if (text.length > 24 || !PLAIN_DECIMAL.test(text)) return 'must be a plain decimal such as "1.25"';
  return problem(decimal(text));
}

function within(max: string, options: { positive: boolean }): (value: Decimal) => string | null {
  return (value) => {
    if (options.positive && value.eq("0")) return "must be more than 0";
    return value.gt(max) ? `is too high: at most ${max}` : null;
  };
}

const MAX_AMOUNT = "1000000000";
const percent = (max: string, options: { positive: boolean }) => decimalText(within(max, options));
const amount = decimalText(within(MAX_AMOUNT, { positive: false }));

const tld = z
  .string()
  .regex(/^(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/, 'must be a TLD with a leading dot, such as ".af"');
const action = z.enum(ACTIONS);
// Not z.int(): its fault would keep a list's own checks from running.
const years = z.number().refine(Number.isInteger, "must be a whole number").min(1).max(10);
const currency = z
  .string()
  .refine((code) => currencyDigits(code) !== null, "must be an ISO 4217 currency code, such as USD");
const instant = z.iso
  .datetime({
    offset: true,
    error: ({ input }) =>
      input === undefined ? "is missing" : 'must be an RFC 3339 time, such as "2026-03-20T00:00:00Z"',
  })
  .transform((text) => Date.parse(text));

const match = z
  .strictObject({ tld: tld.optional(), action: action.optional(), years: years.optional() })
  .default({});
const yearsList = z
  .array(years)
  .min(1, "must list at least one term")
  .refine((list) => new Set(list).size === list.length, {
    error: "lists a term twice",
    when: ({ value }) => Array.isArray(value),
  });
/** Must form a valid name with some label, in either writing direction. */
const affix = (add: (text: string, label: string) => string) =>
  z
    .string()
    .refine(
      (text) => text !== "" && ["a", "ا"].some((label) => nameOf(add(text, label), ".af") !== null),
      "doesn't form a valid name: use letters, digits and hyphens",
    );
const affixes = (add: (text: string, label: string) => string) =>
  z.array(affix(add)).max(20, "may list at most 20").default([]);
const pricing = {
  markupPercent: percent("1000", { positive: false }).optional().default("0"),
  addFixed: amount.optional().default("0"),
  minMargin: amount.optional().default("0"),
  ending: amount.optional(),
  step: decimalText(within(MAX_AMOUNT, { positive: true })).optional(),
};

const SCHEMAS = {
  top: z.strictObject({
    currency: z.unknown().optional(),
    rates: z.unknown().optional(),
    catalog: z.unknown().optional(),
    rules: z.unknown().optional(),
    premium: z.unknown().optional(),
    promotions: z.unknown().optional(),
    promise: z.unknown().optional(),
    suggestions: z.unknown().optional(),
    shop: z.unknown().optional(),
  }),
  currency,
  tld,
  rate: decimalText(within("100000000", { positive: true })),
  catalogEntry: z.strictObject({
    tld,
    years: z
      .strictObject({
        registration: yearsList.optional(),
        renewal: yearsList.optional(),
        transfer: yearsList.optional(),
        restore: yearsList.optional(),
      })
      .refine((sold) => Object.keys(sold).length > 0, "sells nothing"),
  }),
  match,
  rule: z.strictObject({ match, ...pricing }),
  premium: z.strictObject(pricing),
  promotion: z.strictObject({
    id: z.string().regex(/^[\w.-]{1,64}$/, "must be 1 to 64 letters, digits, dots, hyphens or underscores"),
    match,
    percentOff: percent("100", { positive: true }),
    from: instant,
    to: instant,
  }),
  promise: z.strictObject({
    validMs: z
      .int()
      .min(60_000)
      .max(7 * 24 * 3_600_000),
  }),
  suggestions: z.strictObject({
    prefixes: affixes((text, label) => text + label),
    suffixes: affixes((text, label) => label + text),
    most: z.number().refine(Number.isInteger, "must be a whole number").min(1).max(20).default(6),
  }),
};

const PROMISE = { validMs: 900_000 };

/** Collects the faults of all sections, so that one doesn't hide another. */
class Reader {
  readonly faults: string[] = [];

  fault(path: string, message: string): void {
    this.faults.push(`${path === "" ? "the file" : path}: ${message}`);
  }

  /** The parsed value; undefined if invalid, after reporting all of its faults. */
  read<T>(schema: z.ZodType<T>, value: unknown, path: string): T | undefined {
    // A file is read too rarely for a compiled parser to pay.
    const result = schema.safeParse(value, { error: plainWords, jitless: true });
    if (result.success) return result.data;
    for (const issue of result.error.issues) {
      const at = issue.path.reduce<string>(
        (text, key) => (typeof key === "number" ? `${text}[${key}]` : join(text, String(key))),
        path,
      );
      if (issue.code === "unrecognized_keys") {
        for (const key of issue.keys) this.fault(join(at, key), "is an unknown key");
      } else {
        this.fault(at, issue.message);
      }
    }
    return undefined;
  }

  list(value: unknown, path: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    this.fault(path, value === undefined || value === null ? "is missing" : "must be a list");
    return [];
  }

  record(value: unknown, path: string): Readonly<Record<string, unknown>> {
    if (isRecord(value)) return value;
    this.fault(path, "must be a mapping");
    return {};
  }
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const plainWords: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined) return "is missing";
  if (issue.code === "invalid_type") {
    return (
      { string: "must be text", array: "must be a list", object: "must be a mapping" }[
        String(issue.expected)
      ] ?? "must be a whole number"
    );
  }
  if (issue.code === "invalid_value") return `must be one of ${issue.values.map(String).join(", ")}`;
  if (issue.code === "too_small") return `must be at least ${issue.minimum}`;
  if (issue.code === "too_big") return `must be at most ${issue.maximum}`;
  return undefined;
};

function matches(match: Match, what: Combination): boolean {
  return (
    (match.tld === undefined || match.tld === what.tld) &&
    (match.action === undefined || match.action === what.action) &&
    (match.years === undefined || match.years === what.years)
  );
}

/** The first entry that matches. */
export function firstMatching<T extends { readonly match: Match }>(
  list: readonly T[],
  what: Combination,
): T | undefined {
  return list.find(({ match }) => matches(match, what));
}

/** Every combination that the catalogue sells, in its order, terms from short to long. */
export function combinationsOf(catalog: readonly CatalogEntry[]): Combination[] {
  return catalog.flatMap(({ tld, years }) =>
    ACTIONS.flatMap((action) =>
      [...(years[action] ?? [])].sort((a, b) => a - b).map((years) => ({ tld, action, years })),
    ),
  );
}

function readPricingLimits(reader: Reader, raw: unknown, path: string, digits: number | null): void {
  if (!isRecord(raw)) return;
  if (raw["ending"] !== undefined && raw["step"] !== undefined) {
    reader.fault(path, "has both ending and step; give one of them or neither");
  }
  if (["markupPercent", "addFixed", "minMargin"].every((key) => raw[key] === undefined)) {
    reader.fault(path, 'adds nothing to the wholesale price; write markupPercent: "0" if that is meant');
  }
  for (const key of ["addFixed", "minMargin", "ending", "step"]) {
    const text = raw[key];
    if (digits === null || typeof text !== "string" || !PLAIN_DECIMAL.test(text)) continue;
    if (!hasDigits(decimal(text), digits)) {
      reader.fault(join(path, key), `has more fraction digits than the currency, which has ${digits}`);
    }
  }
}

function readRates(reader: Reader, raw: unknown): Record<string, string> {
  const rates: Record<string, string> = {};
  if (raw === undefined || raw === null) return rates;
  for (const [code, text] of Object.entries(reader.record(raw, "rates"))) {
    const path = join("rates", code);
    reader.read(SCHEMAS.currency, code, path);
    const rate = reader.read(SCHEMAS.rate, text, path);
    if (rate !== undefined) rates[code] = rate;
  }
  return rates;
}

function readCatalog(reader: Reader, raw: unknown): { entries: CatalogEntry[]; tlds: ReadonlySet<unknown> } {
  const list = reader.list(raw, "catalog");
  if (Array.isArray(raw) && raw.length === 0) reader.fault("catalog", "sells nothing");
  const entries: CatalogEntry[] = [];
  const tlds = new Set<unknown>();
  for (const [index, item] of list.entries()) {
    const path = `catalog[${index}]`;
    const entry = reader.read(SCHEMAS.catalogEntry, item, path);
    if (entry !== undefined) entries.push(entry);
    const tld = isRecord(item) ? item["tld"] : undefined;
    if (tld === undefined) continue;
    if (tlds.has(tld)) reader.fault(`${path}.tld`, "appears twice");
    tlds.add(tld);
  }
  return { entries, tlds };
}

function readMatch(reader: Reader, raw: unknown, path: string, tlds: ReadonlySet<unknown>): Match | null {
  const match = isRecord(raw) ? (raw["match"] ?? {}) : undefined;
  const named = SCHEMAS.tld.safeParse(isRecord(match) ? match["tld"] : undefined);
  if (named.success && !tlds.has(named.data)) reader.fault(`${path}.match.tld`, "is not in the catalog");
  return SCHEMAS.match.safeParse(match).data ?? null;
}

function readRules(
  reader: Reader,
  raw: unknown,
  catalog: { entries: readonly CatalogEntry[]; tlds: ReadonlySet<unknown> },
  digits: number | null,
): Rule[] {
  const rules: Rule[] = [];
  const found: { match: Match }[] = [];
  for (const [index, item] of reader.list(raw, "rules").entries()) {
    const path = `rules[${index}]`;
    const rule = reader.read(SCHEMAS.rule, item, path);
    if (rule !== undefined) rules.push(rule);
    readPricingLimits(reader, item, path, digits);
    // A rule with an invalid match is reported, and counts as matching everything, so that it causes no further faults.
    found.push({ match: readMatch(reader, item, path, catalog.tlds) ?? {} });
  }
  for (const what of combinationsOf(catalog.entries)) {
    if (firstMatching(found, what) === undefined) {
      reader.fault("rules", `no rule matches ${what.tld} ${what.action} for ${what.years} year(s)`);
    }
  }
  return rules;
}

function readPromotions(reader: Reader, raw: unknown, tlds: ReadonlySet<unknown>): Promotion[] {
  const promotions: Promotion[] = [];
  const ids = new Set<unknown>();
  if (raw === undefined || raw === null) return promotions;
  for (const [index, item] of reader.list(raw, "promotions").entries()) {
    const path = `promotions[${index}]`;
    const read = reader.read(SCHEMAS.promotion, item, path);
    readMatch(reader, item, path, tlds);
    if (!isRecord(item)) continue;
    const { id } = item;
    if (id !== undefined && ids.has(id)) reader.fault(`${path}.id`, "appears twice");
    ids.add(id);
    const from = instant.safeParse(item["from"]);
    const to = instant.safeParse(item["to"]);
    if (from.success && to.success && from.data >= to.data) reader.fault(path, "must end after it begins");
    if (read !== undefined) {
      const { id, match, percentOff, from: fromMs, to: toMs } = read;
      promotions.push({ id, match, percentOff, fromMs, toMs });
    }
  }
  return promotions;
}

function readShop(reader: Reader, raw: unknown): ShopIdentity {
  const read = reader.read(identitySchema, raw ?? {}, "shop");
  return {
    name: readShopName(reader, isRecord(raw) ? raw["name"] : undefined),
    logo: read?.logo ?? null,
    email: read?.contact?.email ?? null,
    phone: read?.contact?.phone ?? null,
    terms: read?.links?.terms ?? null,
    privacy: read?.links?.privacy ?? null,
  };
}

/** The name is either one text for all languages, or one for each. */
function readShopName(reader: Reader, raw: unknown): ShopIdentity["name"] {
  if (raw === undefined || raw === null) return null;
  if (isRecord(raw)) return reader.read(namesSchema, raw, "shop.name") ?? null;
  const name = reader.read(nameSchema, raw, "shop.name");
  return name === undefined ? null : { en: name, fa: name, ps: name };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

/** Reads the YAML text of `RETAIL_CONFIG`. Reports at most 100 faults. */
export function parseRetailConfig(yamlText: string): RetailConfigResult {
  const result = readRetailConfig(yamlText);
  return result.ok ? result : { ok: false, faults: result.faults.slice(0, MAX_FAULTS) };
}

function readRetailConfig(yamlText: string): RetailConfigResult {
  const yaml = readYaml(yamlText);
  if (!yaml.ok) return { ok: false, faults: yaml.faults.map((fault) => `the file: ${fault}`) };
  const { value: raw } = yaml;
  if (!isRecord(raw))
    return { ok: false, faults: ["the file: must be a mapping with currency, catalog and rules"] };
  const reader = new Reader();
  reader.read(SCHEMAS.top, raw, "");
  const currency = reader.read(SCHEMAS.currency, raw["currency"], "currency");
  const digits = currency === undefined ? null : currencyDigits(currency);
  const rates = readRates(reader, raw["rates"]);
  const ownRate = currency === undefined ? undefined : rates[currency];
  if (ownRate !== undefined && !decimal(ownRate).eq("1"))
    reader.fault(`rates.${currency}`, 'must be "1", because prices are shown in this currency');
  const catalog = readCatalog(reader, raw["catalog"]);
  const rules = readRules(reader, raw["rules"], catalog, digits);
  let premium: Pricing | undefined;
  if (raw["premium"] !== undefined && raw["premium"] !== null) {
    premium = reader.read(SCHEMAS.premium, raw["premium"], "premium");
    readPricingLimits(reader, raw["premium"], "premium", digits);
  }
  const promotions = readPromotions(reader, raw["promotions"], catalog.tlds);
  const promise = reader.read(SCHEMAS.promise, raw["promise"] ?? PROMISE, "promise") ?? PROMISE;
  const suggestions = reader.read(SCHEMAS.suggestions.nullish(), raw["suggestions"], "suggestions") ?? null;
  const shop = readShop(reader, raw["shop"]);
  if (reader.faults.length > 0 || currency === undefined) return { ok: false, faults: reader.faults };
  const config = {
    currency,
    rates,
    catalog: catalog.entries,
    rules,
    premium: premium ?? null,
    promotions,
    promise,
    suggestions,
    shop,
  };
  return { ok: true, config: deepFreeze(config) };
}
