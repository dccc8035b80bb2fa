/** Derives alarms from the overview, each with what to do about it. */
import type { Alarm } from "./alarm.js";
import { count, counted, dateAndTimeOf, timeOf } from "./figures.js";
import type { Recent } from "./recent.js";
import type { Overview } from "./staff-api.js";

const seconds = (ms: number): string => `${count(Math.ceil(ms / 1000))} s`;
/** Rounded up to the minute, so that the text is the same at every poll. */
const minuteIn = (ms: number): string =>
  timeOf(new Date(Math.ceil((Date.now() + ms) / 60_000) * 60_000).toISOString());

/** Refusals older than this are no longer an alarm. */
const REFUSED_LATELY_MS = 60_000;
/** A mean wait of this length in a visitors' lane is an alarm. */
const LONG_WAIT_MS = 3_000;
const VISITORS = ["checkout", "exact", "search"] as const;

type Source = Pick<
  Overview,
  "credentials" | "quota" | "redis" | "upstream" | "unexpected" | "promises" | "proxy"
> & {
  readonly prices: Pick<Overview["prices"], "known" | "doubtful" | "config">;
};

export function overviewAlarms(overview: Source, waitMs: Recent["waitMs"]): Alarm[] {
  const { quota, upstream, prices } = overview;
  const alarms: Alarm[] = [];
  const add = (isOn: boolean, level: Alarm["level"], text: string, todo: string): void => {
    if (isOn) alarms.push({ level, text, todo });
  };
  credentialAlarms(overview, add);
  const isRefusing = quota.waits.refusedAgoMs !== null && quota.waits.refusedAgoMs <= REFUSED_LATELY_MS;
  add(
    isRefusing,
    "bad",
    "In the last minute, visitors were asked to try again later because the quota was spent.",
    `The registry allows ${quota.limit} calls in ${seconds(quota.windowMs)}. See which lane waits below; if it lasts, ask the registry for a higher limit.`,
  );
  const slow = VISITORS.filter((lane) => waitMs[lane] >= LONG_WAIT_MS);
  add(
    slow.length > 0,
    "warn",
    `Visitors are waiting a long time for the registry: ${slow.map((lane) => `${lane} ${seconds(waitMs[lane])}`).join(", ")}.`,
    `${isRefusing ? "" : "Nobody is refused yet. "}Look for a bot: many requests refused with rate_limited in the log. Don't purge now.`,
  );
  add(
    quota.pausedForMs > 0,
    "warn",
    `The registry reported that its limit is exceeded. Calls are paused until ${minuteIn(quota.pausedForMs)}.`,
    "The pause ends automatically. If it happens again, something else uses this credential, or the limit is lower than UPSTREAM_RATE_LIMIT.",
  );
  const { openCircuits } = upstream;
  add(
    openCircuits.length > 0,
    "bad",
    `The registry keeps failing, so only trial requests are made: ${openCircuits.join(", ")}.`,
    "Known answers are still shown. Check the registry's status page; the service recovers automatically: within seconds of the registry's recovery, or within 15 s after a long outage.",
  );
  add(
    prices.config.faults.length > 0,
    "bad",
    `The changed price file isn't used: ${prices.config.faults.slice(0, 3).join("; ")}${prices.config.faults.length > 3 ? `; and ${counted(prices.config.faults.length - 3, "more fault")}` : ""}.`,
    `The file of ${dateAndTimeOf(prices.config.since)} stays in effect. Fix the faults; check the file under “Try a price change”.`,
  );
  add(
    prices.doubtful > 0,
    "warn",
    `${count(prices.doubtful)} of ${count(prices.known)} prices are doubtful.`,
    "They are shown as stale and not signed until the registry has confirmed them, which happens automatically. Look at the margins below afterwards.",
  );
  const { belowFloor, marginLost } = overview.promises;
  add(
    belowFloor > 0,
    "bad",
    `${counted(belowFloor, "signed promise")} ${belowFloor === 1 ? "has" : "have"} fallen below the minimum price. Margin lost: ${marginLost.map(({ amount, currency }) => `${amount} ${currency}`).join(", ")}.`,
    "They must be honoured until they expire. Raise minMargin or shorten promise.validMs if this happens often.",
  );
  redisAlarms(overview, add);
  add(
    overview.proxy === "more",
    "bad",
    "More proxies are in front of the service than TRUST_PROXY_HOPS says, so all visitors count as few and share their limits.",
    "Set TRUST_PROXY_HOPS to the number of proxies that add to X-Forwarded-For.",
  );
  add(
    overview.proxy === "fewer",
    "bad",
    "Requests arrive past the proxies that TRUST_PROXY_HOPS expects, so anyone can invent an address.",
    "Let only the proxies reach the port. If there are fewer, lower TRUST_PROXY_HOPS.",
  );
  for (const { operation, what, count: times } of overview.unexpected.slice(0, 3))
    add(
      true,
      "warn",
      `Unexpected data from the registry in ${operation}: ${what} (${count(times)}×).`,
      "It was ignored. Run the probe (docs/operations.md) and report what it prints.",
    );
  return alarms;
}

type Add = (isOn: boolean, level: Alarm["level"], text: string, todo: string) => void;

function credentialAlarms({ credentials }: Source, add: Add): void {
  const refused = credentials.filter((one) => one.refused);
  const all = refused.length === credentials.length;
  const todo = "Check it in the reseller portal and replace the secret file; no restart is needed.";
  add(all, "bad", "The registry refuses every credential, so no calls can be made.", todo);
  for (const { role } of all ? [] : refused)
    add(true, "warn", `The registry refuses the ${role} credential.`, todo);
}

function redisAlarms({ redis }: Source, add: Add): void {
  add(
    redis === "refusing",
    "warn",
    "Redis refuses commands. Nothing new is saved, and calls may stop.",
    "Check its memory, its disk and the user's rights (docs/going-live.md, Several replicas).",
  );
  add(
    redis === "gone",
    "warn",
    "Redis can't be reached. Until it can, no calls are made.",
    "Restart it; the service reconnects automatically.",
  );
}
