/** Hands and keyboards in a real browser: keys that are held down, double clicks, presses during a redraw, dropped text, dictation, Persian keyboards. */
import { expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { CHECK } from "../../../test/support/service.js";
import { onSearch, result, streamed } from "../../../test/browser/answers.js";
import { describeWithBrowser } from "../../../test/browser/browser.js";
import {
  done,
  enter,
  openShop,
  row,
  searchFor,
  texts,
  typeSlowly,
  read,
} from "../../../test/browser/storefront.js";

describeWithBrowser("a visitor's hands", () => {
  const shop = openShop();
  const status = (page: Page) => page.locator("#search-status");

  function requestsOf(page: Page, path: string): string[] {
    const urls: string[] = [];
    page.on("request", (request) => {
      const url = new URL(request.url());
      const asked = url.searchParams.get("q") ?? url.searchParams.get("domain") ?? "";
      if (url.pathname === path && !url.searchParams.has("only")) urls.push(asked);
    });
    return urls;
  }

  /** As if another tab had changed the cart. */
  const redraw = (page: Page): Promise<unknown> =>
    page.evaluate("dispatchEvent(new StorageEvent('storage', { key: 'af-domain-search..cart' }))");

  test("hold Enter down: one search", async () => {
    const { page } = await shop.visitor();
    const searches = requestsOf(page, "/v1/search");
    await page.locator("#query").fill("kabul");
    for (let times = 0; times < 10; times += 1) {
      await page.keyboard.down("Enter");
      await page.waitForTimeout(50);
    }
    await page.keyboard.up("Enter");
    await done(page);
    expect(searches).toEqual(["kabul"]);
  });

  test("press Enter again while a list is being checked: it continues, and no name is asked for twice", async () => {
    const { page } = await shop.visitor({
      before: (page) =>
        page.route("/v1/availability?*", async (route) => {
          await new Promise((later) => setTimeout(later, 100));
          await route.continue();
        }),
    });
    const asked = requestsOf(page, "/v1/availability");
    await enter(page, "ghazni, herat, balkh");
    await status(page).getByText("1 of 3").waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.type(", ");
    await done(page);
    expect(asked).toEqual(["ghazni.af", "herat.af", "balkh.af"]);
    expect(await read(status(page))).toMatch(/of 3/);
  });

  test.each(["a double click on", "an Enter key held down on"])(
    "%s Confirm doesn't also press Go to checkout, which takes its place",
    async (how) => {
      const { page } = await shop.visitor();
      await searchFor(page, "kabul");
      await row(page, "kabul.af").locator("button").click();
      const confirm = page.locator("#cart-confirm");
      const { x = 0, y = 0, width = 0, height = 0 } = (await confirm.boundingBox()) ?? {};
      const middle = [x + width / 2, y + height / 2] as const;
      const goOn = page.locator("#cart-go-on");
      if (how.startsWith("a double")) {
        await page.mouse.click(...middle);
        await goOn.hover();
        await page.mouse.down({ clickCount: 2 });
        await page.mouse.up({ clickCount: 2 });
      } else {
        await confirm.focus();
        await page.keyboard.down("Enter");
        await goOn.waitFor();
        for (let times = 0; times < 3; times += 1) await page.keyboard.down("Enter");
        await page.keyboard.up("Enter");
      }
      await page.waitForTimeout(300);
      expect(new URL(page.url()).pathname).toBe("/");
      await goOn.click();
      await page.waitForURL(/checkout/);
    },
  );

  test("press a button while the results and the cart are redrawn: it still counts", async () => {
    const { page } = await shop.visitor();
    await searchFor(page, "kabul");
    for (const pressed of [
      row(page, "kabul.com.af").locator("button"),
      page.locator('[data-remove="kabul.com.af"]'),
    ]) {
      await pressed.hover();
      await page.mouse.down();
      await redraw(page);
      await page.mouse.up();
      await page.waitForTimeout(50);
    }
    expect(await read(page.locator("#live"))).toBe("kabul.com.af was removed.");
  });

  test("rest on a button in the cart while another tab empties it: the focus stays in the cart", async () => {
    const { page } = await shop.visitor();
    const other = await page.context().newPage();
    await other.goto("/");
    await searchFor(page, "kabul");
    for (const focused of ["#cart-undo", '[data-remove="kabul.af"]', "#cart-confirm"]) {
      for (const domain of ["kabul.com.af", "kabul.af"]) await row(page, domain).locator("button").click();
      await page.locator('[data-remove="kabul.com.af"]').press("Enter");
      await page.locator(focused).focus();
      await other.locator('[data-remove="kabul.af"]').click();
      await page.locator('#cart[data-state="empty"]').waitFor();
      expect(await page.evaluate("focused().id")).toBe("cart-heading");
    }
  });

  test("type a space after a search: a name that turned out to be taken stays taken, and a reload restores the search", async () => {
    const { page } = await shop.visitor({
      before: (page) =>
        onSearch(page, (route) => route.fulfill(streamed([result("kabul.af", ".af", "available")]))),
    });
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").click();
    await page.route("/v1/quotes", (route) => {
      const line = { domain: "kabul.af", tld: ".af", action: "registration", years: 1, price: null };
      const asOf = new Date().toISOString();
      const items = [{ ...line, status: "taken", premium: false, asOf }];
      return route.fulfill({ json: { items, total: [], promise: null, validUntil: null } });
    });
    await page.locator("#cart-confirm").click();
    await row(page, "kabul.af").getByText("Taken").waitFor();
    await page.locator("#query").press("End");
    await page.keyboard.type(" ");
    expect(await row(page, "kabul.af").getAttribute("data-state")).toBe("taken");
    await page.reload();
    await done(page);
    expect(await page.locator("#query").inputValue()).toBe("kabul ");
  });

  test("press space near the end of the pause: it begins again", async () => {
    const { page } = await shop.visitor({ stopped: true });
    const before = shop.service.calls(CHECK);
    await typeSlowly(page, "saffron", 120);
    await page.clock.runFor(900);
    await page.keyboard.type(" ");
    await page.clock.runFor(900);
    await page.keyboard.type("tea");
    await page.clock.runFor(950);
    expect(shop.service.calls(CHECK)).toBe(before);
    await page.clock.runFor(50);
    await done(page);
    expect(await texts(page, ".name.exact .domain")).toEqual(["saffrontea.af"]);
  });

  test("drop several lines into the box, or take them from a keyboard's clipboard: they are a list", async () => {
    const { page } = await shop.visitor();
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

  test("dictate a sentence: the page asks for Enter, not for more letters, and offers the name with hyphens", async () => {
    const { page, axe } = await shop.visitor();
    await page.locator("#query").focus();
    await page.keyboard.insertText("Green tea. ");
    expect(await read(status(page))).toBe("Press Enter to search.");
    await page.keyboard.press("Enter");
    await done(page);
    expect(await texts(page, ".name.exact .domain")).toEqual(["greentea.af"]);
    expect(await texts(page, "#offers button")).toEqual(["Green-tea"]);
    expect(await axe()).toEqual([]);
  });

  test("compose words as phone keyboards do: the pause ends with the composed text, and Enter that commits it searches once", async () => {
    const { page } = await shop.visitor({ stopped: true });
    const searches = requestsOf(page, "/v1/search");
    const devtools = await page.context().newCDPSession(page);
    await page.locator("#query").focus();
    for (const text of ["k", "ka", "kab", "kabl"]) {
      await devtools.send("Input.imeSetComposition", {
        text,
        selectionStart: text.length,
        selectionEnd: text.length,
      });
      await page.clock.runFor(400);
    }
    expect(searches).toEqual([]);
    // Autocorrect replaces the word and adds a space.
    await devtools.send("Input.insertText", { text: "kabul " });
    await page.clock.runFor(900);
    expect(searches).toEqual([]);
    await page.keyboard.press("Enter");
    await done(page);
    await page.clock.runFor(5_000);
    expect(searches).toEqual(["kabul"]);
  });

  test("leave an invisible joiner at the end of a word: it is the same word", async () => {
    const { page } = await shop.visitor({ language: "fa" });
    await enter(page, "\u200Fکابل\u200C");
    await done(page);
    expect(await texts(page, ".name.exact .domain")).toEqual(["کابل.af"]);
  });

  test("use a keyboard with other letters, digits or joiners: what they type leads to the usual spelling as well", async () => {
    const { page } = await shop.visitor({ language: "fa" });
    for (const [typed, usual] of [
      ["كابل", "کابل"],
      ["kabul۲۴", "kabul24"],
      ["٢٤٧.af", "247.af"],
      ["کار\u200Cها", "کارها"],
    ] as const) {
      await enter(page, typed);
      await status(page).and(page.locator('[data-kind="done"], [data-kind="refused"]')).waitFor();
      await page.getByRole("button", { name: usual, exact: true }).click();
      await done(page);
      expect(await texts(page, ".name.exact .domain")).toEqual([usual.replace(/(?:\.af)?$/, ".af")]);
    }
  });
});
