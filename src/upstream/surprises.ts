/**
 * What the upstream says that nobody expected: counted, logged once, and kept for staff as a shape. A shape is a path of field names with a
 * kind of JSON, or a word of the upstream's vocabulary; it is never a value.
 */
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import type { Operation } from "./operation.js";
import { WrittenNumber } from "./written-json.js";

export interface Surprise {
  readonly operation: Operation;
  /** Such as `data.registrar (string)` or `error.code "frozen"`. */
  readonly what: string;
  readonly count: number;
  readonly firstSeenMs: number;
}

export interface Surprises {
  /** Looks through a successful answer for fields and status words that are not known; `hidden` is told in no form. */
  inAnswer(operation: Operation, body: unknown, hidden: readonly string[]): void;
  /** Looks for the code of an error whose meaning is not known. */
  inError(operation: Operation, body: unknown, hidden: readonly string[]): void;
  /** At most 50, the first ones. */
  list(): Surprise[];
  /** How many there were since the start, by operation, those that are not listed included. */
  totals(): Readonly<Record<string, number>>;
}

const MOST_LISTED = 50;
const MOST_VALUES = 5000;
const DEEPEST = 6;
/** Fewer letters of something are in many words. */
const SHORTEST_PART = 4;

const STATUS = "status state domain_status";
const HOSTS = "nameservers name_servers ns dns hosts";
const PRICE = `pricing amount currency years period term per unit interval basis price_basis price_per
  billing_period per_year yearly annual`;
const RECORD = `domain name domain_name fqdn ${STATUS} ${HOSTS}
  registered_at registration_date registered registered_on registration
  created_at creation_date created created_on create_date
  expires_at expiry_date expiry expires expires_on expiration_date expiration expire_date expiry_at valid_until
  auto_renew autorenew auto_renewal auto_renew_enabled renew_automatically`;

const ENVELOPE = plain("success data");
/** The fields of `data`, at any depth, that the document names or that `contract.ts` reads. */
const FIELDS: Readonly<Record<Operation, ReadonlySet<string>>> = {
  check: plain(`domain status available ${PRICE}`),
  quote: plain(`quote result price_quote tld action operation currency_code ${PRICE}
    price total cost value total_amount total_price unit_price unit_amount price_per_year`),
  domains: plain(`${RECORD} domains items results result records list data rows entries`),
  domain: plain(`${RECORD} record details`),
  balance: plain("account_number balance currency credit_limit active_domains"),
  tier: plain(`tier name tier_name label title code slug
    current_tier current current_tier_name next_tier next next_tier_name
    domains_needed domains_to_next domains_to_next_tier domains_needed_to_advance domains_to_advance
    needed remaining domains_remaining domains_required`),
};
const STATUS_FIELDS = plain(STATUS);
/** Under these stand hosts, under names of their own. */
const HOST_FIELDS = plain(HOSTS);

const CHECK_WORDS = plain(`available taken registered unavailable not_available
  unknown error timeout pending invalid failed unavailable_check`);
/** Plain words, and those of EPP (RFC 5731, RFC 3915). */
const RECORD_WORDS = plain(`active inactive expired suspended pending locked redemption deleted ok
  add_period auto_renew_period renew_period transfer_period redemption_period
  pending_create pending_delete pending_renew pending_restore pending_transfer pending_update
  client_hold client_delete_prohibited client_renew_prohibited client_transfer_prohibited client_update_prohibited
  server_hold server_delete_prohibited server_renew_prohibited server_transfer_prohibited server_update_prohibited`);

const CODE_FIELDS = plain("code error_code error type");

/** A name in the upstream's vocabulary, not a person's or a domain's. */
const FIELD_NAME = /^[A-Za-z][A-Za-z_-]{0,39}$/;
const WORD = /^[a-z][a-z_-]{0,31}$/;

export function createSurprises(clock: Clock, log: Log): Surprises {
  const seen = new Map<string, { operation: Operation; what: string; count: number; firstSeenMs: number }>();
  const totals = new Map<Operation, number>();

  function add(operation: Operation, what: string): void {
    totals.set(operation, (totals.get(operation) ?? 0) + 1);
    const id = `${operation} ${what}`;
    const known = seen.get(id);
    if (known !== undefined) known.count += 1;
    else if (seen.size < MOST_LISTED) {
      seen.set(id, { operation, what, count: 1, firstSeenMs: clock.now() });
      log.warn("upstream.unexpected", { operation, what });
    }
  }

  return {
    inAnswer(operation, body, hidden) {
      // Once an answer: a list of a hundred has a new field once, not a hundred times.
      for (const what of newIn(operation, body, hidden)) add(operation, what);
    },
    inError(operation, body, hidden) {
      for (const what of codesIn(body, hidden)) add(operation, what);
    },
    list: () => [...seen.values()].map((one) => ({ ...one })),
    totals: () => Object.fromEntries(totals),
  };
}

interface Place {
  readonly value: unknown;
  readonly path: string;
  /** The last name of the path, as it came. */
  readonly name: string;
  readonly depth: number;
}

/** Everything in a body, as far as it is worth looking; the answer says whether to look inside. */
function walk(body: unknown, hidden: readonly string[], look: (place: Place) => boolean): void {
  const open: Place[] = [{ value: body, path: "", name: "", depth: 0 }];
  for (let looked = 0; looked < MOST_VALUES; looked += 1) {
    const place = open.pop();
    if (place === undefined) return;
    const { value, path, name, depth } = place;
    if (depth > 0 && !look(place)) continue;
    if (depth >= DEEPEST) continue;
    if (Array.isArray(value)) {
      const items: unknown[] = value.slice(0, MOST_VALUES);
      for (const item of items) open.push({ value: item, path: `${path}[]`, name, depth: depth + 1 });
    } else if (isFields(value)) {
      const prefix = path === "" ? "" : `${path}.`;
      for (const [key, inner] of Object.entries(value).slice(0, MOST_VALUES))
        open.push({ value: inner, path: `${prefix}${told(key, hidden)}`, name: key, depth: depth + 1 });
    }
  }
}

function newIn(operation: Operation, body: unknown, hidden: readonly string[]): Set<string> {
  const words = operation === "check" ? CHECK_WORDS : RECORD_WORDS;
  const found = new Set<string>();
  walk(body, hidden, ({ value, path, name, depth }) => {
    const field = plainly(name);
    if (depth === 1 ? !ENVELOPE.has(name) : !FIELDS[operation].has(field)) {
      found.add(`${path} (${kindOf(value)})`);
      return false;
    }
    if (depth > 1 && STATUS_FIELDS.has(field)) {
      if (typeof value === "string" && !words.has(plainly(value)))
        found.add(`${path} ${wordOf(value, hidden)}`);
    }
    return !HOST_FIELDS.has(field);
  });
  return found;
}

function codesIn(body: unknown, hidden: readonly string[]): Set<string> {
  const found = new Set<string>();
  walk(body, hidden, ({ value, path, name }) => {
    const isScalar = typeof value === "string" || typeof value === "number";
    if (isScalar && CODE_FIELDS.has(plainly(name)))
      found.add(`${path} ${typeof value === "string" ? wordOf(value, hidden) : "(number)"}`);
    return name !== "data";
  });
  return found;
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber)
  );
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return value instanceof WrittenNumber ? "number" : typeof value;
}

function told(name: string, hidden: readonly string[]): string {
  return FIELD_NAME.test(name) && !tells(name, hidden) ? name : "*";
}

function wordOf(text: string, hidden: readonly string[]): string {
  return WORD.test(text) && !tells(text, hidden) ? `"${text}"` : "(string)";
}

/** Whether a word repeats something that was sent, or a part of it. */
function tells(word: string, hidden: readonly string[]): boolean {
  const lower = word.toLowerCase();
  return hidden.some((text) => {
    const sent = text.toLowerCase();
    if (sent.length < SHORTEST_PART) return lower.split(/[_-]/).includes(sent);
    return lower.includes(sent) || (lower.length >= SHORTEST_PART && sent.includes(lower));
  });
}

/** Case and what joins words do not count, as when fields are read. */
function plainly(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, "");
}

/** Names that stand apart by white space. */
function plain(names: string): ReadonlySet<string> {
  return new Set(names.split(/\s+/).map(plainly));
}
