/** The alarms of the staff page, each with what to do about it. They follow from what the service knows; none costs a call. */
import { instant } from "../clock.js";
import type { Engine } from "../engine.js";
import type { Lane } from "../quota/lane.js";
import { decimal } from "../money.js";
import type { Balance, DomainList } from "../upstream/contract.js";
import type { presentOverview } from "./overview.js";

export interface Alarm {
  readonly kind: string;
  /** What it is about, if there can be several of its kind. */
  readonly about: string;
  readonly level: "bad" | "warn";
  /** Says no amount, of what the reseller pays or has. */
  readonly text: string;
  /** A sentence with the amounts, for staff. */
  readonly amounts?: string;
  /** What to do about it. */
  readonly todo: string;
}

interface AlarmFacts {
  readonly overview: ReturnType<typeof presentOverview>;
  /** The mean wait of those served lately, by lane, in ms. */
  readonly waitMs: Readonly<Record<Lane, number>>;
  readonly priceWarnings: readonly string[];
  /** Undefined: not known. */
  readonly domains: DomainList | undefined;
  readonly balance: Balance | undefined;
  readonly prices: Pick<Engine["prices"], "all">;
  readonly nowMs: number;
}

type Add = (kind: string, level: Alarm["level"], text: string, todo: string, more?: Partial<Alarm>) => void;

/** Refusals older than this are no longer an alarm. */
const REFUSED_LATELY_MS = 60_000;
/** A mean wait of this length in a visitors' lane is an alarm. */
const LONG_WAIT_MS = 3_000;
const VISITORS = ["checkout", "exact", "search"] as const;

/** All alarms that are on. Those about domains name several in one; `each`: one alarm for each domain. */
export function alarmsOf(facts: AlarmFacts, each = false): Alarm[] {
  const alarms: Alarm[] = [];
  const add: Add = (kind, level, text, todo, more) =>
    void alarms.push({ kind, about: "", level, text, todo, ...more });
  credentialAlarms(facts, add);
  quotaAlarms(facts, add);
  priceAlarms(facts, add);
  surroundingAlarms(facts, add);
  const { domains, balance, nowMs } = facts;
  if (domains !== undefined) {
    const dated = expiring(domains, nowMs);
    for (const some of each ? dated.map((one) => [one]) : [dated]) expiryAlarms(some, add);
    listAlarms(domains, balance, add);
  }
  balanceAlarm(facts, add);
  return alarms;
}

function credentialAlarms({ overview: { credentials } }: AlarmFacts, add: Add): void {
  const refused = credentials.filter((one) => one.refused);
  const all = refused.length === credentials.length;
  const todo = "Check it in the reseller portal and replace the secret file; no restart is needed.";
  if (all) add("credential", "bad", "The registry refuses every credential, so no calls can be made.", todo);
  for (const { role } of all ? [] : refused)
    add("credential", "warn", `The registry refuses the ${role} credential.`, todo, { about: role });
}

function quotaAlarms({ overview: { quota, upstream }, waitMs, nowMs }: AlarmFacts, add: Add): void {
  const isRefusing = quota.waits.refusedAgoMs !== null && quota.waits.refusedAgoMs <= REFUSED_LATELY_MS;
  if (isRefusing)
    add(
      "refused",
      "bad",
      "In the last minute, visitors were asked to try again later because the quota was spent.",
      `The registry allows ${quota.limit} calls in ${seconds(quota.windowMs)}. See which lane waits below; if it lasts, ask the registry for a higher limit.`,
    );
  const slow = VISITORS.filter((lane) => waitMs[lane] >= LONG_WAIT_MS);
  if (slow.length > 0)
    add(
      "waits",
      "warn",
      `Visitors are waiting a long time for the registry: ${slow.map((lane) => `${lane} ${seconds(waitMs[lane])}`).join(", ")}.`,
      `${isRefusing ? "" : "Nobody is refused yet. "}Look for a bot: many requests refused with rate_limited in the log. Don't purge now.`,
    );
  if (quota.pausedForMs > 0)
    add(
      "paused",
      "warn",
      // Rounded up to the minute, so that the text stays the same.
      `The registry reported that its limit is exceeded. Calls are paused until ${minuteOf(nowMs + quota.pausedForMs + 59_999)}.`,
      "The pause ends automatically. If it happens again, something else uses this credential, or the limit is lower than UPSTREAM_RATE_LIMIT.",
    );
  if (upstream.openCircuits.length > 0)
    add(
      "registry",
      "bad",
      `The registry keeps failing, so only trial requests are made: ${upstream.openCircuits.join(", ")}.`,
      "Known answers are still shown. Check the registry's status page; the service recovers automatically: within seconds of the registry's recovery, or within 15 s after a long outage.",
    );
}

function priceAlarms({ overview: { prices, promises }, priceWarnings }: AlarmFacts, add: Add): void {
  const { faults, since } = prices.config;
  const more = faults.length - 3;
  if (faults.length > 0)
    add(
      "price_file",
      "bad",
      `The changed price file isn't used: ${faults.slice(0, 3).join("; ")}${more > 0 ? `; and ${counted(more, "more fault")}` : ""}.`,
      `The file of ${since.slice(0, 10)}, ${minuteOf(Date.parse(since))}, stays in effect. Fix the faults; check the file under “Try a price change”.`,
    );
  if (prices.doubtful > 0)
    add(
      "doubtful",
      "warn",
      `${prices.doubtful} of ${prices.known} prices are doubtful.`,
      "They are shown as stale and not signed until the registry has confirmed them, which happens automatically. Look at the margins below afterwards.",
    );
  const { belowFloor, marginLost } = promises;
  if (belowFloor > 0)
    add(
      "margin",
      "bad",
      `${counted(belowFloor, "signed promise")} ${belowFloor === 1 ? "has" : "have"} fallen below the minimum price.`,
      "They must be honoured until they expire. Raise minMargin or shorten promise.validMs if this happens often.",
      { amounts: `Margin lost: ${marginLost.map(written).join(", ")}.` },
    );
  for (const text of priceWarnings)
    add(
      "prices",
      "warn",
      text,
      "See the price list below, and try another rule under “Try a price change”.",
      // The same warning about more or fewer prices.
      { about: text.replace(/\d+/g, "#") },
    );
}

const REDIS_ALARMS = {
  refusing: {
    text: "Redis refuses commands. Nothing new is saved, and calls may stop.",
    todo: "Check its memory, its disk and the user's rights (docs/going-live.md, Several replicas).",
  },
  gone: {
    text: "Redis can't be reached. Until it can, no calls are made.",
    todo: "Restart it; the service reconnects automatically.",
  },
  shared: null,
  none: null,
};
const PROXY_ALARMS = {
  more: {
    text: "More proxies are in front of the service than TRUST_PROXY_HOPS says, so all visitors count as few and share their limits.",
    todo: "Set TRUST_PROXY_HOPS to the number of proxies that add to X-Forwarded-For.",
  },
  fewer: {
    text: "Requests arrive past the proxies that TRUST_PROXY_HOPS expects, so anyone can invent an address.",
    todo: "Let only the proxies reach the port. If there are fewer, lower TRUST_PROXY_HOPS.",
  },
  fits: null,
};

function surroundingAlarms({ overview: { redis, proxy, unexpected } }: AlarmFacts, add: Add): void {
  const ofRedis = REDIS_ALARMS[redis];
  if (ofRedis !== null) add("redis", "warn", ofRedis.text, ofRedis.todo, { about: redis });
  const ofProxy = PROXY_ALARMS[proxy];
  if (ofProxy !== null) add("proxy", "bad", ofProxy.text, ofProxy.todo, { about: proxy });
  for (const { operation, what, count: times } of unexpected.slice(0, 3))
    add(
      "unexpected",
      "warn",
      `Unexpected data from the registry in ${operation}: ${what} (${times}×).`,
      "It was ignored. Run the probe (docs/operations.md) and report what it prints.",
      { about: `${operation} ${what}` },
    );
}

/** The registry lists at most this many (section 4 of its document). */
const LIST_CAP = 100;
/** A domain without auto-renewal raises an alarm this many days before it expires. */
const SOON_DAYS = 7;
const MAX_NAMED = 5;
const DAY_MS = 86_400_000;
const names = new Intl.ListFormat("en");

interface Expiring {
  readonly domain: string;
  readonly autoRenew: boolean | null;
  /** Negative if the day, in UTC, has passed. */
  readonly inDays: number;
}

function expiring({ records }: DomainList, nowMs: number): Expiring[] {
  return records
    .flatMap(({ domain, autoRenew, expiresAt }) => {
      if (expiresAt === null) return [];
      const inDays = Math.floor(Date.parse(expiresAt) / DAY_MS) - Math.floor(nowMs / DAY_MS);
      return [{ domain, autoRenew, inDays }];
    })
    .sort((a, b) => a.inDays - b.inDays);
}

function expiryAlarms(dated: readonly Expiring[], add: Add): void {
  const past = dated.filter(({ inDays }) => inDays < 0);
  const lapsing = dated.filter(
    ({ inDays, autoRenew }) => inDays >= 0 && inDays <= SOON_DAYS && autoRenew === false,
  );
  const about = dated.length === 1 ? (dated[0]?.domain ?? "") : "";
  if (past.length > 0)
    add(
      "expired",
      "bad",
      `${past.length === 1 ? "A domain has" : `${past.length} domains have`} expired: ${named(past)}.`,
      "Renew it in the reseller portal, or restore it at the price in the list below, before somebody else registers it.",
      { about },
    );
  if (lapsing.length > 0)
    add(
      "expiring",
      "warn",
      `${lapsing.length === 1 ? "A domain expires" : `${lapsing.length} domains expire`} within ${SOON_DAYS} days without auto-renewal: ${named(lapsing)}.`,
      "Ask the customer, or switch on auto-renew in the reseller portal.",
      { about },
    );
}

function named(list: readonly Expiring[]): string {
  const first = list.slice(0, MAX_NAMED).map(({ domain, inDays }) => `${domain} (${whenOf(inDays)})`);
  const rest = list.length - first.length;
  return names.format(rest === 0 ? first : [...first, `${rest} more`]);
}

function listAlarms(
  { records, unreadable }: DomainList,
  balance: Pick<Balance, "activeDomains"> | undefined,
  add: Add,
): void {
  const todo = "Check the reseller portal for when the others expire.";
  const listed = counted(records.length, "domain");
  const length = records.length + unreadable.length;
  if (balance !== undefined && balance.activeDomains > length)
    add(
      "list",
      "bad",
      `The registry lists only ${listed}, but the account has ${balance.activeDomains}.`,
      todo,
    );
  else if (length >= LIST_CAP)
    add(
      "list",
      "warn",
      `The registry's list is full (${listed}). Further domains and their expiry won't be shown here.`,
      todo,
    );
}

/** The first registration of the list, as a typical order, against the balance and the credit limit. */
function balanceAlarm({ balance, prices }: AlarmFacts, add: Add): void {
  const order = prices.all().find(({ action }) => action === "registration")?.wholesale;
  if (balance === undefined || order?.currency !== balance.currency) return;
  const { currency, creditLimit } = balance;
  if (decimal(balance.balance).plus(creditLimit).gte(order.amount)) return;
  add(
    "balance",
    "bad",
    "The account's balance and its credit limit don't cover a typical order.",
    "Pay in at the reseller portal, or no order can be placed.",
    {
      amounts: `Balance: ${written({ amount: balance.balance, currency })}, credit limit: ${written({ amount: creditLimit, currency })}.`,
    },
  );
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}

function counted(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? "" : "s"}`;
}

function written({ amount, currency }: { readonly amount: string; readonly currency: string }): string {
  return `${amount} ${currency}`;
}

/** `13:05 UTC` */
function minuteOf(atMs: number): string {
  return `${instant(atMs).slice(11, 16)} UTC`;
}

function whenOf(inDays: number): string {
  if (inDays === 0) return "today";
  return inDays < 0 ? `${counted(-inDays, "day")} ago` : `in ${counted(inDays, "day")}`;
}
