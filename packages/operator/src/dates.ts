/** When domains expire, in UTC days, and the calendar months that show it. */
import { counted } from "./figures.js";

export interface Expiring<T> {
  readonly record: T;
  /** YYYY-MM-DD */
  readonly day: string;
  /** Negative if the day has passed. */
  readonly inDays: number;
}

const DAY_MS = 86_400_000;

/** The domains with a known date, earliest first. */
export function expiring<T extends { readonly expiresAt: string | null }>(
  records: readonly T[],
  nowMs: number,
): Expiring<T>[] {
  const today = Math.floor(nowMs / DAY_MS);
  return records
    .flatMap((record) => {
      const atMs = record.expiresAt === null ? NaN : Date.parse(record.expiresAt);
      if (Number.isNaN(atMs)) return [];
      return [{ record, day: dayOf(atMs), inDays: Math.floor(atMs / DAY_MS) - today }];
    })
    .sort((a, b) => a.inDays - b.inDays);
}

export interface Month {
  /** Its first day, YYYY-MM-01. */
  readonly first: string;
  /** Weeks start on Monday; null is a day of another month. */
  readonly weeks: readonly (readonly (string | null)[])[];
}

/** The calendar months from today to `days` days ahead. */
export function monthsAhead(nowMs: number, days: number): Month[] {
  const now = new Date(nowMs);
  const last = new Date(nowMs + days * DAY_MS);
  const count =
    (last.getUTCFullYear() - now.getUTCFullYear()) * 12 + last.getUTCMonth() - now.getUTCMonth() + 1;
  return Array.from({ length: count }, (_, n) => monthAt(now.getUTCFullYear(), now.getUTCMonth() + n));
}

function monthAt(year: number, month: number): Month {
  const firstMs = Date.UTC(year, month, 1);
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const before = (new Date(firstMs).getUTCDay() + 6) % 7;
  const cells = Array.from({ length: Math.ceil((before + length) / 7) * 7 }, (_, cell) => {
    const day = cell - before;
    return day < 0 || day >= length ? null : dayOf(firstMs + day * DAY_MS);
  });
  return {
    first: dayOf(firstMs),
    weeks: Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7)),
  };
}

/** `today`, `in 3 days`, `3 days ago` */
export function whenOf({ inDays }: Pick<Expiring<unknown>, "inDays">): string {
  if (inDays === 0) return "today";
  return inDays < 0 ? `${counted(-inDays, "day")} ago` : `in ${counted(inDays, "day")}`;
}

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
