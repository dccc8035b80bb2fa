/** How long a rate limit answer asks us to wait: parsed strictly (RFC 9110 §10.2.3), clamped to 1–300 s, and 60 s if it is absent or invalid. */

const DEFAULT_MS = 60_000;
const MIN_MS = 1_000;
const MAX_MS = 300_000;
const HTTP_DATE =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

export function retryAfterMs(header: unknown, nowMs: number): number {
  if (typeof header !== "string") return DEFAULT_MS;
  const text = header.trim();
  if (/^\d{1,15}$/.test(text)) return clamp(Number(text) * 1000);
  if (HTTP_DATE.test(text)) {
    const at = Date.parse(text);
    if (!Number.isNaN(at)) return clamp(at - nowMs);
  }
  return DEFAULT_MS;
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, MIN_MS), MAX_MS);
}
