/**
 * What visitors see of a search in a real browser: what typing costs, each name in its place with its price, lists, and text that can't be a name; and
 * where they have to wait: why, for how long, that it continues by itself, and that they can try now.
 */
import { afterAll, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { priceListShape, quotesShape } from "../../../src/wire/visitors.js";
import { CHECK, temporaryFolder, until } from "../../../test/support/service.js";
import { mixedSearch, onSearch, refusal, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import { CUT } from "../../../test/browser/looks.js";
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
  requestsOf,
  RETAIL,
  row,
  runUntil,
  saleOf,
  searchFor,
  searchIs,
  setClockBy,
  status,
  texts,
  typeSlowly,
} from "../../../test/browser/storefront.js";
import { fa } from "../src/embed/texts/fa.js";
import { ps } from "../src/embed/texts/ps.js";

const HOUR_MS = 3_600_000;
const TLDS = [".af", ".com.af", ".net.af", ".org.af"];

describeWithBrowser("a search at the storefront", () => {
  // Suggestions would use spare calls, which are counted here.
  const shop = openShop({ retail: RETAIL.replace(/^suggestions:[^]*/m, "") });
  const folder = temporaryFolder();
  afterAll(folder.remove);
  const checks = (): number => shop.service.calls(CHECK);
  const listed = (page: Page) => page.locator(".amount").first();
  async function retype(page: Page, text: string, keyMs: number): Promise<void> {
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+a");
    await typeSlowly(page, text, keyMs);
  }

  test("costs no call while it is typed, and shows what is known; then one for each TLD, after a pause or on Enter, however long that is held down", async () => {
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/availability?*", async (route) => {
          await new Promise((later) => setTimeout(later, 100));
          await route.continue();
        }),
    });
    await shop.service.ask("/v1/availability?domain=kabul.af");
    let before = checks();
    await typeSlowly(page, "kabul", 120);
    await page.clock.runFor(300);
    await row(page, "kabul.af").getByText("Available").waitFor();
    expect(await texts(page, ".names .price")).toEqual([
      "$26.991 year",
      "$11.991 year",
      "$10.991 year",
      "$10.991 year",
    ]);
    expect(await read(status(page))).toBe("Press Enter to search.");
    for (const text of ["ka", "@"]) {
      await retype(page, text, 250);
      await page.clock.fastForward(10_000);
    }
    expect(await read(status(page))).toBe("Type at least three letters, or press Enter.");
    await retype(page, "sharana", 400);
    await page.clock.runFor(950);
    expect(checks()).toBe(before);
    await page.clock.runFor(50);
    await done(page);
    expect(await page.locator(".name").count()).toBe(TLDS.length);
    await page.clock.fastForward(30_000);
    expect(checks() - before).toBe(TLDS.length);

    // A word that a phone's keyboard composes: autocorrect replaces it and adds a space.
    before = checks();
    const searches = requestsOf(page, "/v1/search");
    const devtools = await page.context().newCDPSession(page);
    await page.locator("#query").press("ControlOrMeta+a");
    for (const text of ["k", "kh", "kho", "khst"]) {
      const [selectionStart, selectionEnd] = [text.length, text.length];
      await devtools.send("Input.imeSetComposition", { text, selectionStart, selectionEnd });
      await page.clock.runFor(400);
    }
    await devtools.send("Input.insertText", { text: "khost " });
    await page.clock.runFor(900);
    expect(searches).toEqual([]);
    for (let times = 0; times < 10; times += 1) await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await done(page);
    await page.clock.runFor(5_000);
    expect(searches).toEqual(["khost"]);
    expect(checks() - before).toBe(TLDS.length);

    const names = requestsOf(page, "/v1/availability");
    await enter(page, "ghazni, herat, balkh");
    await status(page).getByText("1 of 3").waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.type(", ");
    await done(page);
    expect(names).toEqual(["ghazni.af", "herat.af", "balkh.af"]);
    expect(await read(status(page))).toMatch(/of 3/);
  });

  test("shows a name under every TLD sold, the exact one first, with prices for the chosen term, similar names, a premium price for its own term, and a name without a price", async () => {
    const { page, weight } = await shop.visitor();
    expect(await texts(page, "tbody th")).toEqual(TLDS);
    expect(await texts(page, "tbody tr:first-child td > :first-child .amount")).toEqual([
      "$26.99",
      "$27.99",
      "$23.99",
      "$96.00",
    ]);
    expect(await weight()).toBeLessThan(60_000);
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    const fetched = `new Promise((seen) => new PerformanceObserver((list) =>
      seen(list.getEntries().filter(({ transferSize }) => transferSize > 0).map(({ name }) => name)))
      .observe({ type: "resource", buffered: true }))`;
    expect(await page.evaluate(fetched)).toEqual([]);

    await searchFor(page, "https://www.kabul.com.af/");
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
    expect(await read(row(page, "kabul.af").locator(".renewal"))).toBe("Renews at $27.99 a year");
    expect(await read(page.locator("#live"))).toBe("4 of 4 are available.");
    expect(await page.locator("#ideas").isVisible()).toBe(false);
    const before = checks();
    await page.locator("#terms").getByText("3 years").click();
    // Two TLDs are sold for at most two years.
    expect(await texts(page, ".names .price")).toEqual([
      "$32.993 years · $11.00 a year",
      "$70.993 years · $23.67 a year",
      "$19.992 years · $10.00 a year",
      "$19.992 years · $10.00 a year",
    ]);
    expect(checks()).toBe(before);

    let answer = mixedSearch;
    await onSearch(page, async (route) => {
      expect(await route.request().headerValue("accept")).toMatch(/^text\/event-stream/);
      await route.fulfill(answer);
    });
    await searchFor(page, "gold");
    expect(await read(row(page, "gold.af").locator(".price"))).toBe("$1,575.001 year");
    expect(await row(page, "gold.af").locator(".state").innerText()).toBe(
      "Available Premium Renewal price on request",
    );
    expect(await read(row(page, "gold.com.af").locator(".state"))).toContain("No price right now.");
    expect(await row(page, "gold.com.af").locator("button").count()).toBe(0);
    expect(await read(row(page, "gold.org.af").locator(".renewal"))).toBe("Renews at $12.34 a year");
    answer = streamed([
      result("google.com.af", ".com.af", "available"),
      result("google.af", ".af", "taken"),
      result("mygoogle.af", ".af", "available", { suggested: true }),
      result("getgoogle.af", ".af", "taken", { suggested: true }),
      result("google-online.af", ".af", "available", { suggested: true }),
    ]);
    await searchFor(page, "google");
    expect(await texts(page, ".names .domain")).toEqual(TLDS.map((tld) => `google${tld}`));
    expect(await texts(page, ".idea .domain")).toEqual(["mygoogle.af", "google-online.af"]);
    await page.locator('.idea[data-domain="mygoogle.af"] button').click();
    expect(await texts(page, ".item .domain")).toEqual(["mygoogle.af"]);
  });

  test("shows the regular price beside a reduced one until the promotion ends, at a time that is said in each language", async () => {
    const retail = saleOf(
      [".af", new Date(shop.clock.now() + 30_000).toISOString()],
      [".com.af", "2026-03-27T00:00:00Z"],
    );
    const at = await shop.start({ retail });
    const { page } = await shop.visitor({ at, ...PHONE, timezoneId: "Asia/Kabul", stopped: true });
    const end = page.locator("tbody tr:nth-child(2) td s + small").first();
    await searchFor(page, "kabul");
    expect(await read(row(page, "kabul.af").locator(".price"))).toBe("$26.99 $24.991 year");
    expect(await texts(page, "tbody tr:first-child td:first-of-type div:first-child > s")).toEqual([
      "Regular price: $26.99",
    ]);
    expect(await read(listed(page))).toBe("$24.99");
    for (const [language, time] of [
      ["fa", /^تا ۷ حمل ۱۴۰۵.*۴:۳۰$/],
      ["ps", /^تر ۷ حمل ۱۴۰۵.*۴:۳۰ پورې$/],
      ["en", /^until Mar 27, 2026, 4:30\sAM$/],
    ] as const) {
      await page.locator(`[data-language=${language}]`).click();
      expect(await read(end)).toMatch(time);
      expect(await page.evaluate(CUT)).toEqual([]);
    }
    // The page's clock stands: to it, the promotion goes on.
    await shop.clock.advance(33_000);
    await searchFor(page, "herat");
    expect(await read(row(page, "herat.af").locator(".price"))).toBe("$26.991 year");
    await page.clock.runFor(33_000);
    await until(async () => (await read(listed(page))) === "$26.99", "the end of the promotion in the list");
  });

  test("shows a changed price everywhere: when the list is old, and within seconds of a cart that is confirmed at another price", async () => {
    const file = join(folder.path, "retail.yaml");
    const setAdded = async (amount: string): Promise<void> => {
      writeFileSync(file, RETAIL.replaceAll('addFixed: "1.00"', `addFixed: "${amount}"`));
      await shop.clock.advance(1_000);
    };
    await setAdded("1.00");
    const at = await shop.start({ env: { RETAIL_CONFIG: file } });
    const { page } = await shop.visitor({ at, stopped: true });
    const expectShown = async (price: string): Promise<void> => {
      expect(await read(listed(page))).toBe(price);
      expect(await read(row(page, "kabul.af").locator(".price"))).toBe(`${price}1 year`);
      expect(await texts(page, ".item .price, #cart-total")).toEqual([price, `Total: ${price}`]);
    };
    const becomes = (price: string, stepMs: number) =>
      until(async () => {
        await page.clock.fastForward(stepMs);
        return (await read(listed(page))) === price;
      }, `${price} in the list`);
    await put(page, "kabul.af");
    await expectShown("$26.99");
    await setAdded("9.00");
    // The page's copy of the list is fresh for five minutes.
    await page.clock.runFor(10_000);
    await expectShown("$26.99");
    await becomes("$34.99", 60_000);
    await expectShown("$34.99");
    await page.route("/v1/quotes", async (route) => {
      const response = await route.fetch();
      const quotes = quotesShape.parse(await response.json());
      await route.fulfill({ response, json: { ...quotes, promise: null, validUntil: null } });
    });
    await page.locator("#cart-confirm").press("Enter");
    const unheld = /^\s*The price was checked at \d+:\d\d\s[AP]M, and is not held\.\s*$/;
    await cartStatus(page).getByText(unheld).waitFor();
    await expectShown("$34.99");
    await setAdded("5.00");
    await becomes("$30.99", 60_000);
    await expectShown("$30.99");
    expect(await read(cartStatus(page))).toBe("Confirm the price to hold it for you.");

    await page.unroute("/v1/quotes");
    await setAdded("2.00");
    await page.locator("#cart-confirm").press("Enter");
    await cartStatus(page).getByText("A price has changed").waitFor();
    await becomes("$27.99", 5_000);
    await expectShown("$27.99");
  });

  test("survives a reload of its own tab, as a word and as a list, with taken names hidden; a new tab and a link begin with theirs", async () => {
    const { page } = await shop.visitor({ path: "/?q=google" });
    await done(page);
    expect(new URL(page.url()).href).toBe(`${shop.service.url}/`);
    expect(await texts(page, ".names .domain")).toHaveLength(4);
    await page.getByLabel("Hide taken names").check();
    const shown = ["google.af", "google.net.af", "google.org.af"];
    expect(await texts(page, ".names .domain")).toEqual(shown);
    const other = await page.context().newPage();
    await other.goto("/");
    // A new tab begins with the last search of any.
    expect(await other.locator("#query").inputValue()).toBe("google");
    const list = ["kabul.af", "kabul.com.af", "kabul.org.af"];
    await enter(other, list.join(", "));
    await done(other);
    const prices = await texts(other, ".names .price");
    const expectAfterReload = async (tab: Page, text: string): Promise<void> => {
      await tab.reload();
      await tab.locator("tbody tr").first().waitFor();
      expect(await tab.locator("#query").inputValue()).toBe(text);
    };
    // Even before the price list is loaded.
    await expectAfterReload(other, list.join(", "));
    await done(other);
    expect(await texts(other, ".names .domain")).toEqual(list);
    expect(await texts(other, ".names .price")).toEqual(prices);
    await other.locator("#query").press("ControlOrMeta+a");
    await other.keyboard.press("Delete");
    await expectAfterReload(page, "google");
    await done(page);
    expect(await texts(page, ".names .domain")).toEqual(shown);
    await expectAfterReload(other, "");
    await other.goto(`/?q=${list.join(",")}`);
    await done(other);
    expect(await texts(other, ".names .domain")).toEqual(list);
  });

  test("treats words as one name, offers other names, moves the focus to the results if the pressed button disappears, and says at the field what is wrong with a name", async () => {
    const { page } = await shop.visitor();
    await page.locator("#examples button").first().press("Enter");
    await done(page);
    expect(await focusedId(page)).toBe("results-heading");
    await page.locator("#query").press("ControlOrMeta+a");
    await page.keyboard.insertText("green tea");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    // The search starts by itself after a pause.
    await page.clock.fastForward(1_000);
    await done(page);
    expect(await texts(page, ".name.exact .domain")).toEqual(["greentea.af"]);
    expect(await focusedId(page)).toBe("offer-green-tea");
    await page.keyboard.press("Enter");
    await done(page);
    expect(await focusedId(page)).toBe("results-heading");
    expect(await page.locator("#query").inputValue()).toBe("green-tea");
    const before = checks();
    await enter(page, "www.kabul.com");
    await searchIs(page, "refused");
    expect(checks()).toBe(before);
    await page.getByRole("button", { name: "kabul.af", exact: true }).click();
    await done(page);
    expect(await read(status(page))).toBe("4 of 4 are available.");
    expect(await texts(page, ".name.exact .domain")).toEqual(["kabul.af"]);

    for (const [text, english] of [
      ["www.kabul.com", /^We do not sell names with this ending\. Our endings are \.af, \.com\.af, /],
      ["kаbul", /^Write the whole name in Latin letters/],
    ] as const) {
      await enter(page, text);
      await searchIs(page, "refused");
      expect(await read(status(page))).toMatch(english);
      expect(await page.locator("#query").getAttribute("aria-invalid")).toBe("true");
      expect(await page.locator(".name.exact").count()).toBe(0);
    }
    // The other reasons: texts.test.ts.
    await page.locator("[data-language=ps]").click();
    expect(await read(status(page))).toBe(ps.reasons.script);
  });

  test("takes a list of up to twenty names that is pasted, dropped or comes from a keyboard's clipboard, checks it on Enter with one call each, and shows the progress", async () => {
    const { page } = await shop.visitor({ permissions: ["clipboard-read", "clipboard-write"] });
    const names = Array.from({ length: 22 }, (_, at) => (at % 2 === 0 ? `list-${at}` : `list-${at}.com.af`));
    const before = checks();
    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(names.join("\n"))})`);
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+v");
    expect(await page.locator("#query").inputValue()).toBe(names.join(", "));
    expect(await read(status(page))).toBe("Only the first 20 names will be checked. Press Enter to start.");
    await page.clock.fastForward(1_100);
    expect(checks()).toBe(before);
    await page.keyboard.press("Enter");
    await page.getByText("of 20 names checked").first().waitFor();
    await done(page);
    expect(checks() - before).toBe(20);
    expect((await texts(page, ".names .domain")).slice(0, 3)).toEqual([
      "list-0.af",
      "list-1.com.af",
      "list-2.af",
    ]);

    const query = page.locator("#query");
    const devtools = await page.context().newCDPSession(page);
    await query.fill("ghazni, ");
    await query.evaluate("(box) => box.setSelectionRange(8, 8)");
    const { x = 0, y = 0 } = (await query.boundingBox()) ?? {};
    const data = { items: [{ mimeType: "text/plain", data: "herat\r\nbalkh" }], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const)
      await devtools.send("Input.dispatchDragEvent", { type, x: x + 300, y: y + 20, data });
    expect(await query.inputValue()).toBe("ghazni, herat, balkh");
    expect(await read(status(page))).toBe("A list of 3 names. Press Enter to check them.");
    await query.fill("");
    await query.focus();
    await devtools.send("Input.insertText", { text: "herat\nbalkh\n" });
    expect(await query.inputValue()).toBe("herat, balkh");
  });

  test("knows the TLDs sold and fills in the prices while a service that has just started learns them; goes through a list after a wait, says which names are invalid or could not be checked, and checks only these again", async () => {
    let isComplete = false;
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/prices", async (route) => {
          if (isComplete) return route.continue();
          const answer = await route.fetch();
          const { prices } = priceListShape.parse(await answer.json());
          const known = prices.filter(({ tld, years }) => tld === ".com.af" && years > 1);
          return route.fulfill({
            json: { asOf: new Date(shop.clock.now()).toISOString(), prices: known },
            headers: { "cache-control": "no-store" },
          });
        }),
    });
    expect(await texts(page, "tbody th")).toEqual([".com.af"]);
    await searchFor(page, "kabul, herat");
    expect(await texts(page, ".names .domain")).toEqual(["kabul.af", "herat.af"]);
    await searchFor(page, "kabul");
    expect(await texts(page, ".names .domain")).toEqual(TLDS.map((tld) => `kabul${tld}`));
    isComplete = true;
    await page.clock.runFor(5_000);
    await page.locator("tbody th").nth(3).waitFor();
    expect(await texts(page, "#terms label")).toEqual(["1 year", "2 years", "3 years"]);

    const answers = [refusal("upstream_failed", 502), refusal("quota_exhausted", 503, 5)];
    await page.route("/v1/availability?*", (route) => {
      const next = /domain=kabul/.test(route.request().url()) ? answers.shift() : undefined;
      return next === undefined ? route.continue() : route.fulfill(next);
    });
    await enter(page, "kabul, list-b-، google.com; kabul.org.af");
    await searchIs(page, "waiting");
    expect(await read(status(page))).toBe("The shop is busy right now. We will try again in 5 seconds.");
    await page.clock.runFor(5_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toEqual([
      "kabul.af",
      "list-b-.af",
      "google.af",
      "kabul.org.af",
    ]);
    expect(await read(status(page))).toBe("1 of 4 is available. Some names could not be checked yet.");
    expect(await row(page, "kabul.af").getAttribute("data-state")).toBe("failed");
    const asked = requestsOf(page, "/v1/availability");
    await page.locator("#search-again").press("Enter");
    await page.getByText("2 of 4 are available.", { exact: true }).first().waitFor();
    expect(asked).toEqual(["kabul.af", "list-b-.af"]);
    expect(await page.locator("#search-again").isVisible()).toBe(false);
    await page.locator('a[data-language="fa"]').click();
    expect(await read(row(page, "list-b-.af").locator(".state"))).toBe(
      fa.reasons.not_a_name(TLDS.join(", ")),
    );
  });

  test("explains a wait in each language, counts down and continues by itself, and has a button to try again unless that would be refused", async () => {
    const answers = [refusal("rate_limited", 429, 30)];
    let asked = 0;
    let isSlow = false;
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, async (route) => {
          asked += 1;
          const next = answers.shift();
          if (next !== undefined) await route.fulfill(next);
          else if (!isSlow) await route.continue();
        }),
    });
    const again = page.locator("#search-again");
    const why = "Your network has sent too many requests.";
    await enter(page, "balkh");
    await searchIs(page, "waiting");
    expect(await read(status(page))).toBe(`${why} We will try again in 30 seconds.`);
    expect(await read(page.locator("#live"))).toBe(`${why} We will try again in 30 seconds.`);
    expect(await again.isVisible()).toBe(false);
    expect(await read(row(page, "balkh.af").locator(".state"))).toBe("Not checked yet");
    await setClockBy(page, -HOUR_MS);
    await page.clock.runFor(10_000);
    expect(await read(status(page))).toBe(`${why} We will try again in 20 seconds.`);
    // The live region isn't updated every second, so that screen readers announce the wait only once.
    expect(await read(page.locator("#live"))).toMatch(/30 seconds\.$/);
    for (const [language, words] of [
      ["fa", "از شبکهٔ شما درخواست‌های زیادی رسیده است. "],
      ["ps", "ستاسو له شبکې ډېرې غوښتنې راغلې دي. "],
      ["en", why],
    ] as const) {
      await page.locator(`[data-language="${language}"]`).click();
      expect((await read(status(page))).startsWith(words)).toBe(true);
    }
    await page.clock.runFor(20_000);
    await done(page);
    expect(await texts(page, ".names .domain")).toContain("balkh.af");

    answers.push(refusal("quota_exhausted", 503, 30), refusal("upstream_failed", 502));
    await enter(page, "kabul");
    await status(page).getByText("The shop is busy right now. We will try again in 30").waitFor();
    expect(await read(again)).toBe("Try now");
    await again.click();
    await searchIs(page, "failed");
    expect(await read(status(page))).toBe(
      "The registry is not answering properly. Try again in a few minutes.",
    );
    expect(await read(again)).toBe("Try again");
    await page.clock.fastForward(60_000);
    expect(asked).toBe(4);
    isSlow = true;
    await again.press("Enter");
    await status(page).getByText("Searching for").waitFor();
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toMatch(
      /^This is taking longer than usual\. We will keep asking the registry for up to 2\d seconds\.$/,
    );
    isSlow = false;
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

  test("says that the connection was lost if it then continues by itself, for a word, a list and the cart, and not otherwise", async () => {
    const answers = [refusal("quota_exhausted", 503, 20)];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        onSearch(page, (route) => {
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    const offline = (isOffline: boolean) => page.context().setOffline(isOffline);
    // It continues no sooner when the connection is back, so it counts down.
    await enter(page, "farah");
    await searchIs(page, "waiting");
    await offline(true);
    await page.clock.runFor(5_000);
    expect(await read(status(page))).toBe("The shop is busy right now. We will try again in 15 seconds.");
    await page.clock.runFor(15_000);
    await status(page).getByText("You are offline.").waitFor();
    await offline(false);
    await runUntil(page, "done");
    expect(await read(row(page, "farah.af"))).toContain("Available");

    await offline(true);
    await enter(page, "herat, balkh");
    await runUntil(page, "failed");
    expect(await texts(page, ".name .state")).toEqual(["Not checked yet", "Not checked yet"]);
    await offline(false);
    await done(page);
    await put(page, "kabul.af");
    await offline(true);
    await page.locator("#cart-confirm").press("Enter");
    await until(async () => {
      await page.clock.runFor(1_000);
      return (await cartStatus(page).getAttribute("data-kind")) === "refused";
    }, "the end of the confirmation");
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
    await page.keyboard.insertText("bul.af, herat.af");
    expect(await read(status(page))).toBe("A list of 2 names. Press Enter to check them.");
    await offline(false);
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
