/** Scheduled changes. Each is applied once it is due, in the order of the due times, before the world is read. */

/** After this many ms on the sandbox's clock, or after this many more answered calls. */
export type Due = { readonly afterMs: number } | { readonly afterCalls: number };

interface Entry<Change> {
  readonly id: number;
  readonly change: Change;
  /** On the sandbox's clock, ms; Infinity for a change that waits for calls. */
  readonly dueMs: number;
  callsLeft: number;
}

export interface Scheduled<Change> {
  readonly id: number;
  readonly change: Change;
  /** The remaining ms or calls. */
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

  /** Applies the changes that are due. */
  catchUp(): void {
    const now = this.#now();
    this.#take(({ dueMs, callsLeft }) => dueMs <= now || callsLeft <= 0);
  }

  /** Call after each answer. */
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
    // Changes that waited for calls are due with this call, so after all that were due before it.
    const due = this.#entries.filter(isDue).sort((a, b) => (a.dueMs === b.dueMs ? 0 : a.dueMs - b.dueMs));
    this.#entries = this.#entries.filter((entry) => !due.includes(entry));
    for (const { change } of due) this.#apply(change);
  }
}
