/** Reads single values in the common formats of dates, flags, counts, amounts and host names; anything else is unknown, never guessed. */
import { canonicalHost } from "../domain-name.js";
import { unwritten, WrittenNumber } from "./body.js";
import { isFields, pick, scalarText } from "./fields.js";
import { NAMESERVER, OFF_WORDS, ON_WORDS } from "./vocabulary.js";

export function countOf(value: unknown): number | null {
  const count = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : unwritten(value);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/**
 * A JSON number with one or two fraction digits becomes a decimal with two; text stays as it is. A whole number becomes null, because it could
 * be cents as well as dollars.
 */
export function decimalOf(amount: unknown): unknown {
  if (typeof amount !== "number" && !(amount instanceof WrittenNumber)) return amount;
  const text = scalarText(amount) ?? "";
  return /^\d+\.\d{1,2}$/.test(text) ? text.padEnd(text.indexOf(".") + 3, "0") : null;
}

/** No domain is older than the first ones (1985) or registered for a century. Years of other calendars and zero dates are outside. */
const [FIRST_MS, LAST_MS] = [Date.UTC(1985, 0), Date.UTC(2101, 0)];
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/**
 * Seconds or milliseconds since the epoch, a date (also as 01-Mar-2027), or a date with a time (UTC unless it has an offset), as RFC 3339 in
 * UTC, if a domain can have it; otherwise null.
 */
export function instantOf(value: unknown): string | null {
  if (value instanceof WrittenNumber) return instantOf(unwritten(value));
  if (typeof value === "number") return rfc3339(new Date(value * 1000)) ?? rfc3339(new Date(value));
  // As PHP writes a date: in a zone, which counts only as an offset.
  if (isFields(value) && typeof value["date"] === "string") {
    const zone = value["timezone"] ?? "Z";
    return typeof zone === "string" ? instantOf(`${value["date"]}${zone}`) : null;
  }
  if (typeof value !== "string") return null;
  const text = value.trim();
  if (/^\d{9,13}$/.test(text)) return instantOf(Number(text));
  const named = /^(\d{2})-([A-Za-z]{3})-(\d{4})$/.exec(text);
  if (named) {
    const [, day, month = "", year] = named;
    const index = MONTHS.indexOf(month.toLowerCase());
    return index < 0 ? null : instantOf(`${year}-${String(index + 1).padStart(2, "0")}-${day}`);
  }
  const parts =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?$/i.exec(
      text,
    );
  if (!parts) return null;
  const [, day, time = "00:00:00", zone = "Z"] = parts;
  // `Date` moves a day that doesn't exist, such as 30 February, into the next month.
  if (rfc3339(new Date(`${day}T00:00:00Z`))?.startsWith(`${day}T`) !== true) return null;
  const offset = /^[+-]/.test(zone) ? zone.replace(/^(...):?/, "$1:") : "Z";
  return rfc3339(new Date(`${day}T${time}${offset}`));
}

function rfc3339(date: Date): string | null {
  const atMs = date.getTime();
  return atMs >= FIRST_MS && atMs < LAST_MS ? date.toISOString() : null;
}

export function flagOf(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  const word = scalarText(value)?.toLowerCase() ?? "";
  if (ON_WORDS.includes(word)) return true;
  return OFF_WORDS.includes(word) ? false : null;
}

/** As many as fit into one DNS response; reading more would only cost time. */
const MAX_NAMESERVERS = 13;

export function hostsOf(value: unknown): string[] {
  const items: unknown[] =
    typeof value === "string"
      ? value.split(/[\s,;]+/)
      : Array.isArray(value)
        ? value
        : isFields(value)
          ? Object.values(value)
          : [];
  return items.slice(0, MAX_NAMESERVERS).flatMap((item) => {
    const host = isFields(item) ? pick([item], NAMESERVER) : item;
    const name = typeof host === "string" ? canonicalHost(host) : null;
    return name === null ? [] : [name];
  });
}
