/** Every state of the storefront, in visits that pass through several, each in one of the twelve combinations of language, screen and colour scheme. */
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
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import { CUT, type Look, looked, LOOKS, screenOf } from "../../../test/browser/looks.js";
import {
  cartIs,
  confirm,
  done,
  enter,
  openShop,
  put,
  read,
  row,
  searchFor,
  searchIs,
} from "../../../test/browser/storefront.js";

interface Journey {
  /** What leads to each state. */
  readonly states: Readonly<Record<string, (page: Page) => Promise<unknown>>>;
  /** The page's clock advances only when a step advances it. */
  readonly stopped?: boolean;
}

/** The next search is answered with this. */
async function answered(page: Page, answer: object, becomes: string): Promise<void> {
  await page.unrouteAll();
  await onSearch(page, (route) => route.fulfill(answer));
  await enter(page, "");
  await enter(page, "kabul");
  await searchIs(page, becomes);
}
async function quoted(page: Page, answer: object): Promise<void> {
  await page.unrouteAll();
  await page.route("/v1/quotes", (route) => route.fulfill(answer));
}
const WAIT = { retryAfter: 57, kept: true };

const JOURNEYS: readonly Journey[] = [
  {
    states: {
      start: () => Promise.resolve(),
      found: (page) => searchFor(page, "kabul"),
      "taken, with similar names": async (page) => {
        await searchFor(page, "google");
        await page.locator("#ideas").waitFor();
      },
      "several words": (page) => searchFor(page, "my shop"),
      "another ending": async (page) => {
        await enter(page, "www.kabul.com");
        await searchIs(page, "refused");
      },
      "no name": async (page) => {
        await searchFor(page, "herat");
        await enter(page, "shop😀");
        await searchIs(page, "refused");
      },
      "a list": async (page) => {
        const long = "a-rather-long-name-that-somebody-may-want.org.af";
        await enter(page, `kabul, herat-, balkh.com.af, ${long}, google`);
        await done(page);
      },
    },
  },
  {
    states: {
      "premium, and without a price": async (page) => {
        await onSearch(page, (route) => route.fulfill(mixedSearch));
        await searchFor(page, "gold");
      },
      busy: (page) => answered(page, refusal("quota_exhausted", 503, 30), "waiting"),
      "too many requests": async (page) => {
        await answered(page, refusal("upstream_failed", 502), "failed");
        await answered(page, refusal("rate_limited", 429, 30), "waiting");
      },
      "registry down": (page) => answered(page, refusal("upstream_failed", 502), "failed"),
      "busy for some names": async (page) => {
        const names = [
          result("kabul.af", ".af", "available"),
          result("kabul.com.af", ".com.af", "available"),
          result("kabul.net.af", ".net.af", "unknown", WAIT),
          result("kabul.org.af", ".org.af", "unknown", WAIT),
        ];
        await page.unrouteAll();
        await onSearch(page, (route) => route.fulfill(streamed(names, false)));
        await enter(page, "kabul");
        await searchIs(page, "waiting");
      },
      offline: async (page) => {
        await page.context().setOffline(true);
        await enter(page, "herat");
        await searchIs(page, "waiting");
      },
    },
  },
  {
    states: {
      "cart, not confirmed": (page) => put(page, "kabul.af", "kabul.com.af"),
      "cart, confirmed": (page) => confirm(page, "confirmed"),
      checkout: async (page) => {
        await page.locator("#cart-checkout button").press("Enter");
        await page.locator("#lines tr").first().waitFor();
      },
      "cart, removed": async (page) => {
        await page.goBack();
        await page.locator(".item button").first().press("Enter");
        await page.locator("#cart-undo").waitFor();
      },
      "cart, waits": async (page) => {
        await quoted(page, refusal("quota_exhausted", 503, 30));
        await confirm(page, "waiting");
      },
      "cart, with problems": async (page) => {
        await quoted(page, quotesWithProblems(Number(await page.evaluate("Date.now()"))));
        for (const domain of ["kabul.net.af", "kabul.af"])
          await row(page, domain).locator("button").press("Enter");
        await confirm(page, "problem");
      },
      "cart, full": async (page) => {
        await fillCart(page);
        await searchFor(page, "herat");
      },
    },
  },
  {
    stopped: true,
    states: {
      "registry slow": async (page) => {
        await onSearch(page, () => Promise.resolve());
        await enter(page, "balkh");
        await page.clock.runFor(5_000);
        await page.unrouteAll({ behavior: "ignoreErrors" });
      },
      "cart, no longer held": async (page) => {
        await put(page, "kabul.af");
        await confirm(page, "confirmed");
        await page.clock.fastForward(16 * 60_000);
      },
    },
  },
];

/** Touch targets that are smaller than 44 px, with their sizes. */
const SMALL = `[...all("main :is(button, a, select, input, label), #root :is(button, select, input, label), .languages a")]
  .filter((one) => one.checkVisibility() && !one.closest("label:has(input)")?.contains(one.closest("input")))
  .map((one) => [one.getBoundingClientRect(), one])
  .filter(([{ width, height }]) => width > 1 && (height < 44 || width < 44))
  .map(([{ width, height }, one]) => Math.round(width) + "x" + Math.round(height) + " " + one.outerHTML.slice(0, 60))`;

describeWithBrowser("every state of the storefront", () => {
  const shop = openShop();

  const cases = JOURNEYS.flatMap((journey, n) =>
    looked([...LOOKS.slice((7 * n) % 12), ...LOOKS.slice(0, (7 * n) % 12)]).map(
      (seen) => [Object.keys(journey.states).join("; "), ...seen, journey] as const,
    ),
  );
  test.each(cases)("fits the screen and passes axe: %s, in %s, %s, on a %s", async (...given) => {
    const [, language, colorScheme, size, { states, stopped = false }] = given;
    const seen: Look = [language, colorScheme, size];
    const visit = await shop.visitor({ ...screenOf(seen), language, colorScheme, stopped });
    const { page, axe, picture } = visit;
    for (const [name, reach] of Object.entries(states)) {
      await reach(page);
      const stoppedAtMs = Number(await page.evaluate("Date.now()"));
      // The inspection needs a running clock.
      if (stopped) await page.clock.resume();
      await picture(`states/${name.replaceAll(/[^a-z]+/g, "-")}-${seen.join("-")}`);
      const flaws = { axe: await axe(), cut: await page.evaluate(CUT) };
      expect([name, flaws]).toEqual([name, { axe: [], cut: [] }]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(screenOf(seen).viewport.width);
      if (stopped) await page.clock.pauseAt(stoppedAtMs + 30_000);
    }
    await page.context().setOffline(false);
  });

  test("fits a phone with an on-screen keyboard, and a small one at 200 %", async () => {
    const viewport = { width: 360, height: 400 };
    const { page, picture } = await shop.visitor({ ...PHONE, viewport, language: "ps" });
    await page.locator("#query").tap();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    const seen = Number(await page.evaluate(`one(".name.exact .domain").getBoundingClientRect().top`));
    expect(seen).toBeGreaterThanOrEqual(0);
    expect(seen).toBeLessThan(viewport.height - 40);
    await page.locator(".name button").first().tap();
    expect(await read(page.locator("#cart-bar-total"))).toMatch(/۲۶٫۹۹/);
    const bar = await page.locator("#cart-bar").boundingBox();
    expect(Math.round((bar?.y ?? 0) + (bar?.height ?? 0))).toBe(viewport.height);
    await picture("storefront-fits");
    expect(await page.evaluate(SMALL)).toEqual([]);
    await page.locator("#cart-bar").tap();
    await page.locator("#cart-confirm").tap();
    await cartIs(page, "confirmed");

    await page.setViewportSize({ width: 180, height: 370 });
    await picture("storefront-zoom");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(180);
    const [term, price] = [".item select", ".item .price"].map((part) => page.locator(part));
    const [above, below] = [await term?.boundingBox(), await price?.boundingBox()];
    expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
  });
});
