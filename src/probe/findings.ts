/**
 * For each point that the upstream's document leaves open: what the answers showed, which sandbox settings behave the same, and whether the
 * service interpreted it correctly. Nothing is guessed: what no answer showed is reported as not seen.
 */
import { OPEN_POINTS, openPoints, type ShapeSettings, type Switch } from "../sandbox/open-points.js";
import type { DomainRecord } from "../upstream/contract.js";
import { normalized, normalizedSet, PRICE } from "../upstream/vocabulary.js";
import { type Fields, isFields, WrittenNumber } from "../upstream/written-json.js";
import {
  amountForms,
  autoRenewForms,
  codeForms,
  dateForms,
  envelopeForms,
  itemForms,
  listForms,
  nameserverForms,
  pagingForms,
  quoteForms,
  recordForms,
  retryAfterForms,
  statusForms,
  takenPricingForms,
  tierForms,
} from "./forms.js";
import { type Answer, type Contact, dataOf, type CallResult, type Kind } from "./contact.js";
import { listIn, type RawList, type RawRecord, recordIn, type Role, ROLE_ORDER } from "./records.js";
import { formOf, isList, lastOf, leavesOf, nameShown, namesShown, pathsShown, wordShown } from "./shapes.js";

interface Observation<Setting> {
  /** Types, formats and words, never values. */
  readonly seen: string;
  /** The sandbox settings that behave like this; empty if there is none. */
  readonly fits: readonly Setting[];
  readonly copes: boolean;
}

export interface Finding {
  readonly point: Switch;
  /** The section and the words of the document that leave the point open, and what is open. */
  readonly section: string;
  readonly words: string;
  readonly about: string;
  readonly assumed: string | number;
  /** Null if it was not seen; `how` then says what would show it. */
  readonly seen: string | null;
  readonly fits: readonly (string | number)[];
  readonly copes: boolean | null;
  readonly how: string | null;
}

/** One finding for each open point, in the order of `OPEN_POINTS`. */
export function findings(contact: Contact): Finding[] {
  return openPoints().map(({ name, point: { section, words, about, settings } }) => {
    const observation: Observation<string | number> | null = OBSERVERS[name](contact);
    return {
      point: name,
      section,
      words,
      about,
      assumed: settings[0],
      seen: observation?.seen ?? null,
      fits: observation?.fits ?? [],
      copes: observation?.copes ?? null,
      how: observation === null ? HOW_TO_SEE[name] : null,
    };
  });
}

const OBSERVERS: {
  readonly [Name in Switch]: (contact: Contact) => Observation<ShapeSettings[Name]> | null;
} = {
  envelope(contact) {
    const successes = all(contact).filter(({ answer }) => answer?.kind === "success");
    const [first] = successes;
    if (first === undefined || !isFields(first.answer?.json)) return null;
    const beside = Object.keys(first.answer.json).filter((name) => name !== "success" && name !== "data");
    return { seen: namesShown(beside), fits: envelopeForms(beside), copes: successes.some(isUnderstood) };
  },
  takenStatus: whenTaken(({ status }, copes) => ({
    seen: wordShown(status),
    fits: OPEN_POINTS.takenStatus.settings.filter((setting) => setting === status),
    copes,
  })),
  takenPricing: whenTaken(({ pricing }, copes) => ({
    seen: isFields(pricing) && pricing["amount"] === "0.00" ? "an amount of zero" : formOf(pricing),
    fits: takenPricingForms(pricing),
    copes,
  })),
  checkEcho({ check }) {
    const data = dataOf(check.answer);
    if (!isFields(data)) return null;
    const echoes = Object.keys(data).filter((name) => TERMS.has(normalized(name)));
    const isYears = echoes.includes("years");
    return {
      seen: namesShown(echoes),
      fits: echoes.length === 0 ? ["none"] : isYears ? ["years"] : [],
      copes: isUnderstood(check),
    };
  },
  recordFields(contact) {
    const [first] = recordsOf(contact);
    if (first === undefined) return null;
    const { fields } = first.raw;
    return {
      seen: namesShown(ROLE_ORDER.flatMap((role) => fields.get(role)?.key ?? [])),
      fits: recordForms(first.raw),
      copes: [...fields.keys()].every((role) => isRead(first, role)),
    };
  },
  recordWrapper({ domain, isOwn }) {
    const record = isOwn ? recordIn(dataOf(domain.answer)) : null;
    if (record === null) return null;
    const { wrapper } = record;
    return {
      seen: wrapper === null ? "nothing" : nameShown(wrapper),
      fits: wrapper === null ? ["none"] : wrapper === "domain" ? ["domain"] : [],
      copes: isUnderstood(domain),
    };
  },
  dates: ofRoles(["expiry", "registered"], dateForms, formOf),
  autoRenew: ofRoles(["autoRenew"], autoRenewForms, (value) =>
    typeof value === "string" && FLAG_WORD.test(value) ? wordShown(value) : formOf(value),
  ),
  nameservers: ofRoles(["nameservers"], nameserverForms, hostsShown),
  tierFields({ tier }) {
    const data = dataOf(tier.answer);
    if (!isFields(data)) return null;
    return {
      seen: pathsShown(leavesOf(data)),
      fits: tierForms(data),
      copes: isUnderstood(tier) && isTierRead(data, tier.outcome.value),
    };
  },
  topTier({ tier }) {
    const data = dataOf(tier.answer);
    if (!isFields(data) || tierForms(data).length === 0) return null;
    const next = nextIn(data);
    const copes = isUnderstood(tier) && tier.outcome.value.nextTier === null;
    if (next === undefined) return { seen: "absent", fits: ["absent"], copes };
    if (next === null) return { seen: "null", fits: ["null"], copes };
    return next === "" ? { seen: "empty text", fits: ["empty"], copes } : null;
  },
  quoteFields({ quote }) {
    const data = dataOf(quote.answer);
    const amounts = amountsIn(data);
    if (amounts.length === 0) return null;
    const per = leavesOf(data).find(({ path }) => lastOf(path).toLowerCase() === "per");
    const paths = amounts.map(({ path }) => path);
    return {
      seen: pathsShown(amounts) + (per ? `, per ${perShown(per.value)}` : ""),
      fits: quoteForms(paths, per !== undefined),
      copes: isUnderstood(quote),
    };
  },
  quoteAmount({ quote }) {
    const amounts = amountsIn(dataOf(quote.answer)).map(({ value }) => value);
    if (amounts.length === 0) return null;
    return {
      seen: [...new Set(amounts.map(formOf))].join(", "),
      fits: amountForms(amounts),
      copes: isUnderstood(quote),
    };
  },
  quoteEcho({ quote }) {
    const data = dataOf(quote.answer);
    if (!isFields(data)) return null;
    const names = new Set(leavesOf(data).map(({ path }) => lastOf(path)));
    const echoes = ["tld", "action", "years"].filter((name) => names.has(name));
    return {
      seen: namesShown(echoes),
      fits: echoes.length === 3 ? ["all"] : echoes.length === 0 ? ["none"] : [],
      copes: isUnderstood(quote),
    };
  },
  statusWords: ofRoles(["status"], statusForms, (value) =>
    Array.isArray(value) ? `list of ${wordShown(value[0])}` : wordShown(value),
  ),
  checkYears({ check, checkYears: asked }) {
    const data = dataOf(check.answer);
    const repeated = isFields(data) ? data["years"] : undefined;
    if (typeof repeated !== "number" || asked === 1) return null;
    return repeated === asked
      ? {
          seen: "not ignored; only an error would show whether they are required or bounded",
          fits: ["optional", "required", "bounded"],
          copes: true,
        }
      : { seen: "ignored: the answer is for another term", fits: ["ignored"], copes: false };
  },
  // The service's own questions always contain years, which every setting accepts.
  quoteYears: () => null,
  listWrapper({ domains }) {
    const list = listIn(dataOf(domains.answer));
    if (list === null) return null;
    return {
      seen: list.path === "" ? "nothing: data is the list" : list.path,
      fits: listForms(list.path),
      copes: isUnderstood(domains),
    };
  },
  listItems({ domains }) {
    const [item] = listIn(dataOf(domains.answer))?.items ?? [];
    if (item === undefined) return null;
    const record = recordIn(item);
    const contents =
      record === null ? formOf(item) : `objects with ${record.fields.size} of the record's 6 fields`;
    const inside = record === null || record.wrapper === null ? "" : ` in ${nameShown(record.wrapper)}`;
    return {
      seen: typeof item === "string" ? "only names" : contents + inside,
      fits: itemForms(item, record),
      copes: isUnderstood(domains),
    };
  },
  listOrder({ domains }) {
    const list = listIn(dataOf(domains.answer));
    if (list === null || list.items.length < 2) return null;
    const fits = ordersOf(list);
    const seen = fits.map((order) => ORDERS_SHOWN[order]).join(", or ");
    return { seen, fits, copes: isUnderstood(domains) };
  },
  listPaging({ domains }) {
    const list = listIn(dataOf(domains.answer));
    if (list === null) return null;
    return {
      seen: namesShown(list.beside),
      fits: pagingForms(list.beside),
      copes: isUnderstood(domains),
    };
  },
  notManaged({ domain, isOwn }) {
    const { answer } = domain;
    if (isOwn || answer === null || isAboutNoDomain(answer.kind)) return null;
    const copes = isUnderstood(domain) && domain.outcome.value === null;
    if (answer.kind !== "success") {
      const fits = NOT_MANAGED.filter(([status]) => status === answer.status).map(([, setting]) => setting);
      return { seen: `status ${answer.status}`, fits, copes };
    }
    const data = dataOf(answer);
    if (data === null || data === undefined)
      return { seen: `data ${formOf(data)}`, fits: ["nothing"], copes };
    if (isFields(data) && Object.keys(data).length === 0)
      return { seen: "data empty object", fits: ["empty"], copes };
    // The name is managed after all; the list was cut off before it.
    if (recordIn(data) !== null) return null;
    return { seen: `data ${pathsShown(leavesOf(data))}`, fits: [], copes };
  },
  errorFields(contact) {
    const call = errorsOf(contact)[0];
    if (call === undefined) return null;
    const { form, shown } = errorIn(call.answer);
    return { seen: shown, fits: form === null ? [] : [form], copes: isRecognized(call, contact) };
  },
  errorFlag(contact) {
    const call = errorsOf(contact).find(({ answer }) => isFields(answer.json));
    if (call === undefined || !isFields(call.answer.json)) return null;
    const flag = call.answer.json["success"];
    return {
      seen: flag === undefined ? "absent" : flag === false ? "success: false" : formOf(flag),
      fits: flag === undefined ? ["absent"] : flag === false ? ["present"] : [],
      copes: isRecognized(call, contact),
    };
  },
  errorCodes(contact) {
    for (const call of errorsOf(contact)) {
      const { code } = errorIn(call.answer);
      if (typeof code !== "string" && typeof code !== "number") continue;
      const fits = codeForms(String(code));
      return {
        seen: fits.length > 0 ? wordShown(code) : formOf(code),
        fits,
        copes: isRecognized(call, contact),
      };
    }
    return null;
  },
  credentialStatus: ofErrors("credential", statusOf(OPEN_POINTS.credentialStatus.settings)),
  accessStatus: ofErrors("access", statusOf(OPEN_POINTS.accessStatus.settings)),
  inputStatus: ofErrors("input", statusOf(OPEN_POINTS.inputStatus.settings)),
  limitStatus: ofErrors("limit", statusOf(OPEN_POINTS.limitStatus.settings)),
  retryAfter: ofErrors("limit", ({ headers }) => {
    const value = headers["retry-after"];
    return { seen: formOf(value), fits: retryAfterForms(value) };
  }),
  limitFields: ofErrors("limit", ({ headers }) => {
    const names = limitFieldsOf(headers);
    const isOld = names.some((name) => name.startsWith("x-ratelimit"));
    const fits = names.length === 0 ? "none" : isOld ? "x-ratelimit" : "ratelimit";
    return { seen: namesShown(names), fits: [fits] };
  }),
};

/** What would reveal a point that wasn't seen. The probe never provokes it. */
const HOW_TO_SEE: Readonly<Record<Switch, string>> = {
  envelope: "any successful answer",
  takenStatus: "the check of a taken name",
  takenPricing: "the check of a taken name",
  checkEcho: "any successful check",
  recordFields: "an account with a domain",
  recordWrapper: "the record of one of the account's domains, requested if the list has incomplete records",
  dates: "an account with a domain",
  autoRenew: "an account with a domain",
  nameservers: "a domain with nameservers",
  tierFields: "a successful tier answer",
  topTier: "an account in the top tier",
  quoteFields: "a successful quote",
  quoteAmount: "a successful quote",
  quoteEcho: "a successful quote",
  statusWords: "an account with a domain",
  checkYears:
    "a check for several years whose answer repeats them; an error for a missing or excessive number",
  quoteYears: "an error for a quote with missing or too many years: not provoked",
  listWrapper: "a successful domain list",
  listItems: "an account with a domain",
  listOrder: "an account with several domains",
  listPaging: "a successful domain list",
  notManaged: "the record of a name outside the account, requested if the list has whole records",
  errorFields: "any error, such as that for a name outside the account",
  errorFlag: "any error in JSON",
  errorCodes: "any error with a code",
  credentialStatus: "a call with a revoked credential: not provoked",
  accessStatus: "a call from an address outside the allowlist: not provoked",
  inputStatus: "an invalid request: not provoked",
  limitStatus: "more calls than the limit: not provoked",
  retryAfter: "more calls than the limit: not provoked",
  limitFields: "more calls than the limit: not provoked",
};

type Any = CallResult<unknown>;
type Understood<T> = CallResult<T> & { readonly outcome: { readonly value: T } };
type Failed = Any & { readonly answer: Answer };

/** All calls, in the order in which they were made. */
export function all({ domains, domain, check, quote, balance, tier }: Contact): readonly Any[] {
  return [domains, domain, check, quote, balance, tier];
}

export function isUnderstood<T>(call: CallResult<T>): call is Understood<T> {
  return "value" in call.outcome;
}

const TERMS = normalizedSet(PRICE.years);
const MAX_WORDS = 8;
/** Values of these fields can be data, so only known words are shown. */
const FLAG_WORD = /^(?:on|off|yes|no|true|false|enabled|disabled|active|inactive|auto|manual|[yntf])$/i;
const PER_WORD = /^(?:per_?)?(?:years?|annum|months?|terms?|periods?|domains?|total)$/i;

function perShown(value: unknown): string {
  return typeof value === "string" && PER_WORD.test(value) ? wordShown(value) : formOf(value);
}

/** Observes the check of a taken name. */
function whenTaken<Setting>(
  look: (data: Fields, copes: boolean) => Observation<Setting>,
): (contact: Contact) => Observation<Setting> | null {
  return ({ check }) => {
    const data = dataOf(check.answer);
    return isFields(data) && data["available"] === false ? look(data, isUnderstood(check)) : null;
  };
}

interface SeenRecord {
  readonly raw: RawRecord;
  /** What the service read, or null. */
  readonly read: DomainRecord | null;
}

/** The record that was requested, then those of the list. */
function recordsOf({ domain, isOwn, domains }: Contact): SeenRecord[] {
  const one = isOwn ? recordIn(dataOf(domain.answer)) : null;
  const read = isUnderstood(domain) ? domain.outcome.value : null;
  const items = listIn(dataOf(domains.answer))?.items ?? [];
  const listed = items.flatMap((item, index): SeenRecord[] => {
    const raw = recordIn(item);
    if (raw === null) return [];
    return [{ raw, read: isUnderstood(domains) ? (domains.outcome.value[index] ?? null) : null }];
  });
  return [...(one === null ? [] : [{ raw: one, read }]), ...listed];
}

/** Whether the service read this field; an empty field doesn't have to be read. */
function isRead({ raw, read }: SeenRecord, role: Role): boolean {
  if (read === null) return false;
  const value = raw.fields.get(role)?.value;
  if (value === null || value === undefined || value === "") return true;
  if (role === "name") return true;
  if (role === "nameservers") return read.nameservers.length > 0 || isEmpty(value);
  const { status, expiresAt: expiry, registeredAt: registered, autoRenew } = read;
  return { status, expiry, registered, autoRenew }[role] !== null;
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Observes the records' fields with these roles; a setting fits if it fits all of them. */
function ofRoles<Setting extends string>(
  roles: readonly Role[],
  formsOf: (value: unknown) => readonly Setting[],
  shown: (value: unknown) => string,
): (contact: Contact) => Observation<Setting> | null {
  return (contact) => {
    const records = recordsOf(contact);
    const values = records.flatMap((record) =>
      roles.flatMap((role) => {
        const value = record.raw.fields.get(role)?.value;
        return value === null || value === undefined || isEmpty(value) ? [] : [{ record, role, value }];
      }),
    );
    const [first] = values;
    if (first === undefined) return null;
    return {
      // Sorted, because the original order would reveal something about the account.
      seen: [...new Set(values.map(({ value }) => shown(value)))].sort().slice(0, MAX_WORDS).join(", "),
      fits: formsOf(first.value).filter((form) => values.every(({ value }) => formsOf(value).includes(form))),
      copes: values.every(({ record, role }) => isRead(record, role)),
    };
  };
}

function hostsShown(value: unknown): string {
  if (isFields(value)) return `object with ${namesShown(Object.keys(value))}`;
  if (typeof value === "string") return value.includes(",") ? "text with commas" : "text";
  const [host]: readonly unknown[] = isList(value) ? value : [];
  return isFields(host) ? `list of objects with ${namesShown(Object.keys(host))}` : formOf(value);
}

/** The value of a field called next…, or undefined. */
function nextIn(data: unknown): unknown {
  return leavesOf(data).find(({ path }) => path.split(".").some((name) => /^next/i.test(name)))?.value;
}

function isTierRead(data: unknown, read: { nextTier: string | null; domainsNeeded: number | null }): boolean {
  const next = nextIn(data);
  const isNext = next !== undefined && next !== null && next !== "";
  const counts = leavesOf(data).filter(
    ({ path, value }) =>
      typeof value === "number" && /need|requir|remain|advance|to_?next/i.test(lastOf(path)),
  );
  return (!isNext || read.nextTier !== null) && (counts.length === 0 || read.domainsNeeded !== null);
}

const AMOUNT_NAME = /amount|price|total|cost|value/i;

function amountsIn(data: unknown): { path: string; value: unknown }[] {
  return leavesOf(data).filter(
    ({ path, value }) =>
      AMOUNT_NAME.test(lastOf(path)) &&
      (typeof value === "number" ||
        value instanceof WrittenNumber ||
        (typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value))),
  );
}

/** Whether this kind of error is independent of the requested domain. */
function isAboutNoDomain(kind: Kind): boolean {
  return kind === "limit" || kind === "credential" || kind === "access";
}

const NOT_MANAGED = [
  [404, 404],
  [403, 403],
  [200, "refusal-in-200"],
] as const;

/** A list of this length is unlikely to be sorted by chance. */
const ENOUGH_ITEMS = 5;
const ORDERS_SHOWN = {
  given: "no recognizable order",
  name: "by name",
  newest: "the newest registration first",
};

/** The orders that the list could follow. */
function ordersOf({ items }: RawList): ShapeSettings["listOrder"][] {
  const records = items.map((item) => recordIn(item));
  const names = items.map((item, index) =>
    typeof item === "string" ? item : records[index]?.fields.get("name")?.value,
  );
  const dates = records.map((record) => instant(record?.fields.get("registered")?.value));
  const byName = names.every((name, at) => at === 0 || String(names[at - 1]) <= String(name));
  const known = dates.filter((date) => date !== null);
  const isDated = known.length === items.length;
  const byDate = known.every((date, at) => at === 0 || (known[at - 1] ?? date) >= date);
  const isChance = items.length < ENOUGH_ITEMS || new Set(known).size < known.length / 2;
  return [
    ...((!byName && !(isDated && byDate)) || isChance ? (["given"] as const) : []),
    ...(byName ? (["name"] as const) : []),
    // Unknown without dates.
    ...(byDate && (isDated || !byName) ? (["newest"] as const) : []),
  ];
}

function instant(value: unknown): number | null {
  if (typeof value === "number") return value;
  const date = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? null : date;
}

/** Answers that are errors. Rate limit errors come last, because a proxy may have produced them. */
function errorsOf(contact: Contact): Failed[] {
  const failed = all(contact).filter(
    (call): call is Failed => call.answer !== null && call.answer.kind !== "success",
  );
  return failed.sort((a, b) => Number(a.answer.kind === "limit") - Number(b.answer.kind === "limit"));
}

/** Whether the service interpreted the error correctly. */
function isRecognized(call: Failed, { domain }: Contact): boolean {
  const { kind } = call.answer;
  if (kind === "limit") return "code" in call.outcome && call.outcome.code === "quota_exhausted";
  if (call.operation === "domain" && !isAboutNoDomain(kind))
    return isUnderstood(domain) && domain.outcome.value === null;
  return "code" in call.outcome;
}

/** Observes the errors of one kind. */
function ofErrors<Setting>(
  kind: Kind,
  look: (answer: Answer) => Omit<Observation<Setting>, "copes">,
): (contact: Contact) => Observation<Setting> | null {
  return (contact) => {
    const call = errorsOf(contact).find(({ answer }) => answer.kind === kind);
    return call === undefined ? null : { ...look(call.answer), copes: isRecognized(call, contact) };
  };
}

function statusOf<Status extends number>(
  settings: readonly Status[],
): (answer: Answer) => Omit<Observation<Status>, "copes"> {
  return ({ status }) => ({
    seen: `status ${status}`,
    fits: settings.filter((setting) => setting === status),
  });
}

/** The format of the error object, and its code. */
function errorIn({ json }: Answer): {
  readonly form: ShapeSettings["errorFields"] | null;
  readonly shown: string;
  readonly code: unknown;
} {
  if (json === undefined) return { form: "text", shown: "no JSON", code: undefined };
  if (!isFields(json)) return { form: null, shown: formOf(json), code: undefined };
  const shown = pathsShown(leavesOf(json));
  const { error, errors } = json;
  if (isFields(error)) return { form: "code" in error ? "nested" : null, shown, code: error["code"] };
  if (typeof error === "string") return { form: "word", shown, code: error };
  if (isList(errors)) {
    const [first] = errors;
    const inside = isFields(first) ? namesShown(Object.keys(first)) : formOf(first);
    return {
      form: isFields(first) && "code" in first ? "list" : null,
      shown: `${shown}: a list with ${inside}`,
      code: isFields(first) ? first["code"] : undefined,
    };
  }
  const { type, code } = json;
  if (typeof type === "string" && "status" in json)
    return { form: "problem", shown, code: type.slice(type.lastIndexOf("/") + 1) };
  return { form: "code" in json ? "flat" : null, shown, code };
}

/** The names of response headers that describe a rate limit. */
export function limitFieldsOf(headers: Answer["headers"]): string[] {
  return Object.keys(headers).filter((name) => /^(?:x-)?ratelimit/i.test(name));
}
