/** Makes the trial of an open circuit that nobody asks for, so that a recovery is noticed without a visitor. */
import type { Clock } from "../clock.js";
import { nameOf } from "../domain-name.js";
import { inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import type { Upstream } from "./operations.js";
import type { Operation } from "./vocabulary.js";
import type { Term } from "./contract.js";

export interface TrialSettings {
  readonly upstream: Upstream;
  /** A term that is sold now. */
  readonly term: () => Term | undefined;
  /** How long until the quota has room for work that nobody waits for, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
}

const LOOK_EVERY_MS = 30_000;
/** A label that anybody may ask about. */
const LABEL = "example";

/** Starts looking for open circuits; returns a function that stops it. Each circuit itself says when a trial is due. */
export function keepTrying({ upstream, term, roomInMs, clock }: TrialSettings): () => void {
  async function attempt(operation: Operation, ask: Ask): Promise<void> {
    const sold = term();
    const name = sold && nameOf(LABEL, sold.tld);
    if (operation === "domains" || operation === "balance" || operation === "tier")
      await upstream[operation](ask);
    else if (sold && operation === "quote") await upstream.quote(ask, sold);
    else if (sold && name && operation === "check") await upstream.check(ask, name, sold.years);
    else if (name && operation === "domain") await upstream.domain(ask, name);
  }

  const { stop } = inBackground({
    client: "trials",
    async round(ask) {
      // The circuit rejects what comes before its trial is due, and counts what fails.
      for (const operation of upstream.health().openCircuits)
        if (roomInMs() === 0) await attempt(operation, ask).catch(() => undefined);
      return LOOK_EVERY_MS;
    },
    roomInMs,
    clock,
  });
  return stop;
}
