/** The current state of resellers and names, which the API reads and the portal changes. */
import type { Config, DomainConfig, ResellerConfig } from "./config.js";
import {
  type Action,
  type Availability,
  type Balance,
  type DomainRecord,
  Failure,
  PortalError,
  type Quote,
  type TierStanding,
} from "./facts.js";
import { looksTaken, tldOf } from "./names.js";
import { type PriceKey, Prices } from "./prices.js";

const LIST_CAP = 100;

export interface Order {
  readonly domain: string;
  readonly action: Action;
  readonly years: number;
}

export interface Reseller extends Omit<ResellerConfig, "credentials" | "domains" | "generate"> {
  readonly domains: Map<string, DomainRecord>;
  balance: number;
  readonly overrides: Map<string, number>;
}

function midnight(date: string): Date {
  return new Date(`${date}T00:00:00Z`);
}

/** An anniversary of `registered`: the first one after `today` for a live name, otherwise the last one before it. */
function anniversary(registered: Date, today: Date, ahead: boolean): Date {
  const inYear = (years: number): Date =>
    new Date(
      Date.UTC(registered.getUTCFullYear() + years, registered.getUTCMonth(), registered.getUTCDate()),
    );
  let years = 1;
  while (inYear(years) <= today) years += 1;
  return inYear(ahead ? years : Math.max(years - 1, 1));
}

function record(domain: DomainConfig, nameservers: readonly string[], today: Date): DomainRecord {
  const registeredAt = midnight(domain.registered);
  const ahead = domain.status !== "expired" && domain.status !== "redemption";
  return {
    domain: domain.name,
    status: domain.status,
    registeredAt,
    expiresAt:
      domain.expires === undefined ? anniversary(registeredAt, today, ahead) : midnight(domain.expires),
    autoRenew: domain.autoRenew,
    nameservers: domain.nameservers ?? nameservers,
  };
}

function generated({ generate }: ResellerConfig): DomainConfig[] {
  if (generate === undefined) return [];
  const { count, name, registered } = generate;
  const width = String(count).length;
  return Array.from({ length: count }, (_, index) => ({
    name: name.replace("{n}", String(index + 1).padStart(width, "0")),
    registered,
    status: "active" as const,
    autoRenew: index % 2 === 0,
  }));
}

export class World {
  readonly prices: Prices;
  readonly #config: Config;
  readonly #resellers: ReadonlyMap<string, Reseller>;
  readonly #taken: Map<string, boolean>;

  constructor(config: Config, today: Date) {
    this.#config = config;
    this.prices = new Prices(config);
    this.#resellers = new Map(
      config.resellers.map((one) => {
        const records = [...one.domains, ...generated(one)].map((own) =>
          record(own, config.nameservers, today),
        );
        const domains = new Map(records.map((own) => [own.domain, own]));
        return [one.id, { ...one, domains, overrides: new Map() }];
      }),
    );
    const owned = [...this.#resellers.values()].flatMap(({ domains }) => Array.from(domains.keys()));
    this.#taken = new Map([
      ...[...config.names.available, ...config.names.premium.keys()].map((name) => [name, false] as const),
      ...[...config.names.taken, ...owned].map((name) => [name, true] as const),
    ]);
  }

  reseller(id: string): Reseller {
    const reseller = this.#resellers.get(id);
    if (reseller === undefined) throw new PortalError(404, `there is no reseller ${id}`);
    return reseller;
  }

  hasTier(name: string): boolean {
    return this.#config.tiers.some((tier) => tier.name === name);
  }

  setTaken(name: string, taken: boolean): void {
    this.#taken.set(name, taken);
  }

  /** Why the reseller can't place this order; null if it can. */
  problemOf(reseller: Reseller, { domain, action }: Order): string | null {
    const isOwn = reseller.domains.has(domain);
    const isTaken = isOwn || (this.#taken.get(domain) ?? looksTaken(domain, this.#config.names.takenPercent));
    if (action === "registration") return isTaken ? `${domain} is taken` : null;
    if (action === "transfer" && isOwn) return `${domain} is already managed by ${reseller.id}`;
    if (action === "transfer") return isTaken ? null : `${domain} isn't registered`;
    return isOwn ? null : `${domain} isn't managed by ${reseller.id}`;
  }

  /** What the registry does with an order: the name's record is new or has a later expiry, and the reseller pays for it. */
  order(reseller: Reseller, { domain, action, years }: Order, today: Date): void {
    const tld = tldOf(domain, this.prices.tlds(reseller), this.#config.unpricedTlds);
    const { cents } =
      action === "registration"
        ? this.prices.registration(reseller, domain, tld, years)
        : this.prices.quote(reseller, { tld, action, years });
    const before = reseller.domains.get(domain);
    const registeredAt = before?.registeredAt ?? new Date(today);
    // A name that is transferred was registered a year ago by somebody else.
    if (action === "transfer") registeredAt.setUTCFullYear(registeredAt.getUTCFullYear() - 1);
    const expiresAt = new Date(before?.expiresAt ?? today);
    expiresAt.setUTCFullYear(expiresAt.getUTCFullYear() + years);
    const nameservers = before?.nameservers ?? this.#config.nameservers;
    const autoRenew = before?.autoRenew ?? true;
    for (const other of this.#resellers.values()) other.domains.delete(domain);
    reseller.domains.set(domain, {
      domain,
      status: "active",
      registeredAt,
      expiresAt,
      autoRenew,
      nameservers,
    });
    this.setTaken(domain, true);
    reseller.balance -= cents;
  }

  check(reseller: Reseller, name: string, years: number): Availability {
    const tld = tldOf(name, this.prices.tlds(reseller), this.#config.unpricedTlds);
    const taken = this.#taken.get(name) ?? looksTaken(name, this.#config.names.takenPercent);
    const isPriced = !taken || this.prices.offers(reseller, { tld, action: "registration", years });
    const price = isPriced ? this.prices.registration(reseller, name, tld, years) : null;
    return { domain: name, years, available: !taken, price };
  }

  quote(reseller: Reseller, key: PriceKey): Quote {
    return { ...key, price: this.prices.quote(reseller, key) };
  }

  list(reseller: Reseller): DomainRecord[] {
    return [...reseller.domains.values()].slice(0, LIST_CAP);
  }

  domain(reseller: Reseller, name: string): DomainRecord {
    const found = reseller.domains.get(name);
    if (found === undefined)
      throw new Failure("domain_not_found", "No such domain is managed by this account");
    return found;
  }

  balance(reseller: Reseller): Balance {
    const { currency } = reseller;
    return {
      accountNumber: reseller.accountNumber,
      balance: { cents: reseller.balance, currency },
      creditLimit: { cents: reseller.creditLimit, currency },
      activeDomains: this.#activeDomains(reseller),
    };
  }

  tier(reseller: Reseller): TierStanding {
    const position = this.#config.tiers.findIndex((tier) => tier.name === reseller.tier);
    const next = this.#config.tiers[position + 1];
    if (next === undefined) return { current: reseller.tier, next: null, domainsNeeded: 0 };
    return {
      current: reseller.tier,
      next: next.name,
      domainsNeeded: Math.max(next.fromDomains - this.#activeDomains(reseller), 0),
    };
  }

  #activeDomains(reseller: Reseller): number {
    return [...reseller.domains.values()].filter(({ status }) => status === "active").length;
  }
}
