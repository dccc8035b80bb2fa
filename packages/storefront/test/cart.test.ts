/** The cart in a real browser: keyboard use, terms, problems, undo, the time for which a price is held, and what survives a reload. */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { quotesShape } from "../../../src/wire/visitors.js";
import { until } from "../../../test/support/service.js";
import {
  fillCart,
  quotesWithProblems,
  refusal,
  storeCart,
  storedName,
} from "../../../test/browser/answers.js";
import { describeWithBrowser } from "../../../test/browser/browser.js";
import { done, inspect, openShop, row, searchFor, texts, read } from "../../../test/browser/storefront.js";

const RETAIL = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");

/** What is sold, with names under .af at $24.30 instead of $26.99 until that time. */
function withSaleUntil(untilMs: number): string {
  const to = new Date(untilMs).toISOString();
  const sale = `{ id: sale, match: { tld: .af, action: registration }, percentOff: "10", from: "2026-01-01T00:00:00Z", to: "${to}" }`;
  return RETAIL.replace("promotions: []", `promotions: [${sale}]`);
}

describeWithBrowser("the cart", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#cart-status");
  const total = (page: Page) => page.locator("#cart-total");
  const focused = (page: Page): Promise<unknown> =>
    page.evaluate("(({ id, ariaLabel, className }) => id || ariaLabel || className)(focused())");
  const become = (page: Page, kind: string) => page.locator(`#cart-status[data-kind="${kind}"]`).waitFor();
  /** Searches kabul and puts these names into the cart. */
  async function put(page: Page, ...domains: readonly string[]): Promise<void> {
    await searchFor(page, "kabul");
    for (const domain of domains) await row(page, domain).locator("button").press("Enter");
  }
  const confirmed = (page: Page) => become(page, "confirmed");
  async function moveTo(page: Page, target: string, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
    for (let presses = 0; (await focused(page)) !== target && presses < 20; presses += 1)
      await page.keyboard.press(key);
    expect(await focused(page)).toBe(target);
  }

  test("can be used by keyboard alone: a term, the confirmed total, and a name that is removed and restored", async () => {
    const { page, axe, picture } = await shop.visitor();
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("skip");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("query");
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    await moveTo(page, "add-kabul.af");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("add-kabul.af");
    expect(await read(page.locator("#live"))).toBe("kabul.af is in your cart.");
    await moveTo(page, "add-kabul.com.af");
    await page.keyboard.press("Enter");
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);
    expect(await read(total(page))).toBe("Total: $38.98");

    await moveTo(page, "term-kabul.af");
    await page.keyboard.press("ArrowDown");
    expect(await texts(page, ".item .price")).toEqual(["$48.99", "$11.99"]);
    expect(await read(total(page))).toBe("Total: $60.98");
    expect(await focused(page)).toBe("term-kabul.af");
    await moveTo(page, "cart-confirm");
    await page.keyboard.press("Enter");
    await confirmed(page);
    expect(await read(total(page))).toBe("Total: $60.98");
    await picture("storefront-cart");
    expect(await axe()).toEqual([]);

    await moveTo(page, "remove-kabul.com.af", "Shift+Tab");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("cart-undo");
    expect(await read(page.locator("#live"))).toBe("kabul.com.af was removed.");
    expect(await read(total(page))).toBe("Total: $48.99");
    await page.keyboard.press("Enter");
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);
    expect(await page.locator("#cart-undo").isVisible()).toBe(false);
  });

  test("tells screen readers what a change of the term does to a confirmed price, also one in another tab", async () => {
    const { page } = await shop.visitor();
    const other = await page.context().newPage();
    await other.goto("/");
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    const live = page.locator("#live");
    const says = (text: string) => until(async () => (await read(live)) === text, text);
    expect(await read(live)).toMatch(/^Total: \$26\.99 Price held for you until /);
    await page.locator("#term-kabul\\.af").press("ArrowDown");
    expect(await read(live)).toBe("Total: $48.99 Confirm the price to hold it for you.");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    await other.locator("#term-kabul\\.af").press("ArrowUp");
    await says("Total: $26.99 Confirm the price to hold it for you.");
    await other.getByRole("button", { name: "Remove kabul.af" }).click();
    await says("");
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Add to cart");
  });

  test("loses one name to a double click, not also the next one, which moves under the pointer", async () => {
    const { page } = await shop.visitor();
    await put(page, "kabul.af", "kabul.com.af", "kabul.net.af");
    await page.locator('[data-remove="kabul.af"]').dblclick();
    expect(await texts(page, ".item .domain")).toEqual(["kabul.com.af", "kabul.net.af"]);
    await page.locator("#cart-undo").click();
    await page.locator('[data-remove="kabul.com.af"]').click();
    await page.locator('[data-remove="kabul.net.af"]').click();
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af"]);
  });

  test("keeps the focus on a button in it while prices are confirmed and redrawn", async () => {
    const { page } = await shop.visitor();
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").press("Enter");
    await page.locator('[data-remove="kabul.af"]').focus();
    await become(page, "confirmed");
    expect(await focused(page)).toBe("remove-kabul.af");
  });

  test("says at each failed line what is wrong and what to do, and keeps the other lines", async () => {
    const { page, axe, picture } = await shop.visitor({
      before: (page) =>
        page.route("/v1/quotes", (route) => route.fulfill(quotesWithProblems(shop.clock.now()))),
    });
    await put(page, "kabul.af", "kabul.com.af", "kabul.net.af");
    await page.locator("#cart-confirm").click();
    await become(page, "problem");
    expect(await texts(page, ".item .problem")).toEqual([
      "This name has been registered in the meantime. Remove it.",
      "The registry is very slow right now. Try again in a minute.",
    ]);
    expect(await read(status(page))).toMatch(/^1 of 3 names can be ordered\. .* held for you/);
    expect(await read(total(page))).toBe("Total: $26.99");
    expect(await texts(page, "#cart-order .button:visible")).toEqual(["Go to checkout", "Confirm again"]);
    await picture("storefront-cart-problems");
    expect(await axe()).toEqual([]);
    for (const [retryAfter, advice] of [
      [24, "The shop is busy right now. Try again in a minute."],
      [240, "The shop is busy right now. Try again in a few minutes."],
    ] as const) {
      const problem = { code: "quota_exhausted", detail: "x", retryAfter };
      await page.route("/v1/quotes", (route) => route.fulfill(quotesWithProblems(shop.clock.now(), problem)));
      await page.locator("#cart-confirm").press("Enter");
      await page.getByText(advice).waitFor();
    }
    // The results don't contradict the cart until the registry is asked again.
    const states = (): Promise<unknown> => page.evaluate("[...all('.name')].map((row) => row.dataset.state)");
    expect(await states()).toEqual(["available", "taken", "available", "available"]);
    await page.getByRole("button", { name: "Remove kabul.com.af" }).click();
    expect(await states()).toEqual(["available", "taken", "available", "available"]);
    await searchFor(page, "kabul");
    expect(await states()).toEqual(["available", "available", "available", "available"]);
    await searchFor(page, "kabul.af, kabul.com.af");
    await row(page, "kabul.com.af").locator("button").click();
    await page.locator("#cart-confirm").click();
    await become(page, "problem");
    expect(await states()).toEqual(["available", "taken"]);
  });

  test("shows a name that turns out to be taken as taken everywhere: among similar names and in other tabs", async () => {
    const { page } = await shop.visitor();
    await searchFor(page, "google");
    const idea = page.locator(".idea").first();
    const domain = (await idea.getAttribute("data-domain")) ?? "";
    const other = await page.context().newPage();
    await other.goto("/");
    await done(other);
    await searchFor(other, domain);
    expect(await row(other, domain).getAttribute("data-state")).toBe("available");
    await idea.locator("button").press("Enter");
    shop.service.sandbox.control.setTaken(domain, true);
    await shop.clock.advance(10_000);
    await page.route("/v1/quotes", async (route) => {
      await idea.locator("button").focus();
      await route.continue();
    });
    await page.locator("#cart-confirm").click();
    await page.locator(".item .problem").waitFor();
    expect(await page.locator(".idea").allTextContents()).not.toContainEqual(expect.stringContaining(domain));
    expect(await focused(page)).toBe("results-heading");
    await other.locator(".item .problem").waitFor();
    expect(await row(other, domain).getAttribute("data-state")).toBe("taken");
  });

  test("shows a name that turns out to be premium as premium everywhere, without ordinary prices for its renewal or another term", async () => {
    const { page } = await shop.visitor();
    const domain = "becomes-premium.net.af";
    shop.service.sandbox.control.setTaken(domain, false);
    await searchFor(page, domain);
    await row(page, domain).locator("button").press("Enter");
    expect(await read(total(page))).toBe("Total: $10.99");
    shop.service.sandbox.control.setPremium(domain, { USD: 50_000 });
    await shop.clock.advance(10_000);
    await page.locator("#cart-confirm").press("Enter");
    await status(page).getByText("A price has changed").waitFor();
    expect(await texts(page, ".item .domain, .item .price, .item .renewal")).toEqual([
      `${domain} Premium`,
      "$575.00",
      "Renewal price on request",
    ]);
    expect(await read(row(page, domain).locator(".price"))).toBe("$575.001 year");
    expect(await row(page, domain).locator(".state").innerText()).toBe(
      "Available Premium Renewal price on request",
    );
    await page.getByLabel(`Term of ${domain}`).selectOption("2");
    expect(await texts(page, ".item .price, #cart-total")).toEqual([
      "Price shown when you confirm",
      "Total: –",
    ]);
  });

  test("says that a price has changed when it is confirmed, and doesn't go back to the old one", async () => {
    const { page, axe, picture } = await shop.visitor({
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          const answer = await route.fetch();
          const quotes = quotesShape.parse(await answer.json());
          const price = { amount: "42.99", currency: "USD" };
          const items = quotes.items.map((line) => (line.domain === "kabul.af" ? { ...line, price } : line));
          await route.fulfill({ json: { ...quotes, items, total: [{ ...price, amount: "54.98" }] } });
        }),
    });
    await put(page, "kabul.af", "kabul.com.af");
    expect(await read(total(page))).toBe("Total: $38.98");
    await page.locator("#cart-confirm").click();
    await become(page, "problem");
    expect(await read(status(page))).toMatch(
      /^A price has changed since you last saw it\. Price held for you until /,
    );
    expect(await texts(page, ".item .price")).toEqual(["$42.99", "$11.99"]);
    await picture("storefront-cart-changed");
    expect(await axe()).toEqual([]);
    await page.getByRole("button", { name: "Remove kabul.com.af" }).click();
    expect(await read(total(page))).toBe("Total: $42.99");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    expect(await read(status(page))).toMatch(/^Price held for you until /);
  });

  test("keeps its names after an upgrade, shows a term that is no longer sold as it is, and says which name can't be registered and why", async () => {
    const items = [
      storedName({ domain: "kabul.net.af", tld: ".net.af", years: 3 }),
      storedName({ domain: "kabul.gov.af", tld: ".gov.af" }),
    ];
    const { page } = await shop.visitor();
    // From another version: names that lack something, and then prices in another form.
    await storeCart(page, { items: [{ premium: false }] });
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator(".item").count()).toBe(0);
    const confirmedPrices = { quotes: { promise: "a.b.c" }, untilMs: shop.clock.now() + 600_000 };
    await storeCart(page, { items, confirmedPrices });
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    const term = page.getByLabel("Term of kabul.net.af");
    expect(await term.inputValue()).toBe("3");
    await page.locator("#cart-confirm").click();
    await become(page, "refused");
    const why = "This name cannot be registered for this term. Choose another term.";
    expect(await read(status(page))).toBe(`\u2068kabul.net.af\u2069: ${why}`);
    expect(await texts(page, ".item .problem")).toEqual([
      why,
      "We do not sell names with this ending. Our endings are .af, .com.af, .net.af, .org.af.",
    ]);
    await page.getByRole("button", { name: "Remove kabul.gov.af" }).click();
    await term.selectOption("1");
    expect(await read(total(page))).toBe("Total: $10.99");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
  });

  test("holds twenty names, and says that it is full before a twenty-first is added", async () => {
    const { page, axe, picture } = await shop.visitor();
    await fillCart(page);
    await page.getByText("Your cart holds 20 names and is full.").waitFor();
    expect(await read(total(page))).toBe("Total: $539.80");
    await searchFor(page, "kabul");
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Cart is full");
    await row(page, "kabul.af").locator("button").click({ force: true });
    expect(await texts(page, ".item")).toHaveLength(20);
    await picture("storefront-cart-full");
    expect(await axe()).toEqual([]);
    await page.getByRole("button", { name: "Remove cart-a.af" }).click();
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Add to cart");
  });

  test("counts down while a price is held, and renews an expired price with one click", async () => {
    const { page, axe, picture } = await shop.visitor({ stopped: true });
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    expect(await read(status(page))).toMatch(/^Price held for you until .* \(14:59\sleft\)\.$/);
    await inspect(page, 60_000, async () => {
      await picture("storefront-held");
      expect(await axe()).toEqual([]);
    });
    expect(await read(status(page))).toMatch(/\(13:59\sleft\)\.$/);
    expect(await read(page.locator("#live"))).toMatch(/14:59/);
    await page.clock.fastForward(15 * 60_000);
    expect(await read(status(page))).toBe("This price has expired. Confirm it again.");
    expect(await read(page.locator("#live"))).toBe("This price has expired. Confirm it again.");
    await shop.clock.advance(17 * 60_000);
    await page.clock.pauseAt(shop.clock.now());
    await page.getByRole("button", { name: "Confirm again" }).click();
    await confirmed(page);
    expect(await read(status(page))).toMatch(/\(14:59\sleft\)\.$/);
  });

  test("shows the list's price once the held one has expired", async () => {
    const at = await shop.start({ retail: withSaleUntil(shop.clock.now() + 300_000) });
    const { page } = await shop.visitor({ at, stopped: true });
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").press("Enter");
    await confirmed(page);
    expect(await read(total(page))).toBe("Total: $24.99");
    await shop.clock.advance(1_000_000);
    await page.clock.fastForward(1_000_000);
    await status(page).getByText("This price has expired.").waitFor();
    await page.locator(".amount").first().getByText("$26.99", { exact: true }).waitFor();
    const answers = [refusal("quota_exhausted", 503, 12)];
    await page.route("/v1/quotes", (route) => {
      const next = answers.shift();
      return next === undefined ? route.continue() : route.fulfill(next);
    });
    await page.locator("#cart-confirm").press("Enter");
    await become(page, "waiting");
    expect(await texts(page, ".item .price, #cart-total")).toEqual(["$26.99", "Total: $26.99"]);
    await page.clock.runFor(12_000);
    await confirmed(page);
    expect(await read(total(page))).toBe("Total: $26.99");
  });

  test("puts a removed name back at the price that the list has by then", async () => {
    const at = await shop.start({ retail: withSaleUntil(shop.clock.now() + 30_000) });
    const { page } = await shop.visitor({ at, stopped: true });
    await put(page, "kabul.af", "kabul.com.af");
    expect(await texts(page, ".item .price")).toEqual(["$24.99", "$11.99"]);
    await page.getByRole("button", { name: "Remove kabul.af" }).press("Enter");
    await shop.clock.advance(33_000);
    await page.clock.runFor(33_000);
    await page.locator(".amount").first().getByText("$26.99", { exact: true }).waitFor();
    await page.locator("#cart-undo").press("Enter");
    expect(await texts(page, ".item .price, #cart-total")).toEqual(["$26.99", "$11.99", "Total: $38.98"]);
  });

  test("keeps what is held while it is confirmed again, if that is refused or gives no price, but not if its name is taken", async () => {
    const { json } = quotesWithProblems(shop.clock.now());
    const [first, second, third] = json.items;
    const unpriced = (line: object) => ({
      json: {
        items: [{ ...first, price: null, ...line }, second],
        total: [],
        promise: null,
        validUntil: null,
      },
    });
    const { problem } = { problem: undefined, ...third };
    const answers = [
      { json },
      refusal("upstream_failed", 502),
      unpriced({ status: "not_checked", problem }),
      unpriced({ status: "taken" }),
    ];
    let answer = (): void => {};
    const { page } = await shop.visitor({
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          await new Promise<void>((asked) => (answer = asked));
          await route.fulfill(answers.shift() ?? {});
        }),
    });
    const goOn = page.getByRole("button", { name: "Go to checkout" });
    const promise = page.locator("#cart-promise");
    const confirm = async (kind: string): Promise<void> => {
      await page.locator("#cart-confirm").press("Enter");
      await become(page, "asking");
      expect(await goOn.isVisible()).toBe(answers.length < 4);
      answer();
      await become(page, kind);
    };
    await put(page, "kabul.af", "kabul.com.af");
    await confirm("problem");
    for (const why of [
      /^The registry is not answering properly\. /,
      /^The registry is very slow right now\. /,
    ]) {
      await confirm("refused");
      expect(await read(status(page))).toMatch(why);
      expect(await read(status(page))).toMatch(/ Price held for you until .*\sleft\)\.$/);
      expect([await goOn.isVisible(), await promise.inputValue()]).toEqual([true, "aaaa.bbbb.cccc"]);
      expect(await focused(page)).toBe("cart-confirm");
    }
    await page.reload();
    await goOn.waitFor();
    await confirm("problem");
    await goOn.waitFor({ state: "hidden" });
    expect(await promise.inputValue()).toBe("");
  });

  test("offers no checkout once a held price has expired, or the cart has changed, even while it is confirmed again", async () => {
    let asked = 0;
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          asked += 1;
          if (asked % 2 === 1) await route.fulfill(quotesWithProblems(shop.clock.now()));
        }),
    });
    const goOn = page.getByRole("button", { name: "Go to checkout" });
    const held = page.locator("#cart-promise");
    const again = async (): Promise<void> => {
      await page.locator("#cart-confirm").press("Enter");
      await goOn.waitFor();
      await page.locator("#cart-confirm").press("Enter");
      await become(page, "asking");
    };
    await put(page, "kabul.af", "kabul.com.af");

    await again();
    await page.clock.runFor(100_000);
    expect(await held.inputValue()).toBe("aaaa.bbbb.cccc");
    await page.clock.runFor(500_000);
    expect([await goOn.isVisible(), await held.inputValue()]).toEqual([false, ""]);
    expect(await read(status(page))).toBe(
      "The connection was lost. Check your connection and try again. This price has expired. Confirm it again.",
    );

    await page.clock.setSystemTime(shop.clock.now());
    await page.reload();
    await page.locator(".item").nth(1).waitFor();
    await again();
    await page.locator('[id="term-kabul.af"]').press("ArrowDown");
    expect([await goOn.isVisible(), await held.inputValue()]).toEqual([false, ""]);
    expect(await read(status(page))).toBe("Confirm the price to hold it for you.");
    await page.clock.runFor(1_000);
    expect(await read(status(page))).toBe("Confirm the price to hold it for you.");
  });

  test("announces that a held price has expired when it does, not when a wait is over", async () => {
    const answers = [
      quotesWithProblems(shop.clock.now()),
      refusal("quota_exhausted", 503, 3),
      refusal("upstream_failed", 502),
      refusal("quota_exhausted", 503, 20),
    ];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", (route) => {
          const next = answers.shift();
          return next === undefined ? route.continue() : route.fulfill(next);
        }),
    });
    const expired = "This price has expired. Confirm it again.";
    const hasSaid = async (): Promise<unknown> => page.evaluate(`said.includes("${expired}")`);
    await put(page, "kabul.af", "kabul.com.af");
    await page.locator("#cart-confirm").press("Enter");
    await become(page, "problem");
    await page.evaluate(
      `const live = one("#live"); window.said = [];
      new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true, characterData: true, subtree: true });`,
    );
    await page.locator("#cart-confirm").press("Enter");
    await become(page, "waiting");
    await page.clock.runFor(3_000);
    await become(page, "refused");
    await page.clock.runFor(580_000);
    expect(await hasSaid()).toBe(false);
    await page.locator("#cart-confirm").press("Enter");
    await become(page, "waiting");
    await page.clock.runFor(18_500);
    expect(await hasSaid()).toBe(true);
    expect(await read(status(page))).toMatch(/try again in [12]\sseconds?\.$/);
  });

  test.each([
    ["fast", 3_600_000],
    ["slow", -3_600_000],
  ])(
    "holds its price for the same time on a device whose clock is an hour %s, and at the checkout",
    async (_how, aheadMs) => {
      const { page } = await shop.visitor({
        before: (page) => page.clock.setSystemTime(shop.clock.now() + aheadMs),
      });
      await put(page, "kabul.af");
      await page.locator("#cart-confirm").click();
      await confirmed(page);
      expect(await read(status(page))).toMatch(/\(14:5\d\sleft\)\.$/);
      await page.reload();
      await confirmed(page);
      await page.getByRole("button", { name: "Go to checkout" }).click();
      await page.locator('#notice[data-kind="good"]').waitFor();
      expect(await read(page.locator("#until"))).toMatch(/1[45]:\d\d/);
    },
  );

  test("says why it has to wait, and continues by itself", async () => {
    const answers = [refusal("quota_exhausted", 503, 12)];
    let answerRetry = (): void => {};
    const retry = new Promise<void>((answered) => {
      answerRetry = answered;
    });
    const { page, picture } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          const next = answers.shift();
          if (next !== undefined) return route.fulfill(next);
          await retry;
          return route.continue();
        }),
    });
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").click();
    await become(page, "waiting");
    expect(await read(status(page))).toBe("The shop is busy right now. We will try again in 12 seconds.");
    await inspect(page, 5_000, () => picture("storefront-cart-waits"));
    await page.clock.runFor(8_000);
    // The retry may take a while. Meanwhile the page shows that it is being made, and the button is disabled.
    await become(page, "asking");
    expect(await read(status(page))).toBe("Checking with the registry…");
    expect(await page.locator("#cart-confirm").getAttribute("aria-disabled")).toBe("true");
    answerRetry();
    await confirmed(page);
  });

  test("survives a reload, Back and a closed tab together with search, term and language, without using the URL", async () => {
    const { page } = await shop.visitor({ language: "fa" });
    expect(new URL(page.url()).search).toBe("");
    await page.locator("#terms label").nth(1).click();
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").click();
    await confirmed(page);
    const held = await read(total(page));
    const expectUnchanged = async (view: Page): Promise<void> => {
      await done(view);
      expect(await view.locator("html").getAttribute("lang")).toBe("fa-AF");
      expect(await view.locator("#query").inputValue()).toBe("kabul");
      expect(await view.locator("#terms input:checked").inputValue()).toBe("2");
      expect(await texts(view, ".item .domain")).toEqual(["kabul.af"]);
      expect(await read(total(view))).toBe(held);
      await confirmed(view);
      expect(new URL(view.url()).search).toBe("");
    };
    await page.reload();
    await expectUnchanged(page);
    await page.goto("/livez");
    await page.goBack();
    await expectUnchanged(page);
    const other = await page.context().newPage();
    await other.clock.setSystemTime(shop.clock.now());
    await page.close();
    await other.goto("/");
    await expectUnchanged(other);
  });

  test("is confirmed in one tab whatever another one tries", async () => {
    let asked = 0;
    const { page } = await shop.visitor({
      before: (page) =>
        page.context().route("/v1/quotes", async (route) => {
          asked += 1;
          if (asked === 1) await route.fulfill(quotesWithProblems(shop.clock.now()));
          if (asked > 2) await route.fulfill(refusal("upstream_failed", 502));
        }),
    });
    await put(page, "kabul.af", "kabul.com.af");
    await page.locator("#cart-confirm").click();
    await become(page, "problem");
    const other = await page.context().newPage();
    await other.clock.setSystemTime(shop.clock.now());
    await other.goto("/");
    await other.locator("#cart-confirm").click();
    await other.locator('#cart-status[data-kind="asking"]').waitFor();
    for (const attempt of [3, 4, 5, 6, 7]) {
      await page.locator("#cart-confirm").click();
      await until(() => asked === attempt, "the request");
      await become(page, "refused");
    }
    expect(await other.locator("#cart-status").getAttribute("data-kind")).toBe("asking");
  });

  test("is confirmed in one tab while another one learns of a changed price list", async () => {
    let isChanged = false;
    const { page } = await shop.visitor();
    const other = await page.context().newPage();
    await other.route("/v1/prices", async (route) => {
      const answer = await route.fetch();
      const text = await answer.text();
      await route.fulfill({
        contentType: "application/json",
        body: isChanged ? text.replaceAll("26.99", "34.99") : text,
      });
    });
    let confirm = (): void => {};
    const confirming = new Promise<void>((done) => {
      confirm = done;
    });
    await page.route("/v1/quotes", (route) => confirming.then(() => route.continue()));
    await other.goto("/");
    await other.locator("tbody tr").first().waitFor();
    await put(page, "kabul.af");
    await page.locator("#cart-confirm").click();
    isChanged = true;
    await other.locator(".item .price").getByText("$34.99").waitFor();
    confirm();
    await confirmed(page);
    await other.locator(".item .price").getByText("$26.99").waitFor();
  });

  test("leaves a link to a search working, which searches once and ends with a clean URL", async () => {
    const asked: string[] = [];
    const { page } = await shop.visitor({
      path: "/?q=kabul",
      before: (page) =>
        page.route("/v1/search?*", (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("q") ?? "");
          return route.continue();
        }),
    });
    await done(page);
    expect(new URL(page.url()).href).toBe(`${shop.service.url}/`);
    expect(asked).toEqual(["kabul"]);
    expect(await texts(page, ".name.exact .domain")).toEqual(["kabul.af"]);
  });
});
