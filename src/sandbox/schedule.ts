/** Changes that are still to come: each is applied once it is due, in the order in which they fell due, before anybody looks at the world. */

/** After so many ms on the sandbox's clock, or after so many more calls have been answered. */
export type Due = { readonly afterMs: number } | { readonly afterCalls: number };

interface Entry<Change> {
  readonly id: number;
  readonly change: Change;
  /** On the sandbox's clock, ms; Infinity for one that waits for calls. */
  readonly dueMs: number;
  callsLeft: number;
}

export interface Scheduled<Change> {
  readonly id: number;
  readonly change: Change;
  /** How many ms or calls are left. */
  readonly due: Due;
}

export class Schedule<Change> {
  readonly #now: () => number;
  readonly #apply: (change: Change) => void;
  #entries: Entry<Change>[] = [];
  #lastId = 0;

  constructor(now: () => number, apply: (change: Change) => void) {
    this.#now = now;
    this.#apply = apply;
  }

  add(due: Due, change: Change): number {
    this.#lastId += 1;
    const [dueMs, callsLeft] =
      "afterMs" in due ? [this.#now() + due.afterMs, Infinity] : [Infinity, due.afterCalls];
    this.#entries.push({ id: this.#lastId, change, dueMs, callsLeft });
    this.catchUp();
    return this.#lastId;
  }

  /** Applies what the clock has reached. */
  catchUp(): void {
    const now = this.#now();
    this.#take(({ dueMs, callsLeft }) => dueMs <= now || callsLeft <= 0);
  }

  /** A call has been answered. */
  answered(): void {
    for (const entry of this.#entries) entry.callsLeft -= 1;
    this.catchUp();
  }

  pending(): readonly Scheduled<Change>[] {
    const now = this.#now();
    return this.#entries.map(({ id, change, dueMs, callsLeft }) => ({
      id,
      change,
      due: dueMs === Infinity ? { afterCalls: callsLeft } : { afterMs: dueMs - now },
    }));
  }

  clear(): void {
    this.#entries = [];
  }

  #take(isDue: (entry: Entry<Change>) => boolean): void {
    if (!this.#entries.some(isDue)) return;
    // Those that waited for calls fall due with the call, so after everything that the clock had reached before it.
    const due = this.#entries.filter(isDue).sort((a, b) => (a.dueMs === b.dueMs ? 0 : a.dueMs - b.dueMs));
    this.#entries = this.#entries.filter((entry) => !due.includes(entry));
    for (const { change } of due) this.#apply(change);
  }
}
