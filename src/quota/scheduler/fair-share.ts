/**
 * The recent usage of clients and networks, in a few levels: each call counts, and decays by a factor of e in ten windows. Bounded: when full, the
 * client whose last call is oldest is dropped.
 */
import { BoundedMap } from "../../bounded-map.js";
import type { Ask } from "../quota.js";

const FADES_IN_WINDOWS = 10;

/** Fewer recent calls than this are level 0; each further level is twice as many. */
const MIN_COUNTED = 0.5;

/** The levels of a client and its network; 0 = hardly any recent calls. */
export interface UsageLevel {
  /** The client's level if it has no network. */
  readonly network: number;
  readonly client: number;
}

type Consumer = Pick<Ask, "client" | "network">;

/** Of a client that has made no calls. */
export const NO_USAGE: UsageLevel = { network: 0, client: 0 };

/** Negative if `a` used less than `b`. Compares networks first, then clients. */
export function compareUsage(a: UsageLevel, b: UsageLevel): number {
  return a.network - b.network || a.client - b.client;
}

export class FairShare {
  readonly #clients: UsageLog;
  readonly #networks: UsageLog;

  constructor(windowMs: number, most: number) {
    this.#clients = new UsageLog(windowMs * FADES_IN_WINDOWS, most);
    this.#networks = new UsageLog(windowMs * FADES_IN_WINDOWS, most);
  }

  of({ client, network }: Consumer, now: number): UsageLevel {
    const own = this.#clients.level(client, now);
    return { client: own, network: network === undefined ? own : this.#networks.level(network, now) };
  }

  /** Counts calls at `now`, which is monotonic. */
  charge({ client, network }: Consumer, now: number, calls: number): void {
    this.#clients.add(client, now, calls);
    if (network !== undefined) this.#networks.add(network, now, calls);
  }

  /** Takes back what was charged at `chargedAt`. */
  refund({ client, network }: Consumer, chargedAt: number, calls: number): void {
    this.#clients.remove(client, chargedAt, calls);
    if (network !== undefined) this.#networks.remove(network, chargedAt, calls);
  }
}

class UsageLog {
  readonly #fadeMs: number;
  /**
   * Per key, the logarithm of all calls weighted by exp(time / fadeMs). Newer calls weigh more instead of older ones decaying, so old entries need no
   * update.
   */
  readonly #logs: BoundedMap<string, number>;

  constructor(fadeMs: number, most: number) {
    this.#fadeMs = fadeMs;
    this.#logs = new BoundedMap(most);
  }

  level(key: string, now: number): number {
    const log = this.#logs.get(key);
    if (log === undefined) return 0;
    const recent = Math.exp(log - now / this.#fadeMs);
    return recent < MIN_COUNTED ? 0 : 1 + Math.floor(Math.log2(recent / MIN_COUNTED));
  }

  add(key: string, at: number, calls: number): void {
    const log = at / this.#fadeMs + Math.log(calls);
    this.#put(key, log + Math.log1p(Math.exp((this.#logs.get(key) ?? -Infinity) - log)));
  }

  remove(key: string, at: number, calls: number): void {
    const whole = this.#logs.get(key);
    if (whole === undefined) return;
    const log = at / this.#fadeMs + Math.log(calls);
    this.#put(key, whole + Math.log1p(-Math.min(1, Math.exp(log - whole))));
  }

  #put(key: string, log: number): void {
    if (log === -Infinity) this.#logs.delete(key);
    else this.#logs.set(key, log);
  }
}
