/** The audit log of staff actions: who did what, when, and with which outcome. Keeps the last 30 days, but at most `MAX_KEPT` acts. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import type { Clock } from "../clock.js";
import { parseJson } from "../json.js";
import type { Log } from "../logger.js";
import type { RecordKind, Records } from "../record-file.js";

const ACTS = ["purge", "preview", "promise", "order", "token", "retail_config"] as const;

const actShape = z.strictObject({
  id: z.string(),
  whenMs: z.number(),
  /** The name of the token; null without a valid token, or if the service acted by itself. */
  who: z.string().nullable(),
  what: z.enum(ACTS),
  /** What was purged, the number of previewed changes, the id of a promise, what the checkout said of one, the refused route, or the fingerprint of a price file. */
  subject: z.string().nullable(),
  /** `done`, `applied`, `rejected`, `interrupted` or an error code. */
  outcome: z.string(),
  /** Equal refusals within an hour are one act with a count. */
  times: z.int().positive(),
});
export type Act = z.infer<typeof actShape>;

export interface Audit {
  note(act: Pick<Act, "who" | "what" | "subject" | "outcome">): void;
  /** The last 1,000, newest first; only those of this process if the store can't be read. */
  last(): Promise<readonly Act[]>;
  /** Writes pending counts to the store. */
  flush(): void;
}

const KEPT_MS = 30 * 24 * 3_600_000;
const MAX_SHOWN = 1_000;
const REPEATED_WITHIN_MS = 3_600_000;
const COUNTED_EVERY_MS = 60_000;

/** The acts of the last 30 days, each in its latest version. */
function lastOf(acts: Iterable<Act>, nowMs: number): Act[] {
  const byId = new Map<string, Act>();
  for (const act of acts) {
    const before = byId.get(act.id);
    if (act.whenMs > nowMs - KEPT_MS && (before === undefined || before.times <= act.times))
      byId.set(act.id, act);
  }
  return [...byId.values()];
}

export const acts: RecordKind<Act> = {
  parse: (line) => actShape.safeParse(parseJson(line)).data,
  latest: lastOf,
  whenMs: ({ whenMs }) => whenMs,
  keptMs: KEPT_MS,
  most: 10_000,
};

export function createAudit(store: Records<Act>, clock: Clock, log: Log): Audit {
  /** The latest acts of this process, by id. */
  const own = new BoundedMap<string, Act>(MAX_SHOWN);
  const refused = new Map<string, string>();
  const recounted = new Set<string>();
  let cancelCount = (): void => {};

  function flush(): void {
    cancelCount();
    for (const id of recounted) {
      const act = own.get(id);
      if (act !== undefined) void store.append(act);
    }
    recounted.clear();
  }

  return {
    note({ who, what, subject, outcome }) {
      const kind = JSON.stringify([who, what, subject, outcome]);
      const before = own.get(refused.get(kind) ?? "");
      if (before !== undefined && clock.now() - before.whenMs < REPEATED_WITHIN_MS) {
        own.set(before.id, { ...before, times: before.times + 1 });
        if (recounted.size === 0) cancelCount = clock.after(COUNTED_EVERY_MS, flush);
        recounted.add(before.id);
        return;
      }
      const act = { id: randomUUID(), whenMs: clock.now(), who, what, subject, outcome, times: 1 };
      if (what === "token") refused.set(kind, act.id);
      own.set(act.id, act);
      void store.append(act);
      log.info("staff.act", { who, what, subject, outcome });
    },
    async last() {
      const kept = await store.load().catch(() => []);
      const acts = [...kept];
      own.forEach((act) => acts.push(act));
      return lastOf(acts, clock.now())
        .toReversed()
        .toSorted((a, b) => b.whenMs - a.whenMs)
        .slice(0, MAX_SHOWN);
    },
    flush,
  };
}
