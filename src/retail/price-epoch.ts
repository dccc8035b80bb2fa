/**
 * Which prices may still decide and be signed. Everything the reseller pays follows from its tier and the registry's price list; evidence
 * that either has changed ends the epoch, on all replicas, and every price asked before is doubtful from then on.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Channel } from "../cache/invalidation.js";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import type { Wholesale } from "../money.js";
import type { Combination } from "./retail-config.js";

/** What showed that prices have changed, or may have. */
export type PriceEvidence =
  | { readonly kind: "tier"; readonly from: string; readonly to: string }
  | ({ readonly kind: "quote"; readonly from: Wholesale; readonly to: Wholesale } & Combination)
  /** Staff asked for all prices again. */
  | { readonly kind: "purge" }
  /** Another replica had the evidence. */
  | { readonly kind: "replica" };

export interface EndedEpoch {
  readonly evidence: PriceEvidence;
  /** Wall clock, ms. */
  readonly atMs: number;
}

/** A price with the epoch that it was asked in. */
export interface InEpoch {
  readonly epoch: string;
  /** A stamp. */
  readonly askedMs: number;
}

export interface PriceEpochs {
  /** The epoch of an answer to a question that left at that stamp: the current one, or one that is over. */
  of(askedMs: number): string;
  current(): string;
  isDoubtful(price: InEpoch): boolean;
  /** Whether evidence of a change came after that price: another price now only confirms it. */
  hasChangedSince(price: InEpoch): boolean;
  /** Ends the epoch; prices asked up to now are doubtful, the evidence itself excepted, whose holder puts it into the new one. */
  end(evidence: PriceEvidence): void;
  /** The reseller's tier as the upstream names it now: another one than before ends the epoch. */
  noteTier(tier: string): void;
  /** The tier under which prices are learned; null before it is known. */
  tier(): string | null;
  /**
   * Called once at the start. With saved prices, those asked before it are doubtful until the tier proves to be the one that they were
   * learned under (null: unknown, so until they have been asked again).
   */
  resume(saved: { readonly tier: string | null } | null): void;
  /** Whether saved prices are waiting for the first word of the tier. */
  awaitsTier(): boolean;
  /** The epochs ended here within the last day, newest first. */
  ended(): readonly EndedEpoch[];
  /** Grows whenever prices become doubtful or certain. */
  changes(): number;
  /** Calls `act` after each such change. */
  onChange(act: () => void): void;
}

export interface PriceEpochSettings {
  /** Where replicas agree on the epoch; null without others. */
  readonly channel: Channel | null;
  readonly stamp: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The epoch of prices asked too long ago to tell. */
const OVER = "over";
const ENDED_KEPT_MS = 24 * 3_600_000;
const MOST_ENDED = 50;

export function createPriceEpochs({ channel, stamp, clock, log }: PriceEpochSettings): PriceEpochs {
  const acts: (() => void)[] = [];
  let ended: EndedEpoch[] = [];
  /** The current epoch as last seen here, and the one before it. */
  let epoch: string = randomUUID();
  let former: string | null = null;
  let changes = 0;
  /** The epochs by their marks, oldest first. */
  let history: readonly { readonly mark: string; readonly sinceMs: number }[] = [
    { mark: epoch, sinceMs: -Infinity },
  ];
  let hasStarted = false;
  let tier: string | null = null;
  /** What the saved prices were learned under, and when they were taken up. */
  let saved: { readonly tier: string | null; readonly untilMs: number } | null = null;

  const current = (): string => channel?.mark() ?? epoch;

  function changed(): void {
    changes += 1;
    for (const act of acts) act();
  }

  function begin(evidence: PriceEvidence): void {
    history = [...history, { mark: epoch, sinceMs: stamp() }].slice(-MOST_ENDED);
    saved = null;
    ended = [{ evidence, atMs: clock.now() }, ...ended].slice(0, MOST_ENDED);
    log.warn("prices.epoch.ended", { evidence: evidence.kind, ...whereOf(evidence) });
  }

  function end(evidence: PriceEvidence): void {
    former = current();
    epoch = markAfter(former, evidence);
    begin(evidence);
    channel?.publish(epoch);
    changed();
  }

  channel?.offer(epoch);
  channel?.subscribe(() => {
    former = epoch;
    epoch = current();
    // The mark received at the start names the epoch that this replica joins.
    if (hasStarted) begin({ kind: "replica" });
    changed();
  });

  return {
    of: (askedMs) => history.findLast(({ sinceMs }) => sinceMs < askedMs)?.mark ?? OVER,
    current,
    hasChangedSince({ epoch: mark, askedMs }) {
      const at = history.findIndex((one) => one.mark === mark);
      const later = at === -1 ? history.filter(({ sinceMs }) => sinceMs >= askedMs) : history.slice(at + 1);
      return later.some((one) => one.mark.startsWith(CHANGE));
    },
    isDoubtful: ({ epoch, askedMs }) => epoch !== current() || (saved !== null && askedMs <= saved.untilMs),
    end,
    noteTier(named) {
      const last = saved?.tier ?? tier;
      tier = named;
      if (last !== null && last !== named) {
        const evidence = { kind: "tier", from: last, to: named } as const;
        log.warn("account.tier.changed");
        // Another replica may have ended the epoch on the same evidence.
        if (former === null || markAfter(former, evidence) !== current()) end(evidence);
      } else if (saved !== null && saved.tier === named) {
        saved = null;
        changed();
      }
    },
    tier: () => tier,
    resume(taken) {
      hasStarted = true;
      epoch = current();
      history = [{ mark: epoch, sinceMs: -Infinity }];
      saved = taken && { tier: taken.tier, untilMs: stamp() };
      changed();
    },
    awaitsTier: () => saved !== null && tier === null,
    ended: () => ended.filter(({ atMs }) => clock.now() - atMs < ENDED_KEPT_MS),
    changes: () => changes,
    onChange: (act) => void acts.push(act),
  };
}

/**
 * The same on every replica, so that a change that several notice ends one epoch once, whichever prices they notice it by. A change of tier
 * has a mark of its own: it may have come after the change that a quote has shown.
 */
function markAfter(current: string, evidence: PriceEvidence): string {
  if (evidence.kind === "purge" || evidence.kind === "replica") return randomUUID();
  const change = evidence.kind === "tier" ? [current, evidence.from, evidence.to] : [current];
  return CHANGE + createHash("sha256").update(JSON.stringify(change)).digest("base64url");
}

/** So begin the marks of epochs that evidence of a change has opened. */
const CHANGE = "changed:";

/** What a log line says of it: never an amount. */
function whereOf(evidence: PriceEvidence): Partial<Combination> {
  if (evidence.kind !== "quote") return {};
  const { tld, action, years } = evidence;
  return { tld, action, years };
}
