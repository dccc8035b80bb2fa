/**
 * When an answer is decided and when it leaves: due changes come first, a hold may come between the two, and watchers see every answer
 * that reached its caller.
 */
import type { AnsweredFact } from "./facts.js";
import type { Operation } from "./faults.js";
import type { Asked, Holds } from "./holds.js";

/** One answer that has left, with its moments on the sandbox's clock, ms. */
export type Delivered = AnsweredFact & {
  readonly arrivedMs: number;
  readonly decidedMs: number;
  readonly deliveredMs: number;
};

export type Watcher = (answer: Delivered) => void;

interface Decided {
  /** Null for a refusal. */
  readonly answered: AnsweredFact | null;
  /** Calls `sent` unless a fault or the caller's leaving prevents it. */
  readonly send: (sent: () => void) => void;
}

interface Changes {
  catchUp(): void;
  answered(): void;
}

export class Delivery {
  readonly #now: () => number;
  readonly #changes: Changes;
  readonly #holds: Holds;
  readonly #watchers = new Set<Watcher>();

  constructor(now: () => number, changes: Changes, holds: Holds) {
    this.#now = now;
    this.#changes = changes;
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
      this.#changes.catchUp();
      const { answered, send } = decide();
      this.#changes.answered();
      const decidedMs = this.#now();
      const sent = (): void => {
        if (answered === null) return;
        const deliveredMs = this.#now();
        for (const watcher of this.#watchers) watcher({ ...answered, arrivedMs, decidedMs, deliveredMs });
      };
      return () => {
        send(sent);
      };
    });
  }
}
