/**
 * The upstream's vocabulary: its operations, and every field name and word that the service accepts, once. Decoding reads these names, whatever
 * else appears is unexpected, and the probe recognizes records by them. Case, `_`, `-` and spaces make no difference in a name.
 */

/** The six operations (section 4 of the upstream's document). */
export const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;
export type Operation = (typeof OPERATIONS)[number];

const words = (list: string): readonly string[] => list.trim().split(/\s+/);

export const PRICE = {
  currency: words("currency"),
  years: words("years period term"),
  /** Its value names the period that the amount covers. */
  per: words("per unit interval basis price_basis price_per billing_period"),
  /** True if the amount covers one year. */
  isPerYear: words("per_year yearly annual"),
};

export const QUOTE = {
  wrappers: words("quote result price_quote"),
  tld: words("tld"),
  action: words("action operation"),
  /** Objects that can contain the amount. */
  prices: words("pricing price total cost amount"),
  totals: words("total total_amount total_price amount price value cost"),
  unitPrices: words("unit_price unit_amount price_per_year per_year unit"),
  currency: words("currency currency_code"),
};

export const RECORD = {
  name: words("domain name domain_name fqdn"),
  status: words("status state domain_status"),
  registered: words(
    `registered_at registration_date registered registered_on created_at creation_date created created_on create_date
     registration`,
  ),
  expiry: words(
    `expires_at expiry_date expiry expires expires_on expiration_date expiration expire_date expiry_at valid_until`,
  ),
  autoRenew: words("auto_renew autorenew auto_renewal auto_renew_enabled renew_automatically"),
  nameservers: words("nameservers name_servers ns dns hosts"),
};

/** The name of a nameserver that is an object. Names next to it are free, as are those of nameservers in an object. */
export const NAMESERVER = words("host hostname name nameserver server");

export const DOMAIN = { wrappers: words("domain record details") };

export const LIST = {
  wrappers: words("domains items results result records list data rows entries"),
  itemWrappers: words("domain"),
};

export const TIER = {
  wrappers: words("tier"),
  current: words("current_tier current"),
  next: words("next_tier next next_tier_name"),
  /** The current tier's name where nothing says "current". */
  names: words("tier name tier_name current_tier_name label title code slug"),
  /** The name of a tier that is an object. */
  objectNames: words("name tier label title code slug"),
  domainsNeeded: words(
    `domains_needed domains_to_next domains_to_next_tier domains_needed_to_advance domains_to_advance needed remaining
     domains_remaining domains_required`,
  ),
};

/** The normalized names of the fields that each operation reads from `data`, at any depth. */
export const FIELDS: Readonly<Record<Operation, ReadonlySet<string>>> = {
  check: namesIn({ documented: words("domain status available pricing amount") }, PRICE),
  quote: namesIn(QUOTE, PRICE),
  domains: namesIn(LIST, RECORD),
  domain: namesIn(DOMAIN, RECORD),
  balance: namesIn({ documented: words("account_number balance currency credit_limit active_domains") }),
  tier: namesIn(TIER),
};

/** Statuses of a check that say of the name that it can't be registered. Any other word may be about the call, such as "rate_limited". */
export const TAKEN_WORDS = normalizedSet(
  words(
    `taken registered already_registered unavailable not_available in_use used occupied exists sold delegated reserved
     registry_reserved blocked restricted prohibited not_allowed redemption redemption_period pending_delete`,
  ),
);

const EPP_UPDATES = words("delete renew transfer update");
/** Known statuses of a domain: plain words, and those of EPP (RFC 5731, RFC 3915). */
const RECORD_STATUSES = normalizedSet([
  ...words("active inactive expired suspended pending locked redemption deleted ok"),
  ...words("add auto_renew renew transfer redemption").map((grace) => `${grace}_period`),
  ...[...EPP_UPDATES, "create", "restore"].map((action) => `pending_${action}`),
  ...["client", "server"].flatMap((side) => [
    `${side}_hold`,
    ...EPP_UPDATES.map((action) => `${side}_${action}_prohibited`),
  ]),
]);

export function isKnownStatus(operation: Operation, word: string): boolean {
  const name = normalized(word);
  if (operation !== "check") return RECORD_STATUSES.has(name);
  return name === "available" || TAKEN_WORDS.has(name);
}

/** Words for an auto-renew flag. */
export const ON_WORDS = words("1 true yes on enabled y");
export const OFF_WORDS = words("0 false no off disabled n");

/** A name without case, `_`, `-` and spaces. */
export function normalized(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, "");
}

export function normalizedSet(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map(normalized));
}

function namesIn(...groups: readonly Readonly<Record<string, readonly string[]>>[]): ReadonlySet<string> {
  return normalizedSet(groups.flatMap((group) => Object.values(group).flat()));
}
