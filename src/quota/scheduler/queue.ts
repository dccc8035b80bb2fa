/**
 * The requests that wait for a slot: a bounded queue with one line per kind. Requests leave it immediately when they are aborted or have waited
 * long enough. The cost of joining, leaving and finding the next one hardly depends on the length.
 */
import type { Clock } from "../../clock.js";
import type { TakenSlot } from "../ledger/ledger.js";
import { isBackground, type Lane, perLane } from "../lane.js";
import type { QuotaRequest } from "../quota.js";
import { compareUsage, NO_USAGE, type UsageLevel } from "./fair-share.js";
import { type Ahead, type Heads, type Kind, KINDS } from "./priority.js";

/** The reason if a call wasn't made because nobody waited for it any more. */
export const GONE = new Error("nobody waits for this call any more");

/** How a request joins the queue. */
export interface Entry {
  readonly kind: Kind;
  readonly usage: UsageLevel;
  /** Among requests with the same usage level, the smallest rank goes first. */
  readonly rank: number;
  /** When the visitor first made this request, before any refusal. */
  readonly askedAt: number;
  /** The key of the ticket that a refusal would issue. */
  readonly key: string;
}

export interface Waiter extends Entry {
  readonly request: QuotaRequest;
  readonly since: number;
  /** Leaves the queue with a slot. */
  start(taken: TakenSlot): void;
  /** Leaves the queue without a slot; `fail` also rejects the request. */
  leave(): void;
  fail(error: Error): void;
}

interface QueueSettings {
  readonly clock: Clock;
  readonly most: number;
  /** The limit for one client while other clients want calls too. */
  readonly mostPerClient: number;
  /** Claims a reservation that has become due, or whose holder now shares the request, and returns when it was due; null if there is none. */
  readonly claim: (waiter: Waiter) => number | null;
  readonly onLate: (waiter: Waiter) => void;
  readonly onGone: (waiter: Waiter) => void;
}

/** Regrouping takes time in proportion to the queue, so its minimum interval is this many ms per waiting request. */
const LOOK_EVERY_MS = 1 / 250;

export class Queue {
  readonly #settings: QueueSettings;
  readonly #lines: Readonly<Record<Kind, Line>> = {
    cart: new Line(),
    reserved: new Line(),
    newcomer: new Line(),
    returner: new Line(),
    refresh: new Line(),
    suggestion: new Line(),
  };
  readonly #ofClient = new Map<string, number>();
  #lookedAt = -Infinity;

  constructor(settings: QueueSettings) {
    this.#settings = settings;
  }

  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.#lines[kind].size, 0);
  }

  /** The number of waiting requests of visitors. */
  get visitors(): number {
    return KINDS.reduce((sum, kind) => sum + (isBackground(kind) ? 0 : this.#lines[kind].size), 0);
  }

  all(): QueuedWaiter[] {
    return KINDS.flatMap((kind) => this.#lines[kind].all());
  }

  waiting(kind: Kind): number {
    return this.#lines[kind].size;
  }

  /** Since when each request of this kind waits; monotonic. */
  waitingSince(kind: Kind): readonly number[] {
    return this.#lines[kind].all().map(({ since }) => since);
  }

  first(kind: Kind): Waiter | undefined {
    return this.#lines[kind].first();
  }

  last(kind: Kind): Waiter | undefined {
    return this.#lines[kind].last();
  }

  /** Whether visitors other than this client wait. */
  hasOthers(client: string): boolean {
    return this.visitors > (this.#ofClient.get(client) ?? 0);
  }

  hasRoom(client: string, contested: boolean): boolean {
    const { most, mostPerClient } = this.#settings;
    return this.size < most && !(contested && (this.#ofClient.get(client) ?? 0) >= mostPerClient);
  }

  /** The usage level of the first request in line of each of these kinds. */
  heads(kinds: readonly Kind[]): Heads {
    const heads: Partial<Record<Kind, UsageLevel>> = {};
    for (const kind of kinds) {
      const first = this.#lines[kind].first();
      if (first !== undefined) heads[kind] = first.usage;
    }
    return heads;
  }

  /** What a new request of this kind would wait behind, including requests expected in the meantime. */
  ahead(kind: "cart" | "newcomer" | "returner", usage: UsageLevel, expected: Expected): Ahead {
    const own = this.#lines[kind].ahead(usage);
    const others = this.#lines[kind === "newcomer" ? "returner" : "newcomer"].ahead(usage);
    return {
      carts: this.#lines.cart.size + Math.floor(expected.carts),
      reserved: this.#lines.reserved.size + expected.reserved,
      refresh: this.#lines.refresh.size,
      own: own.less + own.equal,
      ownEquals: own.equal,
      othersWithLess: others.less,
      othersEqual: others.equal,
    };
  }

  counts(): Record<Lane, number> {
    const counts = perLane(() => 0);
    for (const { request } of this.all()) counts[request.lane] += 1;
    return counts;
  }

  /** Moves requests whose urgency has changed while they waited. */
  regroup(): void {
    const now = this.#settings.clock.monotonic();
    if (now - this.#lookedAt < this.size * LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    for (const waiter of this.all()) {
      const dueAt = waiter.kind === "reserved" ? null : this.#settings.claim(waiter);
      const kind = kindOf(waiter.request.lane, dueAt === null ? waiter.kind : "reserved");
      if (kind === waiter.kind) continue;
      this.#remove(waiter);
      if (dueAt !== null) {
        waiter.usage = NO_USAGE;
        waiter.rank = dueAt;
      }
      // Until now it counted for the client of background work, which has used much quota. Now visitors wait for it.
      if (isBackground(waiter.kind)) waiter.usage = NO_USAGE;
      waiter.kind = kind;
      this.#add(waiter);
    }
  }

  /** Resolves with a slot when it's the request's turn. */
  join(request: QuotaRequest, entry: Entry): Promise<TakenSlot> {
    const { clock, onLate, onGone } = this.#settings;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#remove(waiter);
        request.signal.removeEventListener("abort", onAbort);
        cancelDeadline();
      };
      const waiter: QueuedWaiter = {
        ...entry,
        request,
        client: request.client,
        since: clock.monotonic(),
        leave,
        start: (taken) => {
          leave();
          resolve(taken);
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
      const cancelDeadline = Number.isFinite(request.maxWaitMs)
        ? clock.after(request.maxWaitMs, () => {
            onLate(waiter);
          })
        : (): void => {};
      request.signal.addEventListener("abort", onAbort, { once: true });
      this.#add(waiter);
    });
  }

  #add(waiter: QueuedWaiter): void {
    this.#lines[waiter.kind].add(waiter);
    if (!isBackground(waiter.kind))
      this.#ofClient.set(waiter.client, (this.#ofClient.get(waiter.client) ?? 0) + 1);
  }

  #remove(waiter: QueuedWaiter): void {
    if (!this.#lines[waiter.kind].remove(waiter) || isBackground(waiter.kind)) return;
    const others = (this.#ofClient.get(waiter.client) ?? 1) - 1;
    if (others === 0) this.#ofClient.delete(waiter.client);
    else this.#ofClient.set(waiter.client, others);
  }
}

/** Requests that will probably come while a new one waits. */
export interface Expected {
  readonly carts: number;
  readonly reserved: number;
}

/** The kind of a request in this lane. `visitor` is its current kind; a claimed reservation keeps its kind. */
export function kindOf(lane: Lane, visitor: Kind): Kind {
  if (visitor === "reserved") return "reserved";
  if (lane === "checkout") return "cart";
  if (isBackground(lane)) return lane;
  return visitor === "returner" ? "returner" : "newcomer";
}

/** A waiter in the queue. It keeps counting for the client that joined first, even if other clients share the request. */
interface QueuedWaiter extends Omit<Waiter, "kind" | "usage" | "rank"> {
  kind: Kind;
  usage: UsageLevel;
  rank: number;
  readonly client: string;
}

/** Waiters with the same usage level, by rank. */
interface Level {
  readonly usage: UsageLevel;
  readonly waiters: QueuedWaiter[];
}

/** Waiters in the order in which they are served: by usage level, then by rank. */
class Line {
  /** The levels that aren't empty, by usage level. */
  readonly #levels: Level[] = [];
  size = 0;

  all(): QueuedWaiter[] {
    return this.#levels.flatMap(({ waiters }) => waiters);
  }

  first(): QueuedWaiter | undefined {
    return this.#levels[0]?.waiters[0];
  }

  last(): QueuedWaiter | undefined {
    return this.#levels.at(-1)?.waiters.at(-1);
  }

  /** How many have a lower usage level, and how many the same. */
  ahead(usage: UsageLevel): { less: number; equal: number } {
    let less = 0;
    for (const level of this.#levels) {
      const difference = compareUsage(level.usage, usage);
      if (difference === 0) return { less, equal: level.waiters.length };
      if (difference > 0) break;
      less += level.waiters.length;
    }
    return { less, equal: 0 };
  }

  add(waiter: QueuedWaiter): void {
    const { usage, rank } = waiter;
    let at = this.#levels.findIndex((level) => compareUsage(level.usage, usage) >= 0);
    if (at < 0) at = this.#levels.length;
    let level = this.#levels[at];
    if (level === undefined || compareUsage(level.usage, usage) !== 0) {
      level = { usage, waiters: [] };
      this.#levels.splice(at, 0, level);
    }
    const after = level.waiters.findLastIndex((other) => other.rank <= rank);
    level.waiters.splice(after + 1, 0, waiter);
    this.size += 1;
  }

  remove(waiter: QueuedWaiter): boolean {
    const at = this.#levels.findIndex(({ usage }) => compareUsage(usage, waiter.usage) === 0);
    const level = this.#levels[at];
    const position = level?.waiters.indexOf(waiter) ?? -1;
    if (level === undefined || position < 0) return false;
    level.waiters.splice(position, 1);
    if (level.waiters.length === 0) this.#levels.splice(at, 1);
    this.size -= 1;
    return true;
  }
}
