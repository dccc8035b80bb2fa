/** Counts the commands that Redis answers with an error by kind, and logs each kind once until Redis has recovered. */
import type { Log } from "./logger.js";

const KINDS = ["READONLY", "OOM", "NOPERM", "MOVED", "LOADING", "NOAUTH", "MISCONF", "NOREPLICAS"] as const;
type RefusalKind = (typeof KINDS)[number] | "other";

/** Messages of the same kinds that start with other words. */
const ALIASES: readonly (readonly [RegExp, RefusalKind])[] = [
  [/^(?:ASK|CLUSTERDOWN|CROSSSLOT|TRYAGAIN)\b/, "MOVED"],
  [/^WRONGPASS\b|^ERR (?:invalid password|AUTH )/, "NOAUTH"],
  [/^MASTERDOWN\b/, "LOADING"],
  [/^ERR The user executing the script can't/, "NOPERM"],
];

/** The first word of the message. LOADING includes a replica without its master, MOVED all messages of a cluster. */
export function refusalKind(message: string): RefusalKind {
  const named = KINDS.find((kind) => message.startsWith(kind));
  return named ?? ALIASES.find(([pattern]) => pattern.test(message))?.[1] ?? "other";
}

interface RedisRefusals {
  note(kind: RefusalKind): void;
  /** Whether a command has been refused since the last `clear` or `recovered`. */
  active(): boolean;
  /** The last refusals no longer apply; their kinds aren't logged again. */
  clear(): void;
  /** Redis works again; the next refusal of any kind is logged. */
  recovered(): void;
  /** Refusals since startup, by kind. */
  totals(): Readonly<Record<string, number>>;
}

export function createRedisRefusals(log: Log): RedisRefusals {
  const totals = new Map<string, number>([...KINDS, "other"].map((kind) => [kind, 0]));
  const logged = new Set<RefusalKind>();
  let isActive = false;
  return {
    note(kind) {
      isActive = true;
      totals.set(kind, (totals.get(kind) ?? 0) + 1);
      if (logged.has(kind)) return;
      logged.add(kind);
      log.error("redis.refused", { kind });
    },
    active: () => isActive,
    clear() {
      isActive = false;
    },
    recovered() {
      isActive = false;
      logged.clear();
    },
    totals: () => Object.fromEntries(totals),
  };
}
