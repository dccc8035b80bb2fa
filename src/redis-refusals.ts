/** The commands that Redis answers with an error: counted by kind, each kind logged once until Redis serves again. */
import type { Log } from "./logger.js";

const KINDS = ["READONLY", "OOM", "NOPERM", "MOVED", "LOADING", "NOAUTH", "MISCONF"] as const;
export type RefusalKind = (typeof KINDS)[number] | "other";

/** What Redis calls by another first word, or a script by none. */
const ALIASES: readonly (readonly [RegExp, RefusalKind])[] = [
  [/^(?:ASK|CLUSTERDOWN|CROSSSLOT|TRYAGAIN)\b/, "MOVED"],
  [/^WRONGPASS\b|^ERR (?:invalid password|AUTH )/, "NOAUTH"],
  [/^MASTERDOWN\b/, "LOADING"],
  [/^ERR The user executing the script can't/, "NOPERM"],
];

/** Redis' own first word; LOADING includes a replica without its master, MOVED all that only a cluster says. */
export function refusalKind(message: string): RefusalKind {
  const named = KINDS.find((kind) => message.startsWith(kind));
  return named ?? ALIASES.find(([pattern]) => pattern.test(message))?.[1] ?? "other";
}

export interface RedisRefusals {
  note(kind: RefusalKind): void;
  /** Whether a command has been refused and nothing has cleared it since. */
  active(): boolean;
  /** The last refusals no longer describe Redis; their kinds stay logged. */
  clear(): void;
  /** Redis serves again: the next refusal of any kind is logged. */
  recovered(): void;
  /** Since the start, by kind. */
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
