/**
 * Which names were found to be premium: remembered across restarts and changes of the owner. Names are hashed, so what is saved doesn't reveal what
 * people search. A name is premium for every reseller, so another credential has no
 * effect.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import type { Pool } from "../cache/cache.js";
import type { Caution, Fact } from "../cache/facts.js";
import { fromSavedTimes, savedTimes, toSavedTimes } from "../cache/saved-facts.js";
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { SavedFile } from "../saved-file.js";
import type { Wholesale } from "../money.js";
import { storedWholesale } from "../retail/price-facts.js";

/** The decision whether a name is premium, and the registration price that it was about. */
export interface PremiumMark {
  readonly isPremium: boolean;
  readonly years: number;
  /** Absent if no price showed it. */
  readonly wholesale?: Wholesale;
  /** Something in a check said so, which may have been a mistake of the upstream. */
  readonly isBySign?: true;
}

export interface PremiumMarks {
  /** The latest decision known here, with the times of the check that it was about. */
  of(name: DomainName): Fact<PremiumMark> | undefined;
  /** Whether that decision is that the name is premium. */
  isPremium(name: DomainName): boolean;
  /** Remembers the decision about a check of the name, unless one about a later check is known. If checks overlap, "premium" counts. */
  note(name: Pick<DomainName, "ascii">, decision: Fact<PremiumMark>): void;
  /** Starts to save what isn't saved yet, which can be up to a second old. */
  flush(): void;
  /** Loads what was saved before a restart, or by the former owner. */
  restore(): Promise<void>;
}

interface PremiumMarkSettings {
  readonly pool: Pool<PremiumMark, never>;
  /** Null if nothing outlives the process. */
  readonly file: SavedFile<readonly SavedMark[]> | null;
  readonly clock: Clock;
}

/** How long a name found to be premium is remembered. */
export const PREMIUM_KEPT_MS = 30 * 24 * 3_600_000;

/** A flood of premium names must not write a file for each of them. */
const SAVE_EVERY_MS = 1_000;

/** In each file; when there are more, the oldest are dropped. */
const MAX_SAVED = 10_000;

export function createPremiumMarks({ pool, file, clock }: PremiumMarkSettings): PremiumMarks {
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
    file?.save(toBeSaved());
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
    note(name, decision) {
      const key = keyOf(name);
      if (!saysMore(decision, pool.fresh(key))) return;
      pool.learn(key, decision);
      saveSoon();
    },
    flush() {
      if (isUnsaved) save();
    },
    async restore() {
      const nowMs = clock.monotonic();
      for (const { key, askedAtMs, answeredAtMs, ...value } of (await file?.load()) ?? []) {
        const times = fromSavedTimes(clock, { askedAtMs, answeredAtMs });
        // If the clock was set back since, it is unknown how old the decision is. Then only "premium" is safe to trust.
        if (times !== null) pool.learn(key, { value, ...times });
        else if (value.isPremium) pool.learn(key, { value, askedMs: nowMs, answeredMs: nowMs });
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

function keyOf({ ascii }: Pick<DomainName, "ascii">): string {
  const known = knownKeys.get(ascii);
  if (known !== undefined) return known;
  const key = hash("sha256", ascii, "base64url");
  knownKeys.set(ascii, key);
  return key;
}

const storedMark = z.strictObject({
  isPremium: z.boolean(),
  years: z.int().positive(),
  wholesale: storedWholesale.exactOptional(),
  isBySign: z.literal(true).exactOptional(),
});

/** The marks as saved. */
export const savedMarks = z.array(storedMark.extend({ key: z.string(), ...savedTimes })).readonly();
type SavedMark = z.output<typeof savedMarks>[number];
