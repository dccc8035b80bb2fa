/** Every state of the storefront, each in one of the twelve combinations of language, screen and colour scheme, in rotation. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import {
  fillCart,
  mixedSearch,
  onSearch,
  quotesWithProblems,
  refusal,
  result,
  streamed,
} from "../../../test/browser/answers.js";
import { describeWithBrowser, type Visit } from "../../../test/browser/browser.js";
import { CUT, type Look, looked, LOOKS, screenOf } from "../../../test/browser/looks.js";
import {
  done,
  enter,
  openShop,
  row,
  searchFor,
  type VisitorOptions,
} from "../../../test/browser/storefront.js";

interface State {
  readonly before?: VisitorOptions["before"];
  /** The page's clock advances only when `reach` advances it. */
  readonly stopped?: boolean;
  readonly reach: (page: Page) => Promise<void>;
}

async function searchAndBeRefused(page: Page, text: string): Promise<void> {
  await enter(page, text);
  await page.locator('#search-status[data-kind="refused"]').waitFor();
}
const waitForCart = (page: Page, kind: string) => page.locator(`#cart-status[data-kind="${kind}"]`).waitFor();
async function searchAndFail(page: Page): Promise<void> {
  await enter(page, "kabul");
  await page.locator('#search-status:is([data-kind="waiting"], [data-kind="failed"])').waitFor();
}
const refused = (answer: ReturnType<typeof refusal>): State => ({
  before: (page) => onSearch(page, (route) => route.fulfill(answer)),
  reach: searchAndFail,
});
async function confirmCart(page: Page, becomes = "confirmed"): Promise<void> {
  await page.locator("#cart-confirm").click();
  await waitForCart(page, becomes);
}
async function putInCart(page: Page, ...domains: readonly string[]): Promise<void> {
  await searchFor(page, "kabul");
  for (const domain of domains) await row(page, domain).locator("button").click();
}

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
    before: (page) => onSearch(page, (route) => route.fulfill(mixedSearch)),
    reach: (page) => searchFor(page, "gold"),
  },
  "several words": { reach: (page) => searchFor(page, "my shop") },
  "another ending": { reach: (page) => searchAndBeRefused(page, "www.kabul.com") },
  "no name": { reach: (page) => searchAndBeRefused(page, "shop😀") },
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
  "too many requests": refused(refusal("rate_limited", 429, 30)),
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
      await searchAndFail(page);
    },
  },
  "cart, not confirmed": { reach: (page) => putInCart(page, "kabul.af", "kabul.com.af") },
  "cart, confirmed": {
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af");
      await confirmCart(page);
    },
  },
  "cart, no longer held": {
    stopped: true,
    reach: async (page) => {
      await putInCart(page, "kabul.af");
      await confirmCart(page);
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
      await waitForCart(page, "waiting");
    },
  },
  "cart, with problems": {
    before: (page) =>
      page.route("/v1/quotes", async (route) => {
        const nowMs = Number(await page.evaluate("Date.now()"));
        await route.fulfill(quotesWithProblems(nowMs));
      }),
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af", "kabul.net.af");
      await confirmCart(page, "problem");
    },
  },
  "cart, full": {
    reach: async (page) => {
      await fillCart(page);
      await searchFor(page, "kabul");
    },
  },
  checkout: {
    reach: async (page) => {
      await putInCart(page, "kabul.af", "kabul.com.af");
      await confirmCart(page);
      await page.locator("#cart-checkout button").click();
      await page.locator("#lines tr").first().waitFor();
    },
  },
  "busy for some names": {
    before: (page) =>
      onSearch(page, (route) => {
        const wait = { retryAfter: 57, kept: true };
        return route.fulfill(
          streamed(
            [
              result("kabul.af", ".af", "available"),
              result("kabul.com.af", ".com.af", "available"),
              result("kabul.net.af", ".net.af", "unknown", wait),
              result("kabul.org.af", ".org.af", "unknown", wait),
            ],
            false,
          ),
        );
      }),
    reach: searchAndFail,
  },
};

async function expectNoFlaws({ page, axe, picture }: Visit, name: string, seen: Look): Promise<void> {
  await picture(`states/${name}`);
  expect(await axe()).toEqual([]);
  expect(await page.evaluate(CUT)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(screenOf(seen).viewport.width);
}

describeWithBrowser("every state of the storefront", () => {
  const shop = openShop();

  const cases = Object.keys(STATES).flatMap((state, n) =>
    looked([...LOOKS.slice(n % LOOKS.length), ...LOOKS.slice(0, n % LOOKS.length)]).map(
      (seen) => [state, ...seen] as const,
    ),
  );
  test.each(cases)("fits the screen and passes axe: %s, in %s, %s, on a %s", async (name, ...seen) => {
    const state = STATES[name];
    if (state === undefined) throw new Error(`unknown state ${name}`);
    const [language, colorScheme, size] = seen;
    const visit = await shop.visitor({
      ...screenOf(seen),
      language,
      colorScheme,
      ...(state.stopped === true && { stopped: true }),
      ...(state.before !== undefined && { before: state.before }),
    });
    await state.reach(visit.page);
    // The inspection needs a running clock.
    if (state.stopped === true) await visit.page.clock.resume();
    await expectNoFlaws(
      visit,
      `${name.replaceAll(/[^a-z]+/g, "-")}-${language}-${size}-${colorScheme}`,
      seen,
    );
    await visit.page.context().setOffline(false);
  });
});
