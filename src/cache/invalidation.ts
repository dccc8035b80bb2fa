/**
 * What one replica tells all others to forget or to renew. Each channel has a mark in Redis, so a replica that missed the message finds out
 * on its next check, and what was published without Redis is published once it is back.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../clock.js";
import type { RedisLink } from "../redis.js";

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
  /** A message of the channel. */
  hear(mark: string): void;
  /** Brings the mark here and the one in Redis together. */
  catchUp(): Promise<void>;
}

const CHANNEL = "af-storefront:invalidation";
/** Longer than any fact is kept; a mark that lapses is set again by a replica that knows it. */
const MARK_TTL_MS = 60 * 24 * 3_600_000;
/** A subscription can be dead without a sign, so nobody relies on messages alone. */
const CHECK_EVERY_MS = 5_000;
/** Messages older than so many marks do not come any more. */
const MARKS_SEEN = 50;

export function createInvalidation(link: RedisLink, clock: Clock): Invalidation {
  const lines = new Map<string, Line>();
  const publishing = new Set<Promise<void>>();
  let waiting: (() => void)[] = [];

  function lineOf(name: string): Line {
    const key = `af-storefront:mark:${name}`;
    const acts: (() => void)[] = [];
    let mark: string | null = null;
    let isUnpublished = false;
    let offered: string = randomUUID();
    /** Messages come back to their sender and from several replicas, maybe after a newer mark has been set. */
    let seen: readonly string[] = [];

    function set(next: string): void {
      mark = next;
      seen = [next, ...seen].slice(0, MARKS_SEEN);
    }

    function receive(next: string): void {
      if (next === mark) return;
      set(next);
      // A replica that receives it acts from now on, which covers what was still to be published here.
      isUnpublished = false;
      for (const act of acts) act();
    }

    async function send(sent: string): Promise<void> {
      await link.set(key, sent, MARK_TTL_MS);
      await link.publish(CHANNEL, `${name} ${sent}`);
      if (mark === sent) isUnpublished = false;
    }

    async function catchUp(): Promise<void> {
      const before = mark;
      if (isUnpublished && before !== null) return send(before);
      const stored = await link.get(key);
      // A mark that was set or received meanwhile is newer than what Redis answered.
      if (mark !== before) return;
      if (stored !== null) return receive(stored);
      const first = before ?? offered;
      if (!(await link.claim(key, first, MARK_TTL_MS))) return catchUp();
      if (mark === before) mark = first;
    }

    const channel: Channel = {
      mark: () => mark,
      offer(first) {
        offered = first;
      },
      publish(next = randomUUID()) {
        set(next);
        isUnpublished = true;
        const done = send(next)
          .catch(() => undefined)
          .finally(() => publishing.delete(done));
        publishing.add(done);
      },
      subscribe: (act) => void acts.push(act),
    };
    const hear = (sent: string): void => {
      if (!seen.includes(sent)) receive(sent);
    };
    return { channel, hear, catchUp };
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
      const [name = "", mark = ""] = message.split(" ");
      if (mark !== "") lines.get(name)?.hear(mark);
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
