/** Recognizes sandbox settings by their appearance: which settings could have produced a value, a set of field names or a word. */
import { OPEN_POINTS, RECORD_NAMES, type ShapeSettings } from "../sandbox/open-points.js";
import { isFields, WrittenNumber } from "../upstream/written-json.js";
import { type RawRecord, ROLE_ORDER } from "./records.js";
import { leavesOf } from "./shapes.js";

type Forms<Name extends keyof ShapeSettings> = readonly ShapeSettings[Name][];

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

const DATE_TEXTS: readonly (readonly [ShapeSettings["dates"], RegExp])[] = [
  ["rfc3339", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/],
  ["fraction", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/],
  ["offset", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/],
  ["day", /^\d{4}-\d\d-\d\d$/],
  ["space", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/],
  ["month-name", /^\d\d-[A-Z][a-z]{2}-\d{4}$/],
];
const MIN_MILLISECONDS = 100_000_000_000;

export function dateForms(value: unknown): Forms<"dates"> {
  if (typeof value === "number") return [value < MIN_MILLISECONDS ? "seconds" : "milliseconds"];
  if (typeof value !== "string") return [];
  return DATE_TEXTS.filter(([, text]) => text.test(value)).map(([form]) => form);
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
const TIER_PATHS: readonly (readonly [ShapeSettings["tierFields"], string])[] = [
  ["flat", "current_tier"],
  ["camel", "currentTier"],
  ["nested", "current.name"],
  ["wrapped", "tier.current"],
  ["counted", "tier"],
];

export function tierForms(data: unknown): Forms<"tierFields"> {
  const paths = new Set(leavesOf(data).map(({ path }) => path));
  return TIER_PATHS.filter(([, path]) => paths.has(path)).map(([form]) => form);
}

const QUOTE_PATHS: readonly (readonly [ShapeSettings["quoteFields"], readonly string[], hasPer: boolean])[] =
  [
    ["nested", ["pricing.amount"], false],
    ["flat", ["amount"], false],
    ["wrapped", ["quote.price.amount"], false],
    ["unit-and-total", ["unit_price", "total_price"], false],
    ["unit", ["unit_price"], false],
    ["per-year", ["amount"], true],
  ];

/** `hasPer`: a field next to the amounts says what period they cover. */
export function quoteForms(paths: readonly string[], hasPer: boolean): Forms<"quoteFields"> {
  return QUOTE_PATHS.filter(([, expected, per]) => per === hasPer && areNames(paths, expected)).map(
    ([form]) => form,
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
  return amount instanceof WrittenNumber && digits.test(amount.text);
}

export function amountForms(amounts: readonly unknown[]): Forms<"quoteAmount"> {
  return AMOUNTS.filter(([, matches]) => amounts.every(matches)).map(([form]) => form);
}

const LIST_PATHS: readonly (readonly [ShapeSettings["listWrapper"], string])[] = [
  ["domains", "domains"],
  ["items", "items"],
  ["data", "data"],
  ["nested", "result.records"],
];

export function listForms(path: string): Forms<"listWrapper"> {
  return LIST_PATHS.filter(([, expected]) => expected === path).map(([form]) => form);
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

const PAGING: readonly (readonly [ShapeSettings["listPaging"], readonly string[]])[] = [
  ["none", []],
  ["counts", ["page", "per_page", "count"]],
  ["links", ["links"]],
  ["cursor", ["next_cursor", "has_more"]],
];

export function pagingForms(beside: readonly string[]): Forms<"listPaging"> {
  return PAGING.filter(([, names]) => areNames(beside, names)).map(([form]) => form);
}

const SPELLINGS: Readonly<Record<ShapeSettings["errorCodes"], RegExp>> = {
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

function areNames(names: readonly string[], expected: readonly string[]): boolean {
  return names.length === expected.length && names.every((name) => expected.includes(name));
}
