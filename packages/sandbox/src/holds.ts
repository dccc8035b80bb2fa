/**
 * Decides when an answer is computed and when it is sent: a hold keeps answers back until a script releases them, one by one and in any order.
 * Watchers see every answer that reached its caller.
 */
import type { AnsweredFact } from "./facts.js";
import type { Operation } from "./operations.js";

export interface HoldRequest {
  /** Default: every operation. */
  readonly operation?: Operation | undefined;
  /** Only requests with these values in their fields, such as `{ domain: "kabul.af" }`. Default: all. */
  readonly asked?: Asked | undefined;
  /** How many calls it holds. Default: every call until it is released. */
  readonly calls?: number | undefined;
  /** When the answer is computed: on arrival (the default), so that it is outdated, or on release, so that it is slow. */
  readonly decided?: "on-arrival" | "on-release" | undefined;
}

/** The fields of the request. */
export type Asked = Readonly<Record<string, string | number>>;

interface HeldAnswer {
  readonly asked: Asked;
  /** Sends the answer; further calls do nothing. */
  release(): void;
}

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

export class Hold {
  readonly #request: HoldRequest;
  readonly #held = new Set<HeldAnswer>();
  readonly #caught: HeldAnswer[] = [];
  readonly #watchers: (() => void)[] = [];
  readonly #ended: (hold: Hold) => void;

  constructor(request: HoldRequest, ended: (hold: Hold) => void) {
    this.#request = request;
    this.#ended = ended;
  }

  /** The answers held now, in the order of arrival. */
  answers(): readonly HeldAnswer[] {
    return [...this.#held];
  }

  /** Resolves with the n-th held answer, counted from 1. */
  async caught(nth = 1): Promise<HeldAnswer> {
    for (;;) {
      const answer = this.#caught[nth - 1];
      if (answer !== undefined) return answer;
      await new Promise<void>((look) => {
        this.#watchers.push(look);
      });
    }
  }

  /** Sends all held answers in the order of arrival, and ends the hold. */
  release(): void {
    this.#ended(this);
    for (const answer of this.answers()) answer.release();
  }

  wants(operation: Operation, asked: Asked): boolean {
    const { operation: only = operation, asked: fields = {}, calls = Infinity } = this.#request;
    const isMeant =
      only === operation && Object.entries(fields).every(([key, value]) => asked[key] === value);
    return isMeant && this.#caught.length < calls;
  }

  /** `decide` computes the answer and returns its delivery. */
  keep(asked: Asked, decide: () => () => void): void {
    const { decided, calls = Infinity } = this.#request;
    const late = decided === "on-release" ? null : decide();
    const answer: HeldAnswer = {
      asked,
      release: () => {
        if (!this.#held.delete(answer)) return;
        if (this.#held.size === 0 && this.#caught.length >= calls) this.#ended(this);
        (late ?? decide())();
      },
    };
    this.#held.add(answer);
    this.#caught.push(answer);
    for (const look of this.#watchers.splice(0)) look();
  }
}

export class Holds {
  readonly #now: () => number;
  readonly #active = new Set<Hold>();
  readonly #watchers = new Set<Watcher>();

  constructor(now: () => number) {
    this.#now = now;
  }

  add(request: HoldRequest): Hold {
    const hold = new Hold(request, (ended) => this.#active.delete(ended));
    this.#active.add(hold);
    return hold;
  }

  active(): readonly Hold[] {
    return [...this.#active];
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }

  /** Sends the answer now, or when the first matching hold releases it. */
  pass(operation: Operation, asked: Asked, decide: () => Decided): void {
    const arrivedMs = this.#now();
    const computed = (): (() => void) => {
      const { answered, send } = decide();
      const decidedMs = this.#now();
      return () =>
        send(() => {
          if (answered === null) return;
          const times = { arrivedMs, decidedMs, deliveredMs: this.#now() };
          for (const watcher of this.#watchers) watcher({ ...answered, ...times });
        });
    };
    const hold = this.active().find((one) => one.wants(operation, asked));
    if (hold === undefined) computed()();
    else hold.keep(asked, computed);
  }
}
