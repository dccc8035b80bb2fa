/**
 * Which names were found to be premium: remembered across restarts, and shared by all replicas, even if Redis was unreachable or has lost them.
 * Names are hashed, so neither the file nor Redis reveals what people search. A name is premium for every reseller, so another credential has no
 * effect.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import type { Pool } from "../cache/cache.js";
import type { Caution, Fact } from "../cache/facts.js";
import { fromSavedTimes, type SavedLists, savedTimes, toSavedTimes } from "../cache/saved-facts.js";
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Wholesale } from "../money.js";
import { storedWholesale } from "../retail/price-facts.js";

/** The decision whether a name is premium, and the registration price that it was about. */
export interface PremiumMark {
  readonly isPremium: boolean;
  readonly years: number;
  readonly wholesale: Wholesale;
}

export interface PremiumMarks {
  /** The latest decision known here, with the times of the check that it was about. */
  of(name: DomainName): Fact<PremiumMark> | undefined;
  /** Whether that decision is that the name is premium. */
  isPremium(name: DomainName): boolean;
  /** A version number that changes whenever a decision becomes known here. */
  version(): number;
  /** Remembers the decision about a check of the name, unless one about a later check is known. If checks overlap, "premium" counts. */
  note(name: DomainName, decision: Fact<PremiumMark>): void;
  /** Learns the decisions of other replicas, without upstream calls. Never rejects. */
  consult(name: DomainName): Promise<void>;
  /** Whether no other replica can be asked. */
  isAlone(): boolean;
  /** Writes all decisions known here to Redis, which may have lost them. Never rejects. */
  shareAgain(): Promise<void>;
  /** Starts to save what isn't saved yet, which can be up to a second old. */
  flush(): void;
  /** Loads what was saved before a restart, by any replica. Call before Redis is reachable; then `shareAgain` informs the other replicas. */
  restore(): void;
}

interface PremiumMarkSettings {
  readonly pool: Pool<PremiumMark, never>;
  /** Null if nothing outlives the process. */
  readonly files: SavedLists<SavedMark> | null;
  readonly clock: Clock;
}

/** How long a name found to be premium is remembered. */
export const PREMIUM_KEPT_MS = 30 * 24 * 3_600_000;

/** A flood of premium names must not write a file for each of them. */
const SAVE_EVERY_MS = 1_000;

/** In each file; when there are more, the oldest are dropped. */
const MAX_SAVED = 10_000;

export function createPremiumMarks({ pool, files, clock }: PremiumMarkSettings): PremiumMarks {
  let isResting = false;
  let isUnsaved = false;

  function saveSoon(): void {
    isUnsaved = true;
    if (isResting) return;
    save();
    isResting = true;
    clock.after(SAVE_EVERY_MS, () => {
      isResting = false;
      if (isUnsaved) saveSoon();
    });
  }

  function save(): void {
    isUnsaved = false;
    files?.save(toBeSaved());
  }

  function toBeSaved(): readonly SavedMark[] {
    return pool
      .facts()
      .map(([key, fact]) => ({ key, ...fact.value, ...toSavedTimes(clock, fact) }))
      .filter(({ askedAtMs }) => askedAtMs > clock.now() - PREMIUM_KEPT_MS)
      .sort((a, b) => a.askedAtMs - b.askedAtMs)
      .slice(-MAX_SAVED);
  }

  const of = (name: DomainName): Fact<PremiumMark> | undefined => pool.fresh(keyOf(name));

  return {
    of,
    isPremium: (name) => of(name)?.value.isPremium === true,
    version: pool.changes,
    note(name, decision) {
      const key = keyOf(name);
      if (!saysMore(decision, pool.fresh(key))) return;
      void pool.learn(key, decision);
      saveSoon();
    },
    async consult(name) {
      await pool.consult(keyOf(name));
    },
    isAlone: pool.isAlone,
    async shareAgain() {
      for (const [key, fact] of pool.facts()) {
        if (pool.isAlone()) return;
        await pool.learn(key, fact);
      }
    },
    flush() {
      if (isUnsaved) save();
    },
    restore() {
      const nowMs = clock.monotonic();
      for (const { key, askedAtMs, answeredAtMs, ...value } of files?.load() ?? []) {
        const times = fromSavedTimes(clock, { askedAtMs, answeredAtMs });
        // If the clock was set back since, it is unknown how old the decision is. Then only "premium" is safe to trust.
        if (times !== null) void pool.learn(key, { value, ...times });
        else if (value.isPremium) void pool.learn(key, { value, askedMs: nowMs, answeredMs: nowMs });
      }
    },
  };
}

export const premiumCaution: Caution<PremiumMark> = (a, b) => Number(a.isPremium) - Number(b.isPremium);

/** Most names are ordinary, which is only worth remembering for one that was premium. */
function saysMore(
  { value, askedMs, answeredMs }: Fact<PremiumMark>,
  last: Fact<PremiumMark> | undefined,
): boolean {
  if (last?.value.isPremium === true) return askedMs > last.askedMs;
  return value.isPremium && (last === undefined || answeredMs >= last.askedMs);
}

/** A cart looks up each of its names, and hashing them took 3 % of its CPU. */
const knownKeys = new BoundedMap<string, string>(1_000);

function keyOf({ ascii }: DomainName): string {
  const known = knownKeys.get(ascii);
  if (known !== undefined) return known;
  const key = hash("sha256", ascii, "base64url");
  knownKeys.set(ascii, key);
  return key;
}

const storedMark = z.strictObject({
  isPremium: z.boolean(),
  years: z.int().positive(),
  wholesale: storedWholesale,
});

/** Decodes a mark that was stored as JSON; undefined if the data isn't one. */
export const decodeStoredPremium = (data: unknown): PremiumMark | undefined =>
  storedMark.safeParse(data).data;

/** The marks as saved. */
export const savedMarks = z.array(storedMark.extend({ key: z.string(), ...savedTimes })).readonly();
type SavedMark = z.output<typeof savedMarks>[number];
