/**
 * What one replica tells all others to forget or to renew. Each channel has a mark, and marks are ordered, so that all replicas come to the
 * latest one: whatever message was missed, and whatever old mark a Redis brings back that has been restored or emptied.
 */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { type RedisLink, redisScript } from "../redis.js";

export interface Channel {
  /** The mark in force, unlike any before it; null until Redis has named it once. */
  mark(): string | null;
  /** Names the mark to begin with, should Redis have none yet. */
  offer(mark: string): void;
  /** Sets a new mark without spaces, by default one of its own: in force here at once, and for the others as soon as they can be reached. */
  publish(mark?: string): void;
  /** Calls `act` for every mark that was set elsewhere. */
  subscribe(act: () => void): void;
}

export interface Invalidation {
  /** To be called once for each name. */
  channel(name: string): Channel;
  /** Resolves when every mark is known, at the latest after `withinMs`. */
  known(withinMs: number): Promise<void>;
  /** Resolves when everything so far has been published, or cannot be now. */
  published(): Promise<void>;
  close(): void;
}

interface Line {
  channel: Channel;
  /** A mark that another replica has set. */
  meet(mark: Mark): void;
  /** Brings the mark here and the one in Redis together. */
  catchUp(): Promise<void>;
}

const CHANNEL = "af-storefront:invalidation";
/** Longer than any fact is kept. */
const MARK_TTL_MS = 60 * 24 * 3_600_000;
/** A subscription can be dead without a sign, so nobody relies on messages alone. */
const CHECK_EVERY_MS = 5_000;
/** Messages older than so many marks do not come any more. */
const MARKS_SEEN = 50;

/**
 * Has the later mark stand; at a replica's start any mark that is there. Returns what was there before. Arguments: count, id, 1 at the
 * start, ms that it is kept.
 */
const SETTLE = redisScript(`
local stored = redis.call('GET', KEYS[1]) or ''
local count, id = stored:match('^(%d+) (%S+)$')
local ours, sent = tonumber(ARGV[1]), ARGV[2]
count = tonumber(count)
if count and (ARGV[3] == '1' or count > ours or (count == ours and id >= sent)) then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
else
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. sent, 'PX', ARGV[4])
end
return stored`);
const storedSchema = z.string();

interface Mark {
  /** One more than that of the mark before it, as far as its replica knew. */
  readonly count: number;
  readonly id: string;
}

export function createInvalidation(link: RedisLink, clock: Clock): Invalidation {
  const lines = new Map<string, Line>();
  const publishing = new Set<Promise<void>>();
  let waiting: (() => void)[] = [];

  function lineOf(name: string): Line {
    const key = `af-storefront:mark:${name}`;
    const acts: (() => void)[] = [];
    let mark: Mark | null = null;
    let isUnpublished = false;
    let offered: Mark = { count: 0, id: randomUUID() };
    /** Messages come back to their sender and from several replicas, maybe after a newer mark has been set. */
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

    function meet(next: Mark): void {
      if (seen.includes(written(next))) return;
      // Neither side knew of the other's mark, so a third follows both, the same wherever they meet.
      if (mark !== null && isUnpublished) publish(after(mark, next));
      else if (mark === null || isLater(next, mark)) set(next);
      else return;
      for (const act of acts) act();
    }

    async function settle(standing: Mark, isFirst: boolean): Promise<void> {
      const stored = read(
        storedSchema.parse(
          await link.run(SETTLE, key, [standing.count, standing.id, isFirst ? 1 : 0, MARK_TTL_MS]),
        ),
      );
      if (stored !== null) meet(stored);
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
    return { channel, meet, catchUp };
  }

  async function catchUp(): Promise<void> {
    await Promise.allSettled([...lines.values()].map((line) => line.catchUp()));
    if ([...lines.values()].some(({ channel }) => channel.mark() === null)) return;
    for (const done of waiting.splice(0)) done();
  }

  const soon = (): void => void catchUp();
  let cancel = (): void => {};
  const check = (): void => {
    cancel = clock.after(CHECK_EVERY_MS, check);
    if (link.reachable()) soon();
  };
  check();
  link.onReachable(soon);
  link.subscribe(
    CHANNEL,
    (message) => {
      const [name = "", ...rest] = message.split(" ");
      const mark = read(rest.join(" "));
      if (mark !== null) lines.get(name)?.meet(mark);
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
        const late = clock.after(withinMs, done);
        waiting.push(() => {
          late();
          done();
        });
        soon();
      }),
    async published() {
      await Promise.all(publishing);
    },
    close() {
      cancel();
      waiting = [];
    },
  };
}

function written({ count, id }: Mark): string {
  return `${count} ${id}`;
}

/** Null for what no replica writes. */
function read(text: string): Mark | null {
  const [, count, id] = /^(\d{1,15}) (\S+)$/.exec(text) ?? [];
  return count === undefined || id === undefined ? null : { count: Number(count), id };
}

function isLater(one: Mark, other: Mark): boolean {
  return one.count === other.count ? one.id > other.id : one.count > other.count;
}

function after(one: Mark, other: Mark): Mark {
  const both = [written(one), written(other)].sort().join(" ");
  const id = createHash("sha256").update(both).digest("base64url");
  return { count: Math.max(one.count, other.count) + 1, id };
}
