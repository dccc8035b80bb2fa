/** Recognizes sandbox settings by their appearance: which settings could have produced a value, a set of field names or a word. */
import {
  type BySetting,
  OPEN_POINTS,
  RECORD_NAMES,
  type ShapeSettings,
  type Switch,
} from "af-storefront-sandbox/open-points.js";
import type { Answer } from "./contact.js";
import { isFields, isWrittenNumber } from "./json.js";
import { type RawList, type RawRecord, recordIn, ROLE_ORDER } from "./records.js";
import { formOf, isList, type Leaf, leavesOf, namesShown, pathsShown } from "./shapes.js";

type Forms<Name extends Switch> = readonly ShapeSettings[Name][];

export function envelopeForms(beside: readonly string[]): Forms<"envelope"> {
  if (beside.length === 0) return ["bare"];
  return areNames(beside, ["message", "meta"]) ? ["meta"] : [];
}

export function takenPricingForms(pricing: unknown): Forms<"takenPricing"> {
  if (pricing === undefined) return ["absent"];
  if (pricing === null) return ["null"];
  if (!isFields(pricing)) return [];
  if (Object.keys(pricing).length === 0) return ["empty"];
  const { amount, currency } = pricing;
  if (amount === "0.00") return ["zero"];
  const isPrice = typeof amount === "string" && /^\d+\.\d\d$/.test(amount) && typeof currency === "string";
  return isPrice ? ["price"] : [];
}

export function recordForms({ fields }: RawRecord): Forms<"recordFields"> {
  return OPEN_POINTS.recordFields.settings.filter((setting) =>
    [...fields].every(([role, { key }]) => RECORD_NAMES[setting][ROLE_ORDER.indexOf(role)] === key),
  );
}

const DATE_TEXTS: Partial<BySetting<"dates", RegExp>> = {
  rfc3339: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  fraction: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/,
  offset: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/,
  day: /^\d{4}-\d\d-\d\d$/,
  space: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/,
  "month-name": /^\d\d-[A-Z][a-z]{2}-\d{4}$/,
};
const MIN_MILLISECONDS = 100_000_000_000;

export function dateForms(value: unknown): Forms<"dates"> {
  if (typeof value === "number") return [value < MIN_MILLISECONDS ? "seconds" : "milliseconds"];
  if (typeof value !== "string") return [];
  return OPEN_POINTS.dates.settings.filter((form) => DATE_TEXTS[form]?.test(value));
}

export function autoRenewForms(value: unknown): Forms<"autoRenew"> {
  if (typeof value === "boolean") return ["boolean"];
  if (value === 0 || value === 1) return ["number"];
  if (value === "on" || value === "off") return ["word"];
  return value === "true" || value === "false" ? ["text"] : [];
}

export function nameserverForms(value: unknown): Forms<"nameservers"> {
  if (typeof value === "string") return ["text"];
  if (Array.isArray(value)) {
    if (value.every((host) => typeof host === "string")) return ["list"];
    return value.every((host) => isFields(host) && "hostname" in host) ? ["objects"] : [];
  }
  return isFields(value) && Object.keys(value).every((key) => /^ns\d$/.test(key)) ? ["numbered"] : [];
}

export function statusForms(value: unknown): Forms<"statusWords"> {
  if (Array.isArray(value)) return value.every((word) => typeof word === "string") ? ["epp"] : [];
  if (typeof value !== "string") return [];
  if (/^[a-z]+(?:_[a-z]+)*$/.test(value)) return ["lower"];
  if (/^[A-Z]+(?:_[A-Z]+)*$/.test(value)) return ["upper"];
  return /^[A-Z][a-z]+(?: [a-z]+)*$/.test(value) ? ["title"] : [];
}

/** Each setting has one path that no other has. */
const TIER_PATHS: BySetting<"tierFields", string> = {
  flat: "current_tier",
  camel: "currentTier",
  nested: "current.name",
  wrapped: "tier.current",
  counted: "tier",
};

export function tierForms(data: unknown): Forms<"tierFields"> {
  const paths = new Set(leavesOf(data).map(({ path }) => path));
  return OPEN_POINTS.tierFields.settings.filter((form) => paths.has(TIER_PATHS[form]));
}

const QUOTE_PATHS: BySetting<"quoteFields", readonly string[]> = {
  nested: ["pricing.amount"],
  flat: ["amount"],
  wrapped: ["quote.price.amount"],
  "unit-and-total": ["unit_price", "total_price"],
  unit: ["unit_price"],
  "per-year": ["amount"],
};

/** `hasPer`: a field next to the amounts says what period they cover. */
export function quoteForms(amounts: readonly Leaf[], hasPer: boolean): Forms<"quoteFields"> {
  const paths = amounts.map(({ path }) => path);
  return OPEN_POINTS.quoteFields.settings.filter(
    (form) => (form === "per-year") === hasPer && areNames(paths, QUOTE_PATHS[form]),
  );
}

const AMOUNTS: readonly (readonly [ShapeSettings["quoteAmount"], (amount: unknown) => boolean])[] = [
  ["text", (amount) => typeof amount === "string"],
  // A whole number more likely counts cents than dollars.
  ["minor-units", (amount) => typeof amount === "number"],
  ["number", (amount) => typeof amount === "number" || endsIn(amount, /\.\d?[1-9]$/)],
  ["padded-number", (amount) => endsIn(amount, /\.\d\d$/)],
];

function endsIn(amount: unknown, digits: RegExp): boolean {
  return isWrittenNumber(amount) && digits.test(amount.text);
}

export function amountForms(amounts: readonly unknown[]): Forms<"quoteAmount"> {
  return AMOUNTS.filter(([, matches]) => amounts.every(matches)).map(([form]) => form);
}

export function listForms(path: string): Forms<"listWrapper"> {
  return OPEN_POINTS.listWrapper.settings.filter(
    (form) => path === (form === "nested" ? "result.records" : form),
  );
}

/** By the roles of the item's fields. */
export function itemForms(item: unknown, record: RawRecord | null): Forms<"listItems"> {
  if (typeof item === "string") return ["names"];
  if (record === null) return [];
  const { wrapper, fields } = record;
  if (fields.size === 6) return wrapper === null ? ["records"] : wrapper === "domain" ? ["wrapped"] : [];
  const isBrief = wrapper === null && areNames([...fields.keys()], ["name", "status", "expiry"]);
  return isBrief ? ["brief"] : [];
}

const PAGING: BySetting<"listPaging", readonly string[]> = {
  none: [],
  counts: ["page", "per_page", "count"],
  links: ["links"],
  cursor: ["next_cursor", "has_more"],
};

export function pagingForms(beside: readonly string[]): Forms<"listPaging"> {
  return OPEN_POINTS.listPaging.settings.filter((form) => areNames(beside, PAGING[form]));
}

const SPELLINGS: BySetting<"errorCodes", RegExp> = {
  snake: /^[a-z]+(?:_[a-z]+)*$/,
  upper: /^[A-Z]+(?:_[A-Z]+)*$/,
  pascal: /^(?:[A-Z][a-z]+)+$/,
  kebab: /^[a-z]+(?:-[a-z]+)*$/,
  number: /^\d+$/,
};

export function codeForms(code: string): Forms<"errorCodes"> {
  return OPEN_POINTS.errorCodes.settings.filter((setting) => SPELLINGS[setting].test(code));
}

const MAX_SECONDS = 900;
const MAX_MILLISECONDS = 10_000_000;

export function retryAfterForms(value: unknown): Forms<"retryAfter"> {
  if (value === undefined) return ["absent"];
  if (typeof value !== "string") return [];
  if (!/^\d+$/.test(value)) return Number.isNaN(Date.parse(value)) ? [] : ["date"];
  const number = Number(value);
  return [number <= MAX_SECONDS ? "seconds" : number <= MAX_MILLISECONDS ? "milliseconds" : "absurd"];
}

/** A list of this length is unlikely to be sorted by chance. */
const ENOUGH_ITEMS = 5;

/** The orders that the list could follow. */
export function orderForms({ items }: RawList): Forms<"listOrder"> {
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
  const fits = {
    given: (!byName && !(isDated && byDate)) || isChance,
    name: byName,
    // Unknown without dates.
    newest: byDate && (isDated || !byName),
  };
  return OPEN_POINTS.listOrder.settings.filter((order) => fits[order]);
}

function instant(value: unknown): number | null {
  if (typeof value === "number") return value;
  const date = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? null : date;
}

/** The format of the error object, and its code. */
export function errorIn({ json }: Answer): {
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

function areNames(names: readonly string[], expected: readonly string[]): boolean {
  return names.length === expected.length && names.every((name) => expected.includes(name));
}
