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
const MAX_UNWRITTEN = 2000;

const document = z.object({ source: z.string(), data: z.unknown() });

export function createRedisStore(link: RedisLink, clock: Clock, log: Log): Store {
  function saved<T>({ name, shape, source }: SavedSettings<T>): SavedFile<T> {
    const key = `${PREFIX}${name}`;
    let unwritten: string | null = null;
    let writing = Promise.resolve();
    const write = (): void => {
      const text = unwritten;
      if (text === null) return;
      writing = link.command("SET", key, text, "PX", SAVED_MS).then(
        () => {
          if (unwritten === text) unwritten = null;
        },
        () => undefined,
      );
    };
    link.onReachable(write);
    return {
      async load() {
        const read = document.safeParse(parseJson(await link.command("GET", key).catch(() => null))).data;
        if (read?.source !== source()) return null;
        return shape.safeParse(read.data).data ?? null;
      },
      save(data) {
        unwritten = JSON.stringify({ source: source(), data });
        write();
      },
      saved: () => writing,
    };
  }

  function lines(name: string, most: number, keptMs: number, onFailure: () => void): Lines {
    const key = `${PREFIX}${name}`;
    let waiting: string[] = [];
    const append = (line: string): void => {
      link
        .command("RPUSH", key, line)
        .then(async () => {
          await link.command("LTRIM", key, -most, -1);
          await link.command("PEXPIRE", key, keptMs);
        })
        .catch(() => {
          if (waiting.length === 0) onFailure();
          waiting = [...waiting, line].slice(-most);
        });
    };
    link.onReachable(() => {
      const late = waiting;
      waiting = [];
      for (const line of late) append(line);
    });
    return {
      append,
      load: async () => z.array(z.string()).parse(await link.command("LRANGE", key, -most, -1)),
    };
  }

  const acts = lines("audit", MAX_KEPT, KEPT_MS, () => {
    log.error("audit.failed", { reason: "redis" });
  });
  const unwritten = new BoundedMap<string, z.infer<typeof promiseShape>>(MAX_UNWRITTEN);
  const keyOf = (id: string): string => `${PREFIX}promise:${id}`;
  const writePromise = async (promise: z.infer<typeof promiseShape>): Promise<void> => {
    unwritten.delete(promise.id);
    const ttlMs = Math.ceil(promise.validUntilMs - clock.now());
    if (ttlMs <= 0) return;
    await link.command("SET", keyOf(promise.id), JSON.stringify(promise), "PX", ttlMs).catch(() => {
      unwritten.set(promise.id, promise);
    });
  };
  link.onReachable(() => {
    unwritten.forEach((promise) => void writePromise(promise));
  });

  return {
    saved,
    acts: {
      append: (act) => {
        acts.append(JSON.stringify(act));
      },
      load: async () => (await acts.load()).flatMap((line) => parseAct(line) ?? []),
    },
    promises: {
      write: writePromise,
      find: async (id) =>
        promiseShape.safeParse(parseJson(await link.command("GET", keyOf(id)))).data ?? null,
    },
    history: lines("history", MAX_HISTORY, DAY_MS, () => {}),
  };
}
