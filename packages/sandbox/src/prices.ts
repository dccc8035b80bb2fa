/** Wholesale prices in whole cents: the amount for the whole term by TLD and action, minus the tier's discount, unless overridden. */
import type { Config } from "./config.js";
import { type Action, Failure, type Money } from "./facts.js";

export interface PriceKey {
  readonly tld: string;
  readonly action: Action;
  readonly years: number;
}

/** What decides the prices of a reseller. */
interface Account {
  readonly currency: string;
  readonly tier: string;
  readonly overrides: Map<string, number>;
}

function overrideKey({ tld, action, years }: PriceKey): string {
  return `${tld} ${action} ${years}`;
}

/** Rounded half up to the cent. */
function discounted(cents: number, percent: number): number {
  return Math.floor((cents * (100 - percent) + 50) / 100);
}

export class Prices {
  readonly #config: Config;
  readonly #premium: Map<string, ReadonlyMap<string, number>>;

  constructor(config: Config) {
    this.#config = config;
    this.#premium = new Map(config.names.premium);
  }

  /** The TLDs with a price in the account's currency. */
  tlds({ currency }: Account): string[] {
    return [...(this.#config.priceLists.get(currency)?.keys() ?? [])];
  }

  /** Null restores the tier's price. */
  override({ overrides }: Account, key: PriceKey, cents: number | null): void {
    if (cents === null) overrides.delete(overrideKey(key));
    else overrides.set(overrideKey(key), cents);
  }

  /** The price of the first year by currency; null makes the name ordinary. */
  setPremium(name: string, firstYear: ReadonlyMap<string, number> | null): void {
    if (firstYear === null) this.#premium.delete(name);
    else this.#premium.set(name, firstYear);
  }

  quote(account: Account, key: PriceKey): Money {
    return { cents: this.#effective(account, key), currency: account.currency };
  }

  /** A premium name has its own price for the first year, the same in every tier; further years cost the normal price. */
  registration(account: Account, name: string, tld: string, years: number): Money {
    const { currency } = account;
    const whole = this.#effective(account, { tld, action: "registration", years });
    const premium = this.#premium.get(name)?.get(currency);
    if (premium === undefined) return { cents: whole, currency };
    const firstYear = this.#effective(account, { tld, action: "registration", years: 1 });
    return { cents: premium + whole - firstYear, currency };
  }

  /** Whether the price list has the term. */
  offers({ currency }: Account, { tld, action, years }: PriceKey): boolean {
    return this.#config.priceLists.get(currency)?.get(tld)?.[action][years - 1] !== undefined;
  }

  #effective({ currency, tier, overrides }: Account, key: PriceKey): number {
    const override = overrides.get(overrideKey(key));
    if (override !== undefined) return override;
    const { tld, action, years } = key;
    const table = this.#config.priceLists.get(currency)?.get(tld);
    if (table === undefined) throw new Failure("tld_not_supported", "tld: this TLD is not sold");
    const amount = table[action][years - 1];
    if (amount === undefined) {
      throw new Failure("term_not_offered", `years: ${action} under ${tld} is not offered for ${years}`);
    }
    const discount = this.#config.tiers.find(({ name }) => name === tier)?.discountPercent ?? 0;
    return discounted(amount, discount);
  }
}
