/**
 * Account data for staff, and the domains of a customer, each with its age and its source. A change of tier is noticed within the tier's
 * freshness, no matter who asked for it.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Flight } from "../cache/single-flight.js";
import { type Clock, justAfter, pause } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected } from "../errors.js";
import type { Log } from "../logger.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import { SharedAsk } from "../quota/shared-ask.js";
import type { Answered } from "../upstream/call.js";
import type { Balance, DomainList, DomainRecord, Tier } from "../upstream/contract.js";
import type { Upstream } from "../upstream/operations.js";
import type { AccountFact } from "./account-facts.js";

export interface Account {
  domains(ask: Ask): Promise<Known<DomainList> & { readonly truncated: boolean }>;
  /** Null: not managed by the reseller. */
  domain(ask: Ask, name: DomainName): Promise<Known<DomainRecord | null>>;
  /** The record, from the domain list if it contains enough; null if the reseller doesn't manage the name. `spend` is called before any upstream call, and can throw to prevent it. */
  ofCustomer(ask: Ask, name: DomainName, spend: () => void): Promise<CustomerDomain | null>;
  /**
   * The records of those names that the reseller manages, in the given order. Details that the list lacks are loaded in spare quota: a name
   * whose record isn't known within a second is unknown, and a repetition finds more. `spend` as above.
   */
  allOfCustomer(
    ask: Ask,
    names: readonly DomainName[],
    spend: () => void,
  ): Promise<(CustomerDomain | UnknownDomain)[]>;
  balance(ask: Ask): Promise<Known<Balance>>;
  tier(ask: Ask): Promise<Known<Tier>>;
  /** Makes the call even if it has just failed, and learns from the answer. */
  tryTier(ask: Ask): Promise<void>;
  /** When the upstream listed the name as managed by the reseller; null if it didn't, or if the list is past its freshness. Makes no call. */
  ownedSinceMs(ascii: string): number | null;
  /** Starts refreshing the domain list and the tier in the background; returns a function that stops it. */
  keepWarm(): () => void;
}

export type CustomerDomain = Known<DomainRecord> & { readonly name: DomainName };

/** A domain that hasn't been loaded yet. */
export interface UnknownDomain {
  readonly name: DomainName;
  readonly retryAfterMs: number;
}

interface AccountSettings {
  readonly upstream: Upstream;
  readonly facts: Pool<AccountFact, Ask>;
  readonly tiers: Pool<Tier, Ask>;
  /** Whether customers see their own domains, for which it matters whether the list is complete. */
  readonly hasCustomers: boolean;
  /** How long each is answered from memory, in ms. */
  readonly factsFreshMs: number;
  readonly tierFreshMs: number;
  /** Called with each name that its record says is premium. */
  readonly onPremium: (
    ascii: string,
    times: { readonly askedMs: number; readonly answeredMs: number },
  ) => void;
  /** Called with each newer answer about the tier. */
  readonly onTier: (tier: string, askedMs: number) => void;
  /** The stamp since which the tier must be requested before saved prices can be trusted; null if none wait for it. */
  readonly awaitsTierSinceMs: () => number | null;
  /** How long until the quota has room for background work, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

const LIST_CAP = 100;
/** How many names that the list lacks are requested at the same time. */
const AT_A_TIME = 5;
/** How long a customer waits for them. */
const AT_ONCE_MS = 1_000;
/** About how long a name waits for each one before it, within the quota. */
const EACH_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/** The loop that loads them has nothing to do until the next one is wanted. */
const IDLE_MS = 3_600_000;
/** On startup the price list goes first, because visitors need it. */
const TIER_AFTER_MS = 5_000;
/** How soon an urgent fact that couldn't be refreshed is tried again. */
const URGENT_AGAIN_MS = 5_000;
const MIN_PAUSE_MS = 1_000;

export function createAccount(settings: AccountSettings): Account {
  const { upstream, facts, tiers, roomInMs, clock, log } = settings;
  let tierNotedMs = -Infinity;
  let owned: { readonly list: DomainList | null; readonly names: ReadonlySet<string> } = {
    list: null,
    names: new Set(),
  };
  /** Domains to load in spare quota, and who waits for them. */
  const wanted = new Map<string, { readonly name: DomainName; readonly waiting: (() => void)[] }>();
  let loading: Background | null = null;

  /** `read` returns undefined for a fact of another kind. `spend` is called before an upstream call, and can throw to prevent it. */
  async function fact<T>(
    ask: Ask,
    key: string,
    load: (ask: Ask) => Promise<Answered<AccountFact>>,
    read: (fact: AccountFact) => T | undefined,
    spend = (): void => {},
  ): Promise<Known<T>> {
    const known = await facts.get(key, ask, (flight) => {
      spend();
      return load(new SharedAsk(flight, ask));
    });
    const value = read(known.value);
    if (value === undefined) throw new Error("a key of the account pool holds another kind of fact");
    return { ...known, value };
  }

  function list(ask: Ask, spend?: () => void): Promise<Known<DomainList>> {
    const load = async (shared: Ask) => {
      const answered = await upstream.domains(shared);
      for (const record of answered.value.records)
        if (record.premium) settings.onPremium(record.domain, answered);
      return as(answered, (found) => ({ kind: "domains" as const, list: found }));
    };
    return fact(ask, "domains", load, (one) => (one.kind === "domains" ? one.list : undefined), spend);
  }

  function domain(ask: Ask, name: DomainName, spend?: () => void): Promise<Known<DomainRecord | null>> {
    const load = async (shared: Ask) => {
      const answered = await upstream.domain(shared, name);
      if (answered.value?.premium) settings.onPremium(name.ascii, answered);
      return as(answered, (record) => ({ kind: "domain" as const, record }));
    };
    const read = (one: AccountFact) => (one.kind === "domain" ? one.record : undefined);
    return fact(ask, `domain ${name.ascii}`, load, read, spend);
  }

  function balance(ask: Ask): Promise<Known<Balance>> {
    const load = async (shared: Ask) =>
      as(await upstream.balance(shared), (value) => ({ kind: "balance" as const, balance: value }));
    return fact(ask, "balance", load, (one) => (one.kind === "balance" ? one.balance : undefined));
  }

  /** Reports the tier if it was requested after the last reported one was answered. */
  function noticed(known: Known<Tier>): Known<Tier> {
    if (known.askedMs >= tierNotedMs) {
      tierNotedMs = known.answeredMs;
      settings.onTier(known.value.currentTier, known.askedMs);
    }
    return known;
  }

  async function tier(ask: Ask, askedSinceMs = -Infinity): Promise<Known<Tier>> {
    const load = (flight: Flight<Ask>) => upstream.tier(new SharedAsk(flight, ask));
    return noticed(await tiers.get("tier", ask, load, { askedSinceMs }));
  }

  const awaitsTier = (): boolean => settings.awaitsTierSinceMs() !== null;

  function renewTier(ask: Ask): Promise<Known<Tier>> {
    const sinceMs = settings.awaitsTierSinceMs();
    return tier(ask, sinceMs === null ? undefined : justAfter(sinceMs));
  }

  function knownTier(): Known<Tier> | undefined {
    const known = tiers.peek("tier");
    return known && noticed(known);
  }

  /** Refreshes one fact once per freshness period, unless it has been refreshed elsewhere in the meantime. */
  function keepKnown(
    what: string,
    freshMs: number,
    peek: () => Known<unknown> | undefined,
    renew: (ask: Ask) => Promise<unknown>,
    { firstInMs = 0, isUrgent }: { readonly firstInMs?: number; readonly isUrgent?: () => boolean } = {},
  ): Background {
    const round = async (ask: Ask): Promise<number | "no room"> => {
      const known = peek();
      const urgent = isUrgent?.() === true;
      if (known?.source === "hit" && !urgent)
        return Math.max(MIN_PAUSE_MS, freshMs - (clock.monotonic() - known.askedMs));
      if (roomInMs() > 0 && !urgent) return "no room";
      await renew(ask).catch(() => {
        if (!ask.signal.aborted) log.debug("account.refresh.failed", { what });
      });
      return isUrgent?.() === true ? URGENT_AGAIN_MS : freshMs;
    };
    return inBackground({ client: what, round, firstInMs, roomInMs, clock });
  }

  /** The balance with its number of domains; undefined if it can't be had. */
  async function counted(ask: Ask): Promise<AccountFact | undefined> {
    return balance(ask).then(
      ({ value }) => ({ kind: "balance" as const, balance: value }),
      () => undefined,
    );
  }

  /** Refreshes the number of domains before the list, so that customers' names that the list lacks are recognized. */
  async function renewList(ask: Ask): Promise<void> {
    if (settings.hasCustomers)
      await balance(ask).catch((error: unknown) => {
        if (!isExpected(error)) throw error;
      });
    await list(ask);
  }

  /** Whether the list may lack domains, as far as memory shows. */
  function mayLack({ records, unreadable }: DomainList): boolean {
    const count = facts.peek("balance")?.value;
    const active = count?.kind === "balance" ? count.balance.activeDomains : Infinity;
    return unreadable.length > 0 || active > records.length;
  }

  /** What the list says about a name; `ask`: only its own record shows it. */
  function listed(known: Known<DomainList>, name: DomainName): CustomerDomain | "ask" | null {
    const record = known.value.records.find((one) => one.domain === name.ascii);
    // Some upstreams list only names.
    if (record !== undefined) return record.expiresAt === null ? "ask" : { ...known, value: record, name };
    return mayLack(known.value) ? "ask" : null;
  }

  /** Loads the record in spare quota; resolves when that has succeeded or failed. */
  function loaded(name: DomainName): Promise<void> {
    return new Promise((done) => {
      const one = wanted.get(name.ascii) ?? { name, waiting: [] };
      one.waiting.push(done);
      wanted.set(name.ascii, one);
    });
  }

  async function loadWanted(ask: Ask): Promise<number | "no room"> {
    const todo = [...wanted];
    const work = async (): Promise<void> => {
      for (let next = todo.shift(); next !== undefined && roomInMs() === 0; next = todo.shift()) {
        const [key, { name, waiting }] = next;
        await domain(ask, name).catch(() => {
          if (!ask.signal.aborted) log.debug("account.refresh.failed", { what: "domain" });
        });
        wanted.delete(key);
        for (const done of waiting) done();
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    return wanted.size > 0 ? "no room" : IDLE_MS;
  }

  /** The record as memory has it; undefined if it isn't known, null if the reseller doesn't manage the name. */
  function remembered(name: DomainName): CustomerDomain | null | undefined {
    const known = facts.peek(`domain ${name.ascii}`);
    if (known?.value.kind !== "domain") return undefined;
    const { record } = known.value;
    return record && { ...known, value: record, name };
  }

  return {
    balance,
    async domains(ask) {
      const known = await list(ask);
      // While the upstream doesn't answer, a second call would only add to the wait.
      const count = known.source === "stale" ? facts.peek("balance")?.value : await counted(ask);
      const length = known.value.records.length + known.value.unreadable.length;
      // If the count is unavailable, a list at the cap may be incomplete.
      const truncated = count?.kind === "balance" ? count.balance.activeDomains > length : length >= LIST_CAP;
      return { ...known, truncated };
    },
    domain,
    async ofCustomer(ask, name, spend) {
      const found = listed(await list(ask, spend), name);
      if (found !== "ask") return found;
      const { value, ...details } = await domain(ask, name, spend);
      return value && { ...details, value, name };
    },
    async allOfCustomer(ask, names, spend) {
      if (names.length === 0) return [];
      const known = await list(ask, spend).catch((error: unknown) => {
        if (isExpected(error) && names.some(remembered)) return null;
        throw error;
      });
      const said = names.map((name) => (known === null ? "ask" : listed(known, name)));
      const missing = names.filter((name, at) => said[at] === "ask" && remembered(name) === undefined);
      const end = new AbortController();
      if (missing.length > 0) {
        const all = Promise.all(missing.map(loaded));
        loading ??= inBackground({
          client: "customer-domains",
          round: loadWanted,
          firstInMs: IDLE_MS,
          roomInMs,
          clock,
        });
        loading.now();
        await Promise.race([all, pause(clock, AT_ONCE_MS, end.signal)]);
        end.abort();
      }
      let before = 0;
      return names.flatMap((name, at): (CustomerDomain | UnknownDomain)[] => {
        const found = said[at] === "ask" ? remembered(name) : (said[at] ?? null);
        if (found === undefined) {
          before += 1;
          return [{ name, retryAfterMs: Math.min(roomInMs() + before * EACH_MS, MAX_RETRY_MS) }];
        }
        return found === null ? [] : [found];
      });
    },
    tier: (ask) => tier(ask),
    async tryTier(ask) {
      tiers.learn("tier", await upstream.tier(ask));
      knownTier();
    },
    ownedSinceMs(ascii) {
      const known = facts.fresh("domains");
      if (known?.value.kind !== "domains") return null;
      const { list } = known.value;
      if (owned.list !== list) {
        const names = [
          ...list.records.map((one) => one.domain),
          ...list.unreadable.flatMap((one) => one.names),
        ];
        owned = { list, names: new Set(names) };
      }
      return owned.names.has(ascii) ? known.asOfMs : null;
    },
    keepWarm() {
      const loops = [
        keepKnown("account", settings.factsFreshMs, () => facts.peek("domains"), renewList),
        keepKnown("tier", settings.tierFreshMs, knownTier, renewTier, {
          firstInMs: awaitsTier() ? 0 : TIER_AFTER_MS,
          // Until then, saved prices are neither used for decisions nor signed.
          isUrgent: awaitsTier,
        }),
      ];
      return () => {
        for (const { stop } of loops) stop();
        loading?.stop();
      };
    },
  };
}

function as<T, F>({ value, ...times }: Answered<T>, make: (value: T) => F): Answered<F> {
  return { ...times, value: make(value) };
}
