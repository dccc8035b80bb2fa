/** What visitors see of a search in a real browser: each name in its place, and its price. */
import { afterAll, expect, test } from "@jest/globals";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { priceListShape, quotesShape } from "../../../src/wire/visitors.js";
import { CHECK, temporaryFolder, until } from "../../../test/support/service.js";
import { mixedSearch, onSearch, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import { CUT } from "../../../test/browser/looks.js";
import { done, enter, openShop, row, searchFor, texts, read } from "../../../test/browser/storefront.js";

const RETAIL = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");

describeWithBrowser("a search at the storefront", () => {
  const shop = openShop();
  const folder = temporaryFolder();
  afterAll(folder.remove);

  test("shows a name under every TLD sold, the exact one first, with prices, and announces it to screen readers", async () => {
    const { page, picture, weight } = await shop.visitor();
    await picture("storefront-start");
    expect(await texts(page, "tbody th")).toEqual([".af", ".com.af", ".net.af", ".org.af"]);
    expect(await texts(page, "tbody tr:first-child td > :first-child .amount")).toEqual([
      "$26.99",
      "$27.99",
      "$23.99",
      "$96.00",
    ]);
    expect(await weight()).toBeLessThan(60_000);

    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    const fetched = `performance.getEntriesByType("resource").filter(({ transferSize }) => transferSize > 0).length`;
    expect(await page.evaluate(fetched)).toBe(0);

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
    expect(await read(row(page, "kabul.af").locator(".renewal"))).toBe("Renews at $27.99 a year");
    expect(await read(page.locator("#live"))).toBe("4 of 4 are available.");

    await searchFor(page, "google.af");
    expect(await read(row(page, "google.af"))).toContain("Taken");
    expect(await row(page, "google.af").locator("button").count()).toBe(0);
  });

  test("shows the price of the chosen term and the price per year, without another call", async () => {
    const { page } = await shop.visitor();
    await page.locator("#terms").getByText("3 years").click();
    await searchFor(page, "kabul");
    const before = shop.service.calls(CHECK);
    // Two TLDs are sold for at most two years.
    expect(await texts(page, ".names .price")).toEqual([
      "$70.993 years · $23.67 a year",
      "$32.993 years · $11.00 a year",
      "$19.992 years · $10.00 a year",
      "$19.992 years · $10.00 a year",
    ]);
    await page.locator("#terms").getByText("1 year").click();
    expect((await texts(page, ".names .price"))[0]).toBe("$26.991 year");
    expect(shop.service.calls(CHECK)).toBe(before);
  });

  test("shows the regular price beside a reduced one until the promotion ends, whatever the list says", async () => {
    const to = new Date(shop.clock.now() + 30_000).toISOString();
    const sale = `{ id: sale, match: { tld: .af, action: registration }, percentOff: "10", from: "2026-01-01T00:00:00Z", to: "${to}" }`;
    const at = await shop.start({ retail: RETAIL.replace("promotions: []", `promotions: [${sale}]`) });
    const { page } = await shop.visitor({ at, stopped: true });
    const listed = page.locator(".amount").first();
    await searchFor(page, "kabul");
    expect(await read(row(page, "kabul.af").locator(".price"))).toBe("$26.99 $24.991 year");
    expect(await texts(page, "tbody td:first-of-type div:first-child > s")).toEqual([
      "Regular price: $26.99",
    ]);
    expect(await read(listed)).toBe("$24.99");
    // The page's clock stands: to it, the promotion goes on.
    await shop.clock.advance(33_000);
    await searchFor(page, "herat");
    expect(await read(row(page, "herat.af").locator(".price"))).toBe("$26.991 year");
    await page.clock.runFor(33_000);
    await until(async () => (await read(listed)) === "$26.99", "the end of the promotion in the list");
  });

  test("says at what time a promotion ends, because it isn't over at midnight everywhere", async () => {
    const sale = `{ id: sale, match: { tld: .af, action: registration }, percentOff: "10", from: "2026-01-01T00:00:00Z", to: "2026-03-27T00:00:00Z" }`;
    const at = await shop.start({ retail: RETAIL.replace("promotions: []", `promotions: [${sale}]`) });
    const { page, axe, picture } = await shop.visitor({ at, ...PHONE, timezoneId: "Asia/Kabul" });
    const listed = page.locator("tbody td s + small").first();
    expect(await read(listed)).toMatch(/^until Mar 27, 2026, 4:30\sAM$/);
    await picture("storefront-promotion");
    expect(await axe()).toEqual([]);
    expect(await page.evaluate(CUT)).toEqual([]);
    for (const [language, end] of [
      ["fa", /^تا ۷ حمل ۱۴۰۵.*۴:۳۰$/],
      ["ps", /^تر ۷ حمل ۱۴۰۵.*۴:۳۰ پورې$/],
    ] as const) {
      await page.locator(`[data-language=${language}]`).click();
      expect(await read(listed)).toMatch(end);
      expect(await page.evaluate(CUT)).toEqual([]);
    }
  });

  test("shows a changed price everywhere: when the list is old, within seconds of a return, and of a cart that is confirmed at another price", async () => {
    const file = join(folder.path, "retail.yaml");
    const listed = (page: Page) => page.locator(".amount").first();
    const setAdded = async (amount: string): Promise<void> => {
      writeFileSync(file, RETAIL.replaceAll('addFixed: "1.00"', `addFixed: "${amount}"`));
      await shop.clock.advance(1_000);
    };
    await setAdded("1.00");
    const at = await shop.start({ env: { RETAIL_CONFIG: file } });
    const { page } = await shop.visitor({ at, stopped: true });
    const status = page.locator("#cart-status");
    const expectShown = async (price: string): Promise<void> => {
      expect(await read(listed(page))).toBe(price);
      expect(await read(row(page, "kabul.af").locator(".price"))).toBe(`${price}1 year`);
      expect(await texts(page, ".item .price, #cart-total")).toEqual([price, `Total: ${price}`]);
    };
    const becomes = (price: string, stepMs: number) =>
      until(async () => {
        await page.clock.runFor(stepMs);
        return (await read(listed(page))) === price;
      }, `${price} in the list`);
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    await expectShown("$26.99");
    await setAdded("9.00");
    // The page's copy of the list is fresh for five minutes.
    await page.clock.runFor(10_000);
    await expectShown("$26.99");
    await becomes("$34.99", 60_000);
    await expectShown("$34.99");
    // The browser still has the old list.
    await setAdded("2.00");
    await page.reload();
    await listed(page).waitFor();
    await done(page);
    await becomes("$27.99", 5_000);
    await expectShown("$27.99");

    await page.route("/v1/quotes", async (route) => {
      const response = await route.fetch();
      const quotes = quotesShape.parse(await response.json());
      await route.fulfill({ response, json: { ...quotes, promise: null, validUntil: null } });
    });
    await page.locator("#cart-confirm").press("Enter");
    await status.getByText(/^\s*The price was checked at \d+:\d\d\s[AP]M, and is not held\.\s*$/).waitFor();
    await expectShown("$27.99");
    await setAdded("9.00");
    await becomes("$34.99", 60_000);
    await expectShown("$34.99");
    expect(await read(status)).toBe("Confirm the price to hold it for you.");

    await page.unroute("/v1/quotes");
    await setAdded("2.00");
    await page.locator("#cart-confirm").press("Enter");
    await status.getByText("A price has changed").waitFor();
    await becomes("$27.99", 5_000);
    await expectShown("$27.99");
  });

  test("shows a premium price for its own term, and a name without a price", async () => {
    const { page } = await shop.visitor({
      before: (page) => onSearch(page, (route) => route.fulfill(mixedSearch)),
    });
    await page.locator("#terms").getByText("2 years").click();
    await searchFor(page, "gold");
    expect(await read(row(page, "gold.af").locator(".price"))).toBe("$1,575.001 year");
    expect(await row(page, "gold.af").locator(".state").innerText()).toBe(
      "Available Premium Renewal price on request",
    );
    expect(await read(row(page, "gold.com.af").locator(".state"))).toContain("No price right now.");
    expect(await row(page, "gold.com.af").locator("button").count()).toBe(0);
    expect(await read(row(page, "gold.org.af").locator(".renewal"))).toBe("Renews at $12.34 a year");
  });

  test("can hide taken names except the one searched for, and remembers the choice", async () => {
    const { page } = await shop.visitor();
    await searchFor(page, "google");
    expect(await texts(page, ".names .domain")).toHaveLength(4);
    await page.getByLabel("Hide taken names").check();
    expect(await texts(page, ".names .domain")).toEqual(["google.af", "google.net.af", "google.org.af"]);
    await page.reload();
    await done(page);
    expect(await texts(page, ".names .domain")).toHaveLength(3);
  });

  test("survives a reload of its own tab, whatever is searched in another; a new tab begins with the last one", async () => {
    const { page } = await shop.visitor();
    const open = async (): Promise<Page> => {
      const tab = await page.context().newPage();
      await tab.goto("/");
      await tab.locator("tbody tr").first().waitFor();
      return tab;
    };
    const expectAfterReload = async (tab: Page, text: string): Promise<void> => {
      await tab.reload();
      await tab.locator("tbody tr").first().waitFor();
      expect(await tab.locator("#query").inputValue()).toBe(text);
    };
    await searchFor(page, "kabul");
    const other = await open();
    await searchFor(other, "herat");
    await expectAfterReload(page, "kabul");
    await done(page);
    expect(await texts(page, ".name.exact .domain")).toEqual(["kabul.af"]);
    await searchFor(other, "balkh");
    expect(await (await open()).locator("#query").inputValue()).toBe("balkh");
    await other.locator("#query").focus();
    await other.keyboard.press("ControlOrMeta+a");
    await other.keyboard.press("Delete");
    await expectAfterReload(page, "kabul");
    await done(page);
    await expectAfterReload(other, "");
  });

  test("for a list is the same after a reload and through a link, even before the prices are loaded", async () => {
    const { page } = await shop.visitor();
    const list = ["kabul.af", "kabul.com.af", "google.af"];
    await enter(page, list.join(", "));
    await done(page);
    const found = await texts(page, ".names .price");
    expect(await texts(page, ".names .domain")).toEqual(list);
    await page.reload();
    await done(page);
    expect(await texts(page, ".names .domain")).toEqual(list);
    expect(await texts(page, ".names .price")).toEqual(found);
    const linked = await shop.visitor({ path: `/?q=${list.join(",")}` });
    await done(linked.page);
    expect(await texts(linked.page, ".names .domain")).toEqual(list);
  });

  test("knows the TLDs sold and fills in the prices while a service that has just started learns them", async () => {
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
    expect(await texts(page, ".names .domain")).toEqual([
      "kabul.af",
      "kabul.com.af",
      "kabul.net.af",
      "kabul.org.af",
    ]);
    isComplete = true;
    await page.clock.runFor(5_000);
    await page.locator("tbody th").nth(3).waitFor();
    expect(await texts(page, "tbody tr:first-child td > :first-child .amount")).toEqual([
      "$26.99",
      "$27.99",
      "$23.99",
      "$96.00",
    ]);
    expect(await texts(page, "#terms label")).toEqual(["1 year", "2 years", "3 years"]);
  });

  test("shows streamed results in their places, and similar available names below them", async () => {
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
});
