/** How much quota clients and networks have used lately: each call counts, and decays by a factor of e in ten windows. */
import { BoundedMap } from "../bounded-map.js";
import type { Ask } from "./quota.js";

const FADES_IN_WINDOWS = 10;
/** When there are more clients and networks, the one whose last call is oldest is dropped. */
const MAX_COUNTED = 20_000;
const MAX_LEVEL = 100;

type Consumer = Pick<Ask, "client" | "network">;

export class Usage {
  readonly #fadeMs: number;
  readonly #counts = new BoundedMap<string, { readonly calls: number; readonly at: number }>(MAX_COUNTED);

  constructor(windowMs: number) {
    this.#fadeMs = windowMs * FADES_IN_WINDOWS;
  }

  /** Whoever has the smaller number has used less: its network, and if these are equal, itself. Similar usage counts as equal. */
  rank({ client, network = client }: Consumer, now: number): number {
    return this.level(network, now) * MAX_LEVEL + this.level(client, now);
  }

  /** 0 for less than half a recent call; each further level is twice as many. */
  level(key: string, now: number): number {
    return Math.max(0, 1 + Math.floor(Math.log2(2 * this.#recent(key, now))));
  }

  /** Counts calls; negative: takes them back. */
  add({ client, network = client }: Consumer, now: number, calls: number): void {
    for (const key of new Set([client, network]))
      this.#counts.set(key, { calls: Math.max(0, this.#recent(key, now) + calls), at: now });
  }

  #recent(key: string, now: number): number {
    const { calls, at } = this.#counts.get(key) ?? { calls: 0, at: now };
    return calls * Math.exp((at - now) / this.#fadeMs);
  }
}
