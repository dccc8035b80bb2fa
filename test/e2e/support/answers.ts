/** Answers of the service as a route of the browser gives them in its place. */
import type { Page, Route } from "playwright-core";

/** Only what is asked of the upstream; what memory holds is asked while somebody types. */
export async function onSearch(page: Page, answer: (route: Route) => Promise<void>): Promise<void> {
  await page.route("/v1/search?*", (route) =>
    route.request().url().includes("only=known") ? route.continue() : answer(route),
  );
}

export function result(
  domain: string,
  tld: string,
  status: "available" | "taken" | "unknown",
  more: object = {},
) {
  const available = status === "available";
  return {
    domain,
    unicodeName: domain,
    tld,
    status,
    available,
    premium: false,
    years: 1,
    price: available ? { amount: "11.99", currency: "USD" } : null,
    renewal: available ? { amount: "13.99", currency: "USD" } : null,
    asOf: status === "unknown" ? null : "2026-03-20T00:00:00.000Z",
    stale: false,
    ...more,
  };
}

export function refusal(code: string, status: number, retryAfter?: number) {
  return {
    status,
    json: { code, detail: "x" },
    headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
  };
}

/** As the body of an event stream. */
export function streamed(results: readonly object[], complete = true) {
  const events = results.map((data) => `event: result\ndata: ${JSON.stringify(data)}\n\n`).join("");
  return {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
    body: `: hello\n\n${events}event: done\ndata: ${JSON.stringify({ complete })}\n\n`,
  };
}
