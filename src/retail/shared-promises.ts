/**
 * The promises of all replicas, stored in Redis with their wholesale prices until they expire, so that staff can look them up on any
 * replica. Promises that couldn't be written are written once Redis is reachable again.
 */
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import type { Clock } from "../clock.js";
import { parseJson } from "../json.js";
import type { RedisLink } from "../redis.js";
import { ACTIONS } from "../upstream/contract.js";
import type { PricePromise, SharedPromises } from "./promise.js";

const MAX_UNWRITTEN = 2000;

const money = { amount: z.string().regex(/^\d+(?:\.\d+)?$/), currency: z.string() };
const promiseSchema = z.object({
  id: z.string(),
  issuedAtMs: z.number(),
  validUntilMs: z.number(),
  lines: z.array(
    z.object({
      domain: z.string(),
      tld: z.string(),
      action: z.enum(ACTIONS),
      years: z.int().positive(),
      price: z.object({ kind: z.literal("retail"), ...money }),
      wholesale: z.object({ kind: z.literal("wholesale"), ...money }),
      premium: z.boolean(),
    }),
  ),
});

const keyOf = (id: string): string => `af-storefront:promise:${id}`;

export function createSharedPromises(link: RedisLink, clock: Clock): SharedPromises {
  const unwritten = new BoundedMap<string, PricePromise>(MAX_UNWRITTEN);

  async function write(promise: PricePromise): Promise<void> {
    unwritten.delete(promise.id);
    const ttlMs = promise.validUntilMs - clock.now();
    if (ttlMs <= 0) return;
    try {
      await link.set(keyOf(promise.id), JSON.stringify(promise), ttlMs);
    } catch {
      unwritten.set(promise.id, promise);
    }
  }

  link.onReachable(() => {
    unwritten.forEach((promise) => void write(promise));
  });
  return {
    write,
    async find(id) {
      // Another version of the service may have written it differently.
      return promiseSchema.safeParse(parseJson(await link.get(keyOf(id)))).data ?? null;
    },
  };
}
