/**
 * What the upstream sends, made ours: what its document gives is taken exactly (sections 2 and 4), what it leaves open under any usual
 * spelling. Anything else is refused as `upstream_contract`, so no doubtful answer ever becomes a price, "available" or "taken".
 */
import { canonicalHost, type DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import { parseWholesale, type Wholesale } from "../money.js";

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
  { readonly status: "available"; readonly wholesale: Wholesale } | { readonly status: "taken" };

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
  if (envelope["success"] === false)
    throw new ServiceError("upstream_failed", "The registry service refused the request.");
  if (envelope["success"] !== true) throw misunderstood("the envelope's success flag");
  return envelope["data"];
}

export function decodeCheck(data: unknown, asked: DomainName): Check {
  const fields = fieldsOf(data, "the check");
  if (typeof fields["domain"] !== "string" || canonicalHost(fields["domain"]) !== asked.ascii) {
    throw misunderstood("the check's domain");
  }
  const available = fields["available"];
  const status = typeof fields["status"] === "string" ? fields["status"].trim().toLowerCase() : "";
  if (available === true) {
    if (status !== "available") throw misunderstood("the check's status");
    const pricing = fieldsOf(fields["pricing"], "the check's pricing");
    const wholesale = parseWholesale(pricing["amount"], pricing["currency"]);
    if (wholesale === null) throw misunderstood("the check's price");
    return { status: "available", wholesale };
  }
  if (available !== false) throw misunderstood("the check's available flag");
  if (status === "available" || UNDECIDED_WORDS.has(status)) throw misunderstood("the check's status");
  return { status: "taken" };
}

/** The quote's shape is open: nested or flat, string or number. A price per year is taken only where it is the whole price. */
export function decodeQuote(data: unknown, asked: Term): Wholesale {
  const layers = layersOf(data, ["quote", "result", "price_quote"], "the quote");
  const [quote] = layers;
  const nested = ["pricing", "price", "total", "cost", "amount"].map((key) => pick([quote], [key]));
  const amounts = [quote, ...nested.filter(isFields)];
  for (const place of [...layers, ...amounts]) {
    const echoes: [unknown, string | number][] = [
      [pick([place], ["tld"]), asked.tld],
      [pick([place], ["action", "operation"]), asked.action],
      [pick([place], ["years", "period", "term"]), asked.years],
    ];
    for (const [echo, expected] of echoes) {
      if (echo !== undefined && !sameTerm(echo, expected)) throw misunderstood("the quote's subject");
    }
  }
  for (const place of amounts) {
    const total = pick([place], ["total", "total_amount", "total_price", "amount", "price", "value", "cost"]);
    const unit = pick([place], ["unit_price", "unit_amount", "price_per_year", "per_year", "unit"]);
    const amount = total ?? (asked.years === 1 ? unit : undefined);
    if (amount === undefined || typeof amount === "object") continue;
    const wholesale = parseWholesale(
      typeof amount === "number" ? twoDigits(amount) : amount,
      pick([place, ...layers], ["currency", "currency_code"]),
    );
    if (wholesale !== null) return wholesale;
    throw misunderstood("the quote's price");
  }
  throw misunderstood("the quote");
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

export function decodeBalance(data: unknown): Balance {
  const fields = fieldsOf(data, "the balance");
  const activeDomains = fields["active_domains"];
  if (typeof activeDomains !== "number" || !Number.isSafeInteger(activeDomains) || activeDomains < 0) {
    throw misunderstood("the balance's active_domains");
  }
  return {
    accountNumber: textOf(fields["account_number"], /^.{1,64}$/, "the balance's account_number"),
    balance: textOf(fields["balance"], /^-?\d{1,15}\.\d{2}$/, "the balance's balance"),
    currency: textOf(fields["currency"], /^[A-Z]{3}$/, "the balance's currency"),
    creditLimit: textOf(fields["credit_limit"], /^-?\d{1,15}\.\d{2}$/, "the balance's credit_limit"),
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
  const status = pick(fields, ["status", "state", "domain_status"]);
  return {
    domain,
    status:
      typeof status === "string"
        ? status
        : Array.isArray(status) && typeof status[0] === "string"
          ? status[0]
          : null,
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
  for (const key of ["domains", "items", "results", "records", "list", "data", "rows", "entries"]) {
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

/** The first present field under any of the spellings, layer by layer: case, `_`, `-` and spaces do not count. */
function pick(layers: readonly Fields[], spellings: readonly string[]): unknown {
  for (const fields of layers) {
    for (const spelling of spellings) {
      const wanted = spelling.replaceAll("_", "");
      for (const [key, value] of Object.entries(fields)) {
        if (value === null || value === undefined) continue;
        if (key.toLowerCase().replaceAll(/[_\- ]/g, "") === wanted) return value;
      }
    }
  }
  return undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
  return typeof name === "string" && name !== "" ? name : null;
}

function countOf(value: unknown): number | null {
  const count = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

function sameTerm(echo: unknown, expected: string | number): boolean {
  if (typeof expected === "number") return echo === expected || echo === String(expected);
  return typeof echo === "string" && echo.toLowerCase().replace(/^\./, "") === expected.replace(/^\./, "");
}

/** A JSON number that is exactly a two-digit decimal, written as one; anything else stays what no price can be read from. */
function twoDigits(amount: number): string | null {
  return /^\d+(\.\d{1,2})?$/.test(String(amount)) ? amount.toFixed(2) : null;
}

const MS_FROM = 100_000_000_000;

/** Seconds or ms since the epoch, a date, or a date with a time (UTC unless it says otherwise), as RFC 3339 UTC. */
function instantOf(value: unknown): string | null {
  if (typeof value === "number" && Number.isFinite(value) && value > 0) {
    return rfc3339(new Date(value < MS_FROM ? value * 1000 : value));
  }
  if (typeof value !== "string") return null;
  const text = value.trim();
  if (/^\d{9,13}$/.test(text)) return instantOf(Number(text));
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
