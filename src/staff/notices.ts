/**
 * Notices for staff: each alarm when it begins and when it ends, and each line of a signed cart that is lost or stays unordered for a day. Every
 * notice is posted at least once, in order within its kind, again after growing pauses for a day; nothing waits for it.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Receiver } from "../config/env.js";
import { type Clock, every, instant } from "../clock.js";
import type { Log } from "../logger.js";
import type { SavedFile } from "../saved-file.js";
import type { AnswerOf } from "../wire/answer.js";
import type { noticesShape } from "../wire/overview.js";
import type { Alarm } from "./alarms.js";
import type { Carts, SeenCart, SeenLine } from "./carts.js";
import { notify } from "./notify.js";
import { DAY_MS, type LineNotice } from "./signed-cart.js";

const noticeShape = z.object({
  id: z.string(),
  at: z.string(),
  kind: z.string(),
  state: z.enum(["begun", "ended", "lost", "unordered", "test"]),
  text: z.string(),
  details: z.record(z.string(), z.unknown()),
});
export type Notice = z.infer<typeof noticeShape>;

/** A notice and its delivery. */
const entryShape = noticeShape.extend({
  attempts: z.int(),
  delivery: z.enum(["waiting", "delivered", "failed"]),
  /** When it was delivered or given up, or is tried next; wall clock, ms. */
  deliveryAtMs: z.number(),
  problem: z.string().nullable(),
});
type Entry = z.infer<typeof entryShape>;

const aboutAlarm = z.object({ kind: z.string(), about: z.string(), text: z.string() });
export const savedNotices = z.object({
  /** The alarms with a notice that they began, and none yet that they ended. */
  begun: z.array(aboutAlarm),
  entries: z.array(entryShape),
});
type Saved = z.infer<typeof savedNotices>;

export interface Notices {
  /** The last ones with their delivery, the newest first. */
  present(): AnswerOf<typeof noticesShape>;
  /** Starts sending notices; returns a function that stops it. */
  keep(): () => void;
}

/** What is on now; `unknown`: kinds of which this process doesn't know yet whether they are on. */
export interface AlarmsNow {
  readonly alarms: readonly Alarm[];
  readonly unknown: ReadonlySet<string>;
}

interface NoticeSettings {
  /** Null: no notices are sent. */
  readonly receiver: Receiver | null;
  readonly file: SavedFile<Saved> | null;
  readonly alarms: () => AlarmsNow;
  readonly carts: Pick<Carts, "all" | "markNotified">;
  readonly clock: Clock;
  readonly log: Log;
}

const LOOK_EVERY_MS = 5_000;
/** An alarm that comes and goes within this time is one. */
const ENDS_AFTER_MS = 60_000;
const LINES_EVERY_MS = 60_000;
/** What happened longer ago isn't news any more. */
const NEWS_MS = 2 * DAY_MS;
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 3_600_000;
const GIVES_UP_AFTER_MS = DAY_MS;
const KEPT_DONE = 50;
/** More than an outage of a day brings about; then the oldest are given up. */
const MAX_WAITING = 2_000;

export function createNotices(settings: NoticeSettings): Notices {
  const { receiver, file, carts, clock, log } = settings;
  let begun: Saved["begun"] = [];
  let entries: Entry[] = [];
  /** By key: since when an alarm seems to have begun, or to have ended. */
  const changing = new Map<string, number>();
  const sending = new Set<string>();
  let linesAt = -Infinity;

  const waiting = (): Entry[] => entries.filter(({ delivery }) => delivery === "waiting");

  function save(): void {
    const done = entries.filter(({ delivery }) => delivery !== "waiting").slice(-KEPT_DONE);
    entries = [...done, ...waiting().slice(-MAX_WAITING)];
    file?.save({ begun, entries });
  }

  function enqueue(
    kind: string,
    state: Notice["state"],
    text: string,
    details: Notice["details"],
    id: string = randomUUID(),
  ): void {
    if (entries.some((entry) => entry.id === id)) return;
    const nowMs = clock.now();
    const notice = { id, at: instant(nowMs), kind, state, text, details };
    entries.push({ ...notice, attempts: 0, delivery: "waiting", deliveryAtMs: nowMs, problem: null });
    save();
  }

  /** Whether the change is seen for the second time, at least `afterMs` after the first. */
  function isSettled(key: string, afterMs: number): boolean {
    const sinceAt = changing.get(key);
    if (sinceAt === undefined) changing.set(key, clock.monotonic());
    if (sinceAt === undefined || clock.monotonic() - sinceAt < afterMs) return false;
    changing.delete(key);
    return true;
  }

  function lookAtAlarms(): void {
    const { alarms, unknown } = settings.alarms();
    const now = new Map(alarms.map((alarm) => [keyOf(alarm), alarm]));
    const announced = new Set(begun.map(keyOf));
    for (const key of changing.keys()) if (now.has(key) === announced.has(key)) changing.delete(key);
    for (const [key, alarm] of now) {
      if (announced.has(key) || !isSettled(key, LOOK_EVERY_MS)) continue;
      const { kind, about, level, text, amounts, todo } = alarm;
      const isFull = receiver?.full === true && amounts !== undefined;
      begun.push({ kind, about, text });
      enqueue(kind, "begun", isFull ? `${text} ${amounts}` : text, { about, level, todo });
    }
    for (const alarm of begun) {
      const key = keyOf(alarm);
      if (now.has(key) || unknown.has(alarm.kind) || !isSettled(key, ENDS_AFTER_MS)) continue;
      begun = begun.filter((one) => one !== alarm);
      enqueue(alarm.kind, "ended", `Over: ${alarm.text}`, { about: alarm.about });
    }
  }

  function lookAtLines(): void {
    if (clock.monotonic() - linesAt < LINES_EVERY_MS) return;
    linesAt = clock.monotonic();
    const seen = new Set<string>();
    for (const cart of carts.all())
      for (const line of cart.lines) {
        const name = `${line.domain} ${line.action}`;
        const what = newsOf(cart, line, seen.has(name), clock.now());
        seen.add(name);
        if (what === null || line.notices.includes(what)) continue;
        const { domain, action, years, price, wholesale } = line;
        const amounts = receiver?.full === true && { price, wholesale };
        const details = { promise: cart.id, domain, action, years, checkout: cart.checkout, ...amounts };
        // Marked only once the notice is saved; until then it has the same id.
        enqueue("promise", what, textOf(cart, line, what), details, `${cart.id} ${name} ${what}`);
        void (file?.saved() ?? Promise.resolve()).then(() => carts.markNotified(cart.id, line, what));
      }
  }

  /** The first waiting notice of each kind. */
  function heads(): Entry[] {
    const byKind = new Map<string, Entry>();
    for (const entry of waiting()) if (!byKind.has(entry.kind)) byKind.set(entry.kind, entry);
    return [...byKind.values()];
  }

  async function send(to: Receiver, entry: Entry, signal: AbortSignal): Promise<void> {
    const { id, at, kind, state, text, details } = entry;
    if (sending.has(kind)) return;
    sending.add(kind);
    const problem = await notify(to, { id, at, kind, state, text, details }, clock, signal);
    sending.delete(kind);
    if (signal.aborted) return;
    const now = clock.now();
    entry.attempts += 1;
    entry.problem = problem;
    entry.deliveryAtMs = now;
    if (problem === null) entry.delivery = "delivered";
    else if (now - Date.parse(at) >= GIVES_UP_AFTER_MS) {
      entry.delivery = "failed";
      log.error("notice.abandoned", { kind, problem });
    } else {
      entry.deliveryAtMs += Math.min(FIRST_PAUSE_MS * 2 ** (entry.attempts - 1), LONGEST_PAUSE_MS);
      if (entry.attempts === 1) log.warn("notice.failed", { kind, problem });
    }
    save();
    if (problem === null) deliver(to, signal);
  }

  function deliver(to: Receiver, signal: AbortSignal): void {
    for (const entry of heads()) if (entry.deliveryAtMs <= clock.now()) void send(to, entry, signal);
  }

  return {
    present: () => ({
      on: receiver !== null,
      waiting: waiting().length,
      last: entries.toReversed().slice(0, KEPT_DONE).map(presentEntry),
    }),
    keep() {
      if (receiver === null) return () => {};
      const end = new AbortController();
      let stopLooking = (): void => {};
      void (async () => {
        const saved = await file?.load();
        if (end.signal.aborted) return;
        if (saved) ({ begun, entries } = saved);
        stopLooking = every(clock, LOOK_EVERY_MS, () => {
          lookAtAlarms();
          lookAtLines();
          deliver(receiver, end.signal);
        });
      })();
      return () => {
        stopLooking();
        end.abort();
        sending.clear();
      };
    },
  };
}

function keyOf({ kind, about }: Pick<Alarm, "kind" | "about">): string {
  return `${kind} ${about}`;
}

/** What staff should hear of a line; of several for one order, `isOlder` ones are silent. */
function newsOf(
  { issuedAtMs, checkout }: SeenCart,
  line: SeenLine,
  isOlder: boolean,
  nowMs: number,
): LineNotice | null {
  const isNews = (sinceAt: number): boolean => nowMs >= sinceAt && nowMs < sinceAt + NEWS_MS;
  if (isOlder || checkout?.state === "cancelled" || line.state === "managed") return null;
  if (line.state === "lost") return isNews(line.stateAt) ? "lost" : null;
  return isNews((checkout?.atMs ?? issuedAtMs) + DAY_MS) ? "unordered" : null;
}

function textOf({ checkout }: SeenCart, { domain, action, years }: SeenLine, what: LineNotice): string {
  const line = `${domain} (${action}, ${years} ${years === 1 ? "year" : "years"})`;
  if (what === "lost") return `${line} was signed, but somebody else has the name now.`;
  return checkout === null
    ? `${line} was signed a day ago, and hasn't been ordered.`
    : `${line} was ordered at the checkout a day ago, but isn't seen in the account.`;
}

function presentEntry({ id, at, kind, state, text, attempts, delivery, deliveryAtMs, problem }: Entry) {
  return { id, at, kind, state, text, attempts, delivery, deliveryAt: instant(deliveryAtMs), problem };
}
