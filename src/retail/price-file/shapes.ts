/** The shapes of the price file's sections. Amounts and percentages are plain decimals in quotes, so that they stay exact. */
import { z } from "zod";
import { nameOf, SCRIPTS } from "../../domain-name.js";
import { currencyDigits, decimal } from "../../money.js";
import { ACTIONS } from "../../upstream/contract.js";

export const PLAIN_DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/;

function decimalText(max: string, { positive = false } = {}) {
  return z.string({ error: ({ input }) => notText(input) }).superRefine((text, context) => {
    const message = decimalProblem(text, max, positive);
    if (message !== null) context.addIssue({ code: "custom", message });
  });
}

function notText(value: unknown): string {
  if (value === undefined) return "is missing";
  if (typeof value === "number") {
    if (value < 0) return "must not be negative";
    return `is a bare number; put it in quotes, such as "${value}", so that it stays exact`;
  }
  return 'must be a decimal in quotes, such as "1.25"';
}

function decimalProblem(text: string, max: string, positive: boolean): string | null {
  if (text.startsWith("-")) return "must not be negative";
  if (text.length > 24 || !PLAIN_DECIMAL.test(text)) return 'must be a plain decimal such as "1.25"';
  if (positive && decimal(text).eq("0")) return "must be more than 0";
  return decimal(text).gt(max) ? `is too high: at most ${max}` : null;
}

const MAX_AMOUNT = "1000000000";
const amount = decimalText(MAX_AMOUNT);

const tld = z
  .string()
  .regex(/^(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/, 'must be a TLD with a leading dot, such as ".af"');
const action = z.enum(ACTIONS);
// Not z.int(): its fault would keep a list's own checks from running.
const years = z.number().refine(Number.isInteger, "must be a whole number").min(1).max(10);
const currency = z
  .string()
  .refine((code) => currencyDigits(code) !== null, "must be an ISO 4217 currency code, such as USD");
export const instant = z.iso
  .datetime({
    offset: true,
    error: ({ input }) =>
      input === undefined ? "is missing" : 'must be an RFC 3339 time, such as "2026-03-20T00:00:00Z"',
  })
  .transform((text) => Date.parse(text));

const match = z
  .strictObject({ tld: tld.optional(), action: action.optional(), years: years.optional() })
  .default({});
const yearsList = z
  .array(years)
  .min(1, "must list at least one term")
  .refine((list) => new Set(list).size === list.length, {
    error: "lists a term twice",
    when: ({ value }) => Array.isArray(value),
  });
/** Must form a valid name with some label, in either writing direction. */
const affix = (add: (text: string, label: string) => string) =>
  z
    .string()
    .refine(
      (text) => text !== "" && ["a", "ا"].some((label) => nameOf(add(text, label), ".af") !== null),
      "doesn't form a valid name: use letters, digits and hyphens",
    );
const affixes = (add: (text: string, label: string) => string) =>
  z.array(affix(add)).max(20, "may list at most 20").default([]);
const pricing = {
  markupPercent: decimalText("1000").default("0"),
  addFixed: amount.default("0"),
  minMargin: amount.default("0"),
  ending: amount.optional(),
  step: decimalText(MAX_AMOUNT, { positive: true }).optional(),
};

export const SHAPES = {
  top: z.strictObject({
    currency: z.unknown().optional(),
    rates: z.unknown().optional(),
    catalog: z.unknown().optional(),
    rules: z.unknown().optional(),
    premium: z.unknown().optional(),
    promotions: z.unknown().optional(),
    promise: z.unknown().optional(),
    suggestions: z.unknown().optional(),
    shop: z.unknown().optional(),
  }),
  currency,
  tld,
  rate: decimalText("100000000", { positive: true }),
  catalogEntry: z.strictObject({
    tld,
    scripts: z
      .array(z.enum(SCRIPTS, `must be one of ${SCRIPTS.join(", ")}`))
      .min(1, "must list at least one script")
      .default([...SCRIPTS]),
    years: z
      .strictObject({
        registration: yearsList.optional(),
        renewal: yearsList.optional(),
        transfer: yearsList.optional(),
        restore: yearsList.optional(),
      })
      .refine((sold) => Object.keys(sold).length > 0, "sells nothing"),
  }),
  match,
  rule: z.strictObject({ match, ...pricing }),
  premium: z.strictObject(pricing),
  promotion: z.strictObject({
    id: z.string().regex(/^[\w.-]{1,64}$/, "must be 1 to 64 letters, digits, dots, hyphens or underscores"),
    match,
    percentOff: decimalText("100", { positive: true }),
    from: instant,
    to: instant,
  }),
  promise: z.strictObject({
    validMs: z
      .int()
      .min(60_000)
      .max(7 * 24 * 3_600_000),
  }),
  suggestions: z.strictObject({
    prefixes: affixes((text, label) => text + label),
    suffixes: affixes((text, label) => label + text),
    most: z.number().refine(Number.isInteger, "must be a whole number").min(1).max(20).default(6),
  }),
};
