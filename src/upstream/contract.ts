/**
 * Decodes the upstream's answers into our types: what its document shows exactly as written (sections 2 and 4), what it leaves open under every
 * spelling of the vocabulary. Anything else is rejected as `upstream_contract`, so an uncertain answer never becomes a price, "available" or "taken".
 */
import { canonicalHost, type DomainName } from "../domain-name.js";
import { parseWholesale, sameWholesale, type Wholesale } from "../money.js";
import { ServiceError } from "../errors.js";
import { notUnderstood, upstreamFailed } from "./failures.js";
import { unwritten } from "./body.js";
import { documented, type Fields, fieldsOf, found, isFields, type Layers, layersOf, pick } from "./fields.js";
import { countOf, decimalOf, flagOf, hostsOf, instantOf } from "./values.js";
import { describeSign, type Sign, signIn, statesOtherActions } from "./signs.js";
import {
  DOMAIN,
  LIST,
  normalized,
  normalizedSet,
  PRICE,
  QUOTE,
  RECORD,
  TAKEN_WORDS,
  TIER,
} from "./vocabulary.js";

/** What a price can be quoted for (section 2). */
export const ACTIONS = ["registration", "renewal", "transfer", "restore"] as const;
export type Action = (typeof ACTIONS)[number];

/** What one price is for: a TLD, an action and a term. */
export interface Combination {
  readonly tld: string;
  readonly action: Action;
  readonly years: number;
}

/** The result of a check. An available name always has a price. */
export type Check = (
  | { readonly status: "available"; readonly wholesale: Wholesale }
  /** Some upstreams state a price for a taken name, too. */
  | { readonly status: "taken"; readonly wholesale?: Wholesale }
) & {
  /** Something else in the answer says that this may not be an ordinary name. */
  readonly sign?: Sign;
  /** The answer also states what another action on the name costs, so the list's price may not be the name's. */
  readonly hasOtherPrices?: true;
};

export interface DomainRecord {
  readonly domain: string;
  readonly status: string | null;
  /** RFC 3339 UTC. */
  readonly registeredAt: string | null;
  /** RFC 3339 UTC. */
  readonly expiresAt: string | null;
  readonly autoRenew: boolean | null;
  readonly nameservers: readonly string[];
  /** It has such a sign, so the list's prices aren't its own. */
  readonly hasOwnPrices?: true;
}

/** The domain list: a record that can't be read spoils only itself. */
export interface DomainList {
  readonly records: readonly DomainRecord[];
  readonly unreadable: readonly UnreadableRecord[];
}

export interface UnreadableRecord {
  /** The names that could be read of it: these are managed, too. */
  readonly names: readonly string[];
  /** Completes "The record …". */
  readonly why: string;
}

/** Reports something in an answer that isn't understood, in words that contain nothing of it. */
export type Note = (what: string) => void;

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

/** `data` of a successful envelope (section 2), and what stands beside it. */
export function decodeEnvelope(body: unknown): { readonly data: unknown; readonly beside: Fields } {
  const envelope = fieldsOf(body, "the envelope");
  const success = documented(envelope, "success");
  if (success === false) throw upstreamFailed("refused the request");
  if (success !== true) throw notUnderstood("the envelope's success flag");
  const { success: _, data: __, ...beside } = envelope;
  return { data: documented(envelope, "data"), beside };
}

/**
 * The price is `pricing`, for all of `years`. An answer for another term, or with a price in none of `currencies` (default: any), is
 * rejected.
 */
export function decodeCheck(
  data: unknown,
  asked: DomainName,
  years: number,
  currencies?: ReadonlySet<string>,
  note: Note = () => {},
  beside: Fields = {},
): Check {
  const signsIn = (price: Wholesale | null): Pick<Check, "sign" | "hasOtherPrices"> => {
    const { domain: _name, ...rest } = fieldsOf(data, "the check");
    // Amounts beside the data are about something else, such as the call.
    const sign = signIn(rest, price) ?? signIn(beside, null);
    if (sign !== undefined) note(describeSign(sign));
    const hasOtherPrices = statesOtherActions(rest);
    if (hasOtherPrices) note("the price of another action on the name");
    return { ...(sign && { sign }), ...(hasOtherPrices && { hasOtherPrices }) };
  };
  const fields = fieldsOf(data, "the check");
  const domain = documented(fields, "domain");
  if (typeof domain !== "string" || canonicalHost(domain) !== asked.ascii) {
    throw notUnderstood("the check's domain");
  }
  const available = documented(fields, "available");
  const word = documented(fields, "status");
  const status = typeof word === "string" ? word.trim().toLowerCase() : "";
  if (available === true) {
    if (status !== "available") throw notUnderstood("the check's status");
    const pricing = fieldsOf(documented(fields, "pricing"), "the check's pricing");
    const wholesale = priceOf(documented(pricing, "amount"), documented(pricing, "currency"), currencies);
    if (wholesale === null || !coversTerm([pricing], years)) throw notUnderstood("the check's price");
    for (const echo of found([fields], PRICE.currency)) {
      if (echo !== wholesale.currency) throw notUnderstood("the check's currency");
    }
    for (const echo of found([fields, pricing], PRICE.years)) {
      if (!sameTerm(echo, years)) throw notUnderstood("the check's years");
    }
    return { status: "available", wholesale, ...signsIn(wholesale) };
  }
  if (available !== false) throw notUnderstood("the check's available flag");
  if (!TAKEN_WORDS.has(normalized(status))) throw notUnderstood("the check's status");
  const pricing = fields["pricing"];
  const wholesale =
    isFields(pricing) && coversTerm([pricing], years)
      ? parseWholesale(pick([pricing], ["amount"]), pick([pricing], PRICE.currency))
      : null;
  const isExpected = wholesale !== null && currencies?.has(wholesale.currency) !== false;
  return { status: "taken", ...(isExpected && { wholesale }), ...signsIn(isExpected ? wholesale : null) };
}

/**
 * The quote's shape is open: nested or flat, text or number. A price per year is accepted only if it is the whole price. A price whose unit is
 * uncertain, or that is in none of `currencies` (default: any), is rejected.
 */
export function decodeQuote(
  data: unknown,
  asked: Combination,
  currencies?: ReadonlySet<string>,
  beside: Fields = {},
): Wholesale {
  const layers = layersOf(data, QUOTE.wrappers, "the quote");
  const [quote] = layers;
  const nested = QUOTE.prices.map((key) => pick([quote], [key]));
  const amounts = [quote, ...nested.filter(isFields)];
  for (const fields of [...layers, ...amounts]) {
    const echoes: [unknown, string | number][] = [
      [pick([fields], QUOTE.tld), asked.tld],
      [pick([fields], QUOTE.action), asked.action],
      [pick([fields], PRICE.years), asked.years],
    ];
    for (const [echo, expected] of echoes) {
      if (echo !== undefined && !sameTerm(echo, expected)) throw notUnderstood("the quote's subject");
    }
  }
  const pricesUnder = (spellings: readonly string[]): (Wholesale | null)[] =>
    amounts.flatMap((fields) =>
      [...found([fields], spellings)]
        .filter((value) => !isFields(value) && !Array.isArray(value))
        .map((value) => priceOf(decimalOf(value), pick([fields, ...layers], QUOTE.currency), currencies)),
    );
  const totals = pricesUnder(QUOTE.totals);
  const units = pricesUnder(QUOTE.unitPrices);
  const [price, ...others] = totals.length === 0 && asked.years === 1 ? units : totals;
  if (price === undefined) throw notUnderstood("the quote");
  // With two amounts for one term, or a total that equals the price of one year, it is unclear which will be charged.
  const isDoubtful =
    others.some((other) => !isSamePrice(price, other)) ||
    (asked.years > 1 && units.some((unit) => isSamePrice(price, unit))) ||
    !coversTerm(amounts, asked.years);
  // A quote is for every name under the TLD.
  const sign = signIn([data, beside], null);
  if (sign !== undefined) throw notUnderstood(`a quote with ${describeSign(sign)}`);
  if (price === null || isDoubtful) throw notUnderstood("the quote's price");
  return price;
}

function priceOf(
  amount: unknown,
  currency: unknown,
  currencies: ReadonlySet<string> | undefined,
): Wholesale | null {
  const price = parseWholesale(amount, currency);
  if (price !== null && currencies?.has(price.currency) === false)
    throw notUnderstood("a price in a currency that is not expected");
  return price;
}

function isSamePrice(a: Wholesale | null, b: Wholesale | null): boolean {
  return a !== null && b !== null && sameWholesale(a, b);
}

/** Whether the amount is for the whole term: no field next to it says that it is for a part. */
function coversTerm(layers: readonly Fields[], years: number): boolean {
  const words = [...found(layers, PRICE.per)].filter((word) => typeof word === "string");
  if (words.some((word) => /month|quarter|week|day/i.test(word))) return false;
  const isPerYear =
    words.some((word) => /year|annual|annum/i.test(word)) ||
    [...found(layers, PRICE.isPerYear)].includes(true);
  return years === 1 || !isPerYear;
}

/** The document says at most 100. A later version may allow more, but a hostile answer must not keep the process busy. */
const MAX_LIST_LENGTH = 1000;

/** A list of records or of names, perhaps wrapped. A list of which nothing can be read is rejected. */
export function decodeDomainList(data: unknown, note: Note = () => {}): DomainList {
  const list: unknown[] = Array.isArray(data) ? data : listIn(fieldsOf(data, "the domain list"));
  if (list.length > MAX_LIST_LENGTH) throw notUnderstood("the domain list");
  const records: DomainRecord[] = [];
  const unreadable: UnreadableRecord[] = [];
  for (const item of list) {
    const record = typeof item === "string" ? { domain: item } : item;
    const names = isFields(record) ? namesIn(record) : [];
    try {
      if (names.length > 1) throw notUnderstood("a domain record's name");
      const read = decodeRecord(layersOf(record, LIST.itemWrappers, "a listed domain"), null, note);
      if (records.some(({ domain }) => domain === read.domain)) note("a name that is listed twice");
      records.push(read);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const why = names.length > 0 ? "has two values for one field" : "has no name that can be read";
      unreadable.push({ names, why });
      note(`a record ${why}`);
    }
  }
  if (records.length === 0 && unreadable.length > 0) throw notUnderstood("the domain list");
  return { records, unreadable };
}

const NAMESERVER_FIELDS = normalizedSet(RECORD.nameservers);
const NAME_FIELDS = normalizedSet(RECORD.name);

/** The names in a record that contradicts itself, in which fields may therefore appear twice. */
function namesIn(record: Fields): string[] {
  const names = Object.entries(record).flatMap(([key, value]) => {
    if (!NAME_FIELDS.has(normalized(key))) return [];
    if (isFields(value)) return namesIn(value);
    const written: unknown[] = Array.isArray(value) ? value : [value];
    return written.flatMap((one) => (typeof one === "string" ? (canonicalHost(one) ?? []) : []));
  });
  return [...new Set(names)];
}

/** One record, or null if the upstream has none. */
export function decodeDomain(data: unknown, asked: DomainName, note: Note = () => {}): DomainRecord | null {
  if (data === null || data === undefined) return null;
  const layers = layersOf(data, DOMAIN.wrappers, "the domain");
  if (Object.keys(layers[0]).length === 0) return null;
  const record = decodeRecord(layers, asked.ascii, note);
  if (record.domain !== asked.ascii) throw notUnderstood("the domain's name");
  return record;
}

/** An amount of the account, perhaps negative, in its only canonical form. */
const AMOUNT = /^(?!-0\.00$)-?(?:0|[1-9]\d{0,14})\.\d{2}$/;
/** Text that people will read, without control characters, line ends, changes of direction or unpaired surrogates. */
const FREE_TEXT = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,64}$/u;

export function decodeBalance(data: unknown): Balance {
  const fields = fieldsOf(data, "the balance");
  const text = (name: string, grammar: RegExp): string =>
    textOf(documented(fields, name), grammar, `the balance's ${name}`);
  const activeDomains = unwritten(documented(fields, "active_domains"));
  if (typeof activeDomains !== "number" || !Number.isSafeInteger(activeDomains) || activeDomains < 0) {
    throw notUnderstood("the balance's active_domains");
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
  const layers = layersOf(data, TIER.wrappers, "the tier");
  const current = pick(layers, TIER.current);
  const next = pick(layers, TIER.next);
  const currentTier = nameIn(current ?? pick(layers, TIER.names));
  if (currentTier === null) throw notUnderstood("the tier");
  return {
    currentTier,
    nextTier: nameIn(next),
    domainsNeeded: countOf(pick([...layers, ...[next, current].filter(isFields)], TIER.domainsNeeded)),
  };
}

function decodeRecord(layers: Layers, asked: string | null, note: Note): DomainRecord {
  const name = pick(layers, RECORD.name) ?? asked;
  const domain = typeof name === "string" ? canonicalHost(name) : null;
  if (domain === null) throw notUnderstood("a domain record's name");
  const written = pick(layers, RECORD.status);
  const status: unknown = Array.isArray(written) ? written[0] : written;
  const isText = typeof status === "string" && FREE_TEXT.test(status);
  if (status !== undefined && status !== "" && !isText) note("a status that isn't a word");
  const autoRenew = pick(layers, RECORD.autoRenew);
  if (autoRenew !== undefined && flagOf(autoRenew) === null) note("auto-renewal is neither on nor off");
  return {
    domain,
    status: isText ? status : null,
    ...datesOf(layers, note),
    autoRenew: flagOf(autoRenew),
    nameservers: hostsOf(pick(layers, RECORD.nameservers)),
    ...(signIn(withoutNames(layers), null) !== undefined && { hasOwnPrices: true }),
  };
}

/** A name or a host that contains the word isn't a sign. */
function withoutNames(layers: Layers): readonly Fields[] {
  const isName = (key: string): boolean =>
    NAME_FIELDS.has(normalized(key)) || NAMESERVER_FIELDS.has(normalized(key));
  return layers.map((fields) => Object.fromEntries(Object.entries(fields).filter(([key]) => !isName(key))));
}

const DAY_MS = 24 * 3_600_000;

/** A domain can't expire before it was registered: then neither date is known. */
function datesOf(layers: Layers, note: Note): Pick<DomainRecord, "registeredAt" | "expiresAt"> {
  const registeredAt = dateOf(layers, RECORD.registered, note);
  const expiresAt = dateOf(layers, RECORD.expiry, note);
  if (registeredAt === null || expiresAt === null || registeredAt < expiresAt)
    return { registeredAt, expiresAt };
  note(`${RECORD.expiry[0]} isn't after ${RECORD.registered[0]}`);
  return { registeredAt: null, expiresAt: null };
}

/** The date in any of the fields: of several, the earliest, so that nobody renews too late. */
function dateOf(layers: Layers, spellings: readonly string[], note: Note): string | null {
  const written = [...found(layers, spellings)].filter((value) => value !== "");
  const dates = written.flatMap((value) => instantOf(value) ?? []).sort();
  const [first = null] = dates;
  const last = dates.at(-1);
  if (dates.length < written.length) note(`${spellings[0]} isn't a date that a domain can have`);
  if (first && last && Date.parse(last) - Date.parse(first) >= DAY_MS)
    note(`${spellings[0]} differs from another such date`);
  return first;
}

/** How many wrappers may contain the list. */
const MAX_LIST_DEPTH = 4;

function listIn(fields: Fields, wrappers = 1): unknown[] {
  for (const key of LIST.wrappers) {
    const value = pick([fields], [key]);
    if (Array.isArray(value)) return value;
    if (isFields(value) && wrappers < MAX_LIST_DEPTH) return listIn(value, wrappers + 1);
  }
  throw notUnderstood("the domain list");
}

function textOf(value: unknown, grammar: RegExp, what: string): string {
  if (typeof value !== "string" || !grammar.test(value)) throw notUnderstood(what);
  return value;
}

function nameIn(value: unknown): string | null {
  const name = isFields(value) ? pick([value], TIER.objectNames) : value;
  return typeof name === "string" && name !== "" ? textOf(name, FREE_TEXT, "the tier's name") : null;
}

function sameTerm(echo: unknown, expected: string | number): boolean {
  if (typeof expected === "number") return unwritten(echo) === expected || echo === String(expected);
  return typeof echo === "string" && echo.toLowerCase().replace(/^\./, "") === expected.replace(/^\./, "");
}
