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
  readonly upstream: Pick<Upstream, "nextTrials" | "onFailure" | "check" | "domain" | "domains" | "balance">;
  /** Each makes the call and learns from its answer. */
  readonly quote: (ask: Ask, what: Combination) => Promise<void>;
  readonly tier: (ask: Ask) => Promise<void>;
  /** One of the combinations sold, for trial requests. */
  readonly sold: () => Combination | undefined;
  /** How long until the quota has room for background work, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
}

const CHECK_EVERY_MS = 500;
/** The interval while nothing fails; a failure starts the next round. */
const IDLE_MS = 30_000;
/** A neutral label for the requests. */
const LABEL = "example";

/** Starts the loop; returns a function that stops it. */
export function keepTrying({ upstream, sold, roomInMs, clock, ...learning }: TrialSettings): () => void {
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
    async round(ask) {
      const next = upstream.nextTrials();
      if (next === null) return IDLE_MS;
      if (next.inMs > 0) return CHECK_EVERY_MS;
      if (roomInMs() > 0) return "no room";
      // Not awaited; otherwise a trial request that hangs would delay the next. The circuits count failures.
      const waitUntilMs = clock.monotonic() + CHECK_EVERY_MS;
      for (const operation of next.operations)
        void attempt(operation, { ...ask, waitUntilMs }).catch(() => undefined);
      return CHECK_EVERY_MS;
    },
    roomInMs,
    clock,
  });
  upstream.onFailure(loop.now);
  return loop.stop;
}
