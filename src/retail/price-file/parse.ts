/**
 * Reads the price file. Returns a consistent config, or all faults with their paths. Unknown keys, bare numbers as amounts and combinations without
 * a rule are faults.
 */
import { currencyDigits, decimal, hasDigits } from "../../money.js";
import {
  type CatalogEntry,
  combinationsOf,
  firstMatching,
  type Match,
  type Pricing,
  type Promotion,
  type RetailConfig,
  type Rule,
} from "./retail-config.js";
import { isRecord, join, Reader } from "./faults.js";
import { instant, PLAIN_DECIMAL, SHAPES } from "./shapes.js";
import { identitySchema, nameSchema, namesSchema, type ShopIdentity } from "./shop-identity.js";
import { readYaml } from "./yaml.js";

type RetailConfigResult =
  { readonly ok: true; readonly config: RetailConfig } | { readonly ok: false; readonly faults: string[] };

const MAX_FAULTS = 100;
const PROMISE = { validMs: 900_000 };

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
  reader.read(SHAPES.top, raw, "");
  const currency = reader.read(SHAPES.currency, raw["currency"], "currency");
  const digits = currency === undefined ? null : currencyDigits(currency);
  const rates = readRates(reader, raw["rates"]);
  const ownRate = currency === undefined ? undefined : rates[currency];
  if (ownRate !== undefined && !decimal(ownRate).eq("1"))
    reader.fault(`rates.${currency}`, 'must be "1", because prices are shown in this currency');
  const catalog = readCatalog(reader, raw["catalog"]);
  const rules = readRules(reader, raw["rules"], catalog, digits);
  let premium: Pricing | undefined;
  if (raw["premium"] !== undefined && raw["premium"] !== null) {
    premium = reader.read(SHAPES.premium, raw["premium"], "premium");
    checkPricing(reader, raw["premium"], "premium", digits);
  }
  const promotions = readPromotions(reader, raw["promotions"], catalog.tlds);
  const promise = reader.read(SHAPES.promise, raw["promise"] ?? PROMISE, "promise") ?? PROMISE;
  const suggestions = reader.read(SHAPES.suggestions.nullish(), raw["suggestions"], "suggestions") ?? null;
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

function checkPricing(reader: Reader, raw: unknown, path: string, digits: number | null): void {
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
    reader.read(SHAPES.currency, code, path);
    const rate = reader.read(SHAPES.rate, text, path);
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
    const entry = reader.read(SHAPES.catalogEntry, item, path);
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
  const named = SHAPES.tld.safeParse(isRecord(match) ? match["tld"] : undefined);
  if (named.success && !tlds.has(named.data)) reader.fault(`${path}.match.tld`, "is not in the catalog");
  return SHAPES.match.safeParse(match).data ?? null;
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
    const rule = reader.read(SHAPES.rule, item, path);
    if (rule !== undefined) rules.push(rule);
    checkPricing(reader, item, path, digits);
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
    const read = reader.read(SHAPES.promotion, item, path);
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
    restoreIncludesRenewal: read?.restoreIncludesRenewal ?? null,
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
