/**
 * Which names were found to be premium: remembered across restarts, and shared by all replicas, even if Redis was away or has lost it.
 * Names are hashed, so neither the file nor Redis reveals what people search. A name is premium for every reseller, so another credential has no
 * effect.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import type { Pool } from "../cache/cache.js";
import { type Caution, type Evidence, type Fact, weigh } from "../cache/facts.js";
import { fromSavedTimes, type SavedFile, savedTimes, toSavedTimes } from "../cache/saved-file.js";
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
  /** Writes everything to Redis that it doesn't have. Never rejects. */
  shareAgain(): Promise<void>;
  /** Loads what was saved before a restart. Call before Redis is reachable; then `shareAgain` tells the other replicas. */
  restore(): void;
}

interface PremiumMarkSettings {
  readonly pool: Pool<PremiumMark, never>;
  /** Replicas may have the same. Null if nothing outlives the process. */
  readonly file: SavedFile<readonly SavedMark[]> | null;
  readonly clock: Clock;
}

/** How long a name found to be premium is remembered. */
export const PREMIUM_KEPT_MS = 30 * 24 * 3_600_000;

/** A flood of premium names must not write the file for each of them. */
const SAVE_EVERY_MS = 1_000;

/** In the file; when there are more, the oldest are dropped. */
const MAX_SAVED = 10_000;

export function createPremiumMarks({ pool, file, clock }: PremiumMarkSettings): PremiumMarks {
  let isResting = false;
  let isUnsaved = false;

  function save(): void {
    isUnsaved = isResting;
    if (isResting) return;
    file?.save(
      withSaved(pool.facts().map(([key, fact]) => ({ key, ...fact.value, ...toSavedTimes(clock, fact) }))),
    );
    isResting = true;
    clock.after(SAVE_EVERY_MS, () => {
      isResting = false;
      if (isUnsaved) save();
    });
  }

  /** These marks and those that other replicas have saved, one for each name: as everywhere, the latest, and the cautious one if checks overlap. */
  function withSaved(own: readonly SavedMark[]): readonly SavedMark[] {
    const evidence = new Map<string, Evidence<SavedMark>>();
    for (const mark of [...(file?.load() ?? []), ...own]) {
      const fact = { value: mark, askedMs: mark.askedAtMs, answeredMs: mark.answeredAtMs };
      evidence.set(mark.key, weigh(evidence.get(mark.key), fact, premiumCaution));
    }
    return [...evidence.values()]
      .map(({ held }) => held.value)
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
      save();
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
    restore() {
      for (const { key, askedAtMs, answeredAtMs, ...value } of file?.load() ?? []) {
        const times = fromSavedTimes(clock, { askedAtMs, answeredAtMs });
        if (times !== null) void pool.learn(key, { value, ...times });
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

const keyOf = ({ ascii }: DomainName): string => hash("sha256", ascii, "base64url");

const storedMark = z.strictObject({
  isPremium: z.boolean(),
  years: z.int().positive(),
  wholesale: storedWholesale,
});

/** Decodes a mark that was stored as JSON; undefined if the data isn't one. */
export const decodeStoredPremium = (data: unknown): PremiumMark | undefined =>
  storedMark.safeParse(data).data;

/** The marks as saved. */
export const savedMarks = z.array(storedMark.extend({ key: z.string(), ...savedTimes }));
type SavedMark = z.output<typeof savedMarks>[number];
