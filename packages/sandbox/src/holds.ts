/** Holds answers until a script releases them, one by one and in any order. */
import type { After } from "./behaviour.js";
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
  /** Releases each answer after this many ms on the sandbox's clock. Default: only the script releases it. */
  readonly forMs?: number | undefined;
}

/** The fields of the request. */
export type Asked = Readonly<Record<string, string | number>>;

interface HeldAnswer {
  readonly id: number;
  readonly operation: Operation;
  readonly asked: Asked;
  /** Sends the answer; further calls do nothing. */
  release(): void;
}

export interface Hold {
  readonly id: number;
  readonly request: HoldRequest;
  /** The answers held now, in the order of arrival. */
  answers(): readonly HeldAnswer[];
  /** Resolves with the n-th held answer, counted from 1. */
  caught(nth?: number): Promise<HeldAnswer>;
  /** Sends all held answers in the order of arrival, and ends the hold. */
  release(): void;
}

class ActiveHold implements Hold {
  readonly id: number;
  readonly request: HoldRequest;
  readonly #held = new Map<number, HeldAnswer>();
  readonly #caught: HeldAnswer[] = [];
  readonly #watchers: (() => void)[] = [];
  readonly #ended: () => void;
  #open = true;

  constructor(id: number, request: HoldRequest, ended: () => void) {
    this.id = id;
    this.request = request;
    this.#ended = ended;
  }

  wants(operation: Operation, asked: Asked): boolean {
    const { operation: only = operation, asked: fields = {}, calls = Infinity } = this.request;
    const isMeant =
      only === operation && Object.entries(fields).every(([key, value]) => asked[key] === value);
    return this.#open && isMeant && this.#caught.length < calls;
  }

  add(id: number, operation: Operation, asked: Asked, deliver: () => void, after: After): void {
    const { forMs } = this.request;
    let cancel = (): void => {};
    const answer: HeldAnswer = {
      id,
      operation,
      asked,
      release: () => {
        if (!this.#held.delete(id)) return;
        cancel();
        this.#endIfDone();
        deliver();
      },
    };
    this.#held.set(id, answer);
    this.#caught.push(answer);
    if (forMs !== undefined) cancel = after(forMs, answer.release);
    for (const look of this.#watchers.splice(0)) look();
  }

  answers(): readonly HeldAnswer[] {
    return [...this.#held.values()];
  }

  async caught(nth = 1): Promise<HeldAnswer> {
    for (;;) {
      const answer = this.#caught[nth - 1];
      if (answer !== undefined) return answer;
      await new Promise<void>((look) => {
        this.#watchers.push(look);
      });
    }
  }

  release(): void {
    this.#open = false;
    for (const answer of this.answers()) answer.release();
    this.#ended();
  }

  #endIfDone(): void {
    if (this.#held.size === 0 && this.#caught.length >= (this.request.calls ?? Infinity)) this.#ended();
  }
}

export class Holds {
  readonly #active = new Map<number, ActiveHold>();
  readonly #after: After;
  #lastId = 0;

  constructor(after: After) {
    this.#after = after;
  }

  add(request: HoldRequest): Hold {
    const id = (this.#lastId += 1);
    const hold = new ActiveHold(id, request, () => this.#active.delete(id));
    this.#active.set(id, hold);
    return hold;
  }

  active(): readonly Hold[] {
    return [...this.#active.values()];
  }

  /** Sends the answer now, or when the first matching hold releases it. `decide` computes it and returns its delivery. */
  pass(operation: Operation, asked: Asked, decide: () => () => void): void {
    const hold = [...this.#active.values()].find((one) => one.wants(operation, asked));
    if (hold === undefined) return decide()();
    const late = hold.request.decided === "on-release" ? null : decide();
    hold.add((this.#lastId += 1), operation, asked, () => (late ?? decide())(), this.#after);
  }
}
