/** The storefront's layout and languages: no layout shifts, nothing cut or hidden, a shop with a name, and the pages beside it. */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import type { Route } from "playwright-core";
import { refusal } from "../../../test/browser/answers.js";
import { describeWithBrowser, DESKTOP, PHONE } from "../../../test/browser/browser.js";
import { CUT, looked } from "../../../test/browser/looks.js";
import {
  cartIs,
  focusedId,
  openShop,
  put,
  read,
  RETAIL,
  row,
  searchFor,
  searchIs,
  texts,
} from "../../../test/browser/storefront.js";

const NAMES = { en: "Hindukush Names", fa: "نام‌های هندوکش", ps: "د هندوکش نومونه" } as const;
const SHOP = `shop:
  name: { en: ${NAMES.en}, fa: ${NAMES.fa}, ps: ${NAMES.ps} }
  logo: /assets/icon.svg
  contact: { email: help@hindukush.example, phone: "+93 20 000 0000" }
  links: { terms: /terms, privacy: https://hindukush.example/privacy }`;

/** The focused element if the cart bar covers more than half of it. */
const HIDDEN = `(() => {
  const [bar, at] = [one("#cart-bar"), focused()];
  const { top, bottom, height } = at.getBoundingClientRect();
  const isBelow = top > bar.getBoundingClientRect().bottom;
  const isCovered = at !== bar && !isBelow && bottom - Math.max(top, bar.getBoundingClientRect().top) > height / 2;
  return isCovered ? at.outerHTML : null;
})()`;

/** Text of a shop with a name that doesn't fit. */
const CUT_AROUND = `[...all(".brand, .about h3, .about p, footer p, footer a")]
  .filter((one) => one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)`;

describeWithBrowser("the storefront", () => {
  const shop = openShop({ retail: RETAIL.replace(/^shop:.*$/m, SHOP) });

  test("speaks three languages, two from right to left with their own digits, says who runs it, and remembers the language", async () => {
    const { page, picture, axe } = await shop.visitor({ ...PHONE, colorScheme: "dark" });
    const root = page.locator("html");
    const address = (id: string) => page.locator(`#${id}-link`).getAttribute("href");
    expect([await address("email"), await address("phone"), await address("terms")]).toEqual([
      "mailto:help@hindukush.example",
      "tel:+93200000000",
      "/terms",
    ]);
    for (const [language, tag, heading, found, price] of [
      ["fa", "fa-AF", "چگونه کار می‌کند", /^۳ از ۴ نام قابل ثبت است/, /۲۶٫۹۹/],
      ["ps", "ps", "څنګه کار کوي", /^له ۴ نومونو څخه ۳/, /۲۶٫۹۹/],
      ["en", "en", "How it works", /^3 of 4 are available/, /26\.99/],
    ] as const) {
      await page.locator(`[data-language="${language}"]`).click();
      expect(await read(page.locator("#live"))).toBe("");
      await page.goto("/");
      await page.locator("tbody tr").first().waitFor();
      expect([await root.getAttribute("lang"), await root.getAttribute("dir")]).toEqual([
        tag,
        language === "en" ? "ltr" : "rtl",
      ]);
      expect(await read(page.locator("#brand"))).toBe(NAMES[language]);
      expect(await page.title()).toContain(NAMES[language]);
      expect(await read(page.locator("#runs"))).toContain(NAMES[language]);
      expect(await read(page.locator("#about-heading"))).toBe(heading);
      const description = `one('meta[name="description"]').content`;
      expect(String(await page.evaluate(description)).length).toBeGreaterThan(40);
      await searchFor(page, "کابل");
      expect(await read(page.locator("#search-status"))).toMatch(found);
      expect((await texts(page, ".names .domain"))[0]).toBe("کابل.af");
      expect((await texts(page, "tbody td"))[0]).toMatch(price);
      await picture(`storefront-shop-${language}`);
      expect(await axe()).toEqual([]);
      expect([await page.evaluate(CUT), await page.evaluate(CUT_AROUND)]).toEqual([[], []]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(PHONE.viewport.width);
    }
  });

  test.each(
    looked(
      [
        ["phone", "fa", PHONE, "google"],
        ["phone", "en", PHONE, "kabul"],
        ["desktop", "en", DESKTOP, "kabul"],
        ["desktop", "ps", DESKTOP, "google"],
      ] as const,
      2,
    ),
  )("has no layout shifts and is never wider than the screen: %s, %s", async (name, language, size, word) => {
    // Longer than the half second during which browsers attribute layout shifts to an input.
    const late = async (route: Route): Promise<void> => {
      await new Promise((later) => setTimeout(later, 550));
      await route.continue();
    };
    let refused = false;
    const { page, moved, picture } = await shop.visitor({
      ...size,
      language,
      before: async (page) => {
        for (const path of ["/v1/prices", "/v1/quotes"]) await page.route(path, late);
        await page.route("/v1/search?*", async (route) => {
          if (route.request().url().includes("only=known") || refused) return late(route);
          refused = true;
          await new Promise((later) => setTimeout(later, 550));
          return route.fulfill(refusal("upstream_failed", 502));
        });
      },
    });
    await page.locator("#query").focus();
    await page.keyboard.type("a-rather-long-name-that-somebody-may-want-to-have-for-the-shop");
    await page.keyboard.press("Enter");
    await searchIs(page, "failed");
    await searchFor(page, word);
    if (word === "google") await page.locator("#ideas").waitFor();
    await row(page, `${word}.net.af`).locator("button").click();
    await page.locator("#cart-confirm").click();
    await cartIs(page, "confirmed");
    await picture(`storefront-${name}-${language}`);
    expect(await moved()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
  });

  test("never hides the keyboard's focus behind the cart bar on a desktop at 400 %, and shows in forced colours which term is chosen", async () => {
    const { page } = await shop.visitor({ viewport: { width: 320, height: 225 }, forcedColors: "active" });
    const colour = (at: number): Promise<unknown> =>
      page.evaluate(`getComputedStyle(all(".terms span")[${at}]).color`);
    expect(await colour(0)).not.toBe(await colour(1));
    await put(page, "kabul.af", "kabul.com.af");
    const stops: unknown[] = [];
    await page.locator("#query").focus();
    do {
      await page.keyboard.press("Tab");
      stops.push(await focusedId(page));
      expect(await page.evaluate(HIDDEN)).toBeNull();
    } while (stops.at(-1) !== "cart-bar" && stops.length < 40);
    expect(stops).toContain("add-kabul.net.af");
    expect(stops.at(-1)).toBe("cart-bar");
  });

  test("shows each price with its term, no price for what isn't listed, and the prices of a term that is sold", async () => {
    const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [2, 3], transfer: [2], restore: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;
    const sandbox = readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8");
    const world = sandbox.replaceAll(/transfer: \["([\d.]+)"\]/g, 'transfer: ["$1", "$1"]');
    const { page } = await shop.visitor({ at: await shop.start({ retail, world }) });
    const cells = await page.locator("#prices-table tbody td").allInnerTexts();
    expect(cells.map((text) => text.replaceAll(/\$[\d.]+/g, "price").replaceAll(/\s+/g, " "))).toEqual([
      "price 2 years price 3 years",
      "– no price",
      "price 2 years",
      "price 1 year",
    ]);
    const shown = async (): Promise<unknown[]> => {
      const checked = page.locator("#terms input:checked");
      const chosen = (await checked.count()) === 1 ? await checked.inputValue() : "none";
      await searchFor(page, "kabul");
      return [chosen, (await texts(page, ".name .price"))[0]];
    };
    expect(await shown()).toEqual(["2", expect.stringMatching(/^\$.*2 years/)]);
    // A term that was chosen before may no longer be sold.
    await page.evaluate(`localStorage.setItem("af-domain-search..term", "5")`);
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    expect(await shown()).toEqual(["3", expect.stringMatching(/^\$.*3 years/)]);
  });

  test("has a page for unknown addresses that leads back to it, and a sentence in each language without JavaScript", async () => {
    const { page, axe, picture } = await shop.visitor(PHONE);
    await page.goto("/terms");
    await page.getByText("There is no page at this address.").waitFor();
    await picture("missing");
    expect(await axe()).toEqual([]);
    await page.getByRole("link", { name: /Home/ }).press("Enter");
    await page.locator("tbody tr").first().waitFor();
    const context = await page
      .context()
      .browser()
      ?.newContext({ ...PHONE, javaScriptEnabled: false });
    const plain = await context?.newPage();
    await plain?.goto(shop.service.url);
    expect(await plain?.locator("noscript p").allInnerTexts()).toHaveLength(3);
    for (const part of ["#search", ".languages", "footer"])
      expect(await plain?.locator(part).isVisible()).toBe(false);
    await context?.close();
  });
});
