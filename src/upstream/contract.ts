/**
 * What the upstream sends, made ours: what its document gives is taken exactly (sections 2 and 4), what it leaves open under any usual
 * spelling. Anything else is refused as `upstream_contract`, so no doubtful answer ever becomes a price, "available" or "taken".
 */
import { canonicalHost, type DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import { parseWholesale, type Wholesale } from "../money.js";

export type Action = "registration" | "renewal" | "transfer" | "restore";

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
  const status =
    typeof fields["status"] === "string" ? fields["status"].trim().toLowerCase() : fields["status"];
  if (available === true) {
    if (status !== "available") throw misunderstood("the check's status");
    const pricing = fieldsOf(fields["pricing"], "the check's pricing");
    const wholesale = parseWholesale(pricing["amount"], pricing["currency"]);
    if (wholesale === null) throw misunderstood("the check's price");
    return { status: "available", wholesale };
  }
  if (available !== false) throw misunderstood("the check's available flag");
  if (status === "available" || (typeof status === "string" && UNDECIDED_WORDS.has(status))) {
    throw misunderstood("the check's status");
  }
  return { status: "taken" };
}

/** The quote's shape is open: nested or flat, string or number. A price per year is taken only where it is the whole price. */
export function decodeQuote(data: unknown, asked: Term): Wholesale {
  const quote = fieldsOf(unwrapped(data, ["quote", "result", "price_quote"]), "the quote");
  const echoes: [unknown, string | number][] = [
    [pick(quote, ["tld"]), asked.tld],
    [pick(quote, ["action", "operation"]), asked.action],
    [pick(quote, ["years", "period", "term"]), asked.years],
  ];
  for (const [echo, expected] of echoes) {
    if (echo !== undefined && !sameTerm(echo, expected)) throw misunderstood("the quote's subject");
  }
  const amounts = [
    quote,
    ...["pricing", "price", "total", "cost", "amount"].map((key) => fieldsOrNull(pick(quote, [key]))),
  ];
  for (const place of amounts) {
    if (place === null) continue;
    const total = pick(place, ["total", "total_amount", "total_price", "amount", "price", "value", "cost"]);
    const unit = pick(place, ["unit_price", "unit_amount", "price_per_year", "per_year", "unit"]);
    const amount = total ?? (asked.years === 1 ? unit : undefined);
    if (amount === undefined || typeof amount === "object") continue;
    const wholesale = parseWholesale(
      typeof amount === "number" ? twoDigits(amount) : amount,
      pick(place, ["currency", "currency_code"]) ?? pick(quote, ["currency", "currency_code"]),
    );
    if (wholesale !== null) return wholesale;
    throw misunderstood("the quote's price");
  }
  throw misunderstood("the quote");
}

/** The list, bare or wrapped, of records or of names. */
export function decodeDomainList(data: unknown): DomainRecord[] {
  const list = Array.isArray(data) ? data : listIn(fieldsOf(data, "the domain list"));
  return list.map((item: unknown) => {
    const record = typeof item === "string" ? { domain: item } : fieldsOf(item, "a listed domain");
    return decodeRecord(unwrapped(record, ["domain"]), null);
  });
}

/** One record, or null where the upstream has none. */
export function decodeDomain(data: unknown, asked: DomainName): DomainRecord | null {
  if (data === null || data === undefined) return null;
  const fields = fieldsOf(unwrapped(data, ["domain", "record", "details"]), "the domain");
  if (Object.keys(fields).length === 0) return null;
  const record = decodeRecord(fields, asked.ascii);
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
  const fields = fieldsOf(unwrapped(data, ["tier"]), "the tier");
  const current = fieldsOrNull(pick(fields, ["current_tier", "current"]));
  const next = fieldsOrNull(pick(fields, ["next_tier", "next"]));
  const currentTier = nameIn(
    pick(fields, ["current_tier", "current", "tier", "name", "tier_name", "current_tier_name"]),
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
    nextTier: nameIn(pick(fields, ["next_tier", "next", "next_tier_name"])),
    domainsNeeded: countOf(
      pick(fields, needed) ?? (next && pick(next, needed)) ?? (current && pick(current, needed)),
    ),
  };
}

function decodeRecord(source: unknown, name: string | null): DomainRecord {
  const fields = fieldsOf(source, "a domain record");
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

function listIn(fields: Fields): unknown[] {
  for (const key of ["domains", "items", "results", "records", "list", "data", "rows", "entries"]) {
    const value = pick(fields, [key]);
    if (Array.isArray(value)) return value;
    const inner = fieldsOrNull(value);
    if (inner !== null) return listIn(inner);
  }
  throw misunderstood("the domain list");
}

/** The object under the first of `keys` that holds one, else the object itself. */
function unwrapped(data: unknown, keys: readonly string[]): unknown {
  const fields = fieldsOrNull(data);
  if (fields === null) return data;
  return fieldsOrNull(pick(fields, keys)) ?? fields;
}

/** The first present field under any of the spellings: case, `_` and `-` do not count. */
function pick(fields: Fields, spellings: readonly string[]): unknown {
  for (const spelling of spellings) {
    const wanted = spelling.replaceAll("_", "");
    for (const [key, value] of Object.entries(fields)) {
      if (value !== null && value !== undefined && key.toLowerCase().replaceAll(/[_\- ]/g, "") === wanted)
        return value;
    }
  }
  return undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldsOrNull(value: unknown): Fields | null {
  return isFields(value) ? value : null;
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
  const name = isFields(value) ? pick(value, ["name", "tier", "label", "title", "code", "slug"]) : value;
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
  const offset = /^[+-]/.test(zone) ? zone.replace(/^(...):?/, "$1:") : "Z";
  return rfc3339(new Date(`${day}T${time}${offset}`));
}

function rfc3339(date: Date): string | null {
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function flagOf(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" || typeof value === "number" ? String(value).toLowerCase() : "";
  if (["1", "true", "yes", "on", "enabled", "y"].includes(word)) return true;
  if (["0", "false", "no", "off", "disabled", "n"].includes(word)) return false;
  return null;
}

function hostsOf(value: unknown): string[] {
  const items: unknown[] =
    typeof value === "string"
      ? value.split(/[\s,;]+/)
      : Array.isArray(value)
        ? value
        : isFields(value)
          ? Object.values(value)
          : [];
  return items.flatMap((item) => {
    const host = isFields(item) ? pick(item, ["host", "hostname", "name", "nameserver", "server"]) : item;
    const name = typeof host === "string" ? canonicalHost(host) : null;
    return name === null ? [] : [name];
  });
}

function misunderstood(what: string): ServiceError {
  return new ServiceError("upstream_contract", `The registry service's answer was not understood (${what}).`);
}
