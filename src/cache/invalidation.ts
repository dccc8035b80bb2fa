/**
 * Lets one replica invalidate data on all others. Each channel has a mark. Marks are ordered, so all replicas converge on the latest one
 * even if messages are lost, or Redis is restored from an old backup or emptied.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type Clock, every } from "../clock.js";
import { type RedisLink, redisScript } from "../redis.js";

export interface Channel {
  /** The current mark, different from all before it; null until it has been read from Redis once. */
  mark(): string | null;
  /** Sets the initial mark, used if Redis has none yet. */
  offer(mark: string): void;
  /** Sets a new mark (without spaces; random by default), here immediately and on the others as soon as they are reachable. */
  publish(mark?: string): void;
  /** Calls `act` for every mark set by another replica. `wasPublished` is false for the initial mark of a fleet that has published nothing. */
  subscribe(act: (wasPublished: boolean) => void): void;
}

export interface Invalidation {
  /** Call once per name. */
  channel(name: string): Channel;
  /** Resolves when every mark is known, after `withinMs` at the latest. */
  known(withinMs: number): Promise<void>;
  /** Resolves when every publication so far has succeeded or failed. */
  published(): Promise<void>;
  close(): void;
}

interface Line {
  channel: Channel;
  /** Handles a mark set by another replica. */
  receive(mark: Mark): void;
  /** Synchronizes the mark with Redis. */
  catchUp(): Promise<void>;
}

const CHANNEL = "af-storefront:invalidation";
/** Longer than any fact is stored. */
const MARK_TTL_MS = 60 * 24 * 3_600_000;
/** A subscription can fail silently, so marks are also polled. */
const CHECK_EVERY_MS = 5_000;
/** A message this many marks old can no longer arrive. */
const MARKS_SEEN = 50;

/**
 * Stores the given mark if it is later than the stored one; on a replica's startup any stored mark wins. Returns the one stored before.
 * Arguments: count, id, 1 on startup, TTL in ms.
 */
const SETTLE = redisScript(`
local stored = redis.call('GET', KEYS[1]) or ''
local count, id = stored:match('^(%d+) (%S+)$')
local ours, sent = tonumber(ARGV[1]), ARGV[2]
count = tonumber(count)
local isStanding = count and (ARGV[3] == '1' or count > ours)
if count == ours then isStanding = isStanding or #id > #sent or (#id == #sent and id >= sent) end
if isStanding then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
else
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. sent, 'PX', ARGV[4])
end
return stored`);
const storedSchema = z.string();
/** Between the ids of a mark that stands for several. */
const AND = "+";

interface Mark {
  /** 0 before anything has been published; then one more than that of the previous mark known to its replica. */
  readonly count: number;
  /** Of several marks that were set at the same time: all of theirs, sorted. */
  readonly id: string;
}

export function createInvalidation(link: RedisLink, clock: Clock): Invalidation {
  const lines = new Map<string, Line>();
  const publishing = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];

  function lineOf(name: string): Line {
    const key = `af-storefront:mark:${name}`;
    const acts: ((wasPublished: boolean) => void)[] = [];
    let mark: Mark | null = null;
    let isUnpublished = false;
    let offered: Mark = { count: 0, id: randomUUID() };
    /** A replica also receives its own messages, and possibly old ones after a newer mark has been set. */
    let seen: readonly string[] = [];

    function set(next: Mark): void {
      mark = next;
      seen = [written(next), ...seen].slice(0, MARKS_SEEN);
    }

    function publish(next: Mark): void {
      set(next);
      isUnpublished = true;
      const done = send(next)
        .catch(() => undefined)
        .finally(() => publishing.delete(done));
      publishing.add(done);
    }

    function receive(next: Mark): void {
      if (seen.includes(written(next))) return;
      if (mark !== null && isUnpublished) {
        // Neither replica knew the other's mark, so both are replaced by one that stands for both.
        const joined = both(mark, next);
        if (written(joined) === written(mark)) return;
        publish(joined);
      } else if (mark === null || isLater(next, mark)) set(next);
      else return;
      for (const act of acts) act(next.count > 0);
    }

    async function settle(standing: Mark, isFirst: boolean): Promise<void> {
      const stored = read(
        storedSchema.parse(
          await link.run(SETTLE, key, [standing.count, standing.id, isFirst ? 1 : 0, MARK_TTL_MS]),
        ),
      );
      if (stored !== null) receive(stored);
      else if (mark === null) set(standing);
    }

    async function send(sent: Mark): Promise<void> {
      await settle(sent, false);
      await link.publish(CHANNEL, `${name} ${written(sent)}`);
      if (mark === sent) isUnpublished = false;
    }

    async function catchUp(): Promise<void> {
      if (mark === null) return settle(offered, true);
      return isUnpublished ? send(mark) : settle(mark, false);
    }

    const channel: Channel = {
      mark: () => mark?.id ?? null,
      offer(id) {
        offered = { count: 0, id };
      },
      publish(id = randomUUID()) {
        publish({ count: (mark ?? offered).count + 1, id });
      },
      subscribe: (act) => void acts.push(act),
    };
    return { channel, receive, catchUp };
  }

  async function catchUp(): Promise<void> {
    await Promise.allSettled([...lines.values()].map((line) => line.catchUp()));
    if ([...lines.values()].some(({ channel }) => channel.mark() === null)) return;
    for (const done of waiting.splice(0)) done();
  }

  const soon = (): void => void catchUp();
  const cancel = every(clock, CHECK_EVERY_MS, () => {
    if (link.reachable()) soon();
  });
  link.onReachable(soon);
  link.subscribe(
    CHANNEL,
    (message) => {
      const [name = "", ...rest] = message.split(" ");
      const mark = read(rest.join(" "));
      if (mark !== null) lines.get(name)?.receive(mark);
    },
    soon,
  );

  return {
    channel(name) {
      const line = lineOf(name);
      lines.set(name, line);
      return line.channel;
    },
    known: (withinMs) =>
      new Promise((done) => {
        clock.after(withinMs, done);
        waiting.push(done);
        soon();
      }),
    async published() {
      await Promise.all(publishing);
    },
    close: cancel,
  };
}

function written({ count, id }: Mark): string {
  return `${count} ${id}`;
}

/** Parses a mark; null if malformed. */
function read(text: string): Mark | null {
  const [, count, id] = /^(\d{1,15}) (\S+)$/.exec(text) ?? [];
  return count === undefined || id === undefined ? null : { count: Number(count), id };
}

/** As in the script. A mark that stands for several is later than one for fewer of them. */
function isLater(one: Mark, other: Mark): boolean {
  if (one.count !== other.count) return one.count > other.count;
  return one.id.length === other.id.length ? one.id > other.id : one.id.length > other.id.length;
}

/** Joins two marks. The order doesn't matter, so all replicas that know the same marks agree on the result. */
function both(one: Mark, other: Mark): Mark {
  const ids = new Set([...one.id.split(AND), ...other.id.split(AND)]);
  return { count: Math.max(one.count, other.count), id: [...ids].sort().join(AND) };
}
