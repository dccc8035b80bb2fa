/**
 * The format of a ledger file: lines of 64 bytes with a checksum, so that each can be updated in place and read with `cat`. Anything that can't be
 * trusted counts as spent now: a bad file can cost calls but never grant extra ones.
 */
import { graceMsOf, occupiedMsOf } from "./slot-table.js";

export const LINE_BYTES = 64;
const SUM_DIGITS = 8;
const BODY_CHARS = LINE_BYTES - SUM_DIGITS - 2;
const VERSION = 1;
/**
 * If the ages by wall clock and uptime differ by more than this, the wall clock was set or the machine rebooted. Of a smaller difference, the safer
 * value is used.
 */
const CLOCKS_AGREE_MS = 2000;

/** One moment on each clock that matters. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
  /** The time since the machine booted. */
  readonly uptimeMs: number;
}

interface Recalled {
  /** One for each slot, monotonic; -Infinity = never used. */
  readonly slots: readonly { readonly lastArrivalAt: number; readonly assumed: boolean }[];
  /** Recorded calls that may still count but have no slot, because the budget is smaller now. They get one if it grows again. Monotonic. */
  readonly beyond: readonly number[];
  readonly pausedUntilAt: number;
}

/** FNV-1a: detects partial writes and foreign data, not tampering. */
function sum(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(16).padStart(SUM_DIGITS, "0");
}

function line(body: string): string {
  const padded = body.padEnd(BODY_CHARS);
  return `${padded} ${sum(padded)}\n`;
}

function bodyOf(text: string, index: number): string | undefined {
  const whole = text.slice(index * LINE_BYTES, (index + 1) * LINE_BYTES);
  const padded = whole.slice(0, BODY_CHARS);
  return whole.length === LINE_BYTES && whole === line(padded) ? padded.trimEnd() : undefined;
}

export function headerLine(slots: number, windowMs: number): string {
  return line(`quota-ledger ${VERSION} slots ${slots} windowMs ${windowMs}`);
}

export function pauseLine(untilAt: number, at: Moment): string {
  return line(untilAt === -Infinity ? "pause none" : `pause ${stamp(untilAt, at)}`);
}

/** Infinity = in flight, -Infinity = never used. */
export function slotLine(lastArrivalAt: number, at: Moment): string {
  if (lastArrivalAt === Infinity) return line("sent");
  return line(lastArrivalAt === -Infinity ? "free" : `done ${stamp(lastArrivalAt, at)}`);
}

function stamp(whenMs: number, at: Moment): string {
  const ahead = whenMs - at.monotonicMs;
  // Rounded up: a slot may seem a millisecond younger than it is, but never older.
  return `${Math.ceil(at.wallMs + ahead)} ${Math.ceil(at.uptimeMs + ahead)}`;
}

function decodeStamp(
  body: string | undefined,
  word: string,
): { wallMs: number; uptimeMs: number } | undefined {
  const found = body === undefined ? null : /^(\w+) (\d{1,16}) (-?\d{1,16})$/.exec(body);
  return found !== null && found[1] === word
    ? { wallMs: Number(found[2]), uptimeMs: Number(found[3]) }
    : undefined;
}

/** The last arrival of one recorded slot; undefined if it must count as spent now. */
function arrivalOf(body: string | undefined, windowMs: number, at: Moment): number | undefined {
  if (body === "free") return -Infinity;
  const stamped = decodeStamp(body, "done");
  if (stamped === undefined) return undefined;
  const wallAge = at.wallMs - stamped.wallMs;
  const uptimeAge = at.uptimeMs - stamped.uptimeMs;
  const age = Math.min(wallAge, uptimeAge);
  if (Math.abs(wallAge - uptimeAge) > CLOCKS_AGREE_MS || age < -graceMsOf(windowMs) - 1) return undefined;
  return at.monotonicMs - age;
}

interface RecallSettings {
  readonly budget: number;
  readonly headroom: number;
  readonly windowMs: number;
  readonly coldStart: "assume-spent" | "assume-free";
}

/** Turns the text of a file (undefined = no file) into slots for `budget` calls, without losing any recorded call. */
export function recall(text: string | undefined, settings: RecallSettings, at: Moment): Recalled {
  const { budget, headroom, windowMs } = settings;
  const spentNow = { lastArrivalAt: at.monotonicMs + graceMsOf(windowMs), assumed: true };
  const free = { lastArrivalAt: -Infinity, assumed: false };
  const header = text === undefined ? undefined : bodyOf(text, 0);
  const found =
    header === undefined ? null : /^quota-ledger 1 slots (\d{1,9}) windowMs (\d{1,12})$/.exec(header);
  if (text === undefined || found === null) {
    if (text === undefined && settings.coldStart === "assume-free")
      return { slots: Array.from({ length: budget }, () => free), beyond: [], pausedUntilAt: -Infinity };
    // The previous process made at most `budget` calls, so `headroom` more stay within the limit until those have expired.
    const slots = Array.from({ length: budget }, (_, index) => (index < headroom ? free : spentNow));
    return { slots, beyond: [], pausedUntilAt: -Infinity };
  }

  const recorded = Number(found[1]);
  // With a shorter window, slots were reused while their earlier calls still count in ours.
  const isShorter = Number(found[2]) < windowMs;
  const slots: { lastArrivalAt: number; assumed: boolean }[] = [];
  for (let index = 0; index < Math.min(recorded, 1_000_000); index += 1) {
    const lastArrivalAt = arrivalOf(bodyOf(text, index + 2), Number(found[2]), at);
    slots.push(lastArrivalAt === undefined || isShorter ? spentNow : { lastArrivalAt, assumed: false });
  }
  // If there are fewer slots than before, they get the calls that rest longest.
  slots.sort((a, b) =>
    a.lastArrivalAt === b.lastArrivalAt ? 0 : b.lastArrivalAt > a.lastArrivalAt ? 1 : -1,
  );
  while (slots.length < budget) slots.push(isShorter ? spentNow : free);
  const beyond = slots
    .slice(budget)
    .map(({ lastArrivalAt }) => lastArrivalAt)
    .filter((lastArrivalAt) => lastArrivalAt + occupiedMsOf(windowMs) > at.monotonicMs);
  return { slots: slots.slice(0, budget), beyond, pausedUntilAt: pauseOf(bodyOf(text, 1), at) };
}

/** A pause is wrong by as much as the wall clock was set; the ledger limits its length. */
function pauseOf(body: string | undefined, at: Moment): number {
  const stamped = decodeStamp(body, "pause");
  if (stamped === undefined) return -Infinity;
  const leftMs = stamped.wallMs - at.wallMs;
  return leftMs > 0 ? at.monotonicMs + leftMs : -Infinity;
}
