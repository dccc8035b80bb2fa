/**
 * The upstream's vocabulary: its operations, and every field name and word that the service accepts, once. Decoding reads these names, whatever
 * else appears is unexpected, and the probe recognizes records by them. Case, `_`, `-` and spaces make no difference in a name.
 */

/** The six operations (section 4 of the upstream's document). */
export const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;
export type Operation = (typeof OPERATIONS)[number];

export const ENVELOPE = { success: ["success"], data: ["data"] } as const;

export const CHECK = {
  domain: ["domain"],
  status: ["status"],
  available: ["available"],
  pricing: ["pricing"],
} as const;

export const PRICE = {
  amount: ["amount"],
  currency: ["currency"],
  years: ["years", "period", "term"],
  /** Its value names the period that the amount covers. */
  per: ["per", "unit", "interval", "basis", "price_basis", "price_per", "billing_period"],
  /** True if the amount covers one year. */
  isPerYear: ["per_year", "yearly", "annual"],
} as const;

export const QUOTE = {
  wrappers: ["quote", "result", "price_quote"],
  tld: ["tld"],
  action: ["action", "operation"],
  /** Objects that can contain the amount. */
  prices: ["pricing", "price", "total", "cost", "amount"],
  totals: ["total", "total_amount", "total_price", "amount", "price", "value", "cost"],
  unitPrices: ["unit_price", "unit_amount", "price_per_year", "per_year", "unit"],
  currency: ["currency", "currency_code"],
} as const;

export const RECORD = {
  name: ["domain", "name", "domain_name", "fqdn"],
  status: ["status", "state", "domain_status"],
  registered: [
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
  ],
  expiry: [
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
  ],
  autoRenew: ["auto_renew", "autorenew", "auto_renewal", "auto_renew_enabled", "renew_automatically"],
  nameservers: ["nameservers", "name_servers", "ns", "dns", "hosts"],
} as const;

/** The name of a nameserver that is an object. Names next to it are free, as are those of nameservers in an object. */
export const NAMESERVER = ["host", "hostname", "name", "nameserver", "server"] as const;

export const DOMAIN = { wrappers: ["domain", "record", "details"] } as const;

export const LIST = {
  wrappers: ["domains", "items", "results", "result", "records", "list", "data", "rows", "entries"],
  itemWrappers: ["domain"],
} as const;

export const BALANCE = {
  accountNumber: ["account_number"],
  balance: ["balance"],
  currency: ["currency"],
  creditLimit: ["credit_limit"],
  activeDomains: ["active_domains"],
} as const;

export const TIER = {
  wrappers: ["tier"],
  current: ["current_tier", "current"],
  next: ["next_tier", "next", "next_tier_name"],
  /** The current tier's name where nothing says "current". */
  names: ["tier", "name", "tier_name", "current_tier_name", "label", "title", "code", "slug"],
  /** The name of a tier that is an object. */
  objectNames: ["name", "tier", "label", "title", "code", "slug"],
  domainsNeeded: [
    "domains_needed",
    "domains_to_next",
    "domains_to_next_tier",
    "domains_needed_to_advance",
    "domains_to_advance",
    "needed",
    "remaining",
    "domains_remaining",
    "domains_required",
  ],
} as const;

const READ_BY = {
  check: [CHECK, PRICE],
  quote: [QUOTE, PRICE],
  domains: [LIST, RECORD],
  domain: [DOMAIN, RECORD],
  balance: [BALANCE],
  tier: [TIER],
} as const satisfies Readonly<Record<Operation, readonly Readonly<Record<string, readonly string[]>>[]>>;

type WordsOf<Group> = Group extends Readonly<Record<string, readonly (infer Word)[]>> ? Word : never;
/** A field name that some operation reads. */
export type Spelling =
  WordsOf<typeof ENVELOPE | (typeof READ_BY)[Operation][number]> | (typeof NAMESERVER)[number];

/** The normalized names of the fields that each operation reads from `data`, at any depth. */
export const FIELDS: Readonly<Record<Operation, ReadonlySet<string>>> = {
  check: namesIn(READ_BY.check),
  quote: namesIn(READ_BY.quote),
  domains: namesIn(READ_BY.domains),
  domain: namesIn(READ_BY.domain),
  balance: namesIn(READ_BY.balance),
  tier: namesIn(READ_BY.tier),
};

/** Statuses of a check that say of the name that it can't be registered. Any other word may be about the call, such as "rate_limited". */
export const TAKEN_WORDS = normalizedSet([
  "taken",
  "registered",
  "already_registered",
  "unavailable",
  "not_available",
  "in_use",
  "used",
  "occupied",
  "exists",
  "sold",
  "delegated",
  "reserved",
  "registry_reserved",
  "blocked",
  "restricted",
  "prohibited",
  "not_allowed",
  "redemption",
  "redemption_period",
  "pending_delete",
]);

/** Known statuses of a check. */
export const CHECK_STATUSES: ReadonlySet<string> = new Set(["available", ...TAKEN_WORDS]);

const EPP_UPDATES = ["delete", "renew", "transfer", "update"];
/** Known statuses of a domain: plain words, and those of EPP (RFC 5731, RFC 3915). */
export const RECORD_STATUSES = normalizedSet([
  "active",
  "inactive",
  "expired",
  "suspended",
  "pending",
  "locked",
  "redemption",
  "deleted",
  "ok",
  ...["add", "auto_renew", "renew", "transfer", "redemption"].map((grace) => `${grace}_period`),
  ...["create", "restore", ...EPP_UPDATES].map((action) => `pending_${action}`),
  ...["client", "server"].flatMap((side) => [
    `${side}_hold`,
    ...EPP_UPDATES.map((action) => `${side}_${action}_prohibited`),
  ]),
]);

/** Words for an auto-renew flag. */
export const ON_WORDS: readonly string[] = ["1", "true", "yes", "on", "enabled", "y"];
export const OFF_WORDS: readonly string[] = ["0", "false", "no", "off", "disabled", "n"];

/** Fields of an error object that can contain its code. */
export const ERROR_CODES = ["code", "error_code", "error", "type"] as const;

/** A name without case, `_`, `-` and spaces. */
export function normalized(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, "");
}

export function normalizedSet(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map(normalized));
}

function namesIn(groups: readonly Readonly<Record<string, readonly string[]>>[]): ReadonlySet<string> {
  return normalizedSet(groups.flatMap((group) => Object.values(group).flat()));
}
