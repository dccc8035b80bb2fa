/** What visitors who have to wait see in a real browser: why, for how long, that it continues by itself, and that they can try now. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { until } from "../../../test/support/service.js";
import { onSearch, refusal, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser } from "../../../test/browser/browser.js";
import {
  done,
  enter,
  inspect,
  openShop,
  row,
  searchFor,
  texts,
  read,
} from "../../../test/browser/storefront.js";

const ALL = ".af,.com.af,.net.af,.org.af";

describeWithBrowser("a search that has to wait", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#search-status");

  test("explains the wait, counts down, and continues by itself", async () => {
    const why = "Your network has sent too many requests.";
    const { page, axe, picture } = await shop.visitor({ stopped: true, colorScheme: "dark" });
    await searchFor(page, "herat");
    let isRefused = false;
    await onSearch(page, async (route) => {
      if (isRefused) return route.fallback();
      isRefused = true;
      return route.fulfill(refusal("rate_limited", 429, 30));
    });
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("balkh");
    await page.keyboard.press("Enter");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    expect(await read(status(page))).toBe(`${why} We will try again in 30 seconds.`);
    expect(await read(page.locator("#live"))).toBe(`${why} We will try again in 30 seconds.`);
    await inspect(page, 10_000, async () => {
      await picture("storefront-wait-dark");
      expect(await axe()).toEqual([]);
    });
    expect(await read(status(page))).toBe(`${why} We will try again in 20 seconds.`);
    // The live region isn't updated every second, so that screen readers announce the wait only once.
    expect(await read(page.locator("#live"))).toMatch(/30 seconds\.$/);
    await shop.clock.advance(30_000);
    await page.clock.runFor(21_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("balkh.af");
  });

  test("survives a restart behind a proxy, whose page isn't blamed on the visitor's connection", async () => {
    const answers = [502, 502];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          const status = answers.shift();
          return status === undefined
            ? route.continue()
            : route.fulfill({ status, contentType: "text/html", body: "<h1>502 Bad Gateway</h1>" });
        }),
    });
    await enter(page, "kabul");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    expect(await read(status(page))).toMatch(/^Something went wrong on our side. We will try again in/);
    await page.clock.runFor(1_000);
    await status(page).getByText("We will try again in 2 seconds.").waitFor();
    await page.clock.runFor(3_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("kabul.af");
  });

  test("has a button to try again, both while it waits and after it has failed", async () => {
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
    await enter(page, "kabul");
    await page.getByText("The shop is busy right now. We will try again in 30").first().waitFor();
    expect(await read(again)).toBe("Try now");
    await again.click();
    await page.locator('#search-status[data-kind="failed"]').waitFor();
    expect(await read(status(page))).toBe(
      "The registry is not answering properly. Try again in a few minutes.",
    );
    expect(await read(again)).toBe("Try again");
    await inspect(page, 60_000, async () => {
      await picture("storefront-refused");
      expect(await axe()).toEqual([]);
    });
    expect(asked).toBe(2);
    answers = [];
    await again.press("Enter");
    await done(page);
    expect(await again.isVisible()).toBe(false);
    // The button that was pressed had the focus.
    expect(await page.evaluate("focused().id")).toBe("results-heading");
  });

  test("doesn't blame a visitor for what others at the same address have searched, and has no button that would be refused", async () => {
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) => onSearch(page, (route) => route.fulfill(refusal("rate_limited", 429, 30))),
    });
    await enter(page, "kabul");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    expect(await page.locator("#search-again").isVisible()).toBe(false);
    expect(await read(row(page, "kabul.af").locator(".state"))).toBe("Not checked yet");
    for (const [language, why] of [
      ["en", "Your network has sent too many requests. We will try again in "],
      ["fa", "از شبکهٔ شما درخواست‌های زیادی رسیده است. "],
      ["ps", "ستاسو له شبکې ډېرې غوښتنې راغلې دي. "],
    ] as const) {
      await page.locator(`[data-language="${language}"]`).click();
      expect((await read(status(page))).startsWith(why)).toBe(true);
    }
  });

  test("asks again for the names that weren't known in time, and only for those", async () => {
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
    await enter(page, "kabul");
    await row(page, "kabul.com.af").getByText("Not checked yet").waitFor();
    expect(await read(status(page))).toMatch(/We will try again in 7 seconds\.$/);
    await page.clock.runFor(8_000);
    await row(page, "kabul.com.af").getByText("Available").waitFor();
    expect(asked).toEqual([ALL, ".com.af"]);
  });

  test("asks for all names again if the connection was lost before each had an answer", async () => {
    const { headers, body } = streamed([result("kabul.com.af", ".com.af", "unknown", { retryAfter: 40 })]);
    const lost = { status: 502, contentType: "text/html", body: "<h1>502 Bad Gateway</h1>" };
    const answers = [{ headers, body: body.replace(/event: done.*/s, "") }, lost, lost, lost];
    const asked: (string | null)[] = [];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("tlds"));
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    await enter(page, "kabul");
    await until(async () => {
      await page.clock.runFor(1_000);
      return (await status(page).getAttribute("data-kind")) === "failed";
    }, "the last attempt");
    await page.locator("#search-again").press("Enter");
    await done(page);
    expect(asked).toEqual([ALL, ALL, ALL, ALL, ALL]);
    expect(await read(status(page))).toBe("4 of 4 are available.");
  });

  test("shows how much longer it can take when the registry is slow", async () => {
    const { page, picture } = await shop.visitor({
      stopped: true,
      before: (page) => onSearch(page, () => Promise.resolve()),
    });
    await enter(page, "kabul");
    await page.clock.runFor(2_000);
    expect(await read(status(page))).toMatch(/^Searching for/);
    await page.clock.runFor(3_000);
    expect(await read(status(page))).toBe(
      "This is taking longer than usual. We will keep asking the registry for up to 25 seconds.",
    );
    await inspect(page, 6_000, () => picture("storefront-slow"));
    await page.locator("#query").focus();
    await page.keyboard.press("Backspace");
  });

  test("says that the connection was lost, and continues by itself when it is back", async () => {
    const { page, picture } = await shop.visitor();
    await page.context().setOffline(true);
    await enter(page, "kabul");
    await page.getByText("You are offline.").first().waitFor();
    await picture("storefront-offline");
    await page.context().setOffline(false);
    await done(page);
    expect(await read(row(page, "kabul.af"))).toContain("Available");

    await page.context().setOffline(true);
    await enter(page, "herat, balkh");
    await page.locator('#search-status[data-kind="failed"]').waitFor();
    expect(await texts(page, ".name .state")).toEqual(["Not checked yet", "Not checked yet"]);
    await page.context().setOffline(false);
    await done(page);
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").click();
    await page.context().setOffline(true);
    await page.locator("#cart-confirm").click();
    await page.locator('#cart-status[data-kind="refused"]').waitFor();
    expect(await read(page.locator("#cart-status"))).toMatch(/^You are offline/);
    await page.context().setOffline(false);
    await page.locator('#cart-status[data-kind="confirmed"]').waitFor();
  });

  test("counts down for a visitor who is offline, too, because it continues no sooner, and by itself if the connection is back by then", async () => {
    let answers = [refusal("quota_exhausted", 503, 20)];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    await enter(page, "kabul");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    await page.context().setOffline(true);
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toBe("The shop is busy right now. We will try again in 15 seconds.");
    await page.context().setOffline(false);
    await page.clock.runFor(15_000);
    await done(page);

    answers = [refusal("quota_exhausted", 503, 20)];
    await page.context().setOffline(true);
    await page.context().setOffline(false);
    await enter(page, "herat");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    await page.context().setOffline(true);
    await page.clock.runFor(20_000);
    await page.getByText("You are offline.").first().waitFor();
    await page.context().setOffline(false);
    await page.clock.runFor(5_000);
    await done(page);
  });

  test("doesn't say to a visitor who is offline that it will continue if it won't", async () => {
    const { page } = await shop.visitor();
    await page.context().setOffline(true);
    await page.locator("#query").focus();
    await page.keyboard.type("ka");
    expect(await read(status(page))).toBe("Type at least three letters, or press Enter.");
    await page.keyboard.type("bul.af, herat.af");
    expect(await read(status(page))).toBe("A list of 2 names. Press Enter to check them.");
    await page.context().setOffline(false);
    await enter(page, "someone@kabul.af");
    await status(page).getByText("This is not one whole name").waitFor();
    await page.context().setOffline(true);
    expect(await read(status(page))).toMatch(/^This is not one whole name\..* Our endings are [^]*\.$/);
    await page.context().setOffline(false);
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").click();
    await page.route("/v1/quotes", (route) => route.fulfill(refusal("upstream_failed", 502)));
    await page.locator("#cart-confirm").click();
    await page.locator('#cart-status[data-kind="refused"]').waitFor();
    await page.context().setOffline(true);
    await page.locator('[data-language="fa"]').click();
    await page.locator('[data-language="en"]').click();
    expect(await read(page.locator("#cart-status"))).toMatch(/^The registry is not answering/);
  });
});
