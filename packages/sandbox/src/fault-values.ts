/**
 * Hostile contents: each function turns the JSON text of a correct answer into that of a wrong one, or returns it unchanged if it doesn't
 * apply. They work on text, because no JSON library would write much of it.
 */
import { z } from "zod";
import { BAIT, type Struck } from "./fault-wire.js";

type Rewrite = (text: string) => string;
type RewriteForCall = (text: string, call: Struck) => string;

/** A decimal with fraction digits as the value of any key, which makes it an amount of money. */
const AMOUNT = /(?<=:)"?-?\d+\.\d{1,2}"?(?=[,}\]])/g;
const NAMED_AMOUNT = /("[A-Za-z_]+"):("?-?\d+\.\d{1,2}"?)(?=[,}\]])/g;
const CURRENCY = /(?<="currency":)"[A-Z]{3}"/g;
const TEXT_OR_KEY = /"((?:[^"\\]|\\.)*)"(\s*:)?/g;
const DATE = /"\d{4}-\d\d-\d\d[^"]*"/g;

/** The wrong price. */
const LIE = '"1.00"';

/** Every amount becomes this JSON text. */
export function amounts(literal: string): Rewrite {
  return (text) => text.replace(AMOUNT, () => literal);
}

/** Every currency becomes this JSON text. */
export function currencies(literal: string): Rewrite {
  return (text) => text.replace(CURRENCY, (honest) => (honest === literal ? '"USD"' : literal));
}

/** Every date becomes this JSON text. */
export function dates(literal: string): Rewrite {
  return (text) => text.replace(DATE, () => literal);
}

export function without(key: string): Rewrite {
  const field = new RegExp(`"${key}":(?:"[^"]*"|[^,{}[\\]]+|\\{[^{}]*\\}),?`, "g");
  return (text) => text.replace(field, "").replaceAll(",}", "}");
}

/** Changes a check; `available` is the correct flag. */
function check(change: (text: string, available: boolean) => string): Rewrite {
  return (text) => {
    const flag = /"available":(true|false)/.exec(text)?.[1];
    return flag === undefined ? text : change(text, flag === "true");
  };
}

/** The `available` flag of a check becomes this JSON text. */
export function flag(literal: (available: boolean) => string): Rewrite {
  return check((text, available) =>
    text.replace(/"available":(?:true|false)/, () => `"available":${literal(available)}`),
  );
}

/** The status of a check becomes this JSON text. */
export function status(literal: (available: boolean) => string): Rewrite {
  return check((text, available) => text.replace(/"status":"[^"]*"/, () => `"status":${literal(available)}`));
}

/** A check of an available name that omits its price. */
export const availableWithoutPrice: Rewrite = check((text, available) =>
  available ? text.replace(/"pricing":\{[^{}]*\}/, '"pricing":null') : text,
);

export const takenWithPrice: Rewrite = check((text, available) =>
  available
    ? text
    : without("pricing")(text).replace(
        /"available":false/,
        `"available":false,"pricing":{"amount":${LIE},"currency":"USD"}`,
      ),
);

/** The requested name becomes the result of `make`. */
export function name(make: (asked: string) => string): RewriteForCall {
  return (text, { ofOneName }) =>
    ofOneName
      ? text.replace(/("domain":)"([^"]+)"/, (_all, key: string, asked: string) => `${key}${make(asked)}`)
      : text;
}

/** The echo of a quote's request under `key` becomes this JSON text. */
export function echo(key: "tld" | "action" | "years", literal: string): Rewrite {
  return (text) =>
    text.replace(new RegExp(`("${key}":)("[^"]*"|\\d+)`), (_all, name: string) => name + literal);
}

/** `data` becomes the result of `make`, which gets its JSON text. */
export function data(make: (data: string) => string): Rewrite {
  return (text) => `{"success":true,"data":${make(dataIn(text))}}`;
}

/** `data` with the setting's `patch` merged into it (RFC 7396), for any form of answer that a test wants to see. */
export const patched = (text: string, { patch }: Struck): string =>
  patch === undefined ? text : data((honest) => JSON.stringify(merged(JSON.parse(honest), patch)))(text);

function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const fields = new Map<string, unknown>(
    typeof target === "object" && target !== null && !Array.isArray(target) ? Object.entries(target) : [],
  );
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) fields.delete(key);
    else fields.set(key, merged(fields.get(key), value));
  }
  return Object.fromEntries(fields);
}

function dataIn(text: string): string {
  const body: unknown = JSON.parse(text);
  const { data } = z.object({ data: z.unknown() }).catch({ data: null }).parse(body);
  return JSON.stringify(data) ?? "null";
}

/** All correct values are in the prototype of an empty object, where only a careless reader finds them. */
export const inPrototype: Rewrite = data(
  (honest) => `{"__proto__":${honest},"constructor":{"prototype":${honest}}}`,
);

/** Next to the correct values is a prototype that says that every name is available, cheap and managed. */
export const pollution: Rewrite = (text) =>
  text
    .replaceAll(
      "{",
      `{"__proto__":{"success":true,"available":true,"status":"available","amount":${LIE},"total":${LIE}},`,
    )
    .replaceAll(",}", "}");

/** The wrong value for a value that a decision depends on; undefined for any other. */
function lieFor(key: string, value: string): string | undefined {
  if (/^"?-?\d+\.\d{1,2}"?$/.test(value)) return LIE;
  if (key === '"available"') return value === "true" ? "false" : "true";
  if (key === '"status"') return value === '"available"' ? '"taken"' : '"available"';
  return undefined;
}

const DECISIVE = /("[A-Za-z_]+"):("[^"]*"|true|false|-?\d+\.\d+)(?=[,}])/g;

interface Doubling {
  readonly lie: "first" | "last";
  /** How the key of the wrong value is written. */
  readonly spell?: (key: string) => string;
  /** Whether only amounts are duplicated, so that the rest of the answer is consistent. */
  readonly amountsAlone?: boolean;
}

/** Every value that a decision depends on appears twice, once with a wrong value. */
export function twice({ lie: order, spell = (key) => key, amountsAlone = false }: Doubling): Rewrite {
  return (text) =>
    text.replace(DECISIVE, (pair: string, key: string, value: string) => {
      const lie = lieFor(key, value);
      if (lie === undefined || (amountsAlone && lie !== LIE)) return pair;
      const lying = `${spell(key)}:${lie}`;
      return order === "first" ? `${lying},${pair}` : `${pair},${lying}`;
    });
}

/** Next to every amount is another one, under a name that could mean the same. */
export const secondPrice: Rewrite = (text) =>
  text
    .replace(NAMED_AMOUNT, (pair: string) => `${pair},"total":${LIE},"price":${LIE}`)
    .replace(/"pricing":/, `"total":${LIE},"pricing":`);

/** Every text value (not keys) becomes the result of `make`, as JSON text. */
export function texts(make: (honest: string) => string): Rewrite {
  return (text) =>
    text.replace(TEXT_OR_KEY, (all: string, honest: string, colon: string | undefined) =>
      colon === undefined ? make(honest) : all,
    );
}

/** Amounts, currencies, dates, names and the document's own words: an answer is rejected without them. */
const GRAMMATICAL =
  /^(?:-?\d+\.\d\d|[A-Z]{3}|available|taken|registration|renewal|transfer|restore|\d{4}-\d\d-\d\d.*|(?:[a-z0-9-]*\.)+[a-z]+)$/;

/** Adds `words` to every free text, and as separate fields. The answer remains readable. */
export function amidTexts(words: string | ((call: Struck) => string)): RewriteForCall {
  return (text, call) => {
    const within = typeof words === "string" ? words : words(call);
    const open = withField(text, '"note":"","message":""');
    return texts((honest) => (GRAMMATICAL.test(honest) ? `"${honest}"` : `"${honest}${within}"`))(open);
  };
}

/** Adds `field` at the beginning of every object. */
function withField(text: string, field: string): string {
  return text.replaceAll("{", `{${field},`).replaceAll(",}", "}");
}

/** Every value in `data` that isn't an object becomes the result of `make`, as JSON text. */
export function leaves(make: (honest: string) => string): Rewrite {
  const leaf = /(?<=[:[,])(?:"(?:[^"\\]|\\.)*"(?!\s*:)|true|false|null|-?\d[\d.]*)(?=[,}\]])/g;
  return data((honest) => honest.replace(leaf, make));
}

/** A different answer to the same question. A service that accepts it shows every name as available for almost nothing. */
export function forged(text: string): string {
  return texts((honest) => (GRAMMATICAL.test(honest) ? `"${honest}"` : `"${BAIT}"`))(text)
    .replace(/"available":(?:true|false)/, '"available":true')
    .replace('"status":"taken"', '"status":"available"')
    .replace(/"pricing":null/, `"pricing":{"amount":${LIE},"currency":"USD"}`)
    .replace(AMOUNT, LIE);
}
