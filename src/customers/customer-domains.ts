/** The domains of one customer: from the account's list, or each from its own record where the list has gaps. */
import { type Clock, pause } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected } from "../errors.js";
import type { Known } from "../facts/page.js";
import type { Log } from "../logger.js";
import type { Ask } from "../quota/quota.js";
import type { Account } from "../staff/account.js";
import type { DomainRecord } from "../upstream/contract.js";

export type CustomerDomain = Known<DomainRecord> & { readonly name: DomainName };

/** A domain whose record hasn't been loaded yet. */
export interface UnknownDomain {
  readonly name: DomainName;
  readonly retryAfterMs: number;
}

/** `spend` is called before any upstream call that can't wait for spare quota, and can throw to prevent it. */
export interface CustomerDomains {
  /** The record; null if the reseller doesn't manage the name. */
  one(ask: Ask, name: DomainName, spend: () => void): Promise<CustomerDomain | null>;
  /**
   * The records of those names that the reseller manages, in the given order. Records that the list lacks are loaded in spare quota: a name
   * whose record isn't known within a second is unknown, and a repetition finds more.
   */
  all(ask: Ask, names: readonly DomainName[], spend: () => void): Promise<(CustomerDomain | UnknownDomain)[]>;
}

interface CustomerDomainSettings {
  readonly account: Pick<Account, "list" | "listed" | "domain" | "remembered">;
  /** How long until the quota has room for background work, in ms. */
  readonly backgroundRoomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** How many records are loaded at the same time. */
const AT_A_TIME = 5;
/** How long a customer waits for them. */
const AT_ONCE_MS = 1_000;
/** About how long a name waits for each one before it, within the quota. */
const EACH_MS = 1_000;
const MAX_RETRY_MS = 60_000;

export function createCustomerDomains({
  account,
  backgroundRoomInMs,
  clock,
  log,
}: CustomerDomainSettings): CustomerDomains {
  /** Loads records for as long as there is spare quota, and for a second at most. */
  async function loadInSpare(ask: Ask, names: readonly DomainName[]): Promise<void> {
    const { signal } = ask;
    const spare: Ask = { lane: "refresh", client: "customer-domains", waitUntilAt: Infinity, signal };
    const todo = [...names];
    const work = async (): Promise<void> => {
      for (let next = todo.shift(); next !== undefined && backgroundRoomInMs() === 0; next = todo.shift())
        await account.domain(spare, next).catch(() => {
          if (!signal.aborted) log.debug("account.refresh.failed", { what: "domain" });
        });
    };
    const loaded = new AbortController();
    const all = Promise.all(Array.from({ length: AT_A_TIME }, work));
    await Promise.race([all, pause(clock, AT_ONCE_MS, loaded.signal)]);
    loaded.abort();
  }

  return {
    async one(ask, name, spend) {
      const listed = account.listed(await account.list(ask, spend), name.ascii);
      return named(name, listed === "ask" ? await account.domain(ask, name, spend) : listed);
    },
    async all(ask, names, spend) {
      if (names.length === 0) return [];
      const list = await account.list(ask, spend).catch((error: unknown) => {
        if (isExpected(error) && names.some(({ ascii }) => account.remembered(ascii)?.value)) return null;
        throw error;
      });
      const find = ({ ascii }: DomainName): Known<DomainRecord | null> | null | undefined => {
        const listed = list === null ? "ask" : account.listed(list, ascii);
        return listed === "ask" ? account.remembered(ascii) : listed;
      };
      const missing = names.filter((name) => find(name) === undefined);
      await loadInSpare(ask, missing);
      let before = 0;
      return names.flatMap((name): (CustomerDomain | UnknownDomain)[] => {
        const found = find(name);
        if (found === undefined) {
          before += 1;
          return [{ name, retryAfterMs: Math.min(backgroundRoomInMs() + before * EACH_MS, MAX_RETRY_MS) }];
        }
        const own = named(name, found);
        return own === null ? [] : [own];
      });
    },
  };
}

function named(name: DomainName, known: Known<DomainRecord | null> | null): CustomerDomain | null {
  if (known === null || known.value === null) return null;
  return { ...known, value: known.value, name };
}
