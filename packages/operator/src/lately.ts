/** Estimates what the account ordered in the last 30 days from the list of its domains. */
import type { DomainRecord } from "./staff-api.js";

const DAY_MS = 86_400_000;
const LATELY_DAYS = 30;

export interface Ordered {
  readonly tld: string;
  readonly action: "registration" | "renewal";
  readonly domains: number;
}

/**
 * Counts a domain as registered if it was registered in that time, and as renewed if its current year began in that time and it hasn't expired.
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
