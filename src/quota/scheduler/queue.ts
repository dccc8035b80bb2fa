/** Those who wait for a slot: bounded over all and for each client, and whoever aborts or has waited long enough is out at once. */
import type { Clock } from "../../clock.js";
import type { SlotId } from "../ledger/ledger.js";
import { perLane, type Waiting } from "./priority.js";
import type { Ask, Lane } from "../quota.js";
import type { Usage } from "./fair-share.js";

/** Why a call was not made: nobody waited for it any more. */
export const GONE = new Error("nobody waits for this call any more");

/** What somebody joins the queue with, and keeps whatever others behind the same address do meanwhile. */
export interface Seat {
  readonly place: number;
  readonly usage: Usage;
  /** Came back to a kept place. */
  readonly promised: boolean;
  /** Nothing was spent after all. */
  readonly refund: () => void;
}

export interface Waiter extends Waiting, Seat {
  readonly ask: Ask;
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

  /** Whether somebody waits who will not wait for ever. */
  get visitorWaits(): boolean {
    for (const { ask } of this.#waiters) if (Number.isFinite(ask.maxWaitMs)) return true;
    return false;
  }

  hasRoom(client: string): boolean {
    if (this.#waiters.size >= this.#settings.most) return false;
    let own = 0;
    for (const waiter of this.#waiters) if (waiter.ask.client === client) own += 1;
    return own < this.#settings.mostPerClient;
  }

  /** The lanes in which somebody waits. */
  lanes(): Lane[] {
    return [...new Set([...this.#waiters].map(({ lane }) => lane))];
  }

  counts(): Record<Lane, number> {
    const counts = perLane(() => 0);
    for (const waiter of this.#waiters) counts[waiter.lane] += 1;
    return counts;
  }

  /** Resolves with a slot when it is the asker's turn. */
  join(ask: Ask, seat: Seat): Promise<SlotId> {
    const { clock, onLate, onGone } = this.#settings;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        ask.signal.removeEventListener("abort", onAbort);
        cancelDeadline();
      };
      const waiter: Waiter = {
        ask,
        ...seat,
        since: clock.monotonic(),
        get lane() {
          return ask.lane;
        },
        get first() {
          return seat.promised && clock.monotonic() >= overtakesAt(waiter.since, ask.maxWaitMs);
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

/** From when on somebody who came back at `since` to a kept place goes first in its lane: monotonic ms. */
export function overtakesAt(since: number, maxWaitMs: number): number {
  return since + maxWaitMs / 2;
}
