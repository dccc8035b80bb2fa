/**
 * For each point that the upstream's document leaves open: what the answers showed, which sandbox settings behave the same, and whether the
 * service interpreted it correctly. Nothing is guessed: what no answer showed is reported as not seen.
 */
import {
  OPEN_POINTS,
  openPoints,
  type ShapeSettings,
  type Switch,
} from "af-storefront-sandbox/open-points.js";
import { all, type Answer, type Contact, dataOf, isUnderstood } from "./contact.js";
import {
  amountForms,
  autoRenewForms,
  codeForms,
  dateForms,
  envelopeForms,
  errorIn,
  itemForms,
  listForms,
  nameserverForms,
  orderForms,
  pagingForms,
  quoteForms,
  recordForms,
  retryAfterForms,
  statusForms,
  takenPricingForms,
  tierForms,
} from "./forms.js";
import { isFields, isWrittenNumber, normalized } from "./json.js";
import {
  isAboutNoDomain,
  isEmpty,
  isRead,
  type Observation,
  type Observer,
  ofData,
  ofErrors,
  ofKind,
  ofList,
  ofRoles,
  ofStatus,
  ofTaken,
  recordsOf,
} from "./observers.js";
import { recordIn, ROLE_ORDER } from "./records.js";
import { formOf, isList, lastOf, leavesOf, nameShown, namesShown, pathsShown, wordShown } from "./shapes.js";

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

const OBSERVERS: { readonly [Name in Switch]: Observer<ShapeSettings[Name]> } = {
  envelope(contact) {
    const successes = all(contact).filter(({ answer }) => answer?.kind === "success");
    const [first] = successes;
    if (first === undefined || !isFields(first.answer?.json)) return null;
    const beside = Object.keys(first.answer.json).filter((name) => name !== "success" && name !== "data");
    return { seen: namesShown(beside), fits: envelopeForms(beside), copes: successes.some(isUnderstood) };
  },
  takenStatus: ofTaken(({ status }) => ({
    seen: wordShown(status),
    fits: OPEN_POINTS.takenStatus.settings.filter((setting) => setting === status),
  })),
  takenPricing: ofTaken(({ pricing }) => ({
    seen: isFields(pricing) && pricing["amount"] === "0.00" ? "an amount of zero" : formOf(pricing),
    fits: takenPricingForms(pricing),
  })),
  checkEcho: ofData("check", (data) => {
    const echoes = Object.keys(data).filter((name) => TERMS.has(normalized(name)));
    const isYears = echoes.includes("years");
    return { seen: namesShown(echoes), fits: echoes.length === 0 ? ["none"] : isYears ? ["years"] : [] };
  }),
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
  quoteFields: ofData("quote", (data) => {
    const amounts = amountsIn(data);
    if (amounts.length === 0) return null;
    const per = leavesOf(data).find(({ path }) => lastOf(path).toLowerCase() === "per");
    return {
      seen: pathsShown(amounts) + (per ? `, per ${perShown(per.value)}` : ""),
      fits: quoteForms(amounts, per !== undefined),
    };
  }),
  quoteAmount: ofData("quote", (data) => {
    const amounts = amountsIn(data).map(({ value }) => value);
    if (amounts.length === 0) return null;
    return { seen: [...new Set(amounts.map(formOf))].join(", "), fits: amountForms(amounts) };
  }),
  quoteEcho: ofData("quote", (data) => {
    const names = new Set(leavesOf(data).map(({ path }) => lastOf(path)));
    const echoes = ["tld", "action", "years"].filter((name) => names.has(name));
    const isAll = echoes.length === 3;
    return { seen: namesShown(echoes), fits: isAll ? ["all"] : echoes.length === 0 ? ["none"] : [] };
  }),
  // No answer of the upstream can show it.
  restoreRenewal: () => null,
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
  listWrapper: ofList(({ path }) => ({
    seen: path === "" ? "nothing: data is the list" : path,
    fits: listForms(path),
  })),
  listItems: ofList(({ items: [item] }) => {
    if (item === undefined) return null;
    const record = recordIn(item);
    const contents =
      record === null ? formOf(item) : `objects with ${record.fields.size} of the record's 6 fields`;
    const inside = record === null || record.wrapper === null ? "" : ` in ${nameShown(record.wrapper)}`;
    return {
      seen: typeof item === "string" ? "only names" : contents + inside,
      fits: itemForms(item, record),
    };
  }),
  listOrder: ofList((list) => {
    if (list.items.length < 2) return null;
    const fits = orderForms(list);
    return { seen: fits.map((order) => ORDERS_SHOWN[order]).join(", or "), fits };
  }),
  listPaging: ofList(({ beside }) => ({ seen: namesShown(beside), fits: pagingForms(beside) })),
  notManaged({ domain, isOwn }) {
    const { answer } = domain;
    if (isOwn || answer === null || isAboutNoDomain(answer.kind)) return null;
    const copes = isUnderstood(domain) && domain.outcome.value === null;
    if (answer.kind !== "success") {
      const { status } = answer;
      const fits = OPEN_POINTS.notManaged.settings.filter(
        (setting) => setting === (status === 200 ? "refusal-in-200" : status),
      );
      return { seen: `status ${status}`, fits, copes };
    }
    const data = dataOf(answer);
    if (data === null || data === undefined || isEmpty(data))
      return { seen: `data ${formOf(data)}`, fits: [isFields(data) ? "empty" : "nothing"], copes };
    // The name is managed after all; the list was cut off before it.
    if (recordIn(data) !== null) return null;
    return { seen: `data ${pathsShown(leavesOf(data))}`, fits: [], copes };
  },
  errorFields: ofErrors((answer) => {
    const { form, shown } = errorIn(answer);
    return { seen: shown, fits: form === null ? [] : [form] };
  }),
  errorFlag: ofErrors(({ json }) => {
    if (!isFields(json)) return null;
    const flag = json["success"];
    return {
      seen: flag === undefined ? "absent" : flag === false ? "success: false" : formOf(flag),
      fits: flag === undefined ? ["absent"] : flag === false ? ["present"] : [],
    };
  }),
  errorCodes: ofErrors((answer) => {
    const { code } = errorIn(answer);
    if (typeof code !== "string" && typeof code !== "number") return null;
    const fits = codeForms(String(code));
    return { seen: fits.length > 0 ? wordShown(code) : formOf(code), fits };
  }),
  credentialStatus: ofStatus("credential", OPEN_POINTS.credentialStatus.settings),
  accessStatus: ofStatus("access", OPEN_POINTS.accessStatus.settings),
  inputStatus: ofStatus("input", OPEN_POINTS.inputStatus.settings),
  limitStatus: ofStatus("limit", OPEN_POINTS.limitStatus.settings),
  retryAfter: ofKind("limit", ({ headers }) => {
    const value = headers["retry-after"];
    return { seen: formOf(value), fits: retryAfterForms(value) };
  }),
  limitFields: ofKind("limit", ({ headers }) => {
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
  restoreRenewal:
    "the registry's price list or the portal; then set shop.restoreIncludesRenewal in RETAIL_CONFIG",
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

const ORDERS_SHOWN = {
  given: "no recognizable order",
  name: "by name",
  newest: "the newest registration first",
};

const TERMS = new Set(["years", "period", "term"]);
/** Values of these fields can be data, so only known words are shown. */
const FLAG_WORD = /^(?:on|off|yes|no|true|false|enabled|disabled|active|inactive|auto|manual|[yntf])$/i;
const PER_WORD = /^(?:per_?)?(?:years?|annum|months?|terms?|periods?|domains?|total)$/i;

function perShown(value: unknown): string {
  return typeof value === "string" && PER_WORD.test(value) ? wordShown(value) : formOf(value);
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

function amountsIn(data: unknown) {
  return leavesOf(data).filter(
    ({ path, value }) =>
      AMOUNT_NAME.test(lastOf(path)) &&
      (typeof value === "number" ||
        isWrittenNumber(value) ||
        (typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value))),
  );
}

/** The names of response headers that describe a rate limit. */
export function limitFieldsOf(headers: Answer["headers"]): string[] {
  return Object.keys(headers).filter((name) => /^(?:x-)?ratelimit/i.test(name));
}
