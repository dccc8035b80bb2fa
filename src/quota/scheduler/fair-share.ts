/** Who had how much of late: each call counts and fades by a factor e in ten windows. Bounded: who had something longest ago is forgotten. */
const FADES_IN_WINDOWS = 10;

/** How much a client and its network had: comparable at any time, -Infinity = nothing. */
export interface Usage {
  /** The client's own where it names no network. */
  readonly network: number;
  readonly client: number;
}

interface Consumer {
  readonly client: string;
  readonly network?: string | undefined;
}

export class Usages {
  readonly #fadeMs: number;
  readonly #most: number;
  /** The logarithm of the usage as it would be now had it grown instead of faded: what was counted need not be touched again. Latest last. */
  readonly #logs = new Map<string, number>();

  constructor(windowMs: number, most: number) {
    this.#fadeMs = windowMs * FADES_IN_WINDOWS;
    this.#most = most;
  }

  of({ client, network }: Consumer): Usage {
    const own = this.#logs.get(clientKey(client)) ?? -Infinity;
    return {
      client: own,
      network: network === undefined ? own : (this.#logs.get(networkKey(network)) ?? -Infinity),
    };
  }

  /** Counts so many calls at `now`, monotonic. The answer takes them back. */
  charge({ client, network }: Consumer, now: number, calls: number): () => void {
    const keys = network === undefined ? [clientKey(client)] : [clientKey(client), networkKey(network)];
    const log = now / this.#fadeMs + Math.log(calls);
    for (const key of keys)
      this.#put(key, log + Math.log1p(Math.exp((this.#logs.get(key) ?? -Infinity) - log)));
    return () => {
      for (const key of keys) {
        const whole = this.#logs.get(key);
        if (whole !== undefined) this.#put(key, whole + Math.log1p(-Math.min(1, Math.exp(log - whole))));
      }
    };
  }

  #put(key: string, log: number): void {
    this.#logs.delete(key);
    if (log === -Infinity) return;
    this.#logs.set(key, log);
    if (this.#logs.size <= this.#most) return;
    const [oldest] = this.#logs.keys();
    if (oldest !== undefined) this.#logs.delete(oldest);
  }
}

function clientKey(client: string): string {
  return `client ${client}`;
}

function networkKey(network: string): string {
  return `network ${network}`;
}
