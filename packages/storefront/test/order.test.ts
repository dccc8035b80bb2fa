/** A complete order in a real browser, from a search to the demo checkout: by mouse, by touch and by keyboard alone. */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import { looked, LOOKS, screenOf } from "../../../test/browser/looks.js";
import { done, inspect, openShop, row, searchFor, texts, read } from "../../../test/browser/storefront.js";

const RETAIL = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");
const HEADINGS = { en: "Checkout", fa: "پرداخت", ps: "تادیه" };
const TOTALS = { en: /38\.98/, fa: /۳۸٫۹۸/, ps: /۳۸٫۹۸/ };

describeWithBrowser("an order", () => {
  const shop = openShop();
  const confirmed = (page: Page) => page.locator('#cart-status[data-kind="confirmed"]').waitFor();

  test.each(looked(LOOKS, 7))("can be made from search to checkout in %s, %s, on a %s", async (...seen) => {
    const [language, colorScheme, name] = seen;
    const size = screenOf(seen);
    const { page, axe, picture } = await shop.visitor({ ...size, language, colorScheme });
    await searchFor(page, "kabul");
    for (const domain of ["kabul.af", "kabul.com.af"]) await row(page, domain).locator("button").click();
    if (name === "phone") await page.locator("#cart-bar").tap();
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    await picture(`order-${language}-${name}-${colorScheme}-1-signed`);
    expect(await read(page.locator("body"))).not.toMatch(/eyJ/);
    await page.locator("#cart-checkout button").click();
    await page.locator("#lines tr").first().waitFor();
    expect(new URL(page.url()).pathname).toBe("/checkout");
    await page.evaluate(`globalThis.watched ??= { violations: [] }`);
    expect(await read(page.locator("h1"))).toBe(HEADINGS[language]);
    expect(await texts(page, "#lines th")).toEqual(["kabul.af", "kabul.com.af"]);
    expect(await read(page.locator("#total"))).toMatch(TOTALS[language]);
    await picture(`order-${language}-${name}-${colorScheme}-2-checkout`);
    expect(await axe()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
    await page.goBack();
    await done(page);
    await confirmed(page);
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);
  });

  test("can be made by keyboard alone", async () => {
    const { page } = await shop.visitor();
    const focused = (): Promise<unknown> => page.evaluate("focused().textContent.trim()");
    const tabTo = async (text: string): Promise<void> => {
      for (let tabs = 0; (await focused()) !== text; tabs += 1) {
        if (tabs > 40) throw new Error(`Tab never reaches ${text}`);
        await page.keyboard.press("Tab");
      }
    };
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    await tabTo("Add to cart");
    await page.keyboard.press("Enter");
    await tabTo("Confirm the price");
    await page.keyboard.press("Enter");
    await confirmed(page);
    // The button for the next step replaces the last one and has the focus.
    expect(await focused()).toBe("Go to checkout");
    await page.keyboard.press("Enter");
    await page.locator("#lines tr").first().waitFor();
    await tabTo("Back to the shop");
    await page.keyboard.press("Enter");
    await done(page);
  });

  test("shows names at the checkout as they were typed, in their own script", async () => {
    const { page } = await shop.visitor({ language: "fa" });
    await searchFor(page, "مزار۱۲.af");
    await page.locator(".exact button").press("Enter");
    await page.locator("#cart-confirm").press("Enter");
    await confirmed(page);
    await page.locator("#cart-go-on").press("Enter");
    await page.locator("#lines tr").first().waitFor();
    expect(await texts(page, "#lines th")).toEqual(["مزار۱۲.af"]);
  });

  test.each([
    ["en", "until Mar 21, 2026, ", "24:59:59\u00A0left"],
    ["fa", "تا ۱ حمل ۱۴۰۵", "۲۴:۵۹:۵۹\u00A0باقی\u00A0مانده"],
    ["ps", "تر ۱ حمل ۱۴۰۵", "۲۴:۵۹:۵۹\u00A0پاتې"],
  ])(
    "says on which day prices end that are held for more than a day, and counts the hours: %s",
    async (language, day, left) => {
      const at = await shop.start({ retail: RETAIL.replace("validMs: 900000", "validMs: 90000000") });
      const { page, picture } = await shop.visitor({
        ...PHONE,
        at,
        language,
        stopped: true,
        timezoneId: "UTC",
      });
      await searchFor(page, "kabul");
      await row(page, "kabul.af").locator("button").press("Enter");
      await page.locator("#cart-confirm").press("Enter");
      await confirmed(page);
      const held = await read(page.locator("#cart-status"));
      expect(held).toContain(day);
      expect(held).toContain(left);
      await inspect(page, 60_000, () => picture(`order-held-for-a-day-${language}`));
      await page.locator("#cart-go-on").press("Enter");
      await page.locator("#lines tr").first().waitFor();
      expect(await read(page.locator("#until"))).toContain(day);
    },
  );

  test("shows no prices whose time ended while the checkout was loading", async () => {
    const { page } = await shop.visitor({ stopped: true });
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    await page.locator("#cart-confirm").press("Enter");
    await confirmed(page);
    let load = (): void => {};
    const loaded = new Promise<void>((done) => {
      load = done;
    });
    const script = /\/assets\/.*checkout.*\.js/;
    await page.route(script, (route) => loaded.then(() => route.continue()));
    const requested = page.waitForRequest(script);
    await page.locator("#cart-go-on").press("Enter");
    await requested;
    await page.clock.fastForward(16 * 60_000);
    load();
    await page.locator('#notice[data-kind="expired"]').waitFor();
    expect(await page.locator("#order").isVisible()).toBe(false);
  });

  test("with an expired promise is refused with an explanation", async () => {
    const { page, axe, picture } = await shop.visitor();
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").click();
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    await shop.clock.advance(20 * 60_000);
    await page.locator("#cart-checkout button").click();
    await page.getByText("These prices are no longer held.").waitFor();
    await picture("order-refused");
    expect(await axe()).toEqual([]);
  });
});
