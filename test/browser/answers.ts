/** Answers that browser routes give in place of the service. */
import type { Page, Route } from "playwright-core";

/** Intercepts searches that can call the upstream. Requests for known results, sent while a visitor types, reach the service. */
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

/** These results as an event stream. */
export function streamed(results: readonly object[], complete = true) {
  const events = results.map((data) => `event: result\ndata: ${JSON.stringify(data)}\n\n`).join("");
  return {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
    body: `: hello\n\n${events}event: done\ndata: ${JSON.stringify({ complete })}\n\n`,
  };
}

/** A search in which one name is premium, one has no price, and one is taken. */
export const mixedSearch = streamed([
  result("gold.af", ".af", "available", {
    premium: true,
    price: { amount: "1575.00", currency: "USD" },
    renewal: null,
  }),
  result("gold.com.af", ".com.af", "available", { price: null, renewal: null }),
  result("gold.net.af", ".net.af", "taken"),
  result("gold.org.af", ".org.af", "available", {
    price: { amount: "10.99", currency: "USD" },
    renewal: { amount: "12.34", currency: "USD" },
  }),
]);

const PRICE = { amount: "26.99", currency: "USD" };

const TOO_SLOW = { code: "upstream_timeout", detail: "x", retryAfter: 5 };

/** A cart that is held for ten minutes, in which one line is confirmed, one is taken and one couldn't be checked. */
export function quotesWithProblems(nowMs: number, problem = TOO_SLOW) {
  const asOf = new Date(nowMs).toISOString();
  const line = { tld: ".af", action: "registration", years: 1, premium: false, asOf };
  return {
    json: {
      items: [
        { ...line, domain: "kabul.af", price: PRICE, status: "available" },
        { ...line, domain: "kabul.com.af", price: null, status: "taken" },
        { ...line, domain: "kabul.net.af", price: null, status: "not_checked", problem },
      ],
      total: [PRICE],
      promise: "aaaa.bbbb.cccc",
      validUntil: new Date(nowMs + 600_000).toISOString(),
    },
  };
}

/** A name as the browser stores it in the cart. */
export function storedName(name: {
  readonly domain: string;
  readonly tld?: string;
  readonly years?: number;
}) {
  const unicodeName = name.domain;
  const more = { action: "registration", premium: false, price: PRICE, listed: null };
  return { tld: ".af", years: 1, unicodeName, ...more, ...name };
}

/** Replaces the cart that the browser has stored. */
export async function storeCart(page: Page, cart: object): Promise<void> {
  const stored = JSON.stringify(JSON.stringify(cart));
  await page.evaluate(`localStorage.setItem("af-domain-search..cart", ${stored})`);
}

/** Fills the browser's stored cart with its maximum of twenty names, cart-a.af to cart-t.af, and reloads the page. */
export async function fillCart(page: Page): Promise<void> {
  const items = Array.from({ length: 20 }, (_, at) => {
    const domain = `cart-${String.fromCodePoint(97 + at)}.af`;
    return storedName({ domain });
  });
  await storeCart(page, { items });
  await page.reload();
  await page.locator(".item").nth(19).waitFor();
}
