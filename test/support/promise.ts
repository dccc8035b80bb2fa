/** Decodes price promises, and checks that a promise contains exactly what its cart shows. */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";

export const money = z.strictObject({ amount: z.string(), currency: z.string() });
export const term = { domain: z.string(), tld: z.string(), action: z.string(), years: z.int() };

const headShape = z.strictObject({ alg: z.string(), kid: z.string(), typ: z.string() });
export const claimsShape = z.strictObject({
  jti: z.string(),
  iat: z.int(),
  exp: z.int(),
  currency: z.string(),
  items: z.array(z.strictObject({ ...term, price: money })),
});
const cartShape = z.object({
  items: z.array(z.object({ ...term, price: money.nullable() })),
  promise: z.string().nullable(),
  validUntil: z.iso.datetime().nullable(),
});

export function headOf(promise: string) {
  return headShape.parse(partOf(promise, 0));
}

export function claimsOf(promise: string) {
  return claimsShape.parse(partOf(promise, 1));
}

function partOf(promise: string, at: number): unknown {
  return JSON.parse(Buffer.from(promise.split(".")[at] ?? "", "base64url").toString("utf8"));
}

/** The text with each promise replaced by its decoded head and claims. Private data could hide in a promise, and a random signature can spell any word. */
export function withPromisesDecoded(text: string): string {
  return text.replaceAll(
    /\b(eyJ[\w-]+)\.(eyJ[\w-]+)\.[\w-]{86}(?![\w-])/g,
    (_promise, ...[head, claims]: string[]) =>
      [head, claims].map((part = "") => Buffer.from(part, "base64url").toString("utf8")).join(""),
  );
}

/** What is wrong with the promise in an answer to `POST /v1/quotes`, from a service with a signing key; undefined if nothing is. */
export function promiseFault(cart: unknown): string | undefined {
  const { items, promise, validUntil } = cartShape.parse(cart);
  const shown = items.flatMap(({ price, ...line }) => (price ? [{ ...line, price }] : []));
  if (promise === null || validUntil === null) {
    if (promise !== validUntil) return "has a promise without an end, or an end without a promise";
    return shown.length === 0 ? undefined : "has prices but no promise";
  }
  if (shown.length === 0) return "has a promise but no prices";
  headOf(promise);
  const claims = claimsOf(promise);
  if (!isDeepStrictEqual(claims.items, shown)) return "promises lines that differ from those it shows";
  if (shown.some(({ price }) => price.currency !== claims.currency)) return "promises a different currency";
  if (claims.exp * 1000 !== Date.parse(validUntil)) return "promises until a different time than it shows";
  return undefined;
}
