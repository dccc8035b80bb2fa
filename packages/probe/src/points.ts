/** The table of open points. Nothing is guessed: what no answer showed is reported as not seen. */
import { openPoints, RECORD_NAMES, type Switch } from "af-storefront-sandbox/open-points.js";
import { type Answer, type Call, type Contact, dataOf, ROLES } from "./answers.js";
import { isWhole, recordIn } from "./records.js";
import {
  inData,
  inErrors,
  inList,
  inRecords,
  inTaken,
  isAboutNoDomain,
  type Point,
  recordsOf,
} from "./see.js";
import {
  type Fields,
  formOf,
  isEmpty,
  isFields,
  isList,
  isWrittenNumber,
  type Leaf,
  leavesOf,
  nameShown,
  namesShown,
  pathsShown,
  wordShown,
} from "./shapes.js";

export type Finding = ReturnType<typeof findings>[number];

/** One finding for each open point, in the order of `OPEN_POINTS`. */
export function findings(contact: Contact) {
  return openPoints().map(({ name, point: { section, words, about, settings } }) => {
    const { how, see, looks = {} } = POINTS[name];
    const { texts = [], copes = null } = see(contact) ?? {};
    const isSeen = texts.length > 0;
    const looksLike = (text: string, setting: string | number): boolean =>
      looks[setting]?.test(text) ?? [`${setting}`, `"${setting}"`, `status ${setting}`].includes(text);
    return {
      point: name,
      /** The section and the words of the document that leave the point open, and what is open. */
      section,
      words,
      about,
      assumed: settings[0],
      seen: isSeen ? texts.slice(0, MAX_TEXTS).join(", ") : null,
      /** The settings of the sandbox that look the same. */
      fits: settings.filter((setting) => isSeen && texts.every((text) => looksLike(text, setting))),
      copes: isSeen ? copes : null,
      /** What would show the point; null if it was seen. */
      how: isSeen ? null : how,
    };
  });
}

const MAX_TEXTS = 8;
const NONE = /^no field$/;
/** Values of these fields can be data, so only known words are shown. */
const FLAG_WORD = /^(on|off|yes|no|true|false|enabled|disabled|active|inactive|auto|manual|[yntf])$/i;
const PER_WORD = /^(per_?)?(years?|annum|months?|terms?|periods?|domains?|total)$/i;
const ERROR_CODE = /^([a-z]+(_[a-z]+)*|[a-z]+(-[a-z]+)*|[A-Z]+(_[A-Z]+)*|([A-Z][a-z]+)+)$/;

const POINTS: Readonly<Record<Switch, Point>> = {
  envelope: {
    how: "any successful answer",
    see({ calls }) {
      const all: Call[] = Object.values(calls);
      const successes = all.filter(({ answer }) => answer?.kind === "success");
      const json = successes[0]?.answer?.json;
      if (!isFields(json)) return null;
      const beside = Object.keys(json).filter((name) => name !== "success" && name !== "data");
      return { texts: [namesShown(beside)], copes: successes.some(({ error }) => error === null) };
    },
    looks: { bare: NONE, meta: /^message, meta$/ },
  },
  takenStatus: inTaken(({ status }) => wordShown(status)),
  takenPricing: inTaken(
    ({ pricing }) => {
      if (!isFields(pricing) || isEmpty(pricing)) return formOf(pricing);
      if (pricing["amount"] === "0.00") return "an amount of zero";
      return `object with ${pathsShown(leavesOf(pricing))}`;
    },
    { empty: /^empty/, zero: /zero$/, price: /^object with amount, currency$/ },
  ),
  checkEcho: inData(
    "check",
    "any successful check",
    (data) => namesShown(Object.keys(data).filter((name) => /^(years|period|term)$/i.test(name))),
    { none: NONE },
  ),
  recordFields: {
    how: "an account with a domain",
    see(contact) {
      const [first] = recordsOf(contact);
      if (first === undefined) return null;
      const names = ROLES.flatMap((role) => first.raw.fields.get(role)?.key ?? []);
      return { texts: [names.map(nameShown).join(", ")], copes: ROLES.every(first.isRead) };
    },
    looks: Object.fromEntries(
      Object.entries(RECORD_NAMES).map(([form, names]) => [
        form,
        new RegExp(`^((${names.join("|")})(, |$))+$`),
      ]),
    ),
  },
  recordWrapper: {
    how: "the record of one of the account's domains, requested if the list has incomplete records",
    see({ calls: { domain }, isOwn }) {
      const record = isOwn ? recordIn(dataOf(domain.answer)) : null;
      return record && { texts: [nameShown(record.wrapper ?? "none")], copes: domain.error === null };
    },
  },
  dates: inRecords(
    ["expiresAt", "registeredAt"],
    (value) => (typeof value !== "number" ? formOf(value) : value < 1e11 ? "seconds" : "milliseconds"),
    {
      rfc3339: /^text 9999-99-99T99:99:99Z$/,
      fraction: /^text 9999-99-99T99:99:99\.9+Z$/,
      offset: /^text 9999-99-99T99:99:99[+-]99:99$/,
      day: /^text 9999-99-99$/,
      space: /^text 9999-99-99 99:99:99$/,
      "month-name": /^text 99-aaa-9999$/,
    },
  ),
  autoRenew: inRecords(
    ["autoRenew"],
    (value) => (value === 0 || value === 1 ? "0 or 1" : knownWordShown(value, FLAG_WORD)),
    { boolean: /^true or false$/, number: /^0 or 1$/, word: /^"(on|off)"$/, text: /^"(true|false)"$/ },
  ),
  nameservers: inRecords(
    ["nameservers"],
    (value) => {
      if (typeof value === "string") return value.includes(",") ? "text with commas" : "text";
      const inside: unknown = isList(value) ? value[0] : value;
      if (!isFields(inside)) return formOf(value);
      return `${isList(value) ? "list of objects" : "object"} with ${namesShown(Object.keys(inside))}`;
    },
    {
      list: /^list of texts$/,
      objects: /^list of .*\bhostname\b/,
      numbered: /^object with (ns\d(, |$))+$/,
      text: /^text/,
    },
  ),
  tierFields: {
    how: "a successful tier answer",
    see({ calls: { tier } }) {
      const data = dataOf(tier.answer);
      if (!isFields(data)) return null;
      return { texts: [pathsShown(leavesOf(data))], copes: isTierRead(data, tier.read) };
    },
    looks: {
      flat: /\bcurrent_tier\b/,
      camel: /\bcurrentTier\b/,
      nested: /\bcurrent\.name\b/,
      wrapped: /\btier\.current\b/,
      counted: /(^|, )tier(,|$)/,
    },
  },
  topTier: {
    how: "an account in the top tier",
    see({ calls: { tier } }) {
      const data = dataOf(tier.answer);
      if (!isFields(data) || tier.read === null || !isEmpty(nextIn(data))) return null;
      return { texts: [formOf(nextIn(data))], copes: tier.read.nextTier === null };
    },
    looks: { empty: /^empty text$/ },
  },
  quoteFields: inData(
    "quote",
    "a successful quote",
    (data) => {
      const amounts = amountsIn(data);
      const per = leavesOf(data).find(({ name }) => name.toLowerCase() === "per");
      if (amounts.length === 0) return null;
      return pathsShown(amounts) + (per ? `, per ${knownWordShown(per.value, PER_WORD)}` : "");
    },
    {
      nested: /^pricing\.amount$/,
      flat: /^amount$/,
      wrapped: /^quote\.price\.amount$/,
      "unit-and-total": /^total_price, unit_price$/,
      unit: /^unit_price$/,
      "per-year": /^amount, per /,
    },
  ),
  quoteAmount: inData(
    "quote",
    "a successful quote",
    (data) => {
      const endsInZero = (value: unknown) => isWrittenNumber(value) && value.text.endsWith("0");
      const texts = amountsIn(data).map(
        ({ value }) => formOf(value) + (endsInZero(value) ? ", the last one 0" : ""),
      );
      return [...new Set(texts)];
    },
    {
      text: /^text/,
      // Comes first in the sandbox's table: a whole number more likely counts cents than dollars.
      "minor-units": /^whole number$/,
      number: /^(whole number|number 9\.9?9)$/,
      "padded-number": /^number 9\.99(,|$)/,
    },
  ),
  quoteEcho: inData(
    "quote",
    "a successful quote",
    (data) =>
      namesShown(leavesOf(data).flatMap(({ name }) => (/^(tld|action|years)$/.test(name) ? [name] : []))),
    { all: /^action, tld, years$/, none: NONE },
  ),
  restoreRenewal: {
    how: "the registry's price list or the portal; then set shop.restoreIncludesRenewal in RETAIL_CONFIG",
    see: () => null,
  },
  statusWords: inRecords(
    ["status"],
    (value) => (isList(value) ? `list of ${wordShown(value[0])}` : wordShown(value)),
    {
      lower: /^"[a-z_]+"$/,
      upper: /^"[A-Z_]+"$/,
      title: /^"[A-Z][a-z]+( [a-z]+)?"$/,
      epp: /^list of ("|text)/,
    },
  ),
  checkYears: {
    how: "a check for several years whose answer repeats them; an error for a missing or excessive number",
    see({ calls: { check }, checkYears }) {
      const data = dataOf(check.answer);
      const repeated = isFields(data) ? data["years"] : undefined;
      if (typeof repeated !== "number" || checkYears === 1) return null;
      return repeated === checkYears
        ? {
            texts: ["not ignored; only an error would show whether they are required or bounded"],
            copes: true,
          }
        : { texts: ["ignored: the answer is for another term"], copes: false };
    },
    looks: { optional: /^not/, required: /^not/, bounded: /^not/, ignored: /^ignored/ },
  },
  // The service's own questions always contain years, which every setting accepts.
  quoteYears: { how: "an error for a quote with missing or too many years: not provoked", see: () => null },
  listWrapper: inList(
    "a successful domain list",
    ({ path }) => (path === "" ? "nothing: data is the list" : path),
    {
      nested: /^result\.records$/,
    },
  ),
  listItems: inList(
    "an account with a domain",
    ({ items: [item] }) => {
      if (item === undefined) return null;
      if (typeof item === "string") return "only names";
      const record = recordIn(item);
      if (record === null) return formOf(item);
      const fields = isWhole(record) ? "all fields of a record" : [...record.fields.keys()].join(", ");
      return `objects with ${fields}${record.wrapper === null ? "" : ` in ${nameShown(record.wrapper)}`}`;
    },
    {
      records: /record$/,
      wrapped: /record in domain$/,
      brief: /^objects with domain, status, expiresAt$/,
      names: /^only/,
    },
  ),
  listOrder: inList(
    "an account with several domains",
    ({ items }) => {
      if (items.length < 2) return null;
      const records = items.map((item) => recordIn(item)?.fields);
      const names = items.map((item, at) => String(records[at]?.get("domain")?.value ?? item));
      const dates = records.map((fields) => dateOf(fields?.get("registeredAt")?.value));
      if (names.every((name, at) => at === 0 || String(names[at - 1]) <= name)) return "by name";
      const isNewestFirst = dates.every((date, at) => at === 0 || Number(dates[at - 1]) >= date);
      return isNewestFirst ? "the newest registration first" : "no recognizable order";
    },
    { given: /^no/, name: /^by name/, newest: /^the newest/ },
  ),
  listPaging: inList("a successful domain list", ({ beside }) => namesShown(beside), {
    none: NONE,
    counts: /^count, page, per_page$/,
    cursor: /^has_more, next_cursor$/,
  }),
  notManaged: {
    how: "the record of a name outside the account, requested if the list has whole records",
    see({ calls: { domain }, isOwn }) {
      const { answer, error, read } = domain;
      const data = dataOf(answer);
      // A record is that of a name that is managed after all; the list was cut off before it.
      if (isOwn || answer === null || isAboutNoDomain(answer.kind) || recordIn(data) !== null) return null;
      const shown = isEmpty(data) ? formOf(data) : pathsShown(leavesOf(data));
      const text = answer.kind === "success" ? `data ${shown}` : `status ${answer.status}`;
      return { texts: [text], copes: error === null && read === null };
    },
    looks: {
      "refusal-in-200": /^status 200$/,
      empty: /^data empty object$/,
      nothing: /^data (null|absent|empty list)$/,
    },
  },
  errorFields: inErrors(
    "any",
    ({ json }) => {
      if (!isFields(json)) return json === undefined ? "no JSON" : formOf(json);
      const { errors } = json;
      if (!isList(errors)) return pathsShown(leavesOf(json));
      const inside = isFields(errors[0]) ? namesShown(Object.keys(errors[0])) : formOf(errors[0]);
      return `${pathsShown(leavesOf(json))}: a list with ${inside}`;
    },
    {
      nested: /^([^:]*, )?error\.code(,|$)/,
      flat: /^([^:]*, )?code(,|$)/,
      word: /^([^:]*, )?error(,|$)/,
      list: /: a list with (.*, )?code(,|$)/,
      problem: /^([^:]*, )?status, ([^:]*, )?type(,|$)/,
      text: /^no JSON$/,
    },
  ),
  errorFlag: inErrors(
    "any",
    ({ json }) => {
      if (!isFields(json)) return null;
      return json["success"] === false ? "success: false" : formOf(json["success"]);
    },
    { present: /false$/ },
  ),
  errorCodes: inErrors(
    "any",
    ({ json }) => {
      const code = isFields(json) ? codeIn(json) : undefined;
      return typeof code === "string" || typeof code === "number" ? knownWordShown(code, ERROR_CODE) : null;
    },
    {
      snake: /^"[a-z_]+"$/,
      upper: /^"[A-Z_]+"$/,
      pascal: /^"[A-Z][a-z]/,
      kebab: /^"[a-z-]+"$/,
      number: /^(text 9|whole number)$/,
    },
  ),
  credentialStatus: inErrors("credential"),
  accessStatus: inErrors("access"),
  inputStatus: inErrors("input"),
  limitStatus: inErrors("limit"),
  retryAfter: inErrors(
    "limit",
    ({ headers: { "retry-after": value } }) => {
      if (typeof value !== "string") return formOf(value);
      if (!/^\d+$/.test(value)) return (Number.isNaN(Date.parse(value)) ? "" : "date: ") + formOf(value);
      return Number(value) <= 900
        ? "up to 900"
        : Number(value) <= 1e7
          ? "up to 10,000,000"
          : "more than 10,000,000";
    },
    { seconds: /900$/, date: /^date/, milliseconds: /^up to 10,/, absurd: /^more/ },
  ),
  limitFields: inErrors("limit", ({ headers }) => namesShown(limitFieldsOf(headers)), {
    none: NONE,
    "x-ratelimit": /x-ratelimit/i,
    ratelimit: /^ratelimit/i,
  }),
};

/** The names of response headers that describe a rate limit. */
export function limitFieldsOf(headers: Answer["headers"]): string[] {
  return Object.keys(headers).filter((name) => /^(x-)?ratelimit/i.test(name));
}

function knownWordShown(value: unknown, known: RegExp): string {
  return typeof value === "string" && known.test(value) ? wordShown(value) : formOf(value);
}

/** The value of a field called next…, or undefined. */
function nextIn(data: Fields): unknown {
  return leavesOf(data).find(({ path }) => /(^|\.)next/i.test(path))?.value;
}

/** Whether the service read the next tier, and the number of domains that it needs, if the answer has them. */
function isTierRead(data: Fields, read: Contact["calls"]["tier"]["read"]): boolean {
  const hasCount = leavesOf(data).some(
    ({ name, value }) => typeof value === "number" && /need|requir|remain|advance|to_?next/i.test(name),
  );
  if (read === null) return false;
  return (isEmpty(nextIn(data)) || read.nextTier !== null) && (!hasCount || read.domainsNeeded !== null);
}

function amountsIn(data: Fields): Leaf[] {
  const isAmount = (value: unknown): boolean => isWrittenNumber(value) || /^\d+(\.\d+)?$/.test(String(value));
  return leavesOf(data).filter(
    ({ name, value }) => /amount|price|total|cost|value/i.test(name) && isAmount(value),
  );
}

/** NaN if it isn't one. */
function dateOf(value: unknown): number {
  return typeof value === "number" ? value : Date.parse(String(value));
}

/** The code of an error object, wherever it is. */
function codeIn({ error, errors, type, status, code }: Fields): unknown {
  if (typeof error === "string") return error;
  if (isFields(error)) return error["code"];
  if (isList(errors)) return isFields(errors[0]) ? errors[0]["code"] : undefined;
  return typeof type === "string" && status !== undefined ? type.slice(type.lastIndexOf("/") + 1) : code;
}
