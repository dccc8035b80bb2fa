/** Changes of the world while the API runs, immediate or scheduled. An invalid change is rejected when it is submitted. */
import { PortalError } from "./portal-error.js";
import type { PriceKey } from "./prices.js";
import type { Order, Reseller, World } from "./world.js";

export interface SetPrice extends PriceKey {
  readonly reseller: string;
  /** What this reseller pays from now on, in any tier; null restores the tier's price. */
  readonly amountCents: number | null;
}

/** The price of the first year in cents, by currency; null makes the name ordinary. */
export type FirstYear = Readonly<Record<string, number>> | null;

export type Change =
  | { readonly tier: { readonly reseller: string; readonly tier: string } }
  | { readonly price: SetPrice }
  | { readonly taken: { readonly domain: string; readonly taken: boolean } }
  | { readonly order: Order & { readonly reseller: string } }
  | { readonly premium: { readonly domain: string; readonly firstYear: FirstYear } };

export function resellerOf(world: World, id: string): Reseller {
  const reseller = world.reseller(id);
  if (reseller === undefined) throw new PortalError(404, `there is no reseller ${id}`);
  return reseller;
}

/** A validated change. */
function prepared(world: World, change: Change, today: () => Date): () => void {
  if ("order" in change) {
    const { order } = change;
    const reseller = resellerOf(world, order.reseller);
    // Whether the registry carries it out is only known when it is due.
    return () => {
      if (world.problemOf(reseller, order) === null) world.order(reseller, order, today());
    };
  }
  if ("taken" in change) {
    const { domain, taken } = change.taken;
    return () => world.setTaken(domain, taken);
  }
  if ("premium" in change) {
    const { domain, firstYear } = change.premium;
    const prices = firstYear && new Map(Object.entries(firstYear));
    return () => world.prices.setPremium(domain, prices);
  }
  if ("tier" in change) {
    const { tier } = change.tier;
    const reseller = resellerOf(world, change.tier.reseller);
    if (!world.hasTier(tier)) throw new PortalError(422, `there is no tier ${tier}`);
    return () => {
      reseller.tier = tier;
    };
  }
  const { reseller: id, amountCents, ...key } = change.price;
  const reseller = resellerOf(world, id);
  if (!world.prices.tlds(reseller).includes(key.tld))
    throw new PortalError(422, `${key.tld} is not sold to ${id}`);
  return () => world.prices.override(reseller, key, amountCents);
}

/** After this many ms on the sandbox's clock, or after this many more answered calls. */
export type Due = { readonly afterMs: number } | { readonly afterCalls: number };

export interface Scheduled {
  readonly id: number;
  readonly change: readonly Change[];
  /** The remaining ms or calls. */
  readonly due: Due;
}

interface Entry extends Omit<Scheduled, "due"> {
  /** On the sandbox's clock, ms; Infinity for changes that wait for calls. */
  readonly dueMs: number;
  callsLeft: number;
}

/** The changes of one world. Each is applied once it is due, in the order of the due times, before the world is read. */
export class Timeline {
  readonly #world: World;
  readonly #now: () => number;
  readonly #today: () => Date;
  #entries: Entry[] = [];
  #lastId = 0;

  constructor(world: World, now: () => number, today: () => Date) {
    this.#world = world;
    this.#now = now;
    this.#today = today;
  }

  /** Applies all of these changes now, or none. */
  apply(changes: readonly Change[]): void {
    this.catchUp();
    this.#make(changes);
  }

  schedule(due: Due, change: readonly Change[]): number {
    for (const one of change) prepared(this.#world, one, this.#today);
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
    const isDue = ({ dueMs, callsLeft }: Entry): boolean => dueMs <= now || callsLeft <= 0;
    // Changes that waited for calls are due with this call, so after all that were due before it.
    const due = this.#entries.filter(isDue).sort((a, b) => (a.dueMs === b.dueMs ? 0 : a.dueMs - b.dueMs));
    this.#entries = this.#entries.filter((entry) => !isDue(entry));
    for (const { change } of due) this.#make(change);
  }

  /** Call after each answer. */
  answered(): void {
    for (const entry of this.#entries) entry.callsLeft -= 1;
    this.catchUp();
  }

  pending(): readonly Scheduled[] {
    this.catchUp();
    const now = this.#now();
    return this.#entries.map(({ id, change, dueMs, callsLeft }) => ({
      id,
      change,
      due: dueMs === Infinity ? { afterCalls: callsLeft } : { afterMs: dueMs - now },
    }));
  }

  clear(): void {
    this.catchUp();
    this.#entries = [];
  }

  #make(changes: readonly Change[]): void {
    const ready = changes.map((change) => prepared(this.#world, change, this.#today));
    for (const make of ready) make();
  }
}
