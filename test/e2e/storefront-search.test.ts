/** What visitors see of a search in a real browser: each name in its place, its price, and why and how long they wait. */
import { expect, test } from "@jest/globals";
import type { Page, Route } from "playwright-core";
import { CHECK } from "../support/service.js";
import { refusal, result, streamed } from "./support/answers.js";
import { describeWithBrowser } from "./support/browser.js";
import { done, look, openShop, row, searchFor, texts } from "./support/storefront.js";

/** Only what is asked of the upstream; what memory holds is asked while somebody types. */
function onSearch(page: Page, answer: (route: Route) => Promise<void>): Promise<void> {
  return page.route("/v1/search?*", (route) =>
    route.request().url().includes("only=known") ? route.continue() : answer(route),
  );
}

describeWithBrowser("a search at the storefront", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#search-status");

  test("finds a name under every ending sold, the exact one first, with prices, and tells it to a screen reader", async () => {
    const { page, picture, weight } = await shop.visitor();
    await picture("storefront-start");
    expect(await texts(page, "tbody th")).toEqual([".af", ".com.af", ".net.af", ".org.af"]);
    expect(await texts(page, "tbody tr:first-child td")).toEqual(["$26.99", "$27.99", "$23.99", "$96.00"]);
    expect(await weight()).toBeLessThan(60_000);

    await searchFor(page, "https://www.kabul.com.af/");
    await picture("storefront-results");
    expect(await texts(page, ".names .domain")).toEqual([
      "kabul.com.af",
      "kabul.af",
      "kabul.net.af",
      "kabul.org.af",
    ]);
    expect(await texts(page, ".name.exact .domain")).toEqual(["kabul.com.af"]);
    expect(await texts(page, ".names .price")).toEqual([
      "$11.991 year",
      "$26.991 year",
      "$10.991 year",
      "$10.991 year",
    ]);
    expect(await row(page, "kabul.af").locator(".renewal").textContent()).toBe("Renews at $27.99 for 1 year");
    expect(await page.locator("#live").textContent()).toBe("4 of 4 are available.");

    await searchFor(page, "google.af");
    expect(await row(page, "google.af").textContent()).toContain("Taken");
    expect(await row(page, "google.af").locator("button").count()).toBe(0);
  });

  test("shows the price of the chosen term and its price a year, without another call", async () => {
    const { page } = await shop.visitor();
    await page.getByText("3 years").click();
    await searchFor(page, "kabul");
    const before = shop.service.calls(CHECK);
    // Two endings are sold for two years at most.
    expect(await texts(page, ".names .price")).toEqual([
      "$70.993 years · $23.67 a year",
      "$32.993 years · $11.00 a year",
      "$19.992 years · $10.00 a year",
      "$19.992 years · $10.00 a year",
    ]);
    await page.getByText("1 year", { exact: true }).first().click();
    expect((await texts(page, ".names .price"))[0]).toBe("$26.991 year");
    expect(shop.service.calls(CHECK)).toBe(before);
  });

  test("tells a premium price for its own term, and a name without a price", async () => {
    const { page } = await shop.visitor({
      before: (page) =>
        onSearch(page, (route) =>
          route.fulfill(
            streamed([
              result("gold.af", ".af", "available", {
                premium: true,
                price: { amount: "575.00", currency: "USD" },
                renewal: null,
              }),
              result("gold.com.af", ".com.af", "available", { price: null, renewal: null }),
              result("gold.net.af", ".net.af", "taken"),
              result("gold.org.af", ".org.af", "available", {
                price: { amount: "10.99", currency: "USD" },
                renewal: { amount: "12.34", currency: "USD" },
              }),
            ]),
          ),
        ),
    });
    await page.getByText("2 years").click();
    await searchFor(page, "gold");
    expect(await row(page, "gold.af").locator(".price").textContent()).toBe("$575.001 year");
    expect(await row(page, "gold.af").locator(".state").textContent()).toBe(
      "Available Premium Ask us for the renewal price",
    );
    expect(await row(page, "gold.com.af").locator(".state").textContent()).toContain("No price right now.");
    expect(await row(page, "gold.com.af").locator("button").count()).toBe(0);
    expect(await row(page, "gold.org.af").locator(".renewal").textContent()).toBe(
      "Renews at $12.34 for 1 year",
    );
  });

  test("hides the taken names but the one that was searched, and remembers it", async () => {
    const { page } = await shop.visitor();
    await searchFor(page, "google");
    expect(await texts(page, ".names .domain")).toHaveLength(4);
    await page.getByLabel("Hide taken names").check();
    expect(await texts(page, ".names .domain")).toEqual(["google.af", "google.net.af", "google.org.af"]);
    await page.reload();
    await done(page);
    expect(await texts(page, ".names .domain")).toHaveLength(3);
  });

  test("shows streamed results in their places as they come, and similar names that are available below them", async () => {
    const { page, picture, axe } = await shop.visitor({
      before: (page) =>
        onSearch(page, async (route) => {
          expect(await route.request().headerValue("accept")).toMatch(/^text\/event-stream/);
          await route.fulfill(
            streamed([
              result("google.com.af", ".com.af", "available"),
              result("google.af", ".af", "taken"),
              result("mygoogle.af", ".af", "available", { suggested: true }),
              result("getgoogle.af", ".af", "taken", { suggested: true }),
              result("google-online.af", ".af", "available", { suggested: true }),
            ]),
          );
        }),
    });
    expect(await page.locator("#ideas").isVisible()).toBe(false);
    await searchFor(page, "google");
    expect(await texts(page, ".names .domain")).toEqual([
      "google.af",
      "google.com.af",
      "google.net.af",
      "google.org.af",
    ]);
    expect(await texts(page, ".idea .domain")).toEqual(["mygoogle.af", "google-online.af"]);
    await picture("storefront-ideas");
    expect(await axe()).toEqual([]);
    await page.locator('.idea[data-domain="mygoogle.af"] button').click();
    expect(await texts(page, ".item .domain")).toEqual(["mygoogle.af"]);
  });

  // The price list is the first question and the look into memory the second; or a name may not be asked for at the registry.
  test.each([
    [
      "too many questions",
      "You have searched a lot in a short time. Please wait a moment.",
      { CLIENT_RATE_PER_MINUTE: "2" },
    ],
    [
      "too many new names",
      "Many people are searching right now, so some names could not be checked.",
      { CLIENT_COLD_PER_MINUTE: "1" },
    ],
  ])("says in words that it must wait, counts down, and goes on by itself: %s", async (_, why, env) => {
    const at = await shop.start({ env });
    const { page, axe, picture } = await shop.visitor({ at, stopped: true, colorScheme: "dark" });
    await searchFor(page, "herat");
    await shop.clock.advance(30_000);
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("balkh");
    await page.keyboard.press("Enter");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    expect(await status(page).textContent()).toBe(`${why} We will try again in 30 seconds.`);
    expect(await page.locator("#live").textContent()).toBe(`${why} We will try again in 30 seconds.`);
    await look(page, 10_000, async () => {
      await picture("storefront-wait-dark");
      expect(await axe()).toEqual([]);
    });
    expect(await status(page).textContent()).toBe(`${why} We will try again in 20 seconds.`);
    // Spoken once: a screen reader is not told every second.
    expect(await page.locator("#live").textContent()).toMatch(/30 seconds\.$/);
    await shop.clock.advance(30_000);
    await page.clock.runFor(21_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("balkh.af");
  });

  test("lets people try by hand while it waits and after it has failed", async () => {
    let answers = [refusal("quota_exhausted", 503, 30), refusal("upstream_failed", 502)];
    let asked = 0;
    const { page, axe, picture } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          asked += 1;
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    const again = page.locator("#search-again");
    await page.locator("#query").focus();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await page.getByText("Many people are searching right now. We will try again in 30").first().waitFor();
    expect(await again.textContent()).toBe("Try now");
    await again.click();
    await page.locator('#search-status[data-kind="failed"]').waitFor();
    expect(await status(page).textContent()).toBe(
      "The registry is not answering properly. Try again in a few minutes.",
    );
    expect(await again.textContent()).toBe("Try again");
    await look(page, 60_000, async () => {
      await picture("storefront-refused");
      expect(await axe()).toEqual([]);
    });
    expect(asked).toBe(2);
    answers = [];
    await again.click();
    await done(page);
    expect(await again.isVisible()).toBe(false);
  });

  test("asks again for what could not be known in time, and for that alone", async () => {
    const asked: (string | null)[] = [];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("tlds"));
          if (asked.length > 1) return route.continue();
          const unknown = result("kabul.com.af", ".com.af", "unknown", { retryAfter: 7 });
          return route.fulfill(streamed([result("kabul.af", ".af", "available"), unknown], false));
        }),
    });
    await page.locator("#query").focus();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await row(page, "kabul.com.af").getByText("Not checked yet").waitFor();
    expect(await status(page).textContent()).toMatch(/We will try again in 7 seconds\.$/);
    await page.clock.runFor(8_000);
    await row(page, "kabul.com.af").getByText("Available").waitFor();
    expect(asked).toEqual([null, ".com.af"]);
  });

  test("says how much longer it may take when the registry is slow", async () => {
    const { page, picture } = await shop.visitor({
      stopped: true,
      before: (page) => onSearch(page, () => Promise.resolve()),
    });
    await page.locator("#query").focus();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await page.clock.runFor(2_000);
    expect(await status(page).textContent()).toMatch(/^Searching for/);
    await page.clock.runFor(3_000);
    expect(await status(page).textContent()).toBe(
      "This takes longer than usual. We keep asking the registry for up to 25 seconds.",
    );
    await look(page, 6_000, () => picture("storefront-slow"));
    await page.locator("#query").focus();
    await page.keyboard.press("Backspace");
  });

  test("goes on by itself when the connection is back, and says that it was lost", async () => {
    const { page, picture } = await shop.visitor();
    await page.context().setOffline(true);
    await page.locator("#query").focus();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await page.getByText("You are offline.").first().waitFor();
    await picture("storefront-offline");
    await page.context().setOffline(false);
    await done(page);
    expect(await row(page, "kabul.af").textContent()).toContain("Available");

    await row(page, "kabul.af").locator("button").click();
    await page.context().setOffline(true);
    await page.locator("#cart-confirm").click();
    await page.locator('#cart-status[data-kind="refused"]').waitFor();
    expect(await page.locator("#cart-status").textContent()).toMatch(/^You are offline/);
    await page.context().setOffline(false);
    await page.locator('#cart-status[data-kind="told"]').waitFor();
  });
});
