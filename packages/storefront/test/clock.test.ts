/** The storefront while the device's clock is set, in a real browser: waits, countdowns, held prices and known answers last no longer than promised. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { onSearch, quotesWithProblems, refusal, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import { done, enter, openShop, row, searchFor, read } from "../../../test/browser/storefront.js";

const HOUR_MS = 3_600_000;

/** The timers of the page aren't affected, as when a person or the network sets a device's clock. */
async function setClockBy(page: Page, ms: number): Promise<void> {
  await page.clock.setSystemTime(Number(await page.evaluate("Date.now()")) + ms);
}

describeWithBrowser("while the device's clock is set", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#search-status");
  const cartStatus = (page: Page) => page.locator("#cart-status");

  test("a search counts down and continues as promised", async () => {
    const asked: (string | null)[] = [];
    const answers = [
      streamed(
        [
          result("kabul.af", ".af", "available"),
          result("kabul.com.af", ".com.af", "unknown", { retryAfter: 20 }),
          result("kabul.net.af", ".net.af", "unknown", { retryAfter: 50 }),
        ],
        false,
      ),
      streamed([result("kabul.com.af", ".com.af", "taken")]),
    ];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("tlds"));
          return route.fulfill(answers.shift() ?? streamed([result("kabul.net.af", ".net.af", "available")]));
        }),
    });
    await enter(page, "kabul");
    await status(page).getByText("try again in 20 seconds.").waitFor();
    await setClockBy(page, -HOUR_MS);
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toMatch(/try again in 15 seconds\.$/);
    await page.clock.runFor(15_000);
    await status(page).getByText("try again in 30 seconds.").waitFor();
    await setClockBy(page, HOUR_MS);
    await page.clock.runFor(30_000);
    await done(page);
    expect(asked).toEqual([".af,.com.af,.net.af,.org.af", ".com.af", ".net.af"]);
  });

  test("a search doesn't wait longer than promised after the device was asleep", async () => {
    let asked = 0;
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          asked += 1;
          return asked === 1 ? route.fulfill(refusal("quota_exhausted", 503, 50)) : route.continue();
        }),
    });
    await enter(page, "kabul");
    await status(page).getByText("try again in 50 seconds.").waitFor();
    // The timers of most browsers stand still during sleep.
    await setClockBy(page, HOUR_MS);
    await page.clock.runFor(1_000);
    await done(page);
  });

  test("a known answer is asked for again when it is too old, even if the clock was set back", async () => {
    const asked: string[] = [];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/availability?*", (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("domain") ?? "");
          return route.continue();
        }),
    });
    // An answer is reused once it has been revalidated.
    for (let times = 0; times < 3; times += 1) {
      await enter(page, "kabul.af, kabul.com.af");
      await done(page);
    }
    expect(asked).toEqual(["kabul.af", "kabul.com.af", "kabul.af", "kabul.com.af"]);
    await setClockBy(page, -2 * HOUR_MS);
    await page.clock.runFor(8_000);
    await page.keyboard.press("Enter");
    await status(page).getByText("2 of 2 are available").waitFor();
    expect(asked.slice(4)).toEqual(["kabul.af", "kabul.com.af"]);
  });

  test("an answer 'available' says when the registry was asked once it has been shown for a minute, also after sleep", async () => {
    const { page } = await shop.visitor({ stopped: true });
    await searchFor(page, "kabul");
    const time = row(page, "kabul.af").locator(".state small");
    await page.clock.runFor(55_000);
    expect(await time.isVisible()).toBe(false);
    await page.clock.runFor(6_000);
    expect(await read(time)).toMatch(/^as of \d+:\d\d/);
    expect(await time.isVisible()).toBe(true);
    await searchFor(page, "kabul");
    expect(await time.isVisible()).toBe(false);
    await setClockBy(page, HOUR_MS);
    await page.clock.runFor(1_000);
    expect(await time.isVisible()).toBe(true);
  });

  test("the time is shown without moving anything on a phone, also for similar names, and with its date once that isn't today", async () => {
    const idea = { ...result("my-kabul.af", ".af", "available"), suggested: true };
    const asOf = new Date(shop.clock.now()).toISOString();
    const names = [result("kabul.af", ".af", "taken"), result("kabul.com.af", ".com.af", "available"), idea];
    const { page } = await shop.visitor({
      stopped: true,
      timezoneId: "UTC",
      ...PHONE,
      before: (page) =>
        onSearch(page, (route) => route.fulfill(streamed(names.map((one) => ({ ...one, asOf }))))),
    });
    const places = (): Promise<unknown> =>
      page.evaluate("[...all('.name, .idea, h2, h3')].map((one) => one.getBoundingClientRect().y + scrollY)");
    await searchFor(page, "kabul");
    const times = page.locator(".name .state small, #ideas-time small");
    await page.clock.runFor(50_000);
    expect(await times.count()).toBe(0);
    const before = await places();
    await page.clock.runFor(11_000);
    expect(await times.count()).toBe(2);
    expect(await places()).toEqual(before);
    expect(await times.allTextContents()).toEqual([
      expect.stringMatching(/^as of \d+:\d\d\s[AP]M$/),
      expect.stringMatching(/^as of \d+:\d\d\s[AP]M$/),
    ]);
    await setClockBy(page, 24 * HOUR_MS);
    await page.clock.runFor(1_000);
    expect(await times.allTextContents()).toEqual([
      expect.stringMatching(/^as of \w+ \d+, \d{4}, \d+:\d\d\s[AP]M$/),
      expect.stringMatching(/^as of \w+ \d+, \d{4}, \d+:\d\d\s[AP]M$/),
    ]);
  });

  test("a price is held no longer than it was promised, before and after a reload, and its end is shown as a time of that clock", async () => {
    const { page } = await shop.visitor({ stopped: true });
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    await page.locator("#cart-confirm").press("Enter");
    await page.locator('#cart-status[data-kind="confirmed"]').waitFor();
    const before = await read(cartStatus(page));
    await page.clock.runFor(60_000);
    await setClockBy(page, -2 * HOUR_MS);
    await page.clock.runFor(1_000);
    const after = await read(cartStatus(page));
    expect(after).toMatch(/\(13:58\sleft\)\.$/);
    const hourIn = (text: string | null): number => Number(/until (\d+)/.exec(text ?? "")?.[1]);
    expect((hourIn(before) - hourIn(after) + 12) % 12).toBe(2);
    await page.reload();
    await page.locator('#cart-status[data-kind="confirmed"]').waitFor();
    expect(await read(cartStatus(page))).toMatch(/\(14:5\d\sleft\)\.$/);
    await setClockBy(page, HOUR_MS);
    await page.clock.runFor(1_000);
    expect(await read(cartStatus(page))).toBe("This price has expired. Confirm it again.");
  });

  test("what was wrong with a name in the cart is forgotten by the next visit, once no price is held", async () => {
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", (route) => route.fulfill(quotesWithProblems(shop.clock.now()))),
    });
    await searchFor(page, "kabul");
    for (const domain of ["kabul.af", "kabul.com.af", "kabul.net.af"])
      await row(page, domain).locator("button").press("Enter");
    await page.locator("#cart-confirm").press("Enter");
    const problems = page.locator(".item .problem");
    await problems.nth(1).waitFor();
    await page.reload();
    await problems.nth(1).waitFor();
    expect(await read(cartStatus(page))).toMatch(/held for you/);
    await setClockBy(page, HOUR_MS);
    await page.reload();
    await page.locator(".item").nth(2).waitFor();
    expect(await problems.count()).toBe(0);
    expect(await read(cartStatus(page))).toBe("This price has expired. Confirm it again.");
  });
});
