/**
 * Every point that the upstream's document leaves open and that an answer can show, with the settings that the sandbox can play. Types,
 * validation, presets, the probe and the documentation are derived from this table.
 */

interface OpenPoint {
  /** The document's section. */
  readonly section: string;
  /** The document's words that leave it open, verbatim. */
  readonly words: string;
  /** What is open, as a noun phrase. */
  readonly about: string;
  /** The first one is what the sandbox plays by default. */
  readonly settings: readonly [string | number, ...(string | number)[]];
}

const SUCCESS = { section: "2", words: "Successful responses are JSON objects" };
const STATUS = { section: "2", words: "Values of `status` other than `available`: not shown." };
const PRICING = { section: "2", words: "| pricing | object | reseller-effective price |" };
const CHECK = { section: "2", words: "### Availability result (data of the domain check)" };
const RECORD = { section: "2", words: "Domain record field names and types: not shown." };
const TIER = { section: "2", words: "Tier record fields: not shown." };
const QUOTE = { section: "2", words: "Pricing quote response fields: not shown." };
const STATES = { section: "3", words: "Domain states: not shown." };
const YEARS = { section: "4", words: "Whether years is required, its bounds and default: not shown." };
const REQUIRED = { section: "4", words: "Which of the request fields are required: not shown." };
const LIST = {
  section: "4",
  words: "Query parameters, pagination beyond the cap, ordering and item shape: not shown.",
};
const NOT_MANAGED = {
  section: "4",
  words: "Response when the domain is not managed by the reseller or does not exist: not shown.",
};
const ERROR = { section: "7", words: "Field names of the error object: not shown." };
const CODES = { section: "7", words: "The list of error codes: not shown." };
const CREDENTIAL = {
  section: "7",
  words: "HTTP status codes per error case (including missing or invalid credentials",
};
const ADDRESS = { section: "7", words: "a request from a non-allowlisted address" };
const INPUT = { section: "7", words: "invalid input): not shown." };
const LIMIT = { section: "8", words: "Response and headers when the rate limit is exceeded: not shown." };

export const OPEN_POINTS = {
  envelope: { ...SUCCESS, about: "fields beside success and data", settings: ["bare", "meta"] },
  takenStatus: {
    ...STATUS,
    about: "the status of a name that cannot be registered",
    settings: ["taken", "registered", "unavailable", "not-available", "UNAVAILABLE"],
  },
  takenPricing: {
    ...PRICING,
    about: "pricing of a name that cannot be registered",
    settings: ["null", "absent", "empty", "zero", "price"],
  },
  checkEcho: { ...CHECK, about: "years in a check's answer", settings: ["none", "years"] },
  recordFields: {
    ...RECORD,
    about: "field names of a domain record",
    settings: ["at", "date", "camel", "whois", "pascal", "short"],
  },
  recordWrapper: { ...RECORD, about: "what wraps one record", settings: ["none", "domain"] },
  dates: {
    ...RECORD,
    about: "date format",
    settings: ["rfc3339", "fraction", "offset", "day", "space", "seconds", "milliseconds", "month-name"],
  },
  autoRenew: { ...RECORD, about: "format of auto-renew", settings: ["boolean", "number", "word", "text"] },
  nameservers: {
    ...RECORD,
    about: "format of nameservers",
    settings: ["list", "objects", "numbered", "text"],
  },
  tierFields: {
    ...TIER,
    about: "field names of a tier",
    settings: ["flat", "camel", "nested", "wrapped", "counted"],
  },
  topTier: { ...TIER, about: "the next tier when there is none", settings: ["null", "absent", "empty"] },
  quoteFields: {
    ...QUOTE,
    about: "where a quote carries its price, and whether it is for the term or for a year",
    settings: ["nested", "flat", "wrapped", "unit-and-total", "unit", "per-year"],
  },
  quoteAmount: {
    ...QUOTE,
    about: "format of a quote's amount",
    settings: ["text", "minor-units", "number", "padded-number"],
  },
  quoteEcho: { ...QUOTE, about: "whether a quote repeats the request", settings: ["all", "none"] },
  restoreRenewal: {
    section: "1",
    words: "quote reseller-effective prices for registration, renewal, transfer or restore;",
    about: "whether the price of a restore includes a renewal",
    settings: ["not-said"],
  },
  statusWords: { ...STATES, about: "spelling of states", settings: ["lower", "upper", "title", "epp"] },
  checkYears: {
    ...YEARS,
    about: "years of a check: required, at most 5, or ignored (always one)",
    settings: ["optional", "required", "bounded", "ignored"],
  },
  quoteYears: {
    ...REQUIRED,
    about: "years of a quote: required, or at most 5",
    settings: ["optional", "required", "bounded"],
  },
  listWrapper: { ...LIST, about: "what wraps the list", settings: ["domains", "items", "data", "nested"] },
  listItems: {
    ...LIST,
    about: "shape of the list's items",
    settings: ["records", "wrapped", "brief", "names"],
  },
  listOrder: { ...LIST, about: "order of the list", settings: ["given", "name", "newest"] },
  listPaging: {
    ...LIST,
    about: "fields about further pages",
    settings: ["none", "counts", "links", "cursor"],
  },
  notManaged: {
    ...NOT_MANAGED,
    about: "the answer for a domain that is not managed",
    settings: [404, 403, "refusal-in-200", "empty", "nothing"],
  },
  errorFields: {
    ...ERROR,
    about: "shape of the error object (text is what a proxy in front answers)",
    settings: ["nested", "flat", "word", "list", "problem", "text"],
  },
  errorFlag: { ...ERROR, about: "success: false in an error", settings: ["present", "absent"] },
  errorCodes: {
    ...CODES,
    about: "spelling of error codes",
    settings: ["snake", "upper", "pascal", "kebab", "number"],
  },
  credentialStatus: {
    ...CREDENTIAL,
    about: "status for missing or invalid credentials",
    settings: [401, 403, 400, 200],
  },
  accessStatus: { ...ADDRESS, about: "status for a blocked address or account", settings: [403, 401, 200] },
  inputStatus: { ...INPUT, about: "status for invalid input", settings: [422, 400, 200] },
  limitStatus: { ...LIMIT, about: "status when the limit is exceeded", settings: [429, 403, 503, 200] },
  retryAfter: {
    ...LIMIT,
    about: "Retry-After when the limit is exceeded",
    settings: ["seconds", "date", "milliseconds", "absurd", "absent"],
  },
  limitFields: {
    ...LIMIT,
    about: "further fields when the limit is exceeded",
    settings: ["none", "x-ratelimit", "ratelimit"],
  },
} as const satisfies Readonly<Record<string, OpenPoint>>;

export type Switch = keyof typeof OPEN_POINTS;

/** One setting for each open point. */
export type ShapeSettings = {
  readonly [Name in Switch]: (typeof OPEN_POINTS)[Name]["settings"][number];
};

/** One value for each setting of a point. */
export type BySetting<Name extends Switch, Value> = Readonly<Record<ShapeSettings[Name], Value>>;

function isSwitch(name: string): name is Switch {
  return Object.hasOwn(OPEN_POINTS, name);
}

/** The table's rows with their names. */
export function openPoints(): { readonly name: Switch; readonly point: OpenPoint }[] {
  return Object.keys(OPEN_POINTS)
    .filter(isSwitch)
    .map((name) => ({ name, point: OPEN_POINTS[name] }));
}

/** Whether every open point is present, with one of its settings. */
export function areShapeSettings(given: Readonly<Record<string, unknown>>): given is ShapeSettings {
  return openPoints().every(({ name, point: { settings } }) =>
    settings.some((setting) => setting === given[name]),
  );
}

/** Name, status, expiry, registration date, auto-renew, nameservers. */
type RecordNames = readonly [string, string, string, string, string, string];

export const RECORD_NAMES: BySetting<"recordFields", RecordNames> = {
  at: ["domain", "status", "expires_at", "registered_at", "auto_renew", "nameservers"],
  date: ["domain", "status", "expiry_date", "registration_date", "auto_renew", "nameservers"],
  camel: ["domainName", "status", "expiryDate", "registrationDate", "autoRenew", "nameServers"],
  whois: ["domain_name", "domain_status", "expiration_date", "creation_date", "auto_renewal", "name_servers"],
  pascal: ["DomainName", "Status", "ExpiresOn", "RegisteredOn", "AutoRenewEnabled", "NameServers"],
  short: ["name", "state", "expiry", "registered", "autorenew", "ns"],
};
