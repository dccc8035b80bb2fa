/** A price promise as anybody can read it, and whether it says what the cart beside it shows, and nothing else. */
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

/** What is wrong with the promise of an answer to `POST /v1/quotes`, made with a key; undefined when nothing is. */
export function wrongInPromise(cart: unknown): string | undefined {
  const { items, promise, validUntil } = cartShape.parse(cart);
  const shown = items.flatMap(({ price, ...line }) => (price ? [{ ...line, price }] : []));
  if (promise === null || validUntil === null) {
    if (promise !== validUntil) return "has a promise or its end without the other";
    return shown.length === 0 ? undefined : "has prices and no promise";
  }
  if (shown.length === 0) return "has a promise and no prices";
  headOf(promise);
  const claims = claimsOf(promise);
  if (!isDeepStrictEqual(claims.items, shown)) return "promises other lines than it shows";
  if (shown.some(({ price }) => price.currency !== claims.currency)) return "promises another currency";
  if (claims.exp * 1000 !== Date.parse(validUntil)) return "promises for another time than it shows";
  return undefined;
}
