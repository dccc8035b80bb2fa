/** What visitors who have to wait see in a real browser: why, for how long, that it continues by itself, and that they can try now. */
import { expect, test } from "@jest/globals";
import { onSearch, refusal, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import {
  cartIs,
  cartStatus,
  confirm,
  done,
  enter,
  focusedId,
  openShop,
  put,
  read,
  row,
  runUntilDone,
  searchFor,
  searchIs,
  setClockBy,
  status,
  texts,
} from "../../../test/browser/storefront.js";

const HOUR_MS = 3_600_000;

describeWithBrowser("a search that has to wait", () => {
  const shop = openShop();

  test("explains the wait in each language, without a button that would be refused, counts down, and continues by itself", async () => {
    const why = "Your network has sent too many requests.";
    const { page } = await shop.visitor({ stopped: true });
    await searchFor(page, "herat");
    const answers = [refusal("rate_limited", 429, 30)];
    await onSearch(page, (route) => {
      const next = answers.shift();
      return next === undefined ? route.continue() : route.fulfill(next);
    });
    await enter(page, "balkh");
    await searchIs(page, "waiting");
    expect(await read(status(page))).toBe(`${why} We will try again in 30 seconds.`);
    expect(await read(page.locator("#live"))).toBe(`${why} We will try again in 30 seconds.`);
    expect(await page.locator("#search-again").isVisible()).toBe(false);
    expect(await read(row(page, "balkh.af").locator(".state"))).toBe("Not checked yet");
    await setClockBy(page, -HOUR_MS);
    await page.clock.runFor(10_000);
    expect(await read(status(page))).toBe(`${why} We will try again in 20 seconds.`);
    // The live region isn't updated every second, so that screen readers announce the wait only once.
    expect(await read(page.locator("#live"))).toMatch(/30 seconds\.$/);
    for (const [language, words] of [
      ["fa", "از شبکهٔ شما درخواست‌های زیادی رسیده است. "],
      ["ps", "ستاسو له شبکې ډېرې غوښتنې راغلې دي. "],
    ] as const) {
      await page.locator(`[data-language="${language}"]`).click();
      expect((await read(status(page))).startsWith(words)).toBe(true);
    }
    await page.clock.runFor(20_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("balkh.af");
  });

  test("has a button to try again, both while it waits and after it has failed, and says when the registry is slow", async () => {
    const answers = [
      refusal("quota_exhausted", 503, 30),
      refusal("upstream_failed", 502),
      refusal("quota_exhausted", 503, 50),
      null,
    ];
    let asked = 0;
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, async (route) => {
          asked += 1;
          const next = answers.shift();
          if (next === undefined) await route.continue();
          else if (next !== null) await route.fulfill(next);
        }),
    });
    const again = page.locator("#search-again");
    await enter(page, "kabul");
    await page.getByText("The shop is busy right now. We will try again in 30").first().waitFor();
    expect(await read(again)).toBe("Try now");
    await again.click();
    await searchIs(page, "failed");
    expect(await read(status(page))).toBe(
      "The registry is not answering properly. Try again in a few minutes.",
    );
    expect(await read(again)).toBe("Try again");
    await page.clock.runFor(60_000);
    expect(asked).toBe(2);
    await again.click();
    await status(page).getByText("try again in 50 seconds.").waitFor();
    // The timers of most browsers stand still while a device is asleep.
    await setClockBy(page, HOUR_MS);
    await page.clock.runFor(1_000);
    await status(page).getByText("Searching for").waitFor();
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toMatch(
      /^This is taking longer than usual\. We will keep asking the registry for up to 2\d seconds\.$/,
    );
    await enter(page, "herat");
    await done(page);
    expect(await again.isVisible()).toBe(false);
    answers.push(refusal("upstream_failed", 502));
    await enter(page, "kabul");
    await searchIs(page, "failed");
    await again.press("Enter");
    await done(page);
    // The button that was pressed had the focus.
    expect(await focusedId(page)).toBe("results-heading");
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
    await searchIs(page, "waiting");
    expect(await read(status(page))).toMatch(/^Something went wrong on our side. We will try again in/);
    await page.clock.runFor(1_000);
    await status(page).getByText("We will try again in 2 seconds.").waitFor();
    await page.clock.runFor(3_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("kabul.af");
  });

  test("says that the connection was lost if it then continues by itself, for a word, a list and the cart, and not otherwise", async () => {
    const { page } = await shop.visitor();
    const offline = (isOffline: boolean) => page.context().setOffline(isOffline);
    await offline(true);
    await enter(page, "kabul");
    await page.getByText("You are offline.").first().waitFor();
    await offline(false);
    await done(page);
    expect(await read(row(page, "kabul.af"))).toContain("Available");

    await offline(true);
    await enter(page, "herat, balkh");
    await searchIs(page, "failed");
    expect(await texts(page, ".name .state")).toEqual(["Not checked yet", "Not checked yet"]);
    await offline(false);
    await done(page);
    await put(page, "kabul.af");
    await offline(true);
    await confirm(page, "refused");
    expect(await read(cartStatus(page))).toMatch(/^You are offline/);
    await offline(false);
    await cartIs(page, "confirmed");

    await page.locator('[id="term-kabul.af"]').press("ArrowDown");
    await page.route("/v1/quotes", (route) => route.fulfill(refusal("upstream_failed", 502)));
    await confirm(page, "refused");
    await enter(page, "someone@kabul.af");
    await searchIs(page, "refused");
    await offline(true);
    expect(await read(status(page))).toMatch(/^This is not one whole name\..* Our endings are [^]*\.$/);
    expect(await read(cartStatus(page))).toMatch(/^The registry is not answering/);
    await page.locator("#query").press("ControlOrMeta+a");
    await page.keyboard.type("ka");
    expect(await read(status(page))).toBe("Type at least three letters, or press Enter.");
    await page.keyboard.type("bul.af, herat.af");
    expect(await read(status(page))).toBe("A list of 2 names. Press Enter to check them.");
    await offline(false);
  });

  test("counts down for a visitor who is offline, too, because it continues no sooner, and by itself if the connection is back by then", async () => {
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    const answers = [refusal("quota_exhausted", 503, 20)];
    await enter(page, "kabul");
    await searchIs(page, "waiting");
    await page.context().setOffline(true);
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toBe("The shop is busy right now. We will try again in 15 seconds.");
    await page.context().setOffline(false);
    await runUntilDone(page);

    answers.push(refusal("quota_exhausted", 503, 20));
    await enter(page, "herat");
    await searchIs(page, "waiting");
    await page.context().setOffline(true);
    await page.clock.runFor(20_000);
    await page.getByText("You are offline.").first().waitFor();
    await page.context().setOffline(false);
    await runUntilDone(page);
  });

  test("shows on a phone when the registry was asked once an answer isn't recent, without moving anything, and with its date on another day", async () => {
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
    const times = page.locator(".name .state small, #ideas-time small");
    await searchFor(page, "kabul");
    await page.clock.runFor(55_000);
    expect(await times.count()).toBe(0);
    const before = await places();
    await page.clock.runFor(6_000);
    const [today, dated]: readonly unknown[] = [
      expect.stringMatching(/^as of \d+:\d\d\s[AP]M$/),
      expect.stringMatching(/^as of \w+ \d+, \d{4}, \d+:\d\d\s[AP]M$/),
    ];
    expect(await times.allTextContents()).toEqual([today, today]);
    expect(await places()).toEqual(before);
    await searchFor(page, "kabul");
    expect(await times.count()).toBe(0);
    // As after sleep.
    await setClockBy(page, 24 * HOUR_MS);
    await page.clock.runFor(1_000);
    expect(await times.allTextContents()).toEqual([dated, dated]);
  });
});
