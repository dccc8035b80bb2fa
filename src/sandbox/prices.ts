/** Wholesale prices in whole cents: the amount for the whole term by TLD and action, minus the tier's discount, unless overridden. */
import type { Config, PriceTable } from "./config.js";
import { type Action, Failure, type Money } from "./facts.js";

export interface PriceKey {
  readonly tld: string;
  readonly action: Action;
  readonly years: number;
}

interface PricedAccount {
  readonly currency: string;
  readonly discountPercent: number;
  readonly overrides: ReadonlyMap<string, number>;
}

export function overrideKey({ tld, action, years }: PriceKey): string {
  return `${tld} ${action} ${years}`;
}

/** Rounded half up to the cent. */
function discounted(cents: number, percent: number): number {
  return Math.floor((cents * (100 - percent) + 50) / 100);
}

export class Prices {
  readonly #lists: ReadonlyMap<string, PriceTable>;
  readonly #premium: Map<string, ReadonlyMap<string, number>>;

  constructor(config: Config) {
    this.#lists = config.priceLists;
    this.#premium = new Map(config.names.premium);
  }

  setPremium(name: string, firstYear: ReadonlyMap<string, number> | null): void {
    if (firstYear === null) this.#premium.delete(name);
    else this.#premium.set(name, firstYear);
  }

  quote(account: PricedAccount, key: PriceKey): Money {
    return { cents: this.#effective(account, key), currency: account.currency };
  }

  /** A premium name has its own price for the first year, the same in every tier; further years cost the normal price. */
  registration(account: PricedAccount, name: string, tld: string, years: number): Money {
    const whole = this.#effective(account, { tld, action: "registration", years });
    const premium = this.#premium.get(name)?.get(account.currency);
    if (premium === undefined) return { cents: whole, currency: account.currency };
    const firstYear = this.#effective(account, { tld, action: "registration", years: 1 });
    return { cents: premium + whole - firstYear, currency: account.currency };
  }

  offers(account: PricedAccount, { tld, action, years }: PriceKey): boolean {
    return this.#lists.get(account.currency)?.get(tld)?.[action][years - 1] !== undefined;
  }

  #effective(account: PricedAccount, key: PriceKey): number {
    const override = account.overrides.get(overrideKey(key));
    if (override !== undefined) return override;
    const table = this.#lists.get(account.currency)?.get(key.tld);
    if (table === undefined) throw new Failure("tld_not_supported", "tld: this TLD is not sold");
    const amount = table[key.action][key.years - 1];
    if (amount === undefined) {
      throw new Failure(
        "term_not_offered",
        `years: ${key.action} under ${key.tld} is not offered for ${key.years}`,
      );
    }
    return discounted(amount, account.discountPercent);
  }
}
