/**
 * Decides when an answer is computed and when it is sent. Due changes are applied first, a hold can delay either step, and watchers see
 * every answer that reached its caller.
 */
import type { Timeline } from "./changes.js";
import type { AnsweredFact } from "./facts.js";
import type { Asked, Holds } from "./holds.js";
import type { Operation } from "./operations.js";

/** One answer that was sent, with its times on the sandbox's clock, ms. */
export type Delivered = AnsweredFact & {
  readonly arrivedMs: number;
  readonly decidedMs: number;
  readonly deliveredMs: number;
};

export type Watcher = (answer: Delivered) => void;

interface Decided {
  /** Null for a refusal. */
  readonly answered: AnsweredFact | null;
  /** Calls `sent` unless a fault prevents it or the caller disconnects. */
  readonly send: (sent: () => void) => void;
}

export class Delivery {
  readonly #now: () => number;
  readonly #timeline: Timeline;
  readonly #holds: Holds;
  readonly #watchers = new Set<Watcher>();

  constructor(now: () => number, timeline: Timeline, holds: Holds) {
    this.#now = now;
    this.#timeline = timeline;
    this.#holds = holds;
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }

  pass(operation: Operation, asked: Asked, decide: () => Decided): void {
    const arrivedMs = this.#now();
    this.#holds.pass(operation, asked, () => {
      this.#timeline.catchUp();
      const { answered, send } = decide();
      this.#timeline.answered();
      const decidedMs = this.#now();
      const sent = (): void => {
        if (answered === null) return;
        const deliveredMs = this.#now();
        for (const watcher of this.#watchers) watcher({ ...answered, arrivedMs, decidedMs, deliveredMs });
      };
      return () => send(sent);
    });
  }
}
