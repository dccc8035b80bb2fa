/** What the reseller's own people may know: domains, balance and tier, each with its age and where it came from. */
import type { Known, Pool } from "../cache/cache.js";
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Log } from "../logger.js";
import type { Ask } from "../quota/quota.js";
import { sharedAsk } from "../quota/shared-ask.js";
import type { Upstream } from "../upstream/client.js";
import type { Balance, DomainRecord, Tier } from "../upstream/contract.js";

/** The three kinds of account data, in one pool under keys of their own. */
export type AccountFact =
  | { readonly kind: "domains"; readonly records: readonly DomainRecord[] }
  | { readonly kind: "domain"; readonly record: DomainRecord | null }
  | { readonly kind: "balance"; readonly balance: Balance };

export interface Account {
  domains(ask: Ask): Promise<Known<readonly DomainRecord[]> & { readonly truncated: boolean }>;
  /** Null: not managed by the reseller. */
  domain(ask: Ask, name: DomainName): Promise<Known<DomainRecord | null>>;
  balance(ask: Ask): Promise<Known<Balance>>;
  tier(ask: Ask): Promise<Known<Tier>>;
  /** When the upstream last listed the name as the reseller's own, or null. Costs nothing. */
  ownedSinceMs(ascii: string): number | null;
  /** Keeps the domain list known; the answer stops it. */
  keepWarm(): () => void;
}

export interface AccountSettings {
  readonly upstream: Upstream;
  readonly facts: Pool<AccountFact, Ask>;
  readonly tiers: Pool<Tier, Ask>;
  readonly freshMs: number;
  /** How long until the quota has room for work that nobody waits for, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

const LIST_CAP = 100;
const LOOK_AGAIN_MS = 5_000;

export function createAccount({
  upstream,
  facts,
  tiers,
  freshMs,
  roomInMs,
  clock,
  log,
}: AccountSettings): Account {
  let owned: { readonly list: readonly DomainRecord[]; readonly names: ReadonlySet<string> } = {
    list: [],
    names: new Set(),
  };

  async function fact<K extends AccountFact["kind"]>(
    ask: Ask,
    key: string,
    kind: K,
    load: (ask: Ask) => Promise<Extract<AccountFact, { kind: K }>>,
  ): Promise<Known<Extract<AccountFact, { kind: K }>>> {
    const known = await facts.get(key, ask, ({ askers, signal }) => load(sharedAsk(askers, ask, signal)));
    if (!isKind(known.value, kind)) throw new Error("a key of the account pool holds another kind of fact");
    return { ...known, value: known.value };
  }

  async function list(ask: Ask): Promise<Known<readonly DomainRecord[]>> {
    const known = await fact(ask, "domains", "domains", async (shared) => ({
      kind: "domains",
      records: await upstream.domains(shared),
    }));
    return { ...known, value: known.value.records };
  }

  async function balance(ask: Ask): Promise<Known<Balance>> {
    const known = await fact(ask, "balance", "balance", async (shared) => ({
      kind: "balance",
      balance: await upstream.balance(shared),
    }));
    return { ...known, value: known.value.balance };
  }

  return {
    balance,
    async domains(ask) {
      const known = await list(ask);
      if (known.value.length < LIST_CAP) return { ...known, truncated: false };
      // Where the count cannot be had, a list at the cap is not vouched for.
      const active = await balance(ask).then(
        ({ value }) => value.activeDomains,
        () => Infinity,
      );
      return { ...known, truncated: active > known.value.length };
    },
    async domain(ask, name) {
      const known = await fact(ask, `domain ${name.ascii}`, "domain", async (shared) => ({
        kind: "domain",
        record: await upstream.domain(shared, name),
      }));
      return { ...known, value: known.value.record };
    },
    tier: (ask) =>
      tiers.get("tier", ask, ({ askers, signal }) => upstream.tier(sharedAsk(askers, ask, signal))),
    ownedSinceMs(ascii) {
      const known = facts.peek("domains");
      if (known?.value.kind !== "domains") return null;
      const { records } = known.value;
      if (owned.list !== records)
        owned = { list: records, names: new Set(records.map(({ domain }) => domain)) };
      return owned.names.has(ascii) ? known.asOfMs : null;
    },
    keepWarm() {
      const stop = new AbortController();
      const ask: Ask = { lane: "refresh", client: "account", maxWaitMs: Infinity, signal: stop.signal };
      let cancel = (): void => {};
      const look = (): void => {
        if (roomInMs() > 0) {
          cancel = clock.after(LOOK_AGAIN_MS, look);
          return;
        }
        list(ask).catch(() => {
          if (!stop.signal.aborted) log.debug("account.renewal.failed");
        });
        cancel = clock.after(freshMs, look);
      };
      look();
      return () => {
        cancel();
        stop.abort();
      };
    },
  };
}

function isKind<K extends AccountFact["kind"]>(
  value: AccountFact,
  kind: K,
): value is Extract<AccountFact, { kind: K }> {
  return value.kind === kind;
}
