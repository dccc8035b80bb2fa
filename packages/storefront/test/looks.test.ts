/** The storefront's layout in three languages, on phone and desktop, light and dark: no layout shifts, no cut text, no axe violations. */
import { expect, test } from "@jest/globals";
import type { Route } from "playwright-core";
import { refusal } from "../../../test/browser/answers.js";
import { describeWithBrowser, DESKTOP, PHONE } from "../../../test/browser/browser.js";
import { looked } from "../../../test/browser/looks.js";
import { done, openShop, row, searchFor, texts, read } from "../../../test/browser/storefront.js";

/** Touch targets that are smaller than 44 px, with their sizes. */
const SMALL = `[...all("main :is(button, a, select, input, label), #root :is(button, select, input, label), .languages a")]
  .filter((one) => one.checkVisibility() && !one.closest("label:has(input)")?.contains(one.closest("input")))
  .map((one) => [one.getBoundingClientRect(), one])
  .filter(([{ width, height }]) => width > 1 && (height < 44 || width < 44))
  .map(([{ width, height }, one]) => Math.round(width) + "x" + Math.round(height) + " " + one.outerHTML.slice(0, 60))`;

/** The focused element if the cart bar covers more than half of it. */
const HIDDEN = `(() => {
  const [bar, at] = [one("#cart-bar"), focused()];
  const { top, bottom, height } = at.getBoundingClientRect();
  const isBelow = top > bar.getBoundingClientRect().bottom;
  const isCovered = at !== bar && !isBelow && bottom - Math.max(top, bar.getBoundingClientRect().top) > height / 2;
  return isCovered ? at.outerHTML : null;
})()`;

describeWithBrowser("the storefront", () => {
  const shop = openShop();

  test.each([
    ["fa", "fa-AF", "قیمت‌ها", /^۳ از ۴ نام قابل ثبت است/],
    ["ps", "ps", "بیې", /^له ۴ نومونو څخه ۳/],
  ])(
    "is shown in %s from right to left with its own digits, and remembers the language",
    async (language, tag, heading, found) => {
      const { page, picture, axe } = await shop.visitor(PHONE);
      await page.locator(`[data-language="${language}"]`).click();
      const root = page.locator("html");
      expect([await root.getAttribute("lang"), await root.getAttribute("dir")]).toEqual([tag, "rtl"]);
      await page.goto("/");
      expect(await read(page.locator("#prices-heading"))).toBe(heading);
      await searchFor(page, "کابل");
      expect(await read(page.locator("#search-status"))).toMatch(found);
      expect((await texts(page, ".names .domain"))[0]).toBe("کابل.af");
      expect((await texts(page, "tbody td"))[0]).toMatch(/۲۶٫۹۹/);
      await page.locator(".name button").first().click();
      await picture(`storefront-rtl-${language}`);
      expect(await axe()).toEqual([]);
      await page.locator('[data-language="en"]').click();
      expect([await root.getAttribute("lang"), await root.getAttribute("dir")]).toEqual(["en", "ltr"]);
      expect(await read(page.locator("#live"))).toBe("");
    },
  );

  test.each(looked(["fa", "en", "ps"]))(
    "keeps the names of a search in their places on a phone when their prices arrive: %s",
    async (language) => {
      const { page } = await shop.visitor({
        ...PHONE,
        language,
        before: (page) =>
          page.route("/v1/search?*", async (route) => {
            await new Promise((later) => setTimeout(later, 300));
            await route.continue();
          }),
      });
      const places = (): Promise<unknown> =>
        page.evaluate(`[...all(".name")].map((row) => Math.round(row.offsetTop))`);
      await page.locator("#query").focus();
      await page.keyboard.type(`mazar-${language}`);
      await page.keyboard.press("Enter");
      await page.locator('.name[data-state="looking"]').first().waitFor();
      const before = await places();
      await done(page);
      expect(await page.locator('.name[data-state="available"]').count()).toBeGreaterThan(1);
      expect(await places()).toEqual(before);
    },
  );

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
    await page.locator('#search-status[data-kind="failed"]').waitFor();
    await searchFor(page, word);
    if (word === "google") await page.locator("#ideas").waitFor();
    await row(page, `${word}.net.af`).locator("button").click();
    await page.locator("#cart-confirm").click();
    await page.locator('#cart-status[data-kind="confirmed"]').waitFor();
    await picture(`storefront-${name}-${language}`);
    expect(await moved()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
  });

  test.each(looked(["ps", "en", "fa"]))("fits a phone: %s", async (language) => {
    // The part of the screen that an on-screen keyboard leaves.
    const viewport = { width: 360, height: 400 };
    const { page, picture } = await shop.visitor({ ...PHONE, viewport, language });
    await page.locator("#query").tap();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    const seen = await page.evaluate(
      `(() => { const { top } = one(".name.exact .domain").getBoundingClientRect(); return top; })()`,
    );
    expect(Number(seen)).toBeGreaterThanOrEqual(0);
    expect(Number(seen)).toBeLessThan(viewport.height - 40);
    await page.locator(".name button").first().tap();
    expect(await read(page.locator("#cart-bar-total"))).toMatch(/26[.٫]99|۲۶٫۹۹/);
    const bar = await page.locator("#cart-bar").boundingBox();
    expect(Math.round((bar?.y ?? 0) + (bar?.height ?? 0))).toBe(viewport.height);
    await page.screenshot({ path: `test-output/storefront-keyboard-${language}.png` });
    await picture(`storefront-fits-${language}`);
    expect(await page.evaluate(SMALL)).toEqual([]);
    await page.locator("#cart-bar").tap();
    await page.locator("#cart-confirm").tap();
    await page.locator('#cart-status[data-kind="confirmed"]').waitFor();
  });

  test.each([
    ["a phone", PHONE.viewport],
    ["a desktop at 400 %", { width: 320, height: 225 }],
  ])("never hides the keyboard's focus behind the cart bar: %s", async (_, viewport) => {
    const { page } = await shop.visitor({ viewport });
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    await row(page, "kabul.com.af").locator("button").press("Enter");
    const stops: unknown[] = [];
    await page.locator("#query").focus();
    do {
      await page.keyboard.press("Tab");
      stops.push(await page.evaluate("focused().id || focused().outerHTML"));
      expect(await page.evaluate(HIDDEN)).toBeNull();
    } while (stops.at(-1) !== "cart-bar" && stops.length < 40);
    expect(stops).toContain("add-kabul.net.af");
    expect(stops.at(-1)).toBe("cart-bar");
  });

  test("shows which term is chosen in forced colours", async () => {
    const { page } = await shop.visitor({ forcedColors: "active" });
    const colour = (at: number): Promise<unknown> =>
      page.evaluate(`getComputedStyle(all(".terms span")[${at}]).color`);
    expect(await colour(0)).not.toBe(await colour(1));
  });

  test.each(looked(["fa", "en", "ps"]))("fits a small phone at 200 %%: %s", async (language) => {
    const viewport = { width: 180, height: 370 };
    const { page, picture } = await shop.visitor({ ...PHONE, viewport, deviceScaleFactor: 2, language });
    const widthOfPage = () => page.evaluate("document.documentElement.scrollWidth");
    expect(await widthOfPage()).toBe(viewport.width);
    await searchFor(page, "kabul");
    await page.locator(".name button").first().tap();
    await picture(`storefront-zoom-${language}`);
    expect(await widthOfPage()).toBe(viewport.width);
    const [term, price] = [".item select", ".item .price"].map((part) => page.locator(part));
    const [above, below] = [await term?.boundingBox(), await price?.boundingBox()];
    expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
  });
});
