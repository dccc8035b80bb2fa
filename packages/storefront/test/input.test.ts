/** What people type into the search box, in a real browser: words, lists, other TLDs, and text that can't be a name. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { CHECK } from "../../../test/support/service.js";
import { fa } from "../src/embed/texts/fa.js";
import { describeWithBrowser } from "../../../test/browser/browser.js";
import { done, enter, openShop, row, searchFor, texts, read } from "../../../test/browser/storefront.js";

describeWithBrowser("the search box", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#search-status");
  const message = (page: Page) => page.locator("#search-status");

  test("treats several words as one name, and offers them with hyphens", async () => {
    const { page, axe, picture } = await shop.visitor();
    await searchFor(page, "my shop");
    expect(await texts(page, ".name.exact .domain")).toEqual(["myshop.af"]);
    await picture("storefront-words");
    expect(await axe()).toEqual([]);
    await page.getByRole("button", { name: "my-shop", exact: true }).click();
    await row(page, "my-shop.af").waitFor();
    await done(page);
    expect(await page.locator("#query").inputValue()).toBe("my-shop");
  });

  test("moves the focus to the results when the button that was pressed disappears, and keeps it on one that stays", async () => {
    const { page } = await shop.visitor();
    const focused = (): Promise<unknown> => page.evaluate("focused().id");
    await page.locator("#examples button").first().press("Enter");
    await done(page);
    expect(await focused()).toBe("results-heading");
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("green tea");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    // The search starts by itself after a pause.
    await done(page);
    expect(await focused()).toBe("offer-green-tea");
    await page.keyboard.press("Enter");
    await done(page);
    expect(await focused()).toBe("results-heading");
  });

  test("offers the same name under a TLD sold if another TLD was typed", async () => {
    const { page, axe, picture } = await shop.visitor();
    const before = shop.service.calls(CHECK);
    await enter(page, "www.kabul.com");
    await page.locator('#search-status[data-kind="refused"]').waitFor();
    expect(await read(message(page))).toBe(
      "We do not sell names with this ending. Our endings are .af, .com.af, .net.af, .org.af.",
    );
    expect(await page.locator("#query").getAttribute("aria-invalid")).toBe("true");
    await picture("storefront-foreign-ending");
    expect(await axe()).toEqual([]);
    expect(shop.service.calls(CHECK)).toBe(before);
    await page.getByRole("button", { name: "kabul.af", exact: true }).click();
    await done(page);
    expect(await read(message(page))).toBe("4 of 4 are available.");
    expect(await texts(page, ".name.exact .domain")).toEqual(["kabul.af"]);
  });

  const WRONG: readonly (readonly [string, RegExp])[] = [
    ["a".repeat(64), /^This name is too long/],
    ["-kabul-", /^This is not one whole name\. .* Our endings are \.af/],
    ["shop😀", /^A name can have only letters, digits and hyphens/],
    ["kab_ul!", /^A name can have only letters, digits and hyphens/],
    ["kabulکابل", /^Write the whole name in Latin letters/],
    ["kаbul", /^Write the whole name in Latin letters/],
    ["shop@kabul.af", /^This is not one whole name/],
    ["ka..bul.af", /^This is not one whole name/],
    ["a.b.af", /^This is not one whole name/],
    ["com.af", /^This is not one whole name/],
    ["https://kabul", /^This is not one whole name/],
  ];
  test.each(["en", "fa", "ps"])(
    "says at the field what is wrong with a name, in the language %s",
    async (language) => {
      const { page } = await shop.visitor({ language });
      const before = shop.service.calls(CHECK);
      const said = new Set<string>();
      for (const [text, english] of WRONG) {
        await enter(page, text);
        await page.locator('#search-status[data-kind="refused"]').waitFor();
        const words = (await read(message(page))) ?? "";
        if (language === "en") expect(words).toMatch(english);
        // A missing translation would show the service's English text.
        else expect(words.replace(/[.]?[a-z]+\.af|\.af/g, "")).not.toMatch(/[a-z]{3}/i);
        expect(await page.locator(".name.exact").count()).toBe(0);
        said.add(words);
      }
      expect(said.size).toBe(new Set(WRONG.map(([, words]) => String(words).slice(0, 9))).size);
      expect(shop.service.calls(CHECK)).toBe(before);
    },
  );

  test("accepts a pasted list of up to twenty names, checks it on Enter with one call each, and shows the progress", async () => {
    const { page, axe, picture } = await shop.visitor({ permissions: ["clipboard-read", "clipboard-write"] });
    const names = Array.from({ length: 22 }, (_, at) => (at % 2 === 0 ? `list-${at}` : `list-${at}.com.af`));
    const before = shop.service.calls(CHECK);
    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(names.join("\n"))})`);
    await page.locator("#query").focus();
    await page.keyboard.press("ControlOrMeta+v");
    expect(await page.locator("#query").inputValue()).toBe(names.join(", "));
    expect(await read(status(page))).toBe("Only the first 20 names will be checked. Press Enter to start.");
    await page.waitForTimeout(1_500);
    expect(shop.service.calls(CHECK)).toBe(before);
    await page.keyboard.press("Enter");
    await page.getByText("of 20 names checked").first().waitFor();
    await done(page);
    expect(shop.service.calls(CHECK) - before).toBe(20);
    expect((await texts(page, ".names .domain")).slice(0, 3)).toEqual([
      "list-0.af",
      "list-1.com.af",
      "list-2.af",
    ]);
    await picture("storefront-list");
    expect(await axe()).toEqual([]);
  });

  test("checks a list with commas, says which names are invalid, and continues after a wait", async () => {
    let refused = false;
    const { page } = await shop.visitor({
      before: (page) =>
        page.route("/v1/availability?*", (route) => {
          if (refused || !route.request().url().includes("list-c")) return route.continue();
          refused = true;
          return route.fulfill({
            status: 503,
            json: { code: "quota_exhausted", detail: "x" },
            headers: { "retry-after": "1" },
          });
        }),
    });
    await enter(page, "list-a, list-b-، kabul.com; list-c.org.af");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    expect(await read(status(page))).toMatch(/^The shop is busy right now\. We will try again/);
    await done(page);
    expect(await texts(page, ".names .domain")).toEqual([
      "list-a.af",
      "list-b-.af",
      "kabul.af",
      "list-c.org.af",
    ]);
    expect(await read(row(page, "list-b-.af"))).toContain("This is not one whole name");
    expect(await row(page, "list-c.org.af").getAttribute("data-state")).toMatch(/available|taken/);
    await page.locator('a[data-language="fa"]').click();
    expect(await read(row(page, "list-b-.af").locator(".state"))).toBe(
      fa.reasons.not_a_name(".af, .com.af, .net.af, .org.af"),
    );
  });

  test("says that a name of a list could not be checked, and checks it and no other again", async () => {
    const at = await shop.start({});
    const { page } = await shop.visitor({ at });
    at.sandbox.control.setFault("check", { fault: "status-503", calls: 1 });
    await enter(page, "kabul.af, -x.af, google.af");
    await done(page);
    expect(await read(status(page))).toBe("0 of 3 are available. Some names could not be checked yet.");
    expect(await row(page, "kabul.af").getAttribute("data-state")).toBe("failed");
    await shop.clock.advance(10_000);
    const before = at.calls(CHECK);
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.locator("#search-again").press("Enter");
    expect(await row(page, "google.af").getAttribute("data-state")).toBe("taken");
    await page.getByText("1 of 3 is available.", { exact: true }).first().waitFor();
    expect(await row(page, "kabul.af").getAttribute("data-state")).toBe("available");
    expect(at.calls(CHECK)).toBe(before + 1);
    expect(requests.filter((url) => url.includes("google"))).toEqual([]);
    expect(await page.locator("#search-again").isVisible()).toBe(false);
  });
});
