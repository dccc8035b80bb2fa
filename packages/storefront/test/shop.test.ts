/** The shop's name and description in three languages, the page for an unknown address, and the page without JavaScript. */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { describeWithBrowser, DESKTOP, PHONE } from "../../../test/browser/browser.js";
import { openShop, read, searchFor, texts } from "../../../test/browser/storefront.js";

const shop = `shop:
  name: { en: Hindukush Names, fa: نام‌های هندوکش, ps: د هندوکش نومونه }
  logo: /assets/icon.svg
  contact: { email: help@hindukush.example, phone: "+93 20 000 0000" }
  links: { terms: /terms, privacy: https://hindukush.example/privacy }`;
const shipped = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");
const CUT = `[...all(".brand, .about h3, .about p, footer p, footer a")]
  .filter((one) => one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)`;

describeWithBrowser("a shop with a name", () => {
  const opened = openShop({ retail: shipped.replace(/^shop:.*$/m, shop) });

  test.each([
    ["en", "Hindukush Names", "How it works", DESKTOP, "light"],
    ["fa", "نام‌های هندوکش", "چگونه کار می‌کند", PHONE, "dark"],
    ["ps", "د هندوکش نومونه", "څنګه کار کوي", PHONE, "light"],
  ] as const)("says who runs it and how it works: %s", async (language, name, heading, size, colorScheme) => {
    const { page, axe, picture } = await opened.visitor({ language, colorScheme, ...size });
    expect(await read(page.locator("#brand"))).toBe(name);
    expect(await page.title()).toContain(name);
    expect(await read(page.locator("#about-heading"))).toBe(heading);
    expect(await read(page.locator("#runs"))).toContain(name);
    const address = (id: string) => page.locator(`#${id}-link`).getAttribute("href");
    expect([await address("email"), await address("phone"), await address("terms")]).toEqual([
      "mailto:help@hindukush.example",
      "tel:+93200000000",
      "/terms",
    ]);
    const description = `one('meta[name="description"]').content`;
    expect(String(await page.evaluate(description)).length).toBeGreaterThan(40);
    await picture(`storefront-shop-${language}`);
    expect(await axe()).toEqual([]);
    expect(await page.evaluate(CUT)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
  });

  test("doesn't say of a price that the service doesn't know yet that it isn't offered", async () => {
    // The first window isn't enough for the whole list.
    const at = await opened.start({ env: { UPSTREAM_RATE_LIMIT: "8" } });
    const { page } = await opened.visitor({ at });
    const unknown = page.locator("#prices-table td.quiet");
    expect(await unknown.count()).toBeGreaterThan(0);
    expect(new Set((await unknown.allInnerTexts()).map((text) => text.replaceAll(/\s/g, "")))).toEqual(
      new Set(["–noprice"]),
    );
  });

  test("shows each price with its term", async () => {
    const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2], transfer: [2], restore: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;
    const sandbox = readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8");
    const world = sandbox.replaceAll(/transfer: \["([\d.]+)"\]/g, 'transfer: ["$1", "$1"]');
    const { page } = await opened.visitor({ at: await opened.start({ retail, world }) });
    const row = page.locator("#prices-table tbody td");
    const shown = async (): Promise<readonly string[]> =>
      (await row.allInnerTexts()).map((text) =>
        text.replaceAll(/\$[\d.]+/g, "price").replaceAll(/\s+/g, " "),
      );
    await row.first().waitFor();
    expect(await shown()).toEqual([
      "price 1 year price 2 years",
      "– no price",
      "price 2 years",
      "price 1 year",
    ]);
  });

  test("has a page for unknown addresses that leads back to it", async () => {
    const { page, axe, picture } = await opened.visitor(PHONE);
    await page.goto("/terms");
    await page.getByText("There is no page at this address.").waitFor();
    await picture("missing");
    expect(await axe()).toEqual([]);
    await page.getByRole("link", { name: /Home/ }).press("Enter");
    await page.locator("tbody tr").first().waitFor();
  });

  test("shows the prices of a term that is sold, even if one year isn't, or a term chosen before no longer is", async () => {
    const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [2, 3], renewal: [2, 3] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;
    const at = await opened.start({ retail });
    const { page } = await opened.visitor({ at });
    const shown = async (): Promise<unknown[]> => {
      await page.locator("tbody tr").first().waitFor();
      const checked = page.locator("#terms input:checked");
      const chosen = (await checked.count()) === 1 ? await checked.inputValue() : "none";
      await searchFor(page, "kabul");
      return [chosen, (await texts(page, ".name .price"))[0]];
    };
    expect(await shown()).toEqual(["2", expect.stringMatching(/^\$.*2 years/)]);
    await page.evaluate(`localStorage.setItem("af-domain-search..term", "5")`);
    await page.reload();
    expect(await shown()).toEqual(["3", expect.stringMatching(/^\$.*3 years/)]);
  });

  test("shows a sentence in each language and hides what doesn't work without JavaScript", async () => {
    const { page } = await opened.visitor(PHONE);
    const browser = page.context().browser();
    const context = await browser?.newContext({ ...PHONE, javaScriptEnabled: false });
    const plain = await context?.newPage();
    await plain?.goto(opened.service.url);
    expect(await plain?.locator("noscript p").allInnerTexts()).toHaveLength(3);
    for (const part of ["#search", ".languages", "footer"])
      expect(await plain?.locator(part).isVisible()).toBe(false);
    await plain?.screenshot({ path: "test-output/storefront-no-script.png" });
    await context?.close();
  });
});
