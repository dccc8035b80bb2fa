/**
 * Untrue contents: each function turns the JSON text of a correct answer into that of a wrong one, or returns it unchanged if it doesn't
 * apply.
 */
import { z } from "zod";
import { BAIT, type Struck } from "./fault-wire.js";

export type Lie = (text: string, call: Struck) => string;

/** A decimal with fraction digits as the value of any key, which makes it an amount of money. */
const AMOUNT = /(?<=:)"?-?\d+\.\d{1,2}"?(?=[,}\]])/g;
const LOW = '"1.00"';

/** Every amount becomes this JSON text. */
export function amounts(json: string): Lie {
  return (text) => text.replace(AMOUNT, () => json);
}

/** Every amount is followed by another one, under names that could mean the same. */
export const secondPrice: Lie = (text) =>
  text.replace(AMOUNT, (amount) => `${amount},"total":${LOW},"price":${LOW}`);

export function without(key: string): Lie {
  const field = new RegExp(`"${key}":(?:"[^"]*"|[^,{}[\\]]+),?`, "g");
  return (text) => text.replace(field, "").replaceAll(",}", "}");
}

/** Every date becomes this JSON text. */
export function dates(json: string): Lie {
  return (text) => text.replace(/"\d{4}-\d\d-\d\d[^"]*"/g, () => json);
}

const body = z.looseObject({ data: z.unknown() });

/** `data` becomes the result of `make`. */
export function data(make: (honest: unknown, call: Struck) => unknown): Lie {
  return (text, call) => {
    const honest = body.safeParse(JSON.parse(text));
    if (!honest.success) return text;
    return JSON.stringify({ ...honest.data, data: make(honest.data.data, call) });
  };
}

/** `data` becomes this JSON text. */
export function dataText(json: () => string): Lie {
  return () => `{"success":true,"data":${json()}}`;
}

const checked = z.looseObject({ available: z.boolean(), status: z.string(), pricing: z.unknown() });

/** Changes the data of a check. */
export function check(change: (honest: z.output<typeof checked>) => object): Lie {
  return data((honest) => {
    const result = checked.safeParse(honest);
    return result.success ? change(result.data) : honest;
  });
}

export const freePrice = { amount: "1.00", currency: "USD" };

/** Changes the field of `data` that repeats what was asked. */
export function subject(field: "domain" | "tld" | "years", make: (honest: unknown) => unknown): Lie {
  return data((honest) => {
    const { [field]: asked, ...others } = z.record(z.string(), z.unknown()).parse(honest);
    return asked === undefined || Array.isArray(asked) ? honest : { ...others, [field]: make(asked) };
  });
}

/** `data` with the setting's `patch` merged into it (RFC 7396), for any form of answer that a test wants to see. */
export const patched = data((honest, { patch }) => (patch === undefined ? honest : merged(honest, patch)));

const fieldsOf = z.record(z.string(), z.unknown()).catch({});

function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const fields = new Map(Object.entries(fieldsOf.parse(target)));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) fields.delete(key);
    else fields.set(key, merged(fields.get(key), value));
  }
  return Object.fromEntries(fields);
}

/** Every value that isn't an object or a list becomes the result of `make`. */
export function leaves(make: (honest: unknown) => unknown): (value: unknown) => unknown {
  const change = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(change);
    if (typeof value !== "object" || value === null) return make(value);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, change(inner)]));
  };
  return change;
}

/** Amounts, currencies, dates, names and the document's own words: an answer is rejected without them. */
const GRAMMATICAL =
  /^(?:-?\d+\.\d\d|[A-Z]{3}|available|taken|registration|renewal|transfer|restore|\d{4}-\d\d-\d\d.*|(?:[a-z0-9-]*\.)+[a-z]+)$/;

const freeTexts = (make: (honest: string) => string) =>
  leaves((value) => (typeof value === "string" && !GRAMMATICAL.test(value) ? make(value) : value));

/** Adds `words` to every free text, and as separate fields. The answer remains readable. */
export function amidTexts(words: (call: Struck) => string): Lie {
  return (text, call) => {
    const within = words(call);
    const open = text.replaceAll("{", '{"note":"","message":"",').replaceAll(",}", "}");
    return JSON.stringify(freeTexts((honest) => honest + within)(JSON.parse(open)));
  };
}

const DECISIVE = /("[A-Za-z_]+"):("[^"]*"|true|false|-?\d+\.\d+)(?=[,}])/g;

/** The wrong value for a value that a decision depends on; undefined for any other. */
function wrongFor(key: string, value: string): string | undefined {
  if (/^"?-?\d+\.\d{1,2}"?$/.test(value)) return LOW;
  if (key === '"available"') return value === "true" ? "false" : "true";
  if (key === '"status"') return value === '"available"' ? '"taken"' : '"available"';
  return undefined;
}

/** Every value that a decision depends on appears twice, once with a wrong value. `pair` puts both in order. */
export function twice(pair: (key: string, honest: string, wrong: string) => string): Lie {
  return (text) =>
    text.replace(DECISIVE, (all: string, key: string, honest: string) => {
      const wrong = wrongFor(key, honest);
      return wrong === undefined ? all : pair(key, honest, wrong);
    });
}

/** Next to the correct values is a prototype that says that every name is available, cheap and managed. */
export const pollution: Lie = (text) => {
  const lie = `{"success":true,"available":true,"status":"available","amount":${LOW},"total":${LOW}}`;
  return text.replaceAll("{", `{"__proto__":${lie},`).replaceAll(",}", "}");
};

/** A different answer to the same question. A service that accepts it shows every name as available for almost nothing. */
export const forged: Lie = (text, call) =>
  amounts(LOW)(
    check((honest) => ({ ...honest, available: true, status: "available", pricing: freePrice }))(
      JSON.stringify(freeTexts(() => BAIT)(JSON.parse(text))),
      call,
    ),
    call,
  );
