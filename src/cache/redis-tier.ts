/**
 * The shared tier in Redis. Keys are hashes of the facts' source, the pool's mark and the key, so nothing tells what was searched, and
 * facts of another upstream or credential, or from before a purge, are not found. What cannot be decoded is not there.
 */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { type RedisLink, redisScript } from "../redis.js";
import type { Topic } from "./news.js";
import type { Claim, Fact, SharedTier } from "./shared-tier.js";

export interface RedisTierSettings<V> {
  readonly link: RedisLink;
  /** The pool's name. */
  readonly name: string;
  /** Where purges of the pool are told; null for a pool that is never purged. */
  readonly purges: Topic | null;
  /** Names the upstream and the credential in use. */
  readonly source: () => string;
  /** Reads the value of a key as JSON brought it back; undefined for anything that it never was. */
  readonly decode: (data: unknown, key: string) => V | undefined;
  readonly clock: Clock;
}

/** How long the others wait for a replica that died while it asked. */
const CLAIM_MS = 1_000;
const RENEW_CLAIM_MS = 300;

/** Gives the claim a new life of ARGV[2] ms, 0 to end it, if it is still the one of ARGV[1]. */
const HOLD = redisScript(
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0",
);

const stored = z.object({ asOfMs: z.number().positive(), value: z.unknown() });

export function redisTier<V>(settings: RedisTierSettings<V>): SharedTier<V> {
  const { link, name, purges, clock } = settings;

  function factIn(text: string | null, key: string): Fact<V> | null {
    const fact = stored.safeParse(parseJson(text)).data;
    const value = fact && settings.decode(fact.value, key);
    return fact === undefined || value === undefined ? null : { value, asOfMs: fact.asOfMs };
  }

  async function claim(at: string): Promise<Claim | null> {
    const token = randomUUID();
    if (!(await link.claim(at, token, CLAIM_MS))) return null;
    const hold = (lifeMs: number): Promise<unknown> =>
      link.run(HOLD, at, [token, lifeMs]).catch(() => undefined);
    let cancel = (): void => {};
    const renewLater = (): void => {
      cancel = clock.after(RENEW_CLAIM_MS, () => {
        void hold(CLAIM_MS);
        renewLater();
      });
    };
    renewLater();
    return {
      async letGo() {
        cancel();
        await hold(0);
      },
    };
  }

  return {
    place(key) {
      const mark = purges === null ? "" : purges.mark();
      if (mark === null || !link.reachable()) return null;
      const source = settings.source();
      const at = `af-storefront:${name}:${hash([source, mark, key])}`;
      return {
        read: async () => factIn(await link.get(at), key),
        async write(fact, ttlMs) {
          // Where the credential has changed since, nobody knows which one the fact was learned with.
          if (settings.source() === source) await link.set(at, JSON.stringify(fact), ttlMs);
        },
        claim: () => claim(`${at}:asked`),
      };
    },
    purge() {
      purges?.tell(clock.now());
    },
    onPurged(forget) {
      purges?.onTold(forget);
    },
  };
}

function hash(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

function parseJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return null;
  }
}
