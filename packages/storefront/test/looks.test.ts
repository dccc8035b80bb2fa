/**
 * The storefront's looks: every state, in visits that pass through several, each in one of the twelve combinations of language, screen and colour scheme;
 * no layout shifts, nothing cut or hidden, a shop with a name, and the pages beside it.
 */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import type { Page, Route } from "playwright-core";
import {
  fillCart,
  mixedSearch,
  onSearch,
  quotesWithProblems,
  refusal,
  result,
  streamed,
} from "../../../test/browser/answers.js";
import { describeWithBrowser, DESKTOP, PHONE } from "../../../test/browser/browser.js";
import { CUT, type Look, looked, LOOKS, screenOf } from "../../../test/browser/looks.js";
import {
  cartIs,
  confirm,
  done,
  enter,
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
import { ROOT, UPDATES } from "../../../test/docs/support/markdown.js";

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

/** Waits until the page has been painted. */
const PAINTED = `new Promise((done) => new PerformanceObserver(() => done()).observe({ type: "paint", buffered: true }))`;

interface Journey {
  readonly look: Look;
  /** What leads to each state. */
  readonly states: Readonly<Record<string, (page: Page) => Promise<unknown>>>;
  /** The states with new parts, which axe has to inspect. */
  readonly inspected: readonly string[];
}

/** The next search is answered with this. */
async function answered(page: Page, answer: object, becomes: string): Promise<void> {
  await page.unrouteAll();
  await onSearch(page, (route) => route.fulfill(answer));
  await enter(page, "");
  await enter(page, "kabul");
  await searchIs(page, becomes);
}
async function quoted(page: Page, answer: object): Promise<void> {
  await page.unrouteAll();
  await page.route("/v1/quotes", (route) => route.fulfill(answer));
}
const WAIT = { retryAfter: 57, kept: true };

const JOURNEYS: readonly Journey[] = [
  {
    look: ["en", "light", "desktop"],
    states: {
      start: () => Promise.resolve(),
      found: (page) => searchFor(page, "kabul"),
      "taken, with similar names": async (page) => {
        await searchFor(page, "google");
        await page.locator("#ideas").waitFor();
      },
      "several words": (page) => searchFor(page, "my shop"),
      "another ending": async (page) => {
        await enter(page, "www.kabul.com");
        await searchIs(page, "refused");
      },
      "no name": async (page) => {
        await searchFor(page, "herat");
        await enter(page, "shop😀");
        await searchIs(page, "refused");
      },
      "a list": async (page) => {
        const long = "a-rather-long-name-that-somebody-may-want.org.af";
        await enter(page, `kabul, herat-, balkh.com.af, ${long}, google`);
        await done(page);
      },
    },
    inspected: ["start", "taken, with similar names", "another ending", "a list"],
  },
  {
    look: ["fa", "dark", "phone"],
    states: {
      "premium, and without a price": async (page) => {
        await onSearch(page, (route) => route.fulfill(mixedSearch));
        await searchFor(page, "gold");
      },
      busy: (page) => answered(page, refusal("quota_exhausted", 503, 30), "waiting"),
      "registry down": (page) => answered(page, refusal("upstream_failed", 502), "failed"),
      "too many requests": (page) => answered(page, refusal("rate_limited", 429, 30), "waiting"),
      "busy for some names": (page) => {
        const names = [
          result("kabul.af", ".af", "available"),
          result("kabul.com.af", ".com.af", "available"),
          result("kabul.net.af", ".net.af", "unknown", WAIT),
          result("kabul.org.af", ".org.af", "unknown", WAIT),
        ];
        return answered(page, streamed(names, false), "waiting");
      },
      "registry slow": async (page) => {
        await page.unrouteAll();
        await onSearch(page, () => Promise.resolve());
        await enter(page, "balkh");
        await page.clock.fastForward(5_000);
      },
      offline: async (page) => {
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await page.context().setOffline(true);
        await enter(page, "herat");
        await searchIs(page, "waiting");
      },
    },
    inspected: ["premium, and without a price", "busy for some names"],
  },
  {
    look: ["ps", "light", "phone"],
    states: {
      "cart, not confirmed": (page) => put(page, "kabul.af", "kabul.com.af"),
      "cart, confirmed": (page) => confirm(page, "confirmed"),
      checkout: async (page) => {
        await page.locator("#cart-checkout button").press("Enter");
        await page.locator("#lines tr").first().waitFor();
      },
      "cart, no longer held": async (page) => {
        await page.goBack();
        await cartIs(page, "confirmed");
        await page.clock.fastForward(16 * 60_000);
        await cartIs(page, "problem");
      },
      "cart, removed": async (page) => {
        await page.locator(".item button").first().press("Enter");
        await page.locator("#cart-undo").waitFor();
      },
      "cart, waits": async (page) => {
        await quoted(page, refusal("quota_exhausted", 503, 30));
        await confirm(page, "waiting");
      },
      "cart, with problems": async (page) => {
        await quoted(page, quotesWithProblems(Number(await page.evaluate("Date.now()"))));
        for (const domain of ["kabul.net.af", "kabul.af"])
          await row(page, domain).locator("button").press("Enter");
        await confirm(page, "problem");
      },
      "cart, full": async (page) => {
        await fillCart(page);
        await searchFor(page, "herat");
      },
    },
    inspected: ["checkout", "cart, with problems"],
  },
];

/** Touch targets that are smaller than 44 px, with their sizes. */
const SMALL = `[...all("main :is(button, a, select, input, label), #root :is(button, select, input, label), .languages a")]
  .filter((one) => one.checkVisibility() && !one.closest("label:has(input)")?.contains(one.closest("input")))
  .map((one) => [one.getBoundingClientRect(), one])
  .filter(([{ width, height }]) => width > 1 && (height < 44 || width < 44))
  .map(([{ width, height }, one]) => Math.round(width) + "x" + Math.round(height) + " " + one.outerHTML.slice(0, 60))`;

describeWithBrowser("the storefront", () => {
  const shop = openShop();

  test("speaks three languages, two from right to left with their own digits, and says who runs it; has a page for unknown addresses that leads back, and a sentence in each language without JavaScript", async () => {
    const at = await shop.start({ retail: RETAIL.replace(/^shop:.*$/m, SHOP) });
    const { page, picture, axe } = await shop.visitor({ ...PHONE, at, colorScheme: "dark" });
    const root = page.locator("html");
    const address = (id: string) => page.locator(`#${id}-link`).getAttribute("href");
    expect([await address("email"), await address("phone"), await address("terms")]).toEqual([
      "mailto:help@hindukush.example",
      "tel:+93200000000",
      "/terms",
    ]);
    await searchFor(page, "کابل");
    for (const [language, tag, heading, found, price] of [
      ["ps", "ps", "څنګه کار کوي", /^له ۴ نومونو څخه ۳/, /۲۶٫۹۹/],
      ["en", "en", "How it works", /^3 of 4 are available/, /26\.99/],
      ["fa", "fa-AF", "چگونه کار می‌کند", /^۳ از ۴ نام قابل ثبت است/, /۲۶٫۹۹/],
    ] as const) {
      await page.locator(`[data-language="${language}"]`).click();
      expect(await read(page.locator("#live"))).toBe("");
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
      expect(await read(page.locator("#search-status"))).toMatch(found);
      expect((await texts(page, ".names .domain"))[0]).toBe("کابل.af");
      expect((await texts(page, "tbody td"))[0]).toMatch(price);
      await picture(`storefront-shop-${language}`);
      expect([await page.evaluate(CUT), await page.evaluate(CUT_AROUND)]).toEqual([[], []]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(PHONE.viewport.width);
    }
    expect(await axe()).toEqual([]);

    await page.locator("#terms-link").click();
    await page.getByText("There is no page at this address.").waitFor();
    await picture("missing");
    expect(await axe()).toEqual([]);
    await page.getByRole("link", { name: /Home/ }).press("Enter");
    await page.locator("tbody tr").first().waitFor();
    const browser = page.context().browser();
    const context = await browser?.newContext({ ...PHONE, javaScriptEnabled: false });
    const plain = await context?.newPage();
    await plain?.goto(shop.service.url);
    expect(await plain?.locator("noscript p").allInnerTexts()).toHaveLength(3);
    for (const part of ["#search", ".languages", "footer"])
      expect(await plain?.locator(part).isVisible()).toBe(false);
    await context?.close();
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
        await page.route("/v1/quotes", late);
        // Nobody has pressed anything yet, so it only has to be after the page is painted.
        await page.route("/v1/prices", async (route) => {
          await page.evaluate(PAINTED);
          await route.continue();
        });
        await page.route("/v1/search?*", async (route) => {
          if (route.request().url().includes("only=known") || refused) return late(route);
          refused = true;
          await new Promise((later) => setTimeout(later, 550));
          return route.fulfill(refusal("upstream_failed", 502));
        });
      },
    });
    await enter(page, "a-rather-long-name-that-somebody-may-want-to-have-for-the-shop");
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

  const cases = JOURNEYS.flatMap(({ look, states, inspected }) => {
    const looks = [look, ...LOOKS.filter((other) => String(other) !== String(look))];
    return looked(looks).map((seen) => [Object.keys(states).join("; "), ...seen, states, inspected] as const);
  });
  test.each(cases)("fits the screen and passes axe: %s, in %s, %s, on a %s", async (...given) => {
    const [, language, colorScheme, size, states, inspected] = given;
    const seen: Look = [language, colorScheme, size];
    const { page, axe, picture } = await shop.visitor({ ...screenOf(seen), language, colorScheme });
    for (const [name, reach] of Object.entries(states)) {
      await reach(page);
      await picture(`states/${name.replaceAll(/[^a-z]+/g, "-")}-${seen.join("-")}`);
      const flaws = { axe: inspected.includes(name) ? await axe() : [], cut: await page.evaluate(CUT) };
      expect([name, flaws]).toEqual([name, { axe: [], cut: [] }]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(screenOf(seen).viewport.width);
    }
    await page.context().setOffline(false);
  });

  test("fits a phone with an on-screen keyboard, and a small one at 200 %", async () => {
    const viewport = { width: 360, height: 400 };
    const { page, picture } = await shop.visitor({ ...PHONE, viewport, language: "ps" });
    await page.locator("#query").tap();
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    const seen = Number(await page.evaluate(`one(".name.exact .domain").getBoundingClientRect().top`));
    expect(seen).toBeGreaterThanOrEqual(0);
    expect(seen).toBeLessThan(viewport.height - 40);
    await page.locator(".name button").first().tap();
    expect(await read(page.locator("#cart-bar-total"))).toMatch(/۲۶٫۹۹/);
    const bar = await page.locator("#cart-bar").boundingBox();
    expect(Math.round((bar?.y ?? 0) + (bar?.height ?? 0))).toBe(viewport.height);
    await picture("storefront-fits");
    expect(await page.evaluate(SMALL)).toEqual([]);
    await page.locator("#cart-bar").tap();
    await page.locator("#cart-confirm").tap();
    await cartIs(page, "confirmed");

    await page.setViewportSize({ width: 180, height: 370 });
    await picture("storefront-zoom");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(180);
    const [term, price] = [".item select", ".item .price"].map((part) => page.locator(part));
    const [above, below] = [await term?.boundingBox(), await price?.boundingBox()];
    expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
  });

  if (UPDATES)
    test("is seen in the README's picture: a search with a name in the cart", async () => {
      const { page } = await shop.visitor({ viewport: { width: 620, height: 640 } });
      await put(page, "kabul.af");
      await page.screenshot({ path: `${ROOT}docs/storefront.png` });
    });
});
