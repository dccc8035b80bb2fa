/**
 * What one replica tells all others: that something is to be forgotten or renewed, from which moment. Each topic has a mark in Redis, so that
 * who missed the message finds out on the next look, and what was told without Redis is told once it is back.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../clock.js";
import type { RedisLink } from "../redis.js";

export interface Topic {
  /** The mark in force, unlike any before it; null until Redis has told it once. */
  mark(): string | null;
  /** Sets a new mark with this moment (wall clock, ms): in force here at once, told to the others as soon as they can be reached. */
  tell(atMs: number): void;
  /** Has `act` called with the moment of every mark that was set elsewhere. */
  onTold(act: (atMs: number) => void): void;
}

export interface News {
  /** To be called once for each name. */
  topic(name: string): Topic;
  /** Resolves when every mark is known, at the latest after `withinMs`. */
  known(withinMs: number): Promise<void>;
  /** Resolves when the others have been told everything so far, or cannot be told now. */
  told(): Promise<void>;
  close(): void;
}

interface Wire {
  topic: Topic;
  hear(mark: string): void;
  /** Brings the mark here and the one in Redis together. */
  catchUp(): Promise<void>;
}

const CHANNEL = "af-storefront:news";
/** Longer than any fact is kept; a mark that lapses is set again by who knows it. */
const MARK_TTL_MS = 60 * 24 * 3_600_000;
/** A subscription can be dead without a sign, so nobody relies on messages alone. */
const LOOK_EVERY_MS = 5_000;

export function createNews(link: RedisLink, clock: Clock): News {
  const wires = new Map<string, Wire>();
  const telling = new Set<Promise<void>>();
  let waiting: (() => void)[] = [];

  function wireOf(name: string): Wire {
    const key = `af-storefront:mark:${name}`;
    const acts: ((atMs: number) => void)[] = [];
    let mark: string | null = null;
    let untold = false;

    function hear(next: string): void {
      if (next === mark) return;
      mark = next;
      // Whoever hears it acts from now on, so what was to be told before is told with it.
      untold = false;
      for (const act of acts) act(momentOf(next));
    }

    async function send(sent: string): Promise<void> {
      await link.set(key, sent, MARK_TTL_MS);
      await link.publish(CHANNEL, `${name} ${sent}`);
      if (mark === sent) untold = false;
    }

    async function catchUp(): Promise<void> {
      const before = mark;
      if (untold && before !== null) return send(before);
      const stored = await link.get(key);
      // A mark that was set or heard meanwhile is newer than what Redis answered.
      if (mark !== before) return;
      if (stored !== null) return hear(stored);
      const first = before ?? newMark(0);
      if (!(await link.claim(key, first, MARK_TTL_MS))) return catchUp();
      if (mark === before) mark = first;
    }

    const topic: Topic = {
      mark: () => mark,
      tell(atMs) {
        mark = newMark(atMs);
        untold = true;
        const done = send(mark)
          .catch(() => undefined)
          .finally(() => telling.delete(done));
        telling.add(done);
      },
      onTold: (act) => void acts.push(act),
    };
    return { topic, hear, catchUp };
  }

  async function catchUp(): Promise<void> {
    await Promise.allSettled([...wires.values()].map((wire) => wire.catchUp()));
    if ([...wires.values()].some(({ topic }) => topic.mark() === null)) return;
    for (const done of waiting.splice(0)) done();
  }

  const soon = (): void => void catchUp();
  let cancel = (): void => {};
  const look = (): void => {
    cancel = clock.after(LOOK_EVERY_MS, look);
    if (link.reachable()) soon();
  };
  look();
  link.onReachable(soon);
  link.subscribe(
    CHANNEL,
    (message) => {
      const [name = "", mark = ""] = message.split(" ");
      if (mark !== "") wires.get(name)?.hear(mark);
    },
    soon,
  );

  return {
    topic(name) {
      const wire = wireOf(name);
      wires.set(name, wire);
      return wire.topic;
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
    async told() {
      await Promise.all(telling);
    },
    close() {
      cancel();
      waiting = [];
    },
  };
}

function newMark(atMs: number): string {
  return `${Math.floor(atMs)}-${randomUUID()}`;
}

/** 0, which nothing is older than, where a mark is none of ours. */
function momentOf(mark: string): number {
  return Number(/^(\d{1,15})-/.exec(mark)?.[1] ?? 0);
}
