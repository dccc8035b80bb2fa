/** Parses the service's replies to visitors. Amounts are in cents, times in ms since the start of the history. */
import { z } from "zod";
import { EPOCH_MS } from "./simulation.js";

const money = z
  .object({ amount: z.string().regex(/^\d+\.\d\d$/), currency: z.literal("USD") })
  .transform(({ amount }) => Math.round(Number(amount) * 100));
const moment = z.iso.datetime().transform((text) => Date.parse(text) - EPOCH_MS);
export const availabilityReply = z
  .object({
    status: z.enum(["available", "taken", "unknown"]),
    premium: z.boolean(),
    price: money.nullable(),
    asOf: moment,
    stale: z.boolean(),
  })
  .transform(({ price, asOf, ...rest }) => ({ ...rest, cents: price, asOfMs: asOf }));
export const searchReply = z.object({ results: z.tuple([z.union([availabilityReply, z.looseObject({})])]) });
export const quoteReply = z.object({ price: money, asOf: moment, stale: z.boolean().default(false) });
const listed = z.object({
  action: z.enum(["registration", "renewal", "transfer"]),
  years: z.int(),
  price: money,
});
export const pricesReply = z.object({ asOf: moment, prices: z.array(listed) });
export const cartLine = z.object({
  domain: z.string(),
  ...listed.shape,
  price: money.nullable(),
  status: z.string().optional(),
  premium: z.boolean().default(false),
});
export const cartReply = z.object({ items: z.array(cartLine), promise: z.string().nullable() });

/** A body in one line, without what differs between runs. */
export function textOf(body: unknown): string {
  return JSON.stringify(body, (key, value: unknown) =>
    ["requestId", "promise", "etag"].includes(key) ? undefined : value,
  );
}
