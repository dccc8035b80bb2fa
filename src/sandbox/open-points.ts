/**
 * Every point that the upstream's document leaves open and that an answer can show, with the settings that the sandbox can play. Types,
 * validation, presets, the probe and the documentation are derived from this table.
 */

type Settings = readonly [string | number, ...(string | number)[]];

interface OpenPoint<S extends Settings = Settings> {
  /** The document's section. */
  readonly section: string;
  /** The document's words that leave it open, verbatim. */
  readonly words: string;
  /** What is open, as a noun phrase. */
  readonly about: string;
  /** The first one is what the sandbox plays by default. */
  readonly settings: S;
}

function point<const S extends Settings>(
  section: string,
  words: string,
  about: string,
  ...settings: S
): OpenPoint<S> {
  return { section, words, about, settings };
}

const STATUSES = "HTTP status codes per error case (including missing or invalid credentials";
const RECORD = "Domain record field names and types: not shown.";
const LIST = "Query parameters, pagination beyond the cap, ordering and item shape: not shown.";
const QUOTE = "Pricing quote response fields: not shown.";
const TIER = "Tier record fields: not shown.";
const LIMITED = "Response and headers when the rate limit is exceeded: not shown.";

export const OPEN_POINTS = {
  envelope: point(
    "2",
    "Successful responses are JSON objects",
    "fields beside success and data",
    "bare",
    "meta",
  ),
  takenStatus: point(
    "2",
    "Values of `status` other than `available`: not shown.",
    "the status of a name that cannot be registered",
    "taken",
    "registered",
    "unavailable",
    "not-available",
    "UNAVAILABLE",
  ),
  takenPricing: point(
    "2",
    "| pricing | object | reseller-effective price |",
    "pricing of a name that cannot be registered",
    "null",
    "absent",
    "empty",
    "zero",
    "price",
  ),
  checkEcho: point(
    "2",
    "### Availability result (data of the domain check)",
    "years in a check's answer",
    "none",
    "years",
  ),
  recordFields: point(
    "2",
    RECORD,
    "field names of a domain record",
    "at",
    "date",
    "camel",
    "whois",
    "pascal",
    "short",
  ),
  recordWrapper: point("2", RECORD, "what wraps one record", "none", "domain"),
  dates: point(
    "2",
    RECORD,
    "date format",
    "rfc3339",
    "fraction",
    "offset",
    "day",
    "space",
    "seconds",
    "milliseconds",
    "month-name",
  ),
  autoRenew: point("2", RECORD, "format of auto-renew", "boolean", "number", "word", "text"),
  nameservers: point("2", RECORD, "format of nameservers", "list", "objects", "numbered", "text"),
  tierFields: point("2", TIER, "field names of a tier", "flat", "camel", "nested", "wrapped", "counted"),
  topTier: point("2", TIER, "the next tier when there is none", "null", "absent", "empty"),
  quoteFields: point(
    "2",
    QUOTE,
    "where a quote carries its price, and whether it is for the term or for a year",
    "nested",
    "flat",
    "wrapped",
    "unit-and-total",
    "unit",
    "per-year",
  ),
  quoteAmount: point(
    "2",
    QUOTE,
    "format of a quote's amount",
    "text",
    "number",
    "padded-number",
    "minor-units",
  ),
  quoteEcho: point("2", QUOTE, "whether a quote repeats the request", "all", "none"),
  statusWords: point(
    "3",
    "Domain states: not shown.",
    "spelling of states",
    "lower",
    "upper",
    "title",
    "epp",
  ),
  checkYears: point(
    "4",
    "Whether years is required, its bounds and default: not shown.",
    "years of a check: required, at most 5, or ignored (always one)",
    "optional",
    "required",
    "bounded",
    "ignored",
  ),
  quoteYears: point(
    "4",
    "Which of the request fields are required: not shown.",
    "years of a quote: required, or at most 5",
    "optional",
    "required",
    "bounded",
  ),
  listWrapper: point("4", LIST, "what wraps the list", "domains", "items", "data", "nested"),
  listItems: point("4", LIST, "shape of the list's items", "records", "wrapped", "brief", "names"),
  listOrder: point("4", LIST, "order of the list", "given", "name", "newest"),
  listPaging: point("4", LIST, "fields about further pages", "none", "counts", "links", "cursor"),
  notManaged: point(
    "4",
    "Response when the domain is not managed by the reseller or does not exist: not shown.",
    "the answer for a domain that is not managed",
    404,
    403,
    "refusal-in-200",
    "empty",
    "nothing",
  ),
  errorFields: point(
    "7",
    "Field names of the error object: not shown.",
    "shape of the error object (text is what a proxy in front answers)",
    "nested",
    "flat",
    "word",
    "list",
    "problem",
    "text",
  ),
  errorFlag: point(
    "7",
    "Field names of the error object: not shown.",
    "success: false in an error",
    "present",
    "absent",
  ),
  errorCodes: point(
    "7",
    "The list of error codes: not shown.",
    "spelling of error codes",
    "snake",
    "upper",
    "pascal",
    "kebab",
    "number",
  ),
  credentialStatus: point("7", STATUSES, "status for missing or invalid credentials", 401, 403, 400, 200),
  accessStatus: point(
    "7",
    "a request from a non-allowlisted address",
    "status for a blocked address or account",
    403,
    401,
    200,
  ),
  inputStatus: point("7", "invalid input): not shown.", "status for invalid input", 422, 400, 200),
  limitStatus: point("8", LIMITED, "status when the limit is exceeded", 429, 403, 503, 200),
  retryAfter: point(
    "8",
    LIMITED,
    "Retry-After when the limit is exceeded",
    "seconds",
    "date",
    "milliseconds",
    "absurd",
    "absent",
  ),
  limitFields: point(
    "8",
    LIMITED,
    "further fields when the limit is exceeded",
    "none",
    "x-ratelimit",
    "ratelimit",
  ),
} as const;

export type Switch = keyof typeof OPEN_POINTS;

/** One setting for each open point. */
export type ShapeSettings = {
  readonly [Name in Switch]: (typeof OPEN_POINTS)[Name]["settings"][number];
};

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

export const RECORD_NAMES: Readonly<Record<ShapeSettings["recordFields"], RecordNames>> = {
  at: ["domain", "status", "expires_at", "registered_at", "auto_renew", "nameservers"],
  date: ["domain", "status", "expiry_date", "registration_date", "auto_renew", "nameservers"],
  camel: ["domainName", "status", "expiryDate", "registrationDate", "autoRenew", "nameServers"],
  whois: ["domain_name", "domain_status", "expiration_date", "creation_date", "auto_renewal", "name_servers"],
  pascal: ["DomainName", "Status", "ExpiresOn", "RegisteredOn", "AutoRenewEnabled", "NameServers"],
  short: ["name", "state", "expiry", "registered", "autorenew", "ns"],
};
