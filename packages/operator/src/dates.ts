/** What the dates of domains say: when they expire, in UTC days and calendar months, and what was ordered lately. */
import { counted } from "./figures.js";
import type { DomainRecord } from "./staff-api.js";

export interface Expiring<T> {
  readonly record: T;
  /** YYYY-MM-DD */
  readonly day: string;
  /** Negative if the day has passed. */
  readonly inDays: number;
}

const DAY_MS = 86_400_000;
const LATELY_DAYS = 30;

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

export interface Ordered {
  readonly tld: string;
  readonly action: "registration" | "renewal";
  readonly domains: number;
}

/**
 * Estimates what the account ordered in the last 30 days. Counts a domain as registered if it was registered in that time, and as renewed if its current year began in that time and it hasn't expired.
 * Only domains under `tlds` with both dates are counted.
 */
export function orderedLately(
  records: readonly Pick<DomainRecord, "domain" | "registeredAt" | "expiresAt">[],
  tlds: readonly string[],
  nowMs: number,
): Ordered[] {
  const counts = new Map<string, Ordered>();
  for (const { domain, registeredAt, expiresAt } of records) {
    // The longest matching TLD: `.com.af` before `.af`.
    const [tld] = tlds.filter((one) => domain.endsWith(one)).sort((a, b) => b.length - a.length);
    if (tld === undefined || registeredAt === null || expiresAt === null) continue;
    const registeredMs = Date.parse(registeredAt);
    const isLately = (atMs: number): boolean => atMs <= nowMs && atMs > nowMs - LATELY_DAYS * DAY_MS;
    const action = isLately(registeredMs)
      ? "registration"
      : Date.parse(expiresAt) > nowMs && isLately(yearBeganMs(expiresAt, nowMs))
        ? "renewal"
        : null;
    if (action === null) continue;
    const key = `${tld} ${action}`;
    counts.set(key, { tld, action, domains: (counts.get(key)?.domains ?? 0) + 1 });
  }
  return [...counts.values()].sort(
    (a, b) => tlds.indexOf(a.tld) - tlds.indexOf(b.tld) || a.action.localeCompare(b.action),
  );
}

/** When the current year of a domain with this expiry began. */
function yearBeganMs(expiresAt: string, nowMs: number): number {
  const expiry = new Date(expiresAt);
  const began = (year: number): number =>
    Date.UTC(year, expiry.getUTCMonth(), expiry.getUTCDate(), expiry.getUTCHours(), expiry.getUTCMinutes());
  const year = new Date(nowMs).getUTCFullYear();
  return began(year) <= nowMs ? began(year) : began(year - 1);
}
