/** The calendar of expiring domains (RFC 5545), for mail programs that subscribe to it: a day for each domain with a known date. */
import { hash } from "node:crypto";
import ical from "ical-generator";
import type { Known } from "../facts/page.js";
import type { DomainList } from "../upstream/contract.js";

export const CALENDAR = "text/calendar; charset=utf-8";
export const CALENDAR_PATH = "/v1/staff/domains/expiring.ics";

/** How long a program may wait before it asks again, in seconds. */
const EVERY_SECONDS = 12 * 3_600;

export function calendarOf({ value: { records }, asOfMs }: Known<DomainList>): string {
  const calendar = ical({ name: "Expiring domains", ttl: EVERY_SECONDS });
  for (const { domain, expiresAt, autoRenew } of records) {
    if (expiresAt === null) continue;
    const renewal = {
      true: "renews automatically",
      false: "doesn't renew automatically",
      null: "auto-renew unknown",
    };
    calendar.createEvent({
      // The same in every answer, so that a later date moves the event.
      id: `${hash("sha256", domain, "hex").slice(0, 32)}@expiring`,
      start: new Date(expiresAt),
      timezone: "UTC",
      allDay: true,
      stamp: new Date(asOfMs),
      summary: `${domain} expires (${renewal[`${autoRenew}`]})`,
    });
  }
  return calendar.toString();
}
