/** Changes of the world while the API runs, immediate or scheduled. An invalid change is rejected when it is submitted. */
import { PortalError } from "./portal-error.js";
import type { PriceKey } from "./prices.js";
import { type Due, Schedule, type Scheduled } from "./schedule.js";
import type { Reseller, World } from "./world.js";

interface SetTier {
  readonly reseller: string;
  readonly tier: string;
}

export interface SetPrice extends PriceKey {
  readonly reseller: string;
  readonly amountCents: number | null;
}

interface SetTaken {
  readonly domain: string;
  readonly taken: boolean;
}

interface SetPremium {
  readonly domain: string;
  /** In cents by currency; null for an ordinary name. */
  readonly firstYear: Readonly<Record<string, number>> | null;
}

export type Change =
  | { readonly tier: SetTier }
  | { readonly price: SetPrice }
  | { readonly taken: SetTaken }
  | { readonly premium: SetPremium };

export function resellerOf(world: World, id: string): Reseller {
  const reseller = world.reseller(id);
  if (reseller === undefined) throw new PortalError(404, `there is no reseller ${id}`);
  return reseller;
}

/** A validated change. */
function prepared(world: World, change: Change): () => void {
  if ("taken" in change) {
    const { domain, taken } = change.taken;
    return () => world.setTaken(domain, taken);
  }
  if ("premium" in change) {
    const { domain, firstYear } = change.premium;
    const prices = firstYear && new Map(Object.entries(firstYear));
    return () => world.setPremium(domain, prices);
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
  if (!world.sells(reseller, key.tld)) throw new PortalError(422, `${key.tld} is not sold to ${id}`);
  return () => world.setPrice(reseller, key, amountCents);
}

/** The changes of one world, in order. Due changes are applied before anything else. */
export class Timeline {
  readonly #world: World;
  readonly #schedule: Schedule<readonly Change[]>;

  constructor(world: World, now: () => number) {
    this.#world = world;
    this.#schedule = new Schedule(now, (changes) => this.#make(changes));
  }

  /** Applies all of these changes now, or none. */
  apply(changes: readonly Change[]): void {
    this.#schedule.catchUp();
    this.#make(changes);
  }

  schedule(due: Due, changes: readonly Change[]): number {
    for (const change of changes) prepared(this.#world, change);
    return this.#schedule.add(due, changes);
  }

  /** Applies the changes that are due. */
  catchUp(): void {
    this.#schedule.catchUp();
  }

  /** Call after each answer. */
  answered(): void {
    this.#schedule.answered();
  }

  pending(): readonly Scheduled<readonly Change[]>[] {
    this.#schedule.catchUp();
    return this.#schedule.pending();
  }

  clear(): void {
    this.#schedule.catchUp();
    this.#schedule.clear();
  }

  #make(changes: readonly Change[]): void {
    const ready = changes.map((change) => prepared(this.#world, change));
    for (const make of ready) make();
  }
}
