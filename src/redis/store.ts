/** What the next owner needs, in Redis. What can't be written while Redis is away is written afterwards. */
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import { parseJson } from "../json.js";
import type { Log } from "../logger.js";
import type { RecordKind, Records } from "../record-file.js";
import type { RedisLink } from "./redis.js";
import type { SavedFile } from "../saved-file.js";
import { acts } from "../staff/audit.js";
import { signedCarts } from "../staff/signed-cart.js";
import type { Lines, SavedSettings, Store } from "../store.js";

const PREFIX = "af-storefront:";
const DAY_MS = 24 * 3_600_000;
const SAVED_MS = 60 * DAY_MS;
const MAX_HISTORY = 24 * 60;
const MAX_LATE = 4000;
/** How many lines one command reads, so that it ends in time. */
const CHUNK = 1000;

const document = z.object({ source: z.string(), data: z.unknown() });

export function createRedisStore(link: RedisLink, log: Log): Store {
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

  function lines(name: string, most: number, keptMs: number, onFailure?: () => void) {
    const key = `${PREFIX}${name}`;
    return {
      append(line: string): Promise<void> {
        const push = async (): Promise<void> => {
          await link.command("RPUSH", key, line);
          // If these fail, the next line makes up for it.
          await link.command("LTRIM", key, -most, -1).catch(() => null);
          await link.command("PEXPIRE", key, keptMs).catch(() => null);
        };
        return write(`${key} ${(made += 1)}`, push, onFailure);
      },
      async load(): Promise<string[]> {
        const loaded: string[] = [];
        for (;;) {
          const part = await link.command("LRANGE", key, loaded.length, loaded.length + CHUNK - 1);
          const more = z.array(z.string()).parse(part);
          loaded.push(...more);
          if (more.length < CHUNK) return loaded.slice(-most);
        }
      },
    } satisfies Lines;
  }

  function records<T>(name: string, kind: RecordKind<T>, onFailure: () => void): Records<T> {
    const { append, load } = lines(name, kind.most, kind.keptMs, onFailure);
    return {
      append: (record) => append(JSON.stringify(record)),
      load: async () => (await load()).flatMap((line) => kind.parse(line) ?? []),
    };
  }

  return {
    saved,
    acts: records("audit", acts, () => {
      log.error("audit.failed", { reason: "redis" });
    }),
    carts: records("carts", signedCarts, () => {
      log.error("carts.failed", { reason: "redis" });
    }),
    history: lines("history", MAX_HISTORY, DAY_MS),
  };
}
