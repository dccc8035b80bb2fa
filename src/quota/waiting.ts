/** Those who wait for a slot: bounded over all and for each client, and whoever aborts or has waited long enough is out at once. */
import type { Clock } from "../clock.js";
import type { SlotId } from "./ledger.js";
import { nextOf, type Owed, perLane } from "./order.js";
import type { Ask, Lane } from "./quota.js";

/** Why a call was not made: nobody waited for it any more. */
export const GONE = new Error("nobody waits for this call any more");

export interface Waiter {
  readonly ask: Ask;
  readonly lane: Lane;
  readonly place: number;
  readonly since: number;
  /** Leaves the queue with a slot. */
  start(slot: SlotId): void;
  /** Leaves the queue without one; `fail` says why. */
  leave(): void;
  fail(error: Error): void;
}

export interface WaitingSettings {
  readonly clock: Clock;
  readonly most: number;
  readonly mostPerClient: number;
  readonly onLate: (waiter: Waiter) => void;
  readonly onGone: (waiter: Waiter) => void;
}

export class WaitingList {
  readonly #settings: WaitingSettings;
  readonly #waiters = new Set<Waiter>();

  constructor(settings: WaitingSettings) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#waiters.size;
  }

  all(): Waiter[] {
    return [...this.#waiters];
  }

  hasRoom(client: string): boolean {
    if (this.#waiters.size >= this.#settings.most) return false;
    let own = 0;
    for (const waiter of this.#waiters) if (waiter.ask.client === client) own += 1;
    return own < this.#settings.mostPerClient;
  }

  counts(): Record<Lane, number> {
    const counts = perLane(() => 0);
    for (const waiter of this.#waiters) counts[waiter.lane] += 1;
    return counts;
  }

  next(owed: Owed): Waiter | undefined {
    return nextOf(this.#waiters, owed);
  }

  /** Resolves with a slot when it is the asker's turn. */
  join(ask: Ask, place: number): Promise<SlotId> {
    const { clock, onLate, onGone } = this.#settings;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        ask.signal.removeEventListener("abort", onAbort);
        cancelDeadline();
      };
      const waiter: Waiter = {
        ask,
        place,
        since: clock.monotonic(),
        get lane() {
          return ask.lane;
        },
        leave,
        start: (slot) => {
          leave();
          resolve(slot);
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      const onAbort = (): void => {
        waiter.fail(GONE);
        onGone(waiter);
      };
      const cancelDeadline = Number.isFinite(ask.maxWaitMs)
        ? clock.after(ask.maxWaitMs, () => {
            onLate(waiter);
          })
        : (): void => {};
      ask.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }
}
