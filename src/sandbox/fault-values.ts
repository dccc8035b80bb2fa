/**
 * Hostile contents: each function turns the JSON text of an honest answer into the text of a lying one, or leaves it as it is where it
 * has nothing of the kind. They work on text, because much of what they write no JSON writer would.
 */
import { z } from "zod";
import { BAIT, type Struck } from "./fault-wire.js";

type Rewrite = (text: string) => string;
type RewriteForCall = (text: string, call: Struck) => string;

/** A decimal with fraction digits as the value of a key: an amount of money, whatever the key is called. */
const AMOUNT = /(?<=:)"?-?\d+\.\d{1,2}"?(?=[,}\]])/g;
const NAMED_AMOUNT = /("[A-Za-z_]+"):("?-?\d+\.\d{1,2}"?)(?=[,}\]])/g;
const CURRENCY = /(?<="currency":)"[A-Z]{3}"/g;
const TEXT_OR_KEY = /"((?:[^"\\]|\\.)*)"(\s*:)?/g;
const DATE = /"\d{4}-\d\d-\d\d[^"]*"/g;

/** What a liar would have a name cost. */
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

/** A change of what only a check says; `available` is what it says truly. */
function check(change: (text: string, available: boolean) => string): Rewrite {
  return (text) => {
    const flag = /"available":(true|false)/.exec(text)?.[1];
    return flag === undefined ? text : change(text, flag === "true");
  };
}

/** The flag of a check becomes this JSON text. */
export function flag(literal: (available: boolean) => string): Rewrite {
  return check((text, available) =>
    text.replace(/"available":(?:true|false)/, () => `"available":${literal(available)}`),
  );
}

/** The status of a check becomes this JSON text. */
export function status(literal: (available: boolean) => string): Rewrite {
  return check((text, available) => text.replace(/"status":"[^"]*"/, () => `"status":${literal(available)}`));
}

/** A check that says of a free name that it is so, and not what it costs. */
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

/** The name that was asked for becomes what `make` makes of it. */
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

/** `data` becomes what `make` makes of its JSON text. */
export function data(make: (data: string) => string): Rewrite {
  return (text) => `{"success":true,"data":${make(dataIn(text))}}`;
}

function dataIn(text: string): string {
  const body: unknown = JSON.parse(text);
  const { data } = z.object({ data: z.unknown() }).catch({ data: null }).parse(body);
  return JSON.stringify(data) ?? "null";
}

/** Everything that is true stands where only a careless reader looks: in the prototype of an empty object. */
export const inPrototype: Rewrite = data(
  (honest) => `{"__proto__":${honest},"constructor":{"prototype":${honest}}}`,
);

/** Beside the truth stands a prototype that says that everything is free, cheap and ours. */
export const pollution: Rewrite = (text) =>
  text
    .replaceAll(
      "{",
      `{"__proto__":{"success":true,"available":true,"status":"available","amount":${LIE},"total":${LIE}},`,
    )
    .replaceAll(",}", "}");

/** What a liar puts in the place of a value that decides something; undefined where the value decides nothing. */
function lieFor(key: string, value: string): string | undefined {
  if (/^"?-?\d+\.\d{1,2}"?$/.test(value)) return LIE;
  if (key === '"available"') return value === "true" ? "false" : "true";
  if (key === '"status"') return value === '"available"' ? '"taken"' : '"available"';
  return undefined;
}

const DECISIVE = /("[A-Za-z_]+"):("[^"]*"|true|false|-?\d+\.\d+)(?=[,}])/g;

interface Doubling {
  readonly lie: "first" | "last";
  /** How the key of the lie is written. */
  readonly spell?: (key: string) => string;
  /** Whether only amounts are there twice, so that the rest of the answer agrees with itself. */
  readonly amountsAlone?: boolean;
}

/** Every value that decides something is there twice, once as a lie. */
export function twice({ lie: order, spell = (key) => key, amountsAlone = false }: Doubling): Rewrite {
  return (text) =>
    text.replace(DECISIVE, (pair: string, key: string, value: string) => {
      const lie = lieFor(key, value);
      if (lie === undefined || (amountsAlone && lie !== LIE)) return pair;
      const lying = `${spell(key)}:${lie}`;
      return order === "first" ? `${lying},${pair}` : `${pair},${lying}`;
    });
}

/** Beside every amount stands another one under a name that could mean the same. */
export const secondPrice: Rewrite = (text) =>
  text
    .replace(NAMED_AMOUNT, (pair: string) => `${pair},"total":${LIE},"price":${LIE}`)
    .replace(/"pricing":/, `"total":${LIE},"pricing":`);

/** Every text value (no key) becomes what `make` makes of it, as JSON text. */
export function texts(make: (honest: string) => string): Rewrite {
  return (text) =>
    text.replace(TEXT_OR_KEY, (all: string, honest: string, colon: string | undefined) =>
      colon === undefined ? make(honest) : all,
    );
}

/** Amounts, currencies, dates, names and the document's own words: what an answer is refused without. */
const GRAMMATICAL =
  /^(?:-?\d+\.\d\d|[A-Z]{3}|available|taken|registration|renewal|transfer|restore|\d{4}-\d\d-\d\d.*|(?:[a-z0-9-]*\.)+[a-z]+)$/;

/** `words` in every text that is free to be anything, and in fields of their own: an answer that is understood, with something in it. */
export function amidTexts(words: (call: Struck) => string): RewriteForCall {
  return (text, call) => {
    const within = words(call);
    const open = withField(text, '"note":"","message":""');
    return texts((honest) => (GRAMMATICAL.test(honest) ? `"${honest}"` : `"${honest}${within}"`))(open);
  };
}

/** `field` at the beginning of every object. */
function withField(text: string, field: string): string {
  return text.replaceAll("{", `{${field},`).replaceAll(",}", "}");
}

/** Every value in `data` without fields of its own becomes what `make` makes of it, as JSON text. */
export function leaves(make: (honest: string) => string): Rewrite {
  const leaf = /(?<=[:[,])(?:"(?:[^"\\]|\\.)*"(?!\s*:)|true|false|null|-?\d[\d.]*)(?=[,}\]])/g;
  return data((honest) => honest.replace(leaf, make));
}

/** Another answer to the same question: whoever takes it for his own shows every name as free for next to nothing. */
export function forged(text: string): string {
  return texts((honest) => (GRAMMATICAL.test(honest) ? `"${honest}"` : `"${BAIT}"`))(text)
    .replace(/"available":(?:true|false)/, '"available":true')
    .replace('"status":"taken"', '"status":"available"')
    .replace(/"pricing":null/, `"pricing":{"amount":${LIE},"currency":"USD"}`)
    .replace(AMOUNT, LIE);
}
