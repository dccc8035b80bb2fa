/** What the next owner needs, in Redis. What can't be written while Redis is away is written afterwards. */
import { z } from "zod";
import { KEPT_MS, MAX_KEPT, parseAct } from "../staff/audit.js";
import { BoundedMap } from "../bounded-map.js";
import type { Clock } from "../clock.js";
import { parseJson } from "../json.js";
import type { Log } from "../logger.js";
import type { RedisLink } from "../redis.js";
import { promiseShape } from "../retail/promise.js";
import type { SavedFile } from "../saved-file.js";
import type { Lines, SavedSettings, Store } from "../store.js";

const PREFIX = "af-storefront:";
const DAY_MS = 24 * 3_600_000;
const SAVED_MS = 60 * DAY_MS;
const MAX_HISTORY = 24 * 60;
const MAX_LATE = 4000;

const document = z.object({ source: z.string(), data: z.unknown() });

export function createRedisStore(link: RedisLink, clock: Clock, log: Log): Store {
  /** The writes that failed; of two with the same id, the last. */
  const late = new BoundedMap<string, { readonly id: string; readonly act: () => Promise<void> }>(MAX_LATE);
  let made = 0;

  function write(id: string, act: () => Promise<void>, onFailure?: () => void): Promise<void> {
    late.delete(id);
    return act().catch(() => {
      onFailure?.();
      late.set(id, { id, act });
    });
  }
  link.onReachable(() => {
    late.forEach(({ id, act }) => void write(id, act));
  });

  function saved<T>({ name, shape, source }: SavedSettings<T>): SavedFile<T> {
    const key = `${PREFIX}${name}`;
    let writing = Promise.resolve();
    return {
      async load() {
        const read = document.safeParse(parseJson(await link.command("GET", key).catch(() => null))).data;
        if (read?.source !== source()) return null;
        return shape.safeParse(read.data).data ?? null;
      },
      save(data) {
        const text = JSON.stringify({ source: source(), data });
        writing = write(key, async () => void (await link.command("SET", key, text, "PX", SAVED_MS)));
      },
      saved: () => writing,
    };
  }

  function lines(name: string, most: number, keptMs: number, onFailure?: () => void): Lines {
    const key = `${PREFIX}${name}`;
    return {
      append(line) {
        const push = async (): Promise<void> => {
          await link.command("RPUSH", key, line);
          // If these fail, the next line makes up for it.
          await link.command("LTRIM", key, -most, -1).catch(() => null);
          await link.command("PEXPIRE", key, keptMs).catch(() => null);
        };
        void write(`${key} ${(made += 1)}`, push, onFailure);
      },
      load: async () => z.array(z.string()).parse(await link.command("LRANGE", key, -most, -1)),
    };
  }

  const acts = lines("audit", MAX_KEPT, KEPT_MS, () => {
    log.error("audit.failed", { reason: "redis" });
  });
  const keyOf = (id: string): string => `${PREFIX}promise:${id}`;

  return {
    saved,
    acts: {
      append: (act) => {
        acts.append(JSON.stringify(act));
      },
      load: async () => (await acts.load()).flatMap((line) => parseAct(line) ?? []),
    },
    promises: {
      write: (promise) =>
        write(keyOf(promise.id), async () => {
          const ttlMs = Math.ceil(promise.validUntilMs - clock.now());
          if (ttlMs > 0) await link.command("SET", keyOf(promise.id), JSON.stringify(promise), "PX", ttlMs);
        }),
      find: async (id) =>
        promiseShape.safeParse(parseJson(await link.command("GET", keyOf(id)))).data ?? null,
    },
    history: lines("history", MAX_HISTORY, DAY_MS),
  };
}
