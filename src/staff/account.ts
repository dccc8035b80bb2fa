/**
 * The reseller's account: domains, balance and tier, each with its age and its source. A change of tier is noticed within the tier's freshness, no
 * matter who asked for it.
 */
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Notebook } from "../facts/notebook.js";
import type { Known } from "../facts/page.js";
import type { Log } from "../logger.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import type { Balance, DomainList, DomainRecord, Tier } from "../upstream/contract.js";
import type { Upstream } from "../upstream/operations.js";

export interface Account {
  /** The domain list. `spend` is called before an upstream call, and can throw to prevent it. */
  list(ask: Ask, spend?: () => void): Promise<Known<DomainList>>;
  /** The domain list, and whether it is known or suspected to be cut off. */
  domains(ask: Ask): Promise<Known<DomainList> & { readonly truncated: boolean }>;
  /** The name's own record; null: not managed by the reseller. `spend` as above. */
  domain(ask: Ask, name: DomainName, spend?: () => void): Promise<Known<DomainRecord | null>>;
  /** What the list says about a name: its record, null if it isn't in the account, or that only its own record shows it. */
  listed(list: Known<DomainList>, ascii: string): Known<DomainRecord> | "ask" | null;
  /** The name's own record, if memory knows it. */
  remembered(ascii: string): Known<DomainRecord | null> | undefined;
  balance(ask: Ask): Promise<Known<Balance>>;
  tier(ask: Ask): Promise<Known<Tier>>;
  /** Makes the call even if it has just failed, and learns from the answer. */
  tryTier(ask: Ask): Promise<void>;
  /** When the upstream listed the name as managed by the reseller; null if it didn't, or if the list is past its freshness. Makes no call. */
  ownedSinceAt(ascii: string): number | null;
  /**
   * What memory knows of a name in the account: its record, null if the reseller doesn't manage it, or undefined where the list has gaps and its
   * own record isn't known.
   */
  managed(ascii: string): Known<DomainRecord | null> | undefined;
  /** The list and the balance, if memory knows them. */
  known(): { readonly domains: DomainList | undefined; readonly balance: Balance | undefined };
  /** Starts refreshing the domain list and the tier in the background; returns a function that stops it. */
  keepWarm(): () => void;
}

interface AccountSettings {
  readonly upstream: Upstream;
  readonly notebook: Pick<Notebook, "domains" | "domain" | "balance" | "tier" | "changes">;
  /** How long each is answered from memory, in ms. */
  readonly factsFreshMs: number;
  readonly tierFreshMs: number;
  /** Whether customers see their own domains. */
  readonly hasCustomers: boolean;
  /** Whether the balance is worth a call, whose number of domains says whether the list is complete. */
  readonly wantsBalance: () => boolean;
  /** Called with each name whose record says that the list's prices aren't its own. */
  readonly onOwnPrices: (ascii: string, askedAt: number) => void;
  /** How long until the quota has room for background work, in ms. */
  readonly backgroundRoomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

const LIST_CAP = 100;
/** On startup the price list goes first, because visitors need it. */
const TIER_AFTER_MS = 5_000;
/** The keys of pages with a single entry. */
const [LIST, BALANCE, TIER] = ["list", "balance", "tier"];
const MIN_PAUSE_MS = 1_000;
/** How soon it is noticed that a fact is wanted after all. */
const UNWANTED_MS = 60_000;

export function createAccount(settings: AccountSettings): Account {
  const { upstream, notebook, backgroundRoomInMs, clock, log } = settings;
  let noticedAt = -Infinity;

  function noteRecords(records: readonly DomainRecord[], askedAt: number): void {
    for (const record of records) if (record.hasOwnPrices) settings.onOwnPrices(record.domain, askedAt);
  }

  function list(ask: Ask, spend = (): void => {}): Promise<Known<DomainList>> {
    return notebook.domains.get(LIST, ask, async (shared) => {
      spend();
      const answered = await upstream.domains(shared);
      noteRecords(answered.value.records, answered.askedAt);
      return answered;
    });
  }

  function domain(ask: Ask, name: DomainName, spend = (): void => {}): Promise<Known<DomainRecord | null>> {
    return notebook.domain.get(name.ascii, ask, async (shared) => {
      spend();
      const answered = await upstream.domain(shared, name);
      if (answered.value !== null) noteRecords([answered.value], answered.askedAt);
      return answered;
    });
  }

  function balance(ask: Ask): Promise<Known<Balance>> {
    return notebook.balance.get(BALANCE, ask, (shared) => upstream.balance(shared));
  }

  /** Reports the tier if it is another answer than the last reported one. */
  function noticed(known: Known<Tier>): Known<Tier> {
    if (known.askedAt > noticedAt) {
      noticedAt = known.askedAt;
      notebook.changes.noteTier(known.value.currentTier);
    }
    return known;
  }

  async function tier(ask: Ask): Promise<Known<Tier>> {
    return noticed(await notebook.tier.get(TIER, ask, (shared) => upstream.tier(shared)));
  }

  function knownTier(): Known<Tier> | undefined {
    const known = notebook.tier.peek(TIER);
    return known && noticed(known);
  }

  /** Refreshes one fact once per freshness period, unless it has been refreshed elsewhere in the meantime. */
  function keepKnown(
    what: string,
    freshMs: number,
    peek: () => Known<unknown> | undefined,
    renew: (ask: Ask) => Promise<unknown>,
    firstInMs = 0,
    isWanted = (): boolean => true,
  ): Background {
    const round = async (ask: Ask): Promise<number | "no room"> => {
      const known = peek();
      if (known?.source === "hit")
        return Math.max(MIN_PAUSE_MS, freshMs - (clock.monotonic() - known.askedAt));
      if (!isWanted()) return UNWANTED_MS;
      if (backgroundRoomInMs() > 0) return "no room";
      await renew(ask).catch(() => {
        if (!ask.signal.aborted) log.debug("account.refresh.failed", { what });
      });
      return freshMs;
    };
    return inBackground({ client: what, round, firstInMs, backgroundRoomInMs, clock });
  }

  /** Whether the list may lack domains, as far as memory shows. */
  function mayLack({ records, unreadable }: DomainList): boolean {
    const active = notebook.balance.peek(BALANCE)?.value.activeDomains ?? Infinity;
    return unreadable.length > 0 || active > records.length;
  }

  function listed(known: Known<DomainList>, ascii: string): Known<DomainRecord> | "ask" | null {
    const record = known.value.records.find(({ domain: name }) => name === ascii);
    // Some upstreams list only names.
    if (record !== undefined) return record.expiresAt === null ? "ask" : { ...known, value: record };
    return mayLack(known.value) ? "ask" : null;
  }

  return {
    list,
    async domains(ask) {
      const known = await list(ask);
      // While the upstream doesn't answer, a second call would only add to the wait.
      const count =
        known.source === "stale" ? notebook.balance.peek(BALANCE) : await balance(ask).catch(() => undefined);
      const length = known.value.records.length + known.value.unreadable.length;
      // If the count is unavailable, a list at the cap may be incomplete.
      const truncated = count === undefined ? length >= LIST_CAP : count.value.activeDomains > length;
      return { ...known, truncated };
    },
    domain,
    listed,
    remembered: (ascii) => notebook.domain.peek(ascii),
    balance,
    tier,
    async tryTier(ask) {
      notebook.tier.learn(TIER, await upstream.tier(ask));
      knownTier();
    },
    ownedSinceAt(ascii) {
      const known = notebook.domains.peek(LIST);
      if (known?.source !== "hit") return null;
      const { records, unreadable } = known.value;
      const isListed =
        records.some(({ domain: name }) => name === ascii) ||
        unreadable.some(({ names }) => names.includes(ascii));
      return isListed ? known.asOfMs : null;
    },
    managed(ascii) {
      const list = notebook.domains.peek(LIST);
      const said = list && listed(list, ascii);
      const own = notebook.domain.peek(ascii);
      // A full list may be cut off, even if fewer domains count as active.
      const isFull = (list?.value.records.length ?? 0) >= LIST_CAP;
      if (list === undefined || said === "ask" || (said === null && isFull)) return own;
      return own !== undefined && own.askedAt > list.askedAt ? own : (said ?? { ...list, value: null });
    },
    known: () => ({
      domains: notebook.domains.peek(LIST)?.value,
      balance: notebook.balance.peek(BALANCE)?.value,
    }),
    keepWarm() {
      const loops = [
        keepKnown(
          "account",
          settings.factsFreshMs,
          () => notebook.balance.peek(BALANCE),
          balance,
          settings.hasCustomers ? 0 : TIER_AFTER_MS,
          settings.wantsBalance,
        ),
        keepKnown("account", settings.factsFreshMs, () => notebook.domains.peek(LIST), list),
        keepKnown("tier", settings.tierFreshMs, knownTier, tier, TIER_AFTER_MS),
      ];
      return () => {
        for (const { stop } of loops) stop();
      };
    },
  };
}
