/**
 * Every state of the storefront, each with a picture under test-output/states/. By default each is looked at in one of the twelve ways in
 * which visitors may see it (language, screen, light or dark), in turn; with `PICTURES=all`, in all of them.
 */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { onSearch, refusal, result, streamed } from "./support/answers.js";
import { describeWithBrowser, DESK, PHONE, type Visit } from "./support/browser.js";
import { CUT, LOOKS, type Look } from "./support/looks.js";
import {
  done,
  look,
  openShop,
  row,
  searchFor,
  type Shop,
  type VisitorOptions,
} from "./support/storefront.js";

interface State {
  readonly before?: VisitorOptions["before"];
  /** Time passes only when the state says so. */
  readonly stopped?: boolean;
  readonly reach: (page: Page, shop: Shop) => Promise<void>;
}

const enter = async (page: Page, text: string): Promise<void> => {
  await page.locator("#query").focus();
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
};
const search = (kind: string) => (page: Page) =>
  page.locator(`#search-status[data-kind="${kind}"]`).waitFor();
const cart = (page: Page, kind: string) => page.locator(`#cart-status[data-kind="${kind}"]`).waitFor();
async function searchInVain(page: Page): Promise<void> {
  await enter(page, "kabul");
  await page.locator('#search-status:is([data-kind="waiting"], [data-kind="failed"])').waitFor();
}
const refused = (answer: ReturnType<typeof refusal>): State => ({
  before: (page) => onSearch(page, (route) => route.fulfill(answer)),
  reach: searchInVain,
});
async function putInCart(page: Page, ...domains: readonly string[]): Promise<void> {
  await searchFor(page, "kabul");
  for (const domain of domains) await row(page, domain).locator("button").click();
}
const price = { amount: "26.99", currency: "USD" };

const STATES: Readonly<Record<string, State>> = {
  start: { reach: () => Promise.resolve() },
  found: { reach: (page) => searchFor(page, "kabul") },
  "taken, with similar names": {
    reach: async (page) => {
      await searchFor(page, "google");
      await page.locator("#ideas").waitFor();
    },
  },
  "premium, and without a price": {
    before: (page) =>
      onSearch(page, (route) =>
        route.fulfill(
          streamed([
            result("gold.af", ".af", "available", {
              premium: true,
              price: { amount: "1575.00", currency: "USD" },
              renewal: null,
            }),
            result("gold.com.af", ".com.af", "available", { price: null, renewal: null }),
            result("gold.net.af", ".net.af", "taken"),
            result("gold.org.af", ".org.af", "available"),
          ]),
        ),
      ),
    reach: (page) => searchFor(page, "gold"),
  },
  "several words": { reach: (page) => searchFor(page, "my shop") },
  "another ending": { reach: (page) => enter(page, "www.kabul.com").then(() => search("refused")(page)) },
  "no name": { reach: (page) => enter(page, "shop😀").then(() => search("refused")(page)) },
  "a list": {
    reach: async (page) => {
      await enter(
        page,
        "kabul, herat-, balkh.com.af, a-rather-long-name-that-somebody-may-want.org.af, google",
      );
      await done(page);
    },
  },
  busy: refused(refusal("quota_exhausted", 503, 30)),
  "searched a lot": refused(refusal("rate_limited", 429, 30)),
  "registry down": refused(refusal("upstream_failed", 502)),
  "registry slow": {
    stopped: true,
    before: (page) => onSearch(page, () => Promise.resolve()),
    reach: async (page) => {
      await enter(page, "kabul");
      await page.clock.runFor(5_000);
    },
  },
  offline: {
    reach: async (page) => {
      await page.context().setOffline(true);
      await searchInVain(page);
    },
  },
  "cart, not confirmed": { reach: (page) => putInCart(page, "kabul.af", "kabul.com.af") },
  "cart, confirmed": {
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af");
      await page.locator("#cart-confirm").click();
      await cart(page, "confirmed");
    },
  },
  "cart, no longer held": {
    stopped: true,
    reach: async (page) => {
      await putInCart(page, "kabul.af");
      await page.locator("#cart-confirm").click();
      await cart(page, "confirmed");
      await page.clock.runFor(16 * 60_000);
    },
  },
  "cart, removed": {
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af");
      await page.locator(".item button").first().click();
      await page.locator("#cart-undo").waitFor();
    },
  },
  "cart, waits": {
    before: (page) => page.route("/v1/quotes", (route) => route.fulfill(refusal("quota_exhausted", 503, 12))),
    reach: async (page) => {
      await putInCart(page, "kabul.af");
      await page.locator("#cart-confirm").click();
      await cart(page, "waiting");
    },
  },
  "cart, with problems": {
    before: (page) =>
      page.route("/v1/quotes", (route) => {
        const line = { tld: ".af", action: "registration", years: 1, premium: false, asOf: null };
        const problem = { code: "upstream_timeout", detail: "x", retryAfter: 5 };
        return route.fulfill({
          json: {
            items: [
              { ...line, domain: "kabul.af", price, status: "available" },
              { ...line, domain: "kabul.com.af", price: null, status: "taken" },
              { ...line, domain: "kabul.net.af", price: null, status: "not_checked", problem },
            ],
            total: [price],
            promise: "aaaa.bbbb.cccc",
            validUntil: "2099-01-01T00:00:00.000Z",
          },
        });
      }),
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af", "kabul.net.af");
      await page.locator("#cart-confirm").click();
      await cart(page, "confirmed");
    },
  },
  "cart, full": {
    reach: async (page) => {
      const items = Array.from({ length: 20 }, (_, at) => {
        const domain = `cart-${String.fromCodePoint(97 + at)}.af`;
        return { domain, unicodeName: domain, tld: ".af", premium: false, years: 1, price };
      });
      const kept = JSON.stringify(JSON.stringify({ items, quotes: null }));
      await page.evaluate(`localStorage.setItem("storefront.cart", ${kept})`);
      await page.reload();
      await page.locator(".item").nth(19).waitFor();
      await searchFor(page, "kabul");
    },
  },
  checkout: {
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af");
      await page.locator("#cart-confirm").click();
      await cart(page, "confirmed");
      await page.locator("#cart-checkout button").click();
      await page.locator("#lines tr").first().waitFor();
    },
  },
};

async function isGoodToSee({ page, axe, picture }: Visit, name: string, [, , size]: Look): Promise<void> {
  await picture(`states/${name}`);
  expect(await axe()).toEqual([]);
  expect(await page.evaluate(CUT)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(
    (size === "desk" ? DESK : PHONE).viewport.width,
  );
}

describeWithBrowser("every state of the storefront", () => {
  const shop = openShop();
  const isAll = process.env["PICTURES"] === "all";

  const cases = Object.keys(STATES).flatMap((state, n) =>
    LOOKS.filter((_, at) => isAll || at === n % LOOKS.length).map((seen) => [state, ...seen] as const),
  );
  test.each(cases)("is good to see: %s, in %s, %s, on a %s", async (name, ...seen) => {
    const state = STATES[name];
    if (state === undefined) throw new Error(`there is no state ${name}`);
    const [language, colorScheme, size] = seen;
    const visit = await shop.visitor({
      ...(size === "desk" ? DESK : PHONE),
      language,
      colorScheme,
      ...(state.stopped === true && { stopped: true }),
      ...(state.before !== undefined && { before: state.before }),
    });
    await state.reach(visit.page, shop);
    const check = (): Promise<void> =>
      isGoodToSee(visit, `${name.replaceAll(/[^a-z]+/g, "-")}-${language}-${size}-${colorScheme}`, seen);
    if (state.stopped === true) await look(visit.page, 1_000, check);
    else await check();
    await visit.page.context().setOffline(false);
  });
});
