/**
 * Shares a pool through Redis. Keys are hashes of the upstream and credential, the pool's mark and the key, so they don't reveal searches,
 * and facts of another upstream or credential, or from before a purge, aren't found. Undecodable facts count as absent.
 */
import { hash, randomUUID } from "node:crypto";
import { z } from "zod";
import { bootedAtMs, type Clock, every } from "../clock.js";
import { parseJson } from "../json.js";
import { type RedisLink, redisScript } from "../redis.js";
import type { Fact } from "./facts.js";
import type { Channel } from "./invalidation.js";
import type { Claim, SharedPool } from "./replicas.js";

interface RedisPoolSettings<V> {
  readonly link: RedisLink;
  /** The pool's name. */
  readonly name: string;
  /** The channel for purges; null if the pool is never purged. */
  readonly purges: Channel | null;
  /** Identifies the upstream and the active credential, and so the account that facts belong to. */
  readonly source: () => string;
  /** Decodes a value parsed from JSON; undefined if it isn't one of this pool. */
  readonly decode: (data: unknown, key: string) => V | undefined;
  readonly clock: Clock;
}

/** How long the others wait for a replica that died during its load. */
const CLAIM_MS = 1_000;
const RENEW_CLAIM_MS = 300;

/** The largest tolerated difference between the clocks of two replicas; intervals of foreign facts are widened by it. */
export const CLOCKS_DIFFER_MS = 100;

/** Lets the claim expire in ARGV[2] ms (0: now) if its token is still ARGV[1]. */
const HOLD = redisScript(
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0",
);

/**
 * Adds the fact ARGV[1] for ARGV[2] ms, unless it is already there, drops facts replaced by later ones (clocks may differ by ARGV[3] ms), and returns
 * the rest.
 */
const ADD = redisScript(`
local added = cjson.decode(ARGV[1])
local facts = { added }
local read, stored = pcall(cjson.decode, redis.call('GET', KEYS[1]) or '')
if read and type(stored) == 'table' then
  for _, fact in ipairs(stored) do
    if type(fact) == 'table' and type(fact.askedAtMs) == 'number' and type(fact.answeredAtMs) == 'number' then
      local isSame = fact.by == added.by and type(fact.stamps) == 'table'
        and fact.stamps[1] == added.stamps[1] and fact.stamps[2] == added.stamps[2]
      if not isSame then facts[#facts + 1] = fact end
    end
  end
end
local standing = {}
for _, fact in ipairs(facts) do
  local stands = true
  for _, other in ipairs(facts) do
    local doubt = other.by == fact.by and 0 or tonumber(ARGV[3])
    if other.askedAtMs - doubt > fact.answeredAtMs then stands = false end
  end
  if stands then standing[#standing + 1] = fact end
end
local text = cjson.encode(standing)
redis.call('SET', KEYS[1], text, 'PX', math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[1])))
return text`);

/** The value is a JSON string, because cjson in Redis can't distinguish an empty list from an empty object. */
const storedFacts = z.array(
  z.object({
    value: z.string(),
    askedAtMs: z.number().positive(),
    answeredAtMs: z.number().positive(),
    by: z.string(),
    /** The writer's exact times, meaningful only to itself; as text, because cjson rounds numbers. */
    stamps: z.tuple([z.coerce.number(), z.coerce.number()]).optional(),
  }),
);

export function redisPool<V>(settings: RedisPoolSettings<V>): SharedPool<V> {
  const { link, name, purges, clock } = settings;
  /** Distinguishes our own facts, whose times are exact, from those of other replicas. */
  const own = randomUUID();

  function factsIn(text: unknown, key: string): readonly Fact<V>[] {
    if (!link.knowsTime()) return [];
    const stored = storedFacts.safeParse(parseJson(text)).data ?? [];
    return stored.flatMap(({ value, askedAtMs, answeredAtMs, by, stamps }) => {
      const decoded = settings.decode(parseJson(value), key);
      // Ignore facts from a clock too far ahead of ours.
      if (decoded === undefined || askedAtMs > clock.now() + 2 * CLOCKS_DIFFER_MS) return [];
      if (by === own && stamps !== undefined)
        return [{ value: decoded, askedMs: stamps[0], answeredMs: stamps[1] }];
      const bootAtMs = bootedAtMs(clock);
      const askedMs = Math.min(askedAtMs - bootAtMs, clock.monotonic()) - CLOCKS_DIFFER_MS;
      const answeredMs = answeredAtMs - bootAtMs + CLOCKS_DIFFER_MS;
      return [
        {
          value: decoded,
          askedMs,
          answeredMs,
          origin: [by, ...(stamps ?? [askedAtMs, answeredAtMs])].join(" "),
        },
      ];
    });
  }

  async function claim(at: string): Promise<Claim | null> {
    const token = randomUUID();
    if (!(await link.claim(at, token, CLAIM_MS))) return null;
    const hold = (lifeMs: number): Promise<unknown> =>
      link.run(HOLD, at, [token, lifeMs]).catch(() => undefined);
    const cancel = every(clock, RENEW_CLAIM_MS, () => void hold(CLAIM_MS));
    return {
      async release() {
        cancel();
        await hold(0);
      },
    };
  }

  /** The mark of the facts that are valid; null while Redis or the mark is unavailable. */
  function currentMark(): string | null {
    return link.reachable() ? (purges === null ? "" : purges.mark()) : null;
  }

  return {
    isAvailable: () => currentMark() !== null,
    at(key) {
      const mark = currentMark();
      if (mark === null) return null;
      const source = settings.source();
      const at = `af-storefront:${name}:${hash("sha256", JSON.stringify([source, mark, key]), "hex")}`;
      return {
        read: async () => factsIn(await link.get(at), key),
        async write({ value, askedMs, answeredMs }, ttlMs) {
          // If the credential has changed, it is unknown which one the fact was learned with.
          if (settings.source() !== source || !link.knowsTime()) return [];
          const bootAtMs = bootedAtMs(clock);
          const fact = {
            value: JSON.stringify(value),
            askedAtMs: Math.floor(bootAtMs + askedMs),
            answeredAtMs: Math.ceil(bootAtMs + answeredMs),
            by: own,
            stamps: [String(askedMs), String(answeredMs)],
          };
          const args = [JSON.stringify(fact), Math.max(1, Math.ceil(ttlMs)), CLOCKS_DIFFER_MS];
          return factsIn(await link.run(ADD, at, args), key);
        },
        claim: () => claim(`${at}:asked`),
      };
    },
    purge() {
      purges?.publish();
    },
    onPurged(forget) {
      purges?.subscribe((wasPublished) => {
        if (wasPublished) forget();
      });
    },
  };
}
