/** How much quota clients and networks have used lately: each call counts, and decays by a factor of e in ten windows. */
import { BoundedMap } from "../bounded-map.js";
import { isBackground } from "./lane.js";
import type { Ask } from "./quota.js";

/** A refusal counts as this part of a call until its client comes back on time, so that clients that ask for much rank behind others. */
const REFUSED_COUNTS = 0.25;
/** A client with more recent calls than about one is promised less while others want calls: half for each level more. */
const BUSY_LEVEL = 1;
const FADES_IN_WINDOWS = 10;
/** When there are more clients and networks, the one whose last call is oldest is dropped. */
const MAX_COUNTED = 20_000;
const MAX_LEVEL = 100;

/** Clients to which something happened, and when: the last two, the newest first. */
type LastTwo = readonly { readonly client: string; readonly at: number }[];

function withNewest(before: LastTwo, client: string, at: number): LastTwo {
  const other = before.find((one) => one.client !== client);
  return [{ client, at }, ...(other ? [other] : [])];
}

export class Usage {
  readonly #windowMs: number;
  readonly #counts = new BoundedMap<string, { readonly calls: number; readonly at: number }>(MAX_COUNTED);
  #joined: LastTwo = [];
  #refused: LastTwo = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /**
   * Counts a request that joins the line. A smaller number means that its network has used less before or, if networks are equal, its client. Similar
   * usage counts as equal.
   */
  joined(ask: Ask, now: number): number {
    const { client, network = client, lane } = ask;
    const used = this.#level(network, now) * MAX_LEVEL + this.#level(client, now);
    this.#add(ask, now, 1);
    if (!isBackground(lane)) this.#joined = withNewest(this.#joined, client, now);
    return used;
  }

  leftUnserved(ask: Ask, now: number): void {
    this.#add(ask, now, -1);
  }

  refused(ask: Ask, now: number): void {
    this.#add(ask, now, REFUSED_COUNTS);
  }

  /** After a refusal, at the second that was given or later. */
  cameBack(ask: Ask, now: number): void {
    this.#add(ask, now, -REFUSED_COUNTS);
  }

  /** The part of the calls that may be promised which this client may be promised: less if it is busy and others have wanted calls lately. */
  share({ client, network = client }: Ask, now: number): number {
    if (!this.#isOther(this.#joined, client, now)) return 1;
    const level = Math.max(this.#level(client, now), this.#level(network, now));
    return 2 ** -Math.max(0, level - BUSY_LEVEL);
  }

  noteRefused({ client }: Ask, now: number): void {
    this.#refused = withNewest(this.#refused, client, now);
  }

  /** Whether another client was refused within the last window. */
  othersRefused(client: string, now: number): boolean {
    return this.#isOther(this.#refused, client, now);
  }

  #isOther(last: LastTwo, client: string, now: number): boolean {
    return last.some((one) => one.client !== client && one.at > now - this.#windowMs);
  }

  #add({ client, network = client }: Ask, now: number, calls: number): void {
    for (const key of new Set([client, network]))
      this.#counts.set(key, { calls: Math.max(0, this.#recent(key, now) + calls), at: now });
  }

  /** 0 for less than half a recent call; each further level is twice as many. */
  #level(key: string, now: number): number {
    return Math.max(0, 1 + Math.floor(Math.log2(2 * this.#recent(key, now))));
  }

  #recent(key: string, now: number): number {
    const { calls, at } = this.#counts.get(key) ?? { calls: 0, at: now };
    return calls * Math.exp((at - now) / (this.#windowMs * FADES_IN_WINDOWS));
  }
}
