/** The demo storefront in a real browser against the real service: what visitors see, hear and wait for, in all its languages and sizes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import { FakeClock } from "../support/fake-clock.js";
import { type Service, startService, until } from "../support/service.js";
import {
  DESK,
  describeWithBrowser,
  PHONE,
  startBrowser,
  STARTING_MS,
  type Visit,
  visit,
} from "./support/browser.js";

describeWithBrowser("the storefront", () => {
  let browser: Browser;
  let clock: FakeClock;
  let service: Service;
  let visits: Visit[];
  /** Services of one test. */
  let others: Service[];
  /** What has been started, in that order. */
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    clock = new FakeClock();
    service = await startService({ clock });
    closing.push(service.close);
    browser = await startBrowser();
    closing.push(() => browser.close());
  }, STARTING_MS);
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  }, STARTING_MS);
  beforeEach(() => {
    visits = [];
    others = [];
  });
  afterEach(async () => {
    for (const { close } of [...visits, ...others]) await close();
    expect(visits.map(({ faults }) => faults)).toEqual(visits.map(() => []));
  });

  /** Someone at the open page, at the service's time; with `stopped`, it passes only when the test says so. */
  async function visitor(
    options: BrowserContextOptions & {
      readonly language?: string;
      readonly stopped?: boolean;
      readonly at?: Service;
      readonly before?: (page: Page) => Promise<unknown>;
    } = {},
  ): Promise<Visit & { readonly page: Page }> {
    const { language = "en", stopped = false, at = service, before, ...rest } = options;
    const opened = await visit(browser, at.url, { ...DESK, ...rest });
    visits.push(opened);
    if (stopped) await opened.page.clock.install({ time: clock.now() - 60_000 });
    else await opened.page.clock.setSystemTime(clock.now());
    await before?.(opened.page);
    await opened.page.goto(`/?lang=${language}`);
    await opened.page.locator("tbody tr").first().waitFor();
    if (stopped) await opened.page.clock.pauseAt(clock.now());
    return opened;
  }

  /** Looks at a page that is stopped, which needs its time to pass, and stops it again so long after it was stopped. */
  async function look(page: Page, forMs: number, looks: () => Promise<void>): Promise<void> {
    const stoppedAtMs = Number(await page.evaluate("Date.now()"));
    await page.clock.resume();
    await looks();
    await page.clock.pauseAt(stoppedAtMs + forMs);
  }

  const row = (page: Page, domain: string) => page.locator(`.name[data-domain="${domain}"]`);
  const status = (page: Page) => page.locator("#search-status");
  const done = (page: Page) => page.locator('#search-status[data-kind="done"]').waitFor();
  const search = async (page: Page, text: string): Promise<void> => {
    await page.locator("#query").fill(text);
    await done(page);
  };
  const texts = (page: Page, what: string): Promise<string[]> => page.locator(what).allTextContents();

  test("finds a name under every ending sold, the exact one first, with prices, and tells it to a screen reader", async () => {
    const { page, picture, weight } = await visitor();
    await picture("storefront-start");
    expect(await texts(page, "tbody th")).toEqual([".af", ".com.af", ".net.af", ".org.af"]);
    expect(await texts(page, "tbody tr:first-child td")).toEqual(["$26.99", "$27.99", "$23.99", "$96.00"]);
    expect(await weight()).toBeLessThan(30_000);

    await search(page, "https://www.kabul.com.af/");
    await picture("storefront-results");
    expect(await texts(page, ".names .domain")).toEqual([
      "kabul.com.af",
      "kabul.af",
      "kabul.net.af",
      "kabul.org.af",
    ]);
    expect(await texts(page, ".names .price")).toEqual([
      "$11.991 year",
      "$26.991 year",
      "$10.991 year",
      "$10.991 year",
    ]);
    expect(await page.locator("#live").textContent()).toBe("4 of 4 are free.");

    await search(page, "google.af");
    expect(await row(page, "google.af").textContent()).toContain("Taken");
    expect(await row(page, "google.af").locator("button").count()).toBe(0);

    await page.locator("#query").fill("-no name-");
    await page.locator('#search-status[data-kind="refused"]').waitFor();
    expect(await status(page).textContent()).toMatch(/^This cannot be a name/);
    await page.locator("#query").fill("");
    expect(await status(page).textContent()).toBe("Letters of any script, digits and hyphens.");
  });

  test("asks once for what is typed quickly, and drops a search that is overtaken", async () => {
    const asked: string[] = [];
    const waiting: Route[] = [];
    const { page } = await visitor({
      before: (page) =>
        page.route("/v1/search?*", async (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("q") ?? "");
          if (asked.length === 1) waiting.push(route);
          else await route.continue();
        }),
    });
    const dropped = page.waitForEvent("requestfailed");
    // In one turn of the page: between keys pressed from here, a busy machine may rest for longer than a person does.
    await page.evaluate(`for (const letter of "herat") {
      const query = document.querySelector("#query");
      query.value += letter;
      query.dispatchEvent(new Event("input", { bubbles: true }));
    }`);
    await until(() => waiting.length === 1, "the first search");
    expect(await texts(page, ".names .domain")).toEqual([
      "herat.af",
      "herat.com.af",
      "herat.net.af",
      "herat.org.af",
    ]);
    expect(await texts(page, ".names .state")).toEqual(Array.from({ length: 4 }, () => "Looking…"));
    await search(page, "kabul");
    expect((await dropped).url()).toContain("q=herat");
    expect(asked).toEqual(["herat", "kabul"]);
    expect(await texts(page, ".names .domain")).toContain("kabul.af");
  });

  test("shows streamed results in their places as they come, and ideas beside them", async () => {
    const events = [
      result("google.com.af", ".com.af", "available"),
      result("google.af", ".af", "taken"),
      { ...result("mygoogle.af", ".af", "available"), suggested: true },
      { ...result("getgoogle.af", ".af", "taken"), suggested: true },
      { ...result("google-online.af", ".af", "available"), suggested: true },
    ].map((data) => `event: result\ndata: ${JSON.stringify(data)}\n\n`);
    const { page, picture, axe } = await visitor({
      before: (page) =>
        page.route("/v1/search?*", async (route) => {
          const accept = await route.request().headerValue("accept");
          expect(accept).toMatch(/^text\/event-stream/);
          const body = `: hello\n\n${events.join("")}event: done\ndata: {"complete":true}\n\n`;
          await route.fulfill({ headers: { "content-type": "text/event-stream; charset=utf-8" }, body });
        }),
    });
    await search(page, "google");
    expect(await row(page, "google.af").textContent()).toContain("Taken");
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

  test("keeps a cart by keyboard alone: a term, the confirmed total, and what is taken meanwhile", async () => {
    const { page, axe, picture } = await visitor();
    const focused = (): Promise<unknown> =>
      page.evaluate("document.activeElement.id || document.activeElement.className");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("skip");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("query");
    await page.keyboard.type("kabul");
    await page.keyboard.press("Enter");
    await done(page);
    for (let tabs = 0; (await focused()) !== "add-kabul.af" && tabs < 20; tabs += 1)
      await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("add-kabul.af");
    expect(await page.locator("#live").textContent()).toBe("kabul.af is in the cart.");
    await page.locator('.name[data-domain="kabul.com.af"] button').press("Enter");
    expect(await texts(page, ".item .domain")).toEqual(["kabul.af", "kabul.com.af"]);

    await page.locator('[id="term-kabul.af"]').selectOption("2");
    expect(await texts(page, ".item .price")).toEqual(["$48.99", "$11.99"]);
    await page.locator("#cart-confirm").press("Enter");
    await page.getByText("Total: $60.98").first().waitFor();
    await picture("storefront-cart");
    expect(await axe()).toEqual([]);

    const line = { tld: ".af", action: "registration", years: 2 };
    const price = { amount: "48.99", currency: "USD" };
    const items = [
      { ...line, domain: "kabul.af", price, status: "available" },
      { ...line, domain: "kabul.com.af", price: null, status: "taken" },
    ];
    await page.route("/v1/quotes", (route) => route.fulfill({ json: { items, total: [price] } }));
    await page.locator("#cart-confirm").press("Enter");
    await page.locator('.item[data-state="taken"]').waitFor();
    expect(await texts(page, ".item .price")).toEqual(["$48.99", "Just taken by somebody else"]);
    expect(await page.locator("#cart-total").textContent()).toBe("Total: $48.99");

    await page.getByRole("button", { name: "Remove kabul.com.af" }).press("Enter");
    expect(await focused()).toBe("cart-heading");
    expect(await page.locator("#cart-total").textContent()).toBe("Total: –");
  });

  test("shows a price promise, how long it holds, and that it has run out", async () => {
    const { page, axe, picture } = await visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/quotes", async (route) => {
          const answer = await route.fetch();
          const validUntil = new Date(clock.now() + 125_000).toISOString();
          const json: unknown = await answer.json();
          await route.fulfill({ json: Object.assign({}, json, { promise: "aaaa.bbbb.cccc", validUntil }) });
        }),
    });
    await page.locator("#query").fill("kabul");
    await page.clock.runFor(300);
    await done(page);
    await row(page, "kabul.af").locator("button").click();
    await page.locator("#cart-confirm").click();
    await page.getByText("Held for you until").first().waitFor();
    expect(await page.locator("#cart-status").textContent()).toMatch(/\(2:05\sleft\)$/);
    await page.locator("#cart-promise summary").click();
    expect(await page.locator("#cart-promise-text").textContent()).toBe("aaaa.bbbb.cccc");
    await look(page, 60_000, async () => {
      await picture("storefront-promise");
      expect(await axe()).toEqual([]);
    });
    expect(await page.locator("#cart-status").textContent()).toMatch(/\(1:05\sleft\)$/);
    await page.clock.runFor(66_000);
    await page.getByText("This price is no longer held.").first().waitFor();
    expect(await page.locator("#cart-promise").isVisible()).toBe(false);
  });

  // The price list is the first question; the second search is one too many.
  test.each([["too many questions", "That was a lot of searching.", { CLIENT_RATE_PER_MINUTE: "2" }]])(
    "tells in words that it must wait, counts down, and goes on by itself: %s",
    async (_, why, env) => {
      const at = await startService({ clock, env });
      others.push(at);
      const { page, axe, picture } = await visitor({ at, stopped: true, colorScheme: "dark" });
      const type = async (text: string): Promise<void> => {
        await page.locator("#query").fill(text);
        await page.clock.runFor(300);
      };
      await type("herat");
      await done(page);
      await clock.advance(30_000);
      await type("balkh");
      await page.locator('#search-status[data-kind="waiting"]').waitFor();
      expect(await status(page).textContent()).toBe(`${why} Trying again in 30 seconds.`);
      expect(await page.locator("#live").textContent()).toBe(`${why} Trying again in 30 seconds.`);
      await look(page, 10_000, async () => {
        await picture("storefront-wait-dark");
        expect(await axe()).toEqual([]);
      });
      expect(await status(page).textContent()).toBe(`${why} Trying again in 20 seconds.`);
      // Spoken once: a screen reader is not told every second.
      expect(await page.locator("#live").textContent()).toMatch(/30 seconds\.$/);
      await clock.advance(30_000);
      await page.clock.runFor(21_000);
      await done(page);
      expect(await texts(page, ".names .domain")).toContain("balkh.af");
    },
  );

  test("offers another try when the wait is long or nobody knows how long it is", async () => {
    let refusals: { readonly status: number; readonly body: object; readonly retryAfter?: string }[] = [];
    const { page, axe, picture } = await visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/search?*", async (route) => {
          const next = refusals.shift();
          if (next === undefined) return route.continue();
          const headers = next.retryAfter === undefined ? {} : { "retry-after": next.retryAfter };
          return route.fulfill({ status: next.status, json: next.body, headers });
        }),
    });
    const again = page.locator("#search-again");
    refusals = [{ status: 503, body: { code: "quota_exhausted", detail: "x" }, retryAfter: "90" }];
    await page.locator("#query").fill("kabul");
    await page.clock.runFor(300);
    await page.getByText("Many people are searching").first().waitFor();
    expect(await again.isDisabled()).toBe(true);
    expect(await again.textContent()).toBe("Try again (90 seconds)");
    await look(page, 91_000, async () => {
      await picture("storefront-refused");
      expect(await axe()).toEqual([]);
    });
    refusals = [{ status: 502, body: { code: "upstream_failed", detail: "x" } }];
    await again.click();
    await page.clock.runFor(300);
    await page.getByText("does not answer properly").first().waitFor();
    await again.click();
    await page.clock.runFor(300);
    await done(page);
    expect(await again.isVisible()).toBe(false);
  });

  test("asks again for what could not be known in time", async () => {
    const asked: (string | null)[] = [];
    const { page } = await visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/search?*", async (route) => {
          asked.push(new URL(route.request().url()).searchParams.get("tlds"));
          if (asked.length > 1) return route.continue();
          const unknown = { ...result("kabul.com.af", ".com.af", "unknown"), retryAfter: 7 };
          const results = [result("kabul.af", ".af", "available"), unknown];
          return route.fulfill({ json: { query: "kabul", label: "kabul", results, complete: false } });
        }),
    });
    await page.locator("#query").fill("kabul");
    await page.clock.runFor(300);
    await row(page, "kabul.com.af").getByText("Not known yet").waitFor();
    expect(await status(page).textContent()).toBe(
      "Some could not be asked in time. Trying again in 7 seconds.",
    );
    await page.clock.runFor(8_000);
    await row(page, "kabul.com.af").getByText("Free").waitFor();
    expect(asked).toEqual([null, ".com.af"]);
  });

  test.each([
    ["fa", "fa-AF", "نام‌ها", /^۳ از ۴ نام آزاد است/],
    ["ps", "ps", "نومونه", /^له ۴ نومونو څخه ۳/],
  ])(
    "speaks %s from right to left, in its own digits, and remembers it",
    async (language, tag, heading, found) => {
      const { page, picture, axe } = await visitor(PHONE);
      await page.locator(`[data-language="${language}"]`).click();
      const root = page.locator("html");
      expect([await root.getAttribute("lang"), await root.getAttribute("dir")]).toEqual([tag, "rtl"]);
      expect(new URL(page.url()).searchParams.get("lang")).toBe(language);
      await page.goto("/");
      expect(await page.locator("#results-heading").textContent()).toBe(heading);
      await search(page, "کابل");
      expect(await status(page).textContent()).toMatch(found);
      expect((await texts(page, ".names .domain"))[0]).toBe("کابل.af");
      expect((await texts(page, "tbody td"))[0]).toMatch(/۲۶٫۹۹/);
      await page.locator(".name button").first().click();
      await picture(`storefront-rtl-${language}`);
      expect(await axe()).toEqual([]);
      await page.locator('[data-language="en"]').click();
      expect([await root.getAttribute("lang"), await root.getAttribute("dir")]).toEqual(["en", "ltr"]);
    },
  );

  test.each([
    ["phone", "en", PHONE],
    ["phone", "fa", PHONE],
    ["desk", "en", DESK],
  ] as const)("moves nothing and is never wider than the screen: %s, %s", async (name, language, size) => {
    // Longer than the half second for which a browser blames the input.
    const late = async (route: Route): Promise<void> => {
      await new Promise((later) => setTimeout(later, 550));
      await route.continue();
    };
    const refuseOnce = async (route: Route): Promise<void> => {
      await page.unroute("/v1/search?*", refuseOnce);
      await new Promise((later) => setTimeout(later, 550));
      await route.fulfill({
        status: 503,
        json: { code: "quota_exhausted", detail: "x" },
        headers: { "retry-after": "90" },
      });
    };
    const { page, moved, picture } = await visitor({
      ...size,
      language,
      before: async (page) => {
        for (const path of ["/v1/prices", "/v1/search?*", "/v1/quotes"]) await page.route(path, late);
      },
    });
    await page.route("/v1/search?*", refuseOnce);
    await page.locator("#query").fill("a-rather-long-name-that-somebody-may-want-to-have-for-the-shop");
    await page.locator('#search-status[data-kind="refused"]').waitFor();
    await search(page, "kabul");
    await row(page, "kabul.af").locator("button").click();
    await page.locator("#cart-confirm").click();
    await page.locator('#cart-status[data-kind="told"]').waitFor();
    await picture(`storefront-${name}-${language}`);
    expect(await moved()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
  });

  test.each([
    ["light", "en", "desk"],
    ["dark", "en", "phone"],
    ["light", "fa", "phone"],
    ["dark", "ps", "phone"],
    ["dark", "fa", "desk"],
    ["light", "ps", "desk"],
  ] as const)(
    "breaks no rule of axe before a search and after it, and cuts no text: %s, %s, %s",
    async (colorScheme, language, size) => {
      const { page, axe, picture } = await visitor({
        colorScheme,
        language,
        ...(size === "desk" ? DESK : PHONE),
      });
      expect(await axe()).toEqual([]);
      await search(page, "gold");
      await picture(`storefront-${colorScheme}-${language}-${size}`);
      expect(await axe()).toEqual([]);
      const cut =
        "[...document.querySelectorAll('.state, .price, .button, td, th')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)";
      expect(await page.evaluate(cut)).toEqual([]);
    },
  );
});

function result(domain: string, tld: string, status: "available" | "taken" | "unknown") {
  const available = status === "available";
  return {
    domain,
    unicodeName: domain,
    tld,
    status,
    available,
    premium: false,
    years: 1,
    price: available ? { amount: "11.99", currency: "USD" } : null,
    asOf: status === "unknown" ? null : "2026-03-20T00:00:00.000Z",
    stale: false,
  };
}
