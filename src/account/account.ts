/**
 * Account data for staff, and the domains of a customer, each with its age and its source. A change of tier is noticed within the tier's
 * freshness, no matter who asked for it.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Flight } from "../cache/single-flight.js";
import { type Clock, justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Log } from "../logger.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import { SharedAsk } from "../quota/shared-ask.js";
import type { Answered } from "../upstream/call.js";
import type { Balance, DomainRecord, Tier } from "../upstream/contract.js";
import type { Upstream } from "../upstream/operations.js";
import type { AccountFact } from "./account-facts.js";

export interface Account {
  domains(ask: Ask): Promise<Known<readonly DomainRecord[]> & { readonly truncated: boolean }>;
  /** Null: not managed by the reseller. */
  domain(ask: Ask, name: DomainName): Promise<Known<DomainRecord | null>>;
  /**
   * The records of those names that the reseller manages, in the given order; from the domain list where it contains enough. `spend` is called
   * before any upstream call, and can throw to prevent it.
   */
  managed(
    ask: Ask,
    names: readonly DomainName[],
    spend: () => void,
  ): Promise<(Known<DomainRecord> & { readonly name: DomainName })[]>;
  balance(ask: Ask): Promise<Known<Balance>>;
  tier(ask: Ask): Promise<Known<Tier>>;
  /** Makes the call even if it has just failed, and learns from the answer. */
  tryTier(ask: Ask): Promise<void>;
  /** When the upstream listed the name as managed by the reseller; null if it didn't, or if the list is past its freshness. Makes no call. */
  ownedSinceMs(ascii: string): number | null;
  /** Starts refreshing the domain list and the tier in the background; returns a function that stops it. */
  keepWarm(): () => void;
}

interface AccountSettings {
  readonly upstream: Upstream;
  readonly facts: Pool<AccountFact, Ask>;
  readonly tiers: Pool<Tier, Ask>;
  /** How long each is answered from memory, in ms. */
  readonly factsFreshMs: number;
  readonly tierFreshMs: number;
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
/** How many names are requested at the same time if the list doesn't contain enough. */
const AT_A_TIME = 5;
/** On startup the price list goes first, because visitors need it. */
const TIER_AFTER_MS = 5_000;
/** How soon an urgent fact that couldn't be refreshed is tried again. */
const URGENT_AGAIN_MS = 5_000;
/** Prevents a busy loop when the clock of another replica is ahead. */
const MIN_PAUSE_MS = 1_000;

export function createAccount(settings: AccountSettings): Account {
  const { upstream, facts, tiers, roomInMs, clock, log } = settings;
  let tierNotedMs = -Infinity;
  let owned: { readonly list: readonly DomainRecord[]; readonly names: ReadonlySet<string> } = {
    list: [],
    names: new Set(),
  };

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

  function list(ask: Ask, spend?: () => void): Promise<Known<readonly DomainRecord[]>> {
    const load = async (shared: Ask) =>
      as(await upstream.domains(shared), (records) => ({ kind: "domains" as const, records }));
    return fact(ask, "domains", load, (one) => (one.kind === "domains" ? one.records : undefined), spend);
  }

  function domain(ask: Ask, name: DomainName, spend?: () => void): Promise<Known<DomainRecord | null>> {
    const load = async (shared: Ask) =>
      as(await upstream.domain(shared, name), (record) => ({ kind: "domain" as const, record }));
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

  async function consultTier(): Promise<Known<Tier> | undefined> {
    const known = await tiers.consult("tier");
    return known && noticed(known);
  }

  /** Refreshes one fact once per freshness period, unless it has been refreshed elsewhere in the meantime. */
  function keepKnown(
    what: string,
    freshMs: number,
    consult: () => Promise<Known<unknown> | undefined>,
    renew: (ask: Ask) => Promise<unknown>,
    { firstInMs = 0, isUrgent }: { readonly firstInMs?: number; readonly isUrgent?: () => boolean } = {},
  ): Background {
    const round = async (ask: Ask): Promise<number | "no room"> => {
      // Another replica may have it already; reading that costs nothing, so it needs no room in the quota.
      const known = await consult();
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

  return {
    balance,
    async domains(ask) {
      const known = await list(ask);
      if (known.value.length < LIST_CAP) return { ...known, truncated: false };
      // If the count is unavailable, a list at the cap may be incomplete.
      const active = await balance(ask).then(
        ({ value }) => value.activeDomains,
        () => Infinity,
      );
      return { ...known, truncated: active > known.value.length };
    },
    domain,
    async managed(ask, names, spend) {
      if (names.length === 0) return [];
      const known = await list(ask, spend);
      const listed = new Map(known.value.map((record) => [record.domain, record]));
      const recordOf = async (name: DomainName) => {
        const record = listed.get(name.ascii);
        // Some upstreams list only names, and none lists more than the cap.
        if (record && record.expiresAt !== null) return [{ ...known, value: record, name }];
        if (record === undefined && known.value.length < LIST_CAP) return [];
        const { value, ...details } = await domain(ask, name, spend);
        return value === null ? [] : [{ ...details, value, name }];
      };
      const found: (Known<DomainRecord> & { readonly name: DomainName })[] = [];
      for (let at = 0; at < names.length; at += AT_A_TIME)
        found.push(...(await Promise.all(names.slice(at, at + AT_A_TIME).map(recordOf))).flat());
      return found;
    },
    tier: (ask) => tier(ask),
    async tryTier(ask) {
      await tiers.learn("tier", await upstream.tier(ask));
      await consultTier();
    },
    ownedSinceMs(ascii) {
      const known = facts.fresh("domains");
      if (known?.value.kind !== "domains") return null;
      const { records } = known.value;
      if (owned.list !== records)
        owned = { list: records, names: new Set(records.map(({ domain }) => domain)) };
      return owned.names.has(ascii) ? known.asOfMs : null;
    },
    keepWarm() {
      const loops = [
        keepKnown("account", settings.factsFreshMs, () => facts.consult("domains"), list),
        keepKnown("tier", settings.tierFreshMs, consultTier, renewTier, {
          firstInMs: awaitsTier() ? 0 : TIER_AFTER_MS,
          // Until then, saved prices are neither used for decisions nor signed.
          isUrgent: awaitsTier,
        }),
      ];
      return () => {
        for (const { stop } of loops) stop();
      };
    },
  };
}

function as<T, F>({ value, ...times }: Answered<T>, make: (value: T) => F): Answered<F> {
  return { ...times, value: make(value) };
}
