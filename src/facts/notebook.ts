/** The notebook: what the upstream has said, in pages by kind, and which of its prices can be trusted. */
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { sameWholesale, type Wholesale } from "../money.js";
import type { Balance, Check, Combination, DomainList, DomainRecord, Tier } from "../upstream/contract.js";
import { createPage, type Freshness, type Page, type PageStats } from "./page.js";
import { createPriceChanges, type PriceChanges } from "./price-changes.js";

/** A price as it was observed. Times are stamps. */
export interface Observed {
  readonly wholesale: Wholesale;
  readonly askedAt: number;
  readonly answeredAt: number;
  /** The same price was observed every time since then. */
  readonly sameSince: number;
  /** It was asked since prices may last have changed. */
  readonly isCurrent: boolean;
}

/** A quote, and the price that it replaced. */
export interface Quote extends Combination {
  readonly wholesale: Wholesale;
  readonly changed?: {
    readonly from: Wholesale;
    /** When the new price first arrived; wall clock, ms. */
    readonly atMs: number;
  };
}

/** The kinds of facts whose figures staff see. */
type PageKind = "availability" | "prices" | "tier" | "account";

export interface Notebook {
  /** By name and term. */
  readonly checks: Page<Check>;
  /** By combination. */
  readonly quotes: Page<Quote>;
  readonly tier: Page<Tier>;
  readonly domains: Page<DomainList>;
  readonly domain: Page<DomainRecord | null>;
  readonly balance: Page<Balance>;
  readonly changes: PriceChanges;
  stats(): Readonly<Record<PageKind, PageStats>>;
  /** Clears what is about the reseller, the tier included; returns how many entries there were. */
  purgeAccount(): number;
}

interface PageLimits extends Freshness {
  readonly entries: number;
  readonly failureMs: number;
}

/** How many entries of each kind are kept, and how long they are fresh and usable. */
export interface NotebookLimits extends Readonly<Record<"prices" | "tier" | "account", PageLimits>> {
  readonly availability: Readonly<Record<"available" | "taken", Freshness>> &
    Omit<PageLimits, keyof Freshness>;
}

interface NotebookSettings {
  readonly limits: NotebookLimits;
  readonly clock: Clock;
  readonly stamp: () => number;
  /** Called whenever something that answers depend on was written or cleared. */
  readonly onChange: () => void;
  readonly log: Log;
}

export function createNotebook({ limits, ...settings }: NotebookSettings): Notebook {
  const changes = createPriceChanges(settings);
  changes.onChange(settings.onChange);
  const account = <V extends {} | null>(): Page<V> =>
    createPage<V>({ ...limits.account, freshness: () => limits.account, ...settings });

  const checks = createPage<Check>({
    ...limits.availability,
    freshness: ({ status }) => limits.availability[status],
    continues: ({ value: before }, { wholesale }) =>
      before.wholesale !== undefined && wholesale !== undefined && sameWholesale(before.wholesale, wholesale),
    ...settings,
  });
  const quotes = createPage<Quote>({
    ...limits.prices,
    freshness: () => limits.prices,
    // A price that changes and returns must not look as if it had never changed.
    continues: (before, { wholesale }) =>
      sameWholesale(before.value.wholesale, wholesale) && !changes.isOutdated(before),
    onWrite(entry, before) {
      if (before === undefined || sameWholesale(before.value.wholesale, entry.value.wholesale)) return;
      const { tld, action, years, wholesale } = entry.value;
      settings.log.warn("prices.changed", { tld, action, years });
      changes.noteQuote(before, entry, { tld, action, years, from: before.value.wholesale, to: wholesale });
    },
    ...settings,
  });
  const tier = createPage<Tier>({ ...limits.tier, freshness: () => limits.tier, ...settings });
  const [domains, domain, balance] = [
    account<DomainList>(),
    account<DomainRecord | null>(),
    account<Balance>(),
  ];

  return {
    checks,
    quotes,
    tier,
    domains,
    domain,
    balance,
    changes,
    stats: () => ({
      availability: checks.stats(),
      prices: quotes.stats(),
      tier: tier.stats(),
      account: sum(
        [domains, domain, balance].map((page) => page.stats()),
        limits.account.entries,
      ),
    }),
    purgeAccount: () => [tier, domains, domain, balance].reduce((total, page) => total + page.purge(), 0),
  };
}

/** The figures of several pages as those of one. */
function sum(pages: readonly PageStats[], bound: number): PageStats {
  const total = (of: (stats: PageStats) => number): number => pages.reduce((all, one) => all + of(one), 0);
  return {
    entries: total(({ entries }) => entries),
    bound,
    inflight: total(({ inflight }) => inflight),
    counts: {
      hit: total(({ counts }) => counts.hit),
      inflight: total(({ counts }) => counts.inflight),
      miss: total(({ counts }) => counts.miss),
      stale: total(({ counts }) => counts.stale),
      failed: total(({ counts }) => counts.failed),
    },
  };
}
