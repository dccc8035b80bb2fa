/**
 * Which prices can be trusted. Every wholesale price depends on the reseller's tier and on the registry's price list, so evidence that one has changed
 * outdates all that were asked before it: they are shown as stale, asked again first, decide nothing and are never signed.
 */
import type { Answered, Clock } from "../clock.js";
import type { Log } from "../logger.js";
import type { Wholesale } from "../money.js";
import type { Combination } from "../upstream/contract.js";

/** Why prices may have changed. */
type PriceEvidence =
  | { readonly kind: "tier"; readonly from: string; readonly to: string }
  | ({ readonly kind: "quote"; readonly from: Wholesale; readonly to: Wholesale } & Combination)
  /** Staff purged the prices. */
  | { readonly kind: "purge" };

export interface NotedChange {
  readonly evidence: PriceEvidence;
  /** Wall clock, ms. */
  readonly atMs: number;
}

type Asked = Pick<Answered<unknown>, "askedAt">;

export interface PriceChanges {
  /** Whether it was asked since prices may last have changed. What was asked before this process became the owner wasn't. */
  isCurrent(price: Asked): boolean;
  /** Whether evidence has arrived since it was asked, so that it is probably wrong. */
  isOutdated(price: Asked): boolean;
  /** The stamp after which a price must be asked to be current. */
  currentSince(): number;
  /** A quote differs from the one known before. It is current itself. What was asked before the last proved change may differ without another one. */
  noteQuote(before: Asked, now: Asked, what: Omit<Extract<PriceEvidence, { kind: "quote" }>, "kind">): void;
  /** The reseller's tier; another one than before is evidence. */
  noteTier(tier: string): void;
  notePurge(): void;
  /** The tier that the prices were learned under; null if unknown. */
  tier(): string | null;
  /** Call when this process has become the owner, with the tier that the saved prices were learned under. */
  restart(savedTier: string | null): void;
  /** The evidence of the last day, newest first. */
  noted(): readonly NotedChange[];
  /** Calls `act` after each of these. */
  onChange(act: () => void): void;
}

interface PriceChangesSettings {
  readonly stamp: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

const KEPT_MS = 24 * 3_600_000;
const MAX_KEPT = 50;

export function createPriceChanges({ stamp, clock, log }: PriceChangesSettings): PriceChanges {
  const acts: (() => void)[] = [];
  let noted: readonly NotedChange[] = [];
  /** The last change that an answer has proved: when that arrived, and when it was asked if it was a quote. */
  let change = { provedAt: -Infinity, askedAt: -Infinity };
  /** Unlike after a change, prices may be the same after a purge. */
  let purgedAt = -Infinity;
  let startedAt = -Infinity;
  let tier: string | null = null;

  function note(evidence: PriceEvidence): void {
    noted = [{ evidence, atMs: clock.now() }, ...noted].slice(0, MAX_KEPT);
    log.warn("prices.outdated", { evidence: evidence.kind, ...logFieldsOf(evidence) });
    for (const act of acts) act();
  }

  /** The quote that proved the change isn't from before it. */
  const isBeforeChange = ({ askedAt }: Asked): boolean =>
    askedAt <= change.provedAt && askedAt !== change.askedAt;
  const isOutdated = (price: Asked): boolean => price.askedAt <= purgedAt || isBeforeChange(price);

  return {
    isOutdated,
    isCurrent: (price) => price.askedAt > startedAt && !isOutdated(price),
    currentSince: () => Math.max(change.provedAt, purgedAt, startedAt),
    noteQuote(before, now, what) {
      if (isBeforeChange(before)) return;
      change = { provedAt: stamp(), askedAt: now.askedAt };
      note({ kind: "quote", ...what });
    },
    noteTier(named) {
      const from = tier;
      tier = named;
      if (from === null || from === named) return;
      log.warn("account.tier.changed");
      change = { provedAt: stamp(), askedAt: -Infinity };
      note({ kind: "tier", from, to: named });
    },
    notePurge() {
      purgedAt = stamp();
      note({ kind: "purge" });
    },
    tier: () => tier,
    restart(savedTier) {
      startedAt = stamp();
      tier = savedTier ?? tier;
      for (const act of acts) act();
    },
    noted: () => noted.filter(({ atMs }) => clock.now() - atMs < KEPT_MS),
    onChange: (act) => void acts.push(act),
  };
}

/** The fields of the log line, without amounts. */
function logFieldsOf(evidence: PriceEvidence): Partial<Combination> {
  if (evidence.kind !== "quote") return {};
  const { tld, action, years } = evidence;
  return { tld, action, years };
}
