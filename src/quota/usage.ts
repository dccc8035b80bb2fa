/** How much quota clients and networks have used lately, in a few levels: each call counts, and decays by a factor of e in ten windows. */
import { BoundedMap } from "../bounded-map.js";
import type { Ask } from "./quota.js";

const FADES_IN_WINDOWS = 10;
/** Fewer recent calls than this are level 0; each further level is twice as many. */
const MIN_COUNTED = 0.5;
/** When there are more clients, the one whose last call is oldest is dropped. */
const MAX_CLIENTS = 10_000;

type Consumer = Pick<Ask, "client" | "network">;

export class Usage {
  readonly #fadeMs: number;
  /** The logarithm of all calls weighted by exp(time / fadeMs): newer calls weigh more instead of older ones decaying. */
  readonly #logs = new BoundedMap<string, number>(2 * MAX_CLIENTS);

  constructor(windowMs: number) {
    this.#fadeMs = windowMs * FADES_IN_WINDOWS;
  }

  /** The level of the client's network first, then its own: smaller goes first. A client without a network is its own. */
  levels({ client, network }: Consumer, now: number): readonly [number, number] {
    const own = this.#level(client, now);
    return [network === undefined ? own : this.#level(network, now), own];
  }

  /** Counts calls made at that time; negative: takes them back. */
  add({ client, network }: Consumer, at: number, calls: number): void {
    this.#add(client, at, calls);
    if (network !== undefined && network !== client) this.#add(network, at, calls);
  }

  #level(key: string, now: number): number {
    const recent = Math.exp((this.#logs.get(key) ?? -Infinity) - now / this.#fadeMs);
    return recent < MIN_COUNTED ? 0 : 1 + Math.floor(Math.log2(recent / MIN_COUNTED));
  }

  #add(key: string, at: number, calls: number): void {
    const base = at / this.#fadeMs;
    const total = Math.exp((this.#logs.get(key) ?? -Infinity) - base) + calls;
    if (total > 1e-9) this.#logs.set(key, base + Math.log(total));
    else this.#logs.delete(key);
  }
}
