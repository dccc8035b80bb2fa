/**
 * What the upstream sends, made ours: what its document gives is taken exactly (sections 2 and 4), what it leaves open under any usual
 * spelling. Anything else is refused as `upstream_contract`, so no doubtful answer ever becomes a price, "available" or "taken".
 */
import { canonicalHost, type DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import { parseWholesale, type Wholesale } from "../money.js";
import { unwritten, WrittenNumber } from "./written-json.js";

/** What a price can be quoted for (section 2). */
export const ACTIONS = ["registration", "renewal", "transfer", "restore"] as const;
export type Action = (typeof ACTIONS)[number];

export interface Term {
  readonly tld: string;
  readonly action: Action;
  readonly years: number;
}

/** A check's result; `wholesale` is there exactly when the name is available. */
export type Check =
  | { readonly status: "available"; readonly wholesale: Wholesale }
  /** With the price that some upstreams name beside a taken name. */
  | { readonly status: "taken"; readonly wholesale?: Wholesale };

export interface DomainRecord {
  readonly domain: string;
  readonly status: string | null;
  /** RFC 3339 UTC. */
  readonly registeredAt: string | null;
  /** RFC 3339 UTC. */
  readonly expiresAt: string | null;
  readonly autoRenew: boolean | null;
  readonly nameservers: readonly string[];
}

export interface Balance {
  readonly accountNumber: string;
  readonly balance: string;
  readonly currency: string;
  readonly creditLimit: string;
  readonly activeDomains: number;
}

export interface Tier {
  readonly currentTier: string;
  readonly nextTier: string | null;
  readonly domainsNeeded: number | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** Words that say the registry could not tell, whatever `available` claims. */
const UNDECIDED_WORDS = new Set([
  "",
  "unknown",
  "error",
  "timeout",
  "pending",
  "invalid",
  "failed",
  "unavailable_check",
]);

/** `data` of a successful envelope (section 2). */
export function decodeEnvelope(body: unknown): unknown {
  const envelope = fieldsOf(body, "the envelope");
  const success = documented(envelope, "success");
  if (success === false)
    throw new ServiceError("upstream_failed", "The registry service refused the request.");
  if (success !== true) throw misunderstood("the envelope's success flag");
  return documented(envelope, "data");
}

/**
 * The price is the document's `pricing` for all of `years`; an answer that says it is for another term, or that has its price in none of
 * `currencies` (default: any), is refused.
 */
export function decodeCheck(
  data: unknown,
  asked: DomainName,
  years: number,
  currencies?: ReadonlySet<string>,
): Check {
  const fields = fieldsOf(data, "the check");
  const domain = documented(fields, "domain");
  if (typeof domain !== "string" || canonicalHost(domain) !== asked.ascii) {
    throw misunderstood("the check's domain");
  }
  const available = documented(fields, "available");
  const word = documented(fields, "status");
  const status = typeof word === "string" ? word.trim().toLowerCase() : "";
  if (available === true) {
    if (status !== "available") throw misunderstood("the check's status");
    const pricing = fieldsOf(documented(fields, "pricing"), "the check's pricing");
    const wholesale = priceOf(documented(pricing, "amount"), documented(pricing, "currency"), currencies);
    if (wholesale === null || !coversTerm([pricing], years)) throw misunderstood("the check's price");
    for (const echo of found([fields, pricing], TERMS)) {
      if (!sameTerm(echo, years)) throw misunderstood("the check's years");
    }
    return { status: "available", wholesale };
  }
  if (available !== false) throw misunderstood("the check's available flag");
  if (status === "available" || UNDECIDED_WORDS.has(status)) throw misunderstood("the check's status");
  const beside = fields["pricing"];
  const wholesale =
    isFields(beside) && coversTerm([beside], years)
      ? parseWholesale(pick([beside], ["amount"]), pick([beside], ["currency"]))
      : null;
  const isExpected = wholesale !== null && currencies?.has(wholesale.currency) !== false;
  return { status: "taken", ...(isExpected && { wholesale }) };
}

/** A check as it was kept as JSON; undefined for anything that a check never is. */
export function decodeKeptCheck(data: unknown): Check | undefined {
  if (!isFields(data)) return undefined;
  const kept = isFields(data["wholesale"]) ? data["wholesale"] : {};
  const wholesale = parseWholesale(kept["amount"], kept["currency"]);
  if (data["status"] === "taken") return { status: "taken", ...(wholesale && { wholesale }) };
  return data["status"] === "available" && wholesale !== null
    ? { status: "available", wholesale }
    : undefined;
}

/**
 * The quote's shape is open: nested or flat, string or number. A price per year is taken only where it is the whole price, and one whose
 * unit is not certain, or that is in none of `currencies` (default: any), is refused.
 */
export function decodeQuote(data: unknown, asked: Term, currencies?: ReadonlySet<string>): Wholesale {
  const layers = layersOf(data, ["quote", "result", "price_quote"], "the quote");
  const [quote] = layers;
  const nested = ["pricing", "price", "total", "cost", "amount"].map((key) => pick([quote], [key]));
  const amounts = [quote, ...nested.filter(isFields)];
  for (const place of [...layers, ...amounts]) {
    const echoes: [unknown, string | number][] = [
      [pick([place], ["tld"]), asked.tld],
      [pick([place], ["action", "operation"]), asked.action],
      [pick([place], TERMS), asked.years],
    ];
    for (const [echo, expected] of echoes) {
      if (echo !== undefined && !sameTerm(echo, expected)) throw misunderstood("the quote's subject");
    }
  }
  const pricesUnder = (spellings: readonly string[]): (Wholesale | null)[] =>
    amounts.flatMap((place) =>
      [...found([place], spellings)]
        .filter((value) => !isFields(value) && !Array.isArray(value))
        .map((value) =>
          priceOf(decimalOf(value), pick([place, ...layers], ["currency", "currency_code"]), currencies),
        ),
    );
  const totals = pricesUnder(TOTALS);
  const units = pricesUnder(UNITS);
  const [price, ...others] = totals.length === 0 && asked.years === 1 ? units : totals;
  if (price === undefined) throw misunderstood("the quote");
  // Two amounts for one term, or a total that is no more than a year of it: nobody can say which one will be charged.
  const isDoubtful =
    others.some((other) => !isSamePrice(price, other)) ||
    (asked.years > 1 && units.some((unit) => isSamePrice(price, unit))) ||
    !coversTerm(amounts, asked.years);
  if (price === null || isDoubtful) throw misunderstood("the quote's price");
  return price;
}

const TERMS = ["years", "period", "term"];
const TOTALS = ["total", "total_amount", "total_price", "amount", "price", "value", "cost"];
const UNITS = ["unit_price", "unit_amount", "price_per_year", "per_year", "unit"];

function priceOf(
  amount: unknown,
  currency: unknown,
  currencies: ReadonlySet<string> | undefined,
): Wholesale | null {
  const price = parseWholesale(amount, currency);
  if (price !== null && currencies?.has(price.currency) === false)
    throw misunderstood("a price in a currency that is not expected");
  return price;
}

function isSamePrice(a: Wholesale | null, b: Wholesale | null): boolean {
  return a !== null && b !== null && a.amount === b.amount && a.currency === b.currency;
}

/** Whether no word beside the amount says that it is for a part of the term only. */
function coversTerm(places: readonly Fields[], years: number): boolean {
  const spellings = ["per", "unit", "interval", "basis", "price_basis", "price_per", "billing_period"];
  const words = [...found(places, spellings)].filter((word) => typeof word === "string");
  if (words.some((word) => /month|quarter|week|day/i.test(word))) return false;
  const isPerYear =
    words.some((word) => /year|annual|annum/i.test(word)) ||
    [...found(places, ["per_year", "yearly", "annual"])].includes(true);
  return years === 1 || !isPerYear;
}

/** The document says at most 100; a later version may say more, a hostile answer must not keep us busy. */
const LONGEST_LIST = 1000;

/** The list, bare or wrapped, of records or of names. */
export function decodeDomainList(data: unknown): DomainRecord[] {
  const list = Array.isArray(data) ? data : listIn(fieldsOf(data, "the domain list"));
  if (list.length > LONGEST_LIST) throw misunderstood("the domain list");
  return list.map((item: unknown) => {
    const record = typeof item === "string" ? { domain: item } : item;
    return decodeRecord(layersOf(record, ["domain"], "a listed domain"), null);
  });
}

/** One record, or null where the upstream has none. */
export function decodeDomain(data: unknown, asked: DomainName): DomainRecord | null {
  if (data === null || data === undefined) return null;
  const layers = layersOf(data, ["domain", "record", "details"], "the domain");
  if (Object.keys(layers[0]).length === 0) return null;
  const record = decodeRecord(layers, asked.ascii);
  if (record.domain !== asked.ascii) throw misunderstood("the domain's name");
  return record;
}

/** An amount of the account: two fraction digits, maybe negative, in the one way in which it is written. */
const AMOUNT = /^(?!-0\.00$)-?(?:0|[1-9]\d{0,14})\.\d{2}$/;
/** Words that people will read: nothing that moves a cursor, ends a line, turns the reading direction or is half a character. */
const FREE_TEXT = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,64}$/u;

export function decodeBalance(data: unknown): Balance {
  const fields = fieldsOf(data, "the balance");
  const text = (key: string, grammar: RegExp): string =>
    textOf(documented(fields, key), grammar, `the balance's ${key}`);
  const activeDomains = unwritten(documented(fields, "active_domains"));
  if (typeof activeDomains !== "number" || !Number.isSafeInteger(activeDomains) || activeDomains < 0) {
    throw misunderstood("the balance's active_domains");
  }
  return {
    accountNumber: text("account_number", FREE_TEXT),
    balance: text("balance", AMOUNT),
    currency: text("currency", /^[A-Z]{3}$/),
    creditLimit: text("credit_limit", AMOUNT),
    activeDomains,
  };
}

export function decodeTier(data: unknown): Tier {
  const layers = layersOf(data, ["tier"], "the tier");
  const current = pick(layers, ["current_tier", "current"]);
  const next = pick(layers, ["next_tier", "next", "next_tier_name"]);
  const currentTier = nameIn(
    current ??
      pick(layers, ["tier", "name", "tier_name", "current_tier_name", "label", "title", "code", "slug"]),
  );
  if (currentTier === null) throw misunderstood("the tier");
  const needed = [
    "domains_needed",
    "domains_to_next",
    "domains_to_next_tier",
    "domains_needed_to_advance",
    "domains_to_advance",
    "needed",
    "remaining",
    "domains_remaining",
    "domains_required",
  ];
  return {
    currentTier,
    nextTier: nameIn(next),
    domainsNeeded: countOf(pick([...layers, ...[next, current].filter(isFields)], needed)),
  };
}

function decodeRecord(fields: Layers, name: string | null): DomainRecord {
  const spelled = pick(fields, ["domain", "name", "domain_name", "fqdn"]) ?? name;
  const domain = typeof spelled === "string" ? canonicalHost(spelled) : null;
  if (domain === null) throw misunderstood("a domain record's name");
  const told = pick(fields, ["status", "state", "domain_status"]);
  const status: unknown = Array.isArray(told) ? told[0] : told;
  return {
    domain,
    status: typeof status === "string" && FREE_TEXT.test(status) ? status : null,
    registeredAt: instantOf(
      pick(fields, [
        "registered_at",
        "registration_date",
        "registered",
        "registered_on",
        "created_at",
        "creation_date",
        "created",
        "created_on",
        "create_date",
        "registration",
      ]),
    ),
    expiresAt: instantOf(
      pick(fields, [
        "expires_at",
        "expiry_date",
        "expiry",
        "expires",
        "expires_on",
        "expiration_date",
        "expiration",
        "expire_date",
        "expiry_at",
        "valid_until",
      ]),
    ),
    autoRenew: flagOf(
      pick(fields, ["auto_renew", "autorenew", "auto_renewal", "auto_renew_enabled", "renew_automatically"]),
    ),
    nameservers: hostsOf(pick(fields, ["nameservers", "name_servers", "ns", "dns", "hosts"])),
  };
}

/** How many wrappers a list may stand in. */
const DEEPEST_LIST = 4;

function listIn(fields: Fields, wrappers = 1): unknown[] {
  for (const key of ["domains", "items", "results", "result", "records", "list", "data", "rows", "entries"]) {
    const value = pick([fields], [key]);
    if (Array.isArray(value)) return value;
    if (isFields(value) && wrappers < DEEPEST_LIST) return listIn(value, wrappers + 1);
  }
  throw misunderstood("the domain list");
}

/** An object, and what stands beside it in its wrapper: nearest first. */
type Layers = readonly [Fields, ...Fields[]];

/** The object under the first of `keys` that holds one, and what stands beside it; else the object itself. */
function layersOf(data: unknown, keys: readonly string[], what: string): Layers {
  const outer = fieldsOf(data, what);
  const inner = keys.map((key) => pick([outer], [key])).find(isFields);
  if (inner === undefined) return [outer];
  return [inner, Object.fromEntries(Object.entries(outer).filter(([, value]) => value !== inner))];
}

/** The first present field under any of the spellings. */
function pick(layers: readonly Fields[], spellings: readonly string[]): unknown {
  for (const value of found(layers, spellings)) return value;
  return undefined;
}

/** The present fields under the spellings, layer by layer. */
function* found(layers: readonly Fields[], spellings: readonly string[]): Generator<unknown, void> {
  for (const fields of layers) {
    for (const spelling of spellings) {
      const value = valueUnder(fields, spelling);
      if (value !== null && value !== undefined) yield value;
    }
  }
}

/** A field that the document names, as it is written there. */
function documented(fields: Fields, key: string): unknown {
  valueUnder(fields, key);
  return fields[key];
}

/** The value under a spelling; what stands there twice, with two values, is refused: nobody can say which one is meant. */
function valueUnder(fields: Fields, spelling: string): unknown {
  const value = byPlainKey(fields).get(plain(spelling));
  if (value === TWO_VALUES) throw misunderstood("a field that stands twice");
  return value;
}

const TWO_VALUES = Symbol("two values under one key");
const plainKeys = new WeakMap<Fields, ReadonlyMap<string, unknown>>();

/** An object is searched under dozens of spellings, so its keys are made plain once. */
function byPlainKey(fields: Fields): ReadonlyMap<string, unknown> {
  const known = plainKeys.get(fields);
  if (known !== undefined) return known;
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(fields)) {
    const name = plain(key);
    values.set(name, values.has(name) && !isSame(values.get(name), value) ? TWO_VALUES : value);
  }
  plainKeys.set(fields, values);
  return values;
}

/** Case, `_`, `-` and spaces do not count. */
function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[_\- ]/g, "");
}

function isSame(a: unknown, b: unknown): boolean {
  return a instanceof WrittenNumber && b instanceof WrittenNumber ? a.text === b.text : a === b;
}

function isFields(value: unknown): value is Fields {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber)
  );
}

function fieldsOf(value: unknown, what: string): Fields {
  if (!isFields(value)) throw misunderstood(what);
  return value;
}

function textOf(value: unknown, grammar: RegExp, what: string): string {
  if (typeof value !== "string" || !grammar.test(value)) throw misunderstood(what);
  return value;
}

function nameIn(value: unknown): string | null {
  const name = isFields(value) ? pick([value], ["name", "tier", "label", "title", "code", "slug"]) : value;
  return typeof name === "string" && name !== "" ? textOf(name, FREE_TEXT, "the tier's name") : null;
}

function countOf(value: unknown): number | null {
  const count = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : unwritten(value);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

function sameTerm(echo: unknown, expected: string | number): boolean {
  if (typeof expected === "number") return unwritten(echo) === expected || echo === String(expected);
  return typeof echo === "string" && echo.toLowerCase().replace(/^\./, "") === expected.replace(/^\./, "");
}

/**
 * A JSON number of one or two fraction digits as a decimal of two; text as it is. A whole number is none: it may be cents as well as
 * dollars.
 */
function decimalOf(amount: unknown): unknown {
  if (typeof amount !== "number" && !(amount instanceof WrittenNumber)) return amount;
  const text = amount instanceof WrittenNumber ? amount.text : String(amount);
  return /^\d+\.\d{1,2}$/.test(text) ? text.padEnd(text.indexOf(".") + 3, "0") : null;
}

const MS_FROM = 100_000_000_000;
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Seconds or ms since the epoch, a date (also as 01-Mar-2027), or a date with a time (UTC unless it says otherwise), as RFC 3339 UTC. */
function instantOf(value: unknown): string | null {
  if (value instanceof WrittenNumber) return instantOf(unwritten(value));
  if (typeof value === "number" && Number.isFinite(value) && value > 0) {
    return rfc3339(new Date(value < MS_FROM ? value * 1000 : value));
  }
  if (typeof value !== "string") return null;
  const text = value.trim();
  if (/^\d{9,13}$/.test(text)) return instantOf(Number(text));
  const named = /^(\d{2})-([A-Za-z]{3})-(\d{4})$/.exec(text);
  if (named) {
    const [, day, month = "", year] = named;
    const index = MONTHS.indexOf(month.toLowerCase());
    return index < 0 ? null : instantOf(`${year}-${String(index + 1).padStart(2, "0")}-${day}`);
  }
  const parts =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?$/i.exec(
      text,
    );
  if (!parts) return null;
  const [, day, time = "00:00:00", zone = "Z"] = parts;
  // The language's own parser shifts a day that does not exist into the next month.
  if (rfc3339(new Date(`${day}T00:00:00Z`))?.startsWith(`${day}T`) !== true) return null;
  const offset = /^[+-]/.test(zone) ? zone.replace(/^(...):?/, "$1:") : "Z";
  return rfc3339(new Date(`${day}T${time}${offset}`));
}

function rfc3339(date: Date): string | null {
  const text = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  // RFC 3339 ends with the year 9999.
  return /^\d{4}-/.test(text) ? text : null;
}

function flagOf(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" || typeof value === "number" ? String(value).toLowerCase() : "";
  if (["1", "true", "yes", "on", "enabled", "y"].includes(word)) return true;
  if (["0", "false", "no", "off", "disabled", "n"].includes(word)) return false;
  return null;
}

/** What fits into one DNS answer; more is noise that only costs time to read. */
const MOST_NAMESERVERS = 13;

function hostsOf(value: unknown): string[] {
  const items: unknown[] =
    typeof value === "string"
      ? value.split(/[\s,;]+/)
      : Array.isArray(value)
        ? value
        : isFields(value)
          ? Object.values(value)
          : [];
  return items.slice(0, MOST_NAMESERVERS).flatMap((item) => {
    const host = isFields(item) ? pick([item], ["host", "hostname", "name", "nameserver", "server"]) : item;
    const name = typeof host === "string" ? canonicalHost(host) : null;
    return name === null ? [] : [name];
  });
}

function misunderstood(what: string): ServiceError {
  return new ServiceError("upstream_contract", `The registry service's answer was not understood (${what}).`);
}
