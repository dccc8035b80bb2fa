/**
 * Tracks which prices can still be trusted and signed. All wholesale prices depend on the reseller's tier and the registry's price list.
 * Evidence that either has changed ends the price epoch, and every price requested before becomes doubtful.
 */
import { hash, randomUUID } from "node:crypto";
import type { Fact } from "../cache/facts.js";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import type { Wholesale } from "../money.js";
import type { Combination } from "../upstream/contract.js";

/** The evidence that prices have changed, or may have. */
export type PriceEvidence =
  | { readonly kind: "tier"; readonly from: string; readonly to: string }
  | ({ readonly kind: "quote"; readonly from: Wholesale; readonly to: Wholesale } & Combination)
  /** Staff purged the prices. */
  | { readonly kind: "purge" };

export interface EndedEpoch {
  readonly evidence: PriceEvidence;
  /** Wall clock, ms. */
  readonly atMs: number;
}

/** A price with the epoch in which it was requested. */
export interface InEpoch {
  readonly epoch: string;
  /** A stamp. */
  readonly askedMs: number;
}

export interface PriceEpochs {
  /** The epoch of a price requested at that stamp: the current one, or one that has ended. */
  of(askedMs: number): string;
  current(): string;
  isDoubtful(price: InEpoch): boolean;
  /** Whether an epoch has ended by evidence of a change since that price; a different price then only confirms the change. */
  hasChangedSince(price: InEpoch): boolean;
  /** Ends the epoch. Prices requested until now become doubtful, except the quote that is the evidence, which its caller labels with the new epoch. */
  end(evidence: PriceEvidence, quote?: Pick<Fact<unknown>, "askedMs" | "answeredMs">): void;
  /** Records the reseller's tier, requested at that stamp; a change ends the epoch. */
  noteTier(tier: string, askedMs: number): void;
  /** The current tier; null before it is known. */
  tier(): string | null;
  /**
   * Call on startup, and when this process becomes the owner. Saved prices are doubtful until the tier is known to be the same as when they were
   * saved, or, if that tier is unknown (null), until they have been refreshed. Prices count as saved if they were requested before this call.
   */
  resume(savedTier: string | null): void;
  /** The stamp since which the tier must be requested before saved prices, if there are any, can be trusted; null if they don't wait for it. */
  awaitsTierSinceMs(): number | null;
  /** The epochs that ended here within the last day, newest first. */
  ended(): readonly EndedEpoch[];
  /** Calls `act` whenever prices have become doubtful or trusted. */
  onChange(act: () => void): void;
}

interface PriceEpochSettings {
  readonly stamp: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The epoch of prices requested before the oldest known one. */
const OVER = "over";
const ENDED_KEPT_MS = 24 * 3_600_000;
const MAX_ENDED = 50;

export function createPriceEpochs({ stamp, clock, log }: PriceEpochSettings): PriceEpochs {
  const acts: (() => void)[] = [];
  let ended: EndedEpoch[] = [];
  let epoch: string = randomUUID();
  /** The epochs by their marks, oldest first. */
  let history: readonly { readonly mark: string; readonly sinceMs: number }[] = [
    { mark: epoch, sinceMs: -Infinity },
  ];
  /**
   * The times of the last quote that ended an epoch: a price requested before this quote was answered may be from before the change.
   */
  let proof = { askedMs: -Infinity, answeredMs: -Infinity };
  /** When this process started (a stamp). */
  let startedMs: number | null = null;
  let tier: string | null = null;
  let tierAskedMs = -Infinity;
  /** The tier that saved prices were learned under, with which the first one that is known here is compared. */
  let formerTier: string | null = null;
  /** Prices requested until then are saved ones; null once they are trusted or an epoch has ended. */
  let savedUntilMs: number | null = null;

  const current = (): string => epoch;

  function changed(): void {
    for (const act of acts) act();
  }

  function begin(evidence: PriceEvidence): void {
    history = [...history, { mark: epoch, sinceMs: stamp() }].slice(-MAX_ENDED);
    savedUntilMs = null;
    ended = [{ evidence, atMs: clock.now() }, ...ended].slice(0, MAX_ENDED);
    log.warn("prices.epoch.ended", { evidence: evidence.kind, ...logFieldsOf(evidence) });
  }

  function isBeforeProof(askedMs: number): boolean {
    return askedMs <= proof.answeredMs && askedMs !== proof.askedMs;
  }

  function end(evidence: PriceEvidence, quote = proof): void {
    proof = quote;
    epoch = markAfter(epoch, evidence);
    begin(evidence);
    changed();
  }

  function noteTier(named: string, askedMs: number): void {
    const last = tier ?? formerTier;
    tier = named;
    tierAskedMs = askedMs;
    if (last !== null && last !== named) {
      const evidence = { kind: "tier", from: last, to: named } as const;
      log.warn("account.tier.changed");
      end(evidence);
    } else if (savedUntilMs !== null && formerTier === named && askedMs > savedUntilMs) {
      savedUntilMs = null;
      changed();
    }
  }

  return {
    of: (askedMs) => history.findLast(({ sinceMs }) => sinceMs < askedMs)?.mark ?? OVER,
    current,
    hasChangedSince({ epoch: mark, askedMs }) {
      const at = history.findIndex((one) => one.mark === mark);
      const later = at === -1 ? history.filter(({ sinceMs }) => sinceMs >= askedMs) : history.slice(at + 1);
      return later.some((one) => one.mark.startsWith(CHANGE));
    },
    isDoubtful: ({ epoch, askedMs }) =>
      epoch !== current() || isBeforeProof(askedMs) || (savedUntilMs !== null && askedMs <= savedUntilMs),
    end,
    noteTier,
    tier: () => tier,
    resume(savedTier) {
      startedMs = stamp();
      formerTier = savedTier;
      savedUntilMs = startedMs;
      changed();
      const known = tier;
      if (known === null || tierAskedMs <= startedMs) return;
      tier = null;
      noteTier(known, tierAskedMs);
    },
    awaitsTierSinceMs: () => (formerTier === null && tier !== null ? null : savedUntilMs),
    ended: () => ended.filter(({ atMs }) => clock.now() - atMs < ENDED_KEPT_MS),
    onChange: (act) => void acts.push(act),
  };
}

/**
 * The next mark. A change of tier has a different one, because it may have come after the change that a quote has revealed.
 */
function markAfter(current: string, evidence: PriceEvidence): string {
  if (evidence.kind === "purge") return randomUUID();
  const change = evidence.kind === "tier" ? [current, evidence.from, evidence.to] : [current];
  return CHANGE + hash("sha256", JSON.stringify(change), "base64url");
}

/** The prefix of marks of epochs that started with evidence of a change. */
const CHANGE = "changed:";

/** The fields of the log line, without amounts. */
function logFieldsOf(evidence: PriceEvidence): Partial<Combination> {
  if (evidence.kind !== "quote") return {};
  const { tld, action, years } = evidence;
  return { tld, action, years };
}
