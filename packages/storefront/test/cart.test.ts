/** The cart and an order in a real browser: by keyboard, mouse and touch, problems, undo, the time for which a price is held, other tabs, and the checkout. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { until } from "../../../test/support/service.js";
import {
  fillCart,
  quotesWithProblems,
  refusal,
  storeCart,
  storedName,
} from "../../../test/browser/answers.js";
import { describeWithBrowser, PHONE } from "../../../test/browser/browser.js";
import {
  cartIs,
  cartStatus,
  confirm,
  done,
  focusedId,
  moveTo,
  openShop,
  put,
  read,
  RETAIL,
  row,
  saleOf,
  searchFor,
  setClockBy,
  texts,
} from "../../../test/browser/storefront.js";

const HOUR_MS = 3_600_000;
const EXPIRED = "This price has expired. Confirm it again.";

describeWithBrowser("the cart", () => {
  const shop = openShop();
  const total = (page: Page) => page.locator("#cart-total");
  const goOn = (page: Page) => page.getByRole("button", { name: "Go to checkout" });
  const promise = (page: Page) => page.locator("#cart-promise");
  const remove = (page: Page, domain: string) => page.locator(`[data-remove="${domain}"]`);
  const atCheckout = (page: Page) => page.locator("#lines tr").first().waitFor();
  async function secondTab(page: Page): Promise<Page> {
    const other = await page.context().newPage();
    await other.clock.setSystemTime(shop.clock.now());
    await other.goto("/");
    await other.locator("tbody tr").first().waitFor();
    return other;
  }

  test("can be used by keyboard alone: a term, a name that is removed and restored, the confirmed total, the checkout and back", async () => {
    const { page } = await shop.visitor();
    await page.keyboard.press("Tab");
    expect(await focusedId(page)).toBe("skip");
    await page.keyboard.press("Enter");
    expect(await focusedId(page)).toBe("query");
    await searchFor(page, "kabul");
    await moveTo(page, "add-kabul.af");
    await page.keyboard.press("Enter");
    expect(await focusedId(page)).toBe("add-kabul.af");
    expect(await read(page.locator("#live"))).toBe("kabul.af is in your cart.");
    await moveTo(page, "add-kabul.com.af");
    await page.keyboard.press("Enter");
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);
    expect(await read(total(page))).toBe("Total: $38.98");

    await moveTo(page, "remove-kabul.com.af");
    await page.keyboard.press("Enter");
    expect(await focusedId(page)).toBe("cart-undo");
    expect(await read(page.locator("#live"))).toBe("kabul.com.af was removed.");
    expect(await read(total(page))).toBe("Total: $26.99");
    await page.keyboard.press("Enter");
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);
    expect(await page.locator("#cart-undo").isVisible()).toBe(false);

    await moveTo(page, "term-kabul.af", "Shift+Tab");
    await page.keyboard.press("ArrowDown");
    expect(await texts(page, ".item .price")).toEqual(["$48.99", "$11.99"]);
    expect(await focusedId(page)).toBe("term-kabul.af");
    await moveTo(page, "cart-confirm");
    await page.keyboard.press("Enter");
    await cartIs(page, "confirmed");
    expect(await read(total(page))).toBe("Total: $60.98");
    // The button for the next step replaces the last one and has the focus.
    expect(await focusedId(page)).toBe("cart-go-on");
    await page.keyboard.press("Enter");
    await atCheckout(page);
    await moveTo(page, "back");
    await page.keyboard.press("Enter");
    await done(page);
    await cartIs(page, "confirmed");
  });

  test("leads to the checkout by touch, in Dari, with names in their own script, on a device whose clock is an hour fast, says in each language on which day prices end, and survives Back and a closed tab together with search, term and language, without using the URL", async () => {
    const at = await shop.start({ retail: RETAIL.replace("validMs: 900000", "validMs: 90000000") });
    const setClock = (page: Page) => page.clock.setSystemTime(shop.clock.now() + HOUR_MS);
    const visitor = { ...PHONE, at, timezoneId: "UTC", language: "fa", before: setClock };
    const { page } = await shop.visitor(visitor);
    expect(new URL(page.url()).search).toBe("");
    await page.locator("#terms label").nth(1).tap();
    await searchFor(page, "مزار۱۲.af");
    for (const at of [0, 1]) await page.locator(".name button").nth(at).tap();
    await page.locator("#cart-bar").tap();
    await page.locator("#cart-confirm").tap();
    await cartIs(page, "confirmed");
    expect(await read(page.locator("body"))).not.toMatch(/eyJ/);
    for (const [language, held] of [
      ["en", /until Mar 21, 2026, .*24:59:\d\d\sleft/],
      ["ps", /تر ۱ حمل ۱۴۰۵.*۲۴:۵۹:[۰-۹]{2}\sپاتې/],
      ["fa", /تا ۱ حمل ۱۴۰۵.*۲۴:۵۹:[۰-۹]{2}\sباقی\sمانده/],
    ] as const) {
      await page.locator(`[data-language=${language}]`).click();
      expect(await read(cartStatus(page))).toMatch(held);
    }
    const held = await read(total(page));
    const names = ["مزار۱۲.af", "مزار۱۲.com.af"];
    await page.locator("#cart-go-on").click();
    await atCheckout(page);
    expect(new URL(page.url()).pathname).toBe("/checkout");
    expect(await read(page.locator("h1"))).toBe("پرداخت");
    expect(await texts(page, "#lines th")).toEqual(names);
    expect(await read(page.locator("#total"))).toMatch(/۷۱٫۹۸/);
    expect(await read(page.locator("#until"))).toMatch(/تا ۱ حمل ۱۴۰۵.*۲۴:۵۹:[۰-۹]{2}/);

    const expectUnchanged = async (view: Page): Promise<void> => {
      await done(view);
      expect(await view.locator("html").getAttribute("lang")).toBe("fa-AF");
      expect(await view.locator("#query").inputValue()).toBe("مزار۱۲.af");
      expect(await view.locator("#terms input:checked").inputValue()).toBe("2");
      expect(await texts(view, ".item .domain")).toEqual(names);
      expect(await read(total(view))).toBe(held);
      await cartIs(view, "confirmed");
      expect(new URL(view.url()).search).toBe("");
    };
    await page.goBack();
    await expectUnchanged(page);
    const other = await page.context().newPage();
    await setClock(other);
    await page.close();
    await other.goto("/");
    await expectUnchanged(other);
  });

  test("tells screen readers what a change of the term does to a confirmed price, also one in another tab, and is confirmed whatever that tab tries or learns", async () => {
    const { page } = await shop.visitor();
    const other = await secondTab(page);
    await put(page, "kabul.af");
    await confirm(page, "confirmed");
    const live = page.locator("#live");
    const says = (text: string) => until(async () => (await read(live)) === text, text);
    expect(await read(live)).toMatch(/^Total: \$26\.99 Price held for you until /);
    await page.locator("#term-kabul\\.af").press("ArrowDown");
    expect(await read(live)).toBe("Total: $48.99 Confirm the price to hold it for you.");
    await confirm(page, "confirmed");
    await other.locator("#term-kabul\\.af").press("ArrowUp");
    await says("Total: $26.99 Confirm the price to hold it for you.");
    await remove(other, "kabul.af").click();
    await says("");
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Add to cart");
    // The focus stays in a cart that another tab empties.
    for (const focused of ["#cart-undo", "#cart-confirm"]) {
      for (const domain of ["kabul.com.af", "kabul.af"]) await row(page, domain).locator("button").click();
      await remove(page, "kabul.com.af").press("Enter");
      await page.locator(focused).focus();
      await remove(other, "kabul.af").click();
      await page.locator('#cart[data-state="empty"]').waitFor();
      expect(await focusedId(page)).toBe("cart-heading");
    }

    let asked = 0;
    await other.route("/v1/quotes", (route) => {
      asked += 1;
      return route.fulfill(refusal("upstream_failed", 502));
    });
    let answer = (): void => {};
    const answered = new Promise<void>((now) => (answer = now));
    await page.route("/v1/quotes", (route) => answered.then(() => route.continue()));
    await row(page, "kabul.af").locator("button").click();
    await confirm(page, "asking");
    for (const attempt of [1, 2]) {
      await confirm(other, "refused");
      await until(() => asked === attempt, "the request");
    }
    const body = (await shop.service.ask("/v1/prices")).text.replaceAll("26.99", "34.99");
    await other.route("/v1/prices", (route) => route.fulfill({ contentType: "application/json", body }));
    await other.clock.fastForward(301_000);
    await other.locator(".item .price").getByText("$34.99").waitFor();
    expect(await cartStatus(page).getAttribute("data-kind")).toBe("asking");
    answer();
    await cartIs(page, "confirmed");
    await other.locator(".item .price").getByText("$26.99").waitFor();
  });

  test("takes each press once: of a double click, of a key that is held down, and during a redraw", async () => {
    const { page } = await shop.visitor();
    await put(page, "kabul.af", "kabul.com.af", "kabul.net.af");
    // The next name moves under the pointer.
    await remove(page, "kabul.af").dblclick();
    expect(await texts(page, ".item .domain")).toEqual(["kabul.com.af", "kabul.net.af"]);
    for (const domain of ["kabul.com.af", "kabul.net.af"]) {
      await remove(page, domain).hover();
      await page.mouse.down();
      // As if another tab had changed the cart.
      await page.evaluate("dispatchEvent(new StorageEvent('storage', { key: 'af-domain-search..cart' }))");
      await page.mouse.up();
      await page.locator(`.item[data-domain="${domain}"]`).waitFor({ state: "detached" });
    }
    for (const how of ["double click", "held key"]) {
      await row(page, "kabul.af").locator("button").click();
      const button = page.locator("#cart-confirm");
      if (how === "double click") {
        const { x = 0, y = 0, width = 0, height = 0 } = (await button.boundingBox()) ?? {};
        await page.mouse.click(x + width / 2, y + height / 2);
        await goOn(page).hover();
        await page.mouse.down({ clickCount: 2 });
        await page.mouse.up({ clickCount: 2 });
      } else {
        await button.focus();
        await page.keyboard.down("Enter");
        await goOn(page).waitFor();
        for (let times = 0; times < 3; times += 1) await page.keyboard.down("Enter");
        await page.keyboard.up("Enter");
      }
      await page.waitForTimeout(200);
      expect(new URL(page.url()).pathname).toBe("/");
      await goOn(page).waitFor();
      await remove(page, "kabul.af").click();
    }
    await page.locator("#cart-undo").click();
    await page.locator("#cart-confirm").press("Enter");
    await remove(page, "kabul.af").focus();
    await cartIs(page, "confirmed");
    expect(await focusedId(page)).toBe("remove-kabul.af");
  });

  test("says at each failed line what is wrong and what to do, keeps the other lines, and forgets it by the next visit once no price is held", async () => {
    const { page } = await shop.visitor({
      before: (page) =>
        page.route("/v1/quotes", (route) => route.fulfill(quotesWithProblems(shop.clock.now()))),
    });
    await put(page, "kabul.af", "kabul.com.af", "kabul.net.af");
    await confirm(page, "problem");
    expect(await texts(page, ".item .problem")).toEqual([
      "This name has been registered in the meantime. Remove it.",
      "The registry is very slow right now. Try again in a minute.",
    ]);
    expect(await read(cartStatus(page))).toMatch(/^1 of 3 names can be ordered\. .* held for you/);
    expect(await read(total(page))).toBe("Total: $26.99");
    expect(await texts(page, "#cart-order .button:visible")).toEqual(["Go to checkout", "Confirm again"]);
    // The results don't contradict the cart until the registry is asked again.
    const states = (): Promise<unknown> => page.evaluate("[...all('.name')].map((row) => row.dataset.state)");
    const [known, later] = [
      ["available", "taken", "available", "available"],
      ["available", "available", "available", "available"],
    ];
    expect(await states()).toEqual(known);
    await remove(page, "kabul.com.af").click();
    await page.locator("#query").press("End");
    await page.keyboard.type(" ");
    expect(await states()).toEqual(known);
    await searchFor(page, "kabul");
    expect(await states()).toEqual(later);
    await searchFor(page, "kabul.af, kabul.com.af");
    await row(page, "kabul.com.af").locator("button").click();
    await confirm(page, "problem");
    expect(await states()).toEqual(["available", "taken"]);

    const problems = page.locator(".item .problem");
    await page.reload();
    await problems.nth(1).waitFor();
    expect(await read(cartStatus(page))).toMatch(/held for you/);
    await setClockBy(page, HOUR_MS);
    await page.reload();
    await page.locator(".item").nth(2).waitFor();
    expect(await problems.count()).toBe(0);
    expect(await read(cartStatus(page))).toBe(EXPIRED);
  });

  test("shows a name that turns out to be taken as taken everywhere, one that turns out to be premium without ordinary prices, and doesn't go back to an old price", async () => {
    const { page } = await shop.visitor();
    await searchFor(page, "google");
    const idea = page.locator(".idea").first();
    const domain = (await idea.getAttribute("data-domain")) ?? "";
    const other = await secondTab(page);
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
    expect(await focusedId(page)).toBe("results-heading");
    await other.locator(".item .problem").waitFor();
    expect(await row(other, domain).getAttribute("data-state")).toBe("taken");
    await page.unroute("/v1/quotes");
    await remove(page, domain).click();

    const premium = "becomes-premium.net.af";
    shop.service.sandbox.control.setTaken(premium, false);
    await put(page, "kabul.com.af");
    await searchFor(page, premium);
    await row(page, premium).locator("button").press("Enter");
    expect(await read(total(page))).toBe("Total: $22.98");
    shop.service.sandbox.control.setPremium(premium, { USD: 50_000 });
    await shop.clock.advance(10_000);
    await confirm(page, "problem");
    expect(await read(cartStatus(page))).toMatch(
      /^A price has changed since you last saw it\. Price held for you until /,
    );
    await remove(page, "kabul.com.af").click();
    expect(await texts(page, ".item .domain, .item .price, .item .renewal, #cart-total")).toEqual([
      `${premium} Premium`,
      "$575.00",
      "Renewal price on request",
      "Total: $575.00",
    ]);
    expect(await read(row(page, premium).locator(".price"))).toBe("$575.001 year");
    expect(await row(page, premium).locator(".state").innerText()).toBe(
      "Available Premium Renewal price on request",
    );
    await confirm(page, "confirmed");
    expect(await read(cartStatus(page))).toMatch(/^Price held for you until /);
    await page.getByLabel(`Term of ${premium}`).selectOption("2");
    expect(await texts(page, ".item .price, #cart-total")).toEqual([
      "Price shown when you confirm",
      "Total: –",
    ]);
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
    await confirm(page, "refused");
    const why = "This name cannot be registered for this term. Choose another term.";
    expect(await read(cartStatus(page))).toBe(`\u2068kabul.net.af\u2069: ${why}`);
    expect(await texts(page, ".item .problem")).toEqual([
      why,
      "We do not sell names with this ending. Our endings are .af, .com.af, .net.af, .org.af.",
    ]);
    await remove(page, "kabul.gov.af").click();
    await term.selectOption("1");
    expect(await read(total(page))).toBe("Total: $10.99");
    await confirm(page, "confirmed");

    await fillCart(page);
    await page.getByText("Your cart holds 20 names and is full.").waitFor();
    expect(await read(total(page))).toBe("Total: $539.80");
    await searchFor(page, "kabul");
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Cart is full");
    await row(page, "kabul.af").locator("button").click({ force: true });
    expect(await texts(page, ".item")).toHaveLength(20);
    await remove(page, "cart-a.af").click();
    expect(await read(row(page, "kabul.af").locator("button"))).toBe("Add to cart");
  });

  test("counts down while it holds a price, no longer if the device's clock is set back, and then shows the list's, also for a name that is put back after a promotion", async () => {
    const end = new Date(shop.clock.now() + 300_000).toISOString();
    const { page } = await shop.visitor({
      at: await shop.start({ retail: saleOf([".af", end]) }),
      stopped: true,
    });
    const shown = () => texts(page, ".item .price, #cart-total");
    await put(page, "kabul.af");
    await searchFor(page, "herat");
    await row(page, "herat.af").locator("button").press("Enter");
    expect(await shown()).toEqual(["$24.99", "$24.99", "Total: $49.98"]);
    await remove(page, "herat.af").press("Enter");
    await confirm(page, "confirmed");
    expect(await read(total(page))).toBe("Total: $24.99");
    const before = await read(cartStatus(page));
    expect(before).toMatch(/^Price held for you until .* \(14:59\sleft\)\.$/);
    await page.clock.runFor(60_000);
    expect(await read(cartStatus(page))).toMatch(/\(13:59\sleft\)\.$/);
    expect(await read(page.locator("#live"))).toMatch(/14:59/);
    await setClockBy(page, -2 * HOUR_MS);
    await page.clock.runFor(1_000);
    const after = await read(cartStatus(page));
    expect(after).toMatch(/\(13:58\sleft\)\.$/);
    const hourIn = (text: string): number => Number(/until (\d+)/.exec(text)?.[1]);
    expect((hourIn(before) - hourIn(after) + 12) % 12).toBe(2);
    await shop.clock.leap(1_000_000);
    await setClockBy(page, 2 * HOUR_MS + 1_000_000);
    await page.clock.runFor(1_000);
    expect(await read(cartStatus(page))).toBe(EXPIRED);
    expect(await read(page.locator("#live"))).toBe(EXPIRED);
    await page.clock.runFor(5_000);
    await page.locator(".amount").first().getByText("$26.99", { exact: true }).waitFor();
    const answers = [refusal("quota_exhausted", 503, 12)];
    await page.route("/v1/quotes", (route) => {
      const next = answers.shift();
      return next === undefined ? route.continue() : route.fulfill(next);
    });
    await page.getByRole("button", { name: "Confirm again" }).click();
    await cartIs(page, "waiting");
    expect(await read(cartStatus(page))).toBe("The shop is busy right now. We will try again in 12 seconds.");
    expect(await shown()).toEqual(["$26.99", "Total: $26.99"]);
    await page.clock.runFor(12_000);
    await cartIs(page, "confirmed");
    expect(await read(total(page))).toBe("Total: $26.99");
    await page.locator("#cart-undo").press("Enter");
    expect(await shown()).toEqual(["$26.99", "$26.99", "Total: $53.98"]);
    await confirm(page, "confirmed");
    await setClockBy(page, -2 * HOUR_MS);
    await page.reload();
    await cartIs(page, "confirmed");
    expect(await read(cartStatus(page))).toMatch(/\(14:5\d\sleft\)\.$/);
  });

  test("keeps what is held while it is confirmed again, unless its name is taken, and until it expires, which is announced then", async () => {
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
    const answers: object[] = [
      { json },
      refusal("upstream_failed", 502),
      unpriced({ status: "not_checked", problem }),
      unpriced({ status: "taken" }),
    ];
    const requests: (() => void)[] = [];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          await new Promise<void>((answer) => requests.push(answer));
          await route.fulfill(answers.shift() ?? {});
        }),
    });
    const answer = async (): Promise<void> => {
      await until(() => requests.length > 0, "the request");
      requests.pop()?.();
    };
    const expectHeld = async (isHeld: boolean): Promise<void> => {
      await goOn(page).waitFor({ state: isHeld ? "visible" : "hidden" });
      expect(await promise(page).inputValue()).toBe(isHeld ? "aaaa.bbbb.cccc" : "");
    };
    const confirmAgain = async (kind: string): Promise<void> => {
      // What was asked before has been cancelled.
      requests.length = 0;
      await confirm(page, "asking");
      await answer();
      await cartIs(page, kind);
    };
    await put(page, "kabul.af", "kabul.com.af");
    await confirm(page, "asking");
    expect(await read(cartStatus(page))).toBe("Checking with the registry…");
    expect(await page.locator("#cart-confirm").getAttribute("aria-disabled")).toBe("true");
    await expectHeld(false);
    await answer();
    await cartIs(page, "problem");
    for (const why of [
      /^The registry is not answering properly\. /,
      /^The registry is very slow right now\. /,
    ]) {
      await confirm(page, "asking");
      await expectHeld(true);
      await answer();
      await cartIs(page, "refused");
      expect(await read(cartStatus(page))).toMatch(why);
      expect(await read(cartStatus(page))).toMatch(/ Price held for you until .*\sleft\)\.$/);
      await expectHeld(true);
      expect(await focusedId(page)).toBe("cart-confirm");
    }
    await page.reload();
    await expectHeld(true);
    await confirmAgain("problem");
    await expectHeld(false);

    const again = async () => quotesWithProblems(Number(await page.evaluate("Date.now()")));
    answers.push(await again(), refusal("quota_exhausted", 503, 3), refusal("upstream_failed", 502));
    await confirmAgain("problem");
    await page.evaluate(
      `const live = one("#live"); window.said = [];
      new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true, characterData: true, subtree: true });`,
    );
    const hasSaid = (): Promise<unknown> => page.evaluate(`said.some((text) => text.includes("${EXPIRED}"))`);
    await confirmAgain("waiting");
    await page.clock.runFor(3_000);
    await cartIs(page, "asking");
    await answer();
    await cartIs(page, "refused");
    await page.clock.fastForward(500_000);
    // Not when a wait is over.
    expect(await hasSaid()).toBe(false);
    await expectHeld(true);
    await confirm(page, "asking");
    await page.clock.fastForward(98_000);
    await expectHeld(false);
    expect(await hasSaid()).toBe(true);

    // Nor is what was confirmed held for other terms.
    await page.locator('[id="term-kabul.af"]').press("ArrowDown");
    answers.push(await again());
    await confirmAgain("problem");
    await confirm(page, "asking");
    await page.locator('[id="term-kabul.af"]').press("ArrowUp");
    await expectHeld(false);
    await page.clock.runFor(1_000);
    expect(await read(cartStatus(page))).toBe("Confirm the price to hold it for you.");
  });

  test("shows no prices at the checkout whose time ended while it was loading or before it was asked for", async () => {
    const { page, axe } = await shop.visitor({ stopped: true });
    await put(page, "kabul.af");
    await confirm(page, "confirmed");
    let load = (): void => {};
    const loaded = new Promise<void>((now) => (load = now));
    const script = /\/assets\/.*checkout.*\.js/;
    await page.route(script, (route) => loaded.then(() => route.continue()));
    const requested = page.waitForRequest(script);
    await page.locator("#cart-go-on").press("Enter");
    await requested;
    await page.clock.fastForward(16 * 60_000);
    load();
    await page.locator('#notice[data-kind="expired"]').waitFor();
    expect(await page.locator("#order").isVisible()).toBe(false);

    await shop.clock.leap(16 * 60_000);
    await page.goto("/");
    await page.locator("#cart-confirm").press("Enter");
    await goOn(page).waitFor();
    await shop.clock.leap(20 * 60_000);
    await goOn(page).press("Enter");
    await page.getByText("These prices are no longer held.").waitFor();
    await page.clock.resume();
    expect(await axe()).toEqual([]);
  });
});
