/**
 * Makes trial requests in the background for operations that fail, so that a recovery is noticed within seconds and without visitors. What a
 * trial reveals about quotes and the tier is learned like any other answer.
 */
import type { Clock } from "../clock.js";
import { nameOf } from "../domain-name.js";
import { inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import type { Combination } from "./contract.js";
import type { Upstream } from "./operations.js";
import type { Operation } from "./vocabulary.js";

interface TrialSettings {
  readonly upstream: Pick<Upstream, "trials" | "check" | "domain" | "domains" | "balance">;
  /** Each makes the call and learns from its answer. */
  readonly quote: (ask: Ask, what: Combination) => Promise<void>;
  readonly tier: (ask: Ask) => Promise<void>;
  /** One of the combinations sold, for trial requests. */
  readonly sold: () => Combination | undefined;
  /** How long until the quota has room for background work, in ms. */
  readonly backgroundRoomInMs: () => number;
  readonly clock: Clock;
}

const CHECK_EVERY_MS = 500;
/** The interval while nothing fails; a failure starts the next round. */
const IDLE_MS = 30_000;
/** A neutral label for the requests. */
const LABEL = "example";

/** Starts the loop; returns a function that stops it. Each circuit decides when its trial request is due. */
export function startTrials({
  upstream,
  sold,
  backgroundRoomInMs,
  clock,
  ...learning
}: TrialSettings): () => void {
  async function attempt(operation: Operation, ask: Ask): Promise<void> {
    const what = sold();
    const name = what && nameOf(LABEL, what.tld);
    if (operation === "tier") await learning.tier(ask);
    else if (operation === "domains" || operation === "balance") await upstream[operation](ask);
    else if (what && operation === "quote") await learning.quote(ask, what);
    else if (what && name && operation === "check") await upstream.check(ask, name, what.years);
    else if (name && operation === "domain") await upstream.domain(ask, name);
  }

  const loop = inBackground({
    client: "trials",
    round(ask) {
      const pending = upstream.trials.pending();
      const due = pending.filter(({ inMs }) => inMs === 0);
      if (due.length > 0 && backgroundRoomInMs() > 0) return Promise.resolve("no room");
      // Not awaited; otherwise a trial request that hangs would delay the next. The circuits count failures.
      for (const { operation } of due)
        void attempt(operation, { ...ask, waitUntilAt: clock.monotonic() + CHECK_EVERY_MS }).catch(
          () => undefined,
        );
      return Promise.resolve(pending.length === 0 ? IDLE_MS : CHECK_EVERY_MS);
    },
    backgroundRoomInMs,
    clock,
  });
  upstream.trials.onFailure(loop.now);
  return loop.stop;
}
