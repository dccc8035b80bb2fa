/** The operator page in a real browser: staff sign in, watch, preview and purge. The token stays in memory, and nothing is loaded from other hosts. */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { systemClock } from "../../../src/clock.js";
import { perLane } from "../../../src/quota/lane.js";
import { overviewShape } from "../../../src/wire/overview.js";
import { followedCartsShape, staffDomainsShape, staffPricesShape } from "../../../src/wire/staff.js";
import { claimsOf } from "../../../test/support/promise.js";
import { RETAIL } from "../../../test/support/retail.js";
import {
  bearer,
  type Service,
  STAFF,
  startService,
  temporaryFolder,
  until,
} from "../../../test/support/service.js";
import {
  describeWithBrowser,
  DESKTOP,
  PHONE,
  startBrowser,
  STARTING_MS,
  tabTo,
  type Visit,
  visit,
} from "../../../test/browser/browser.js";
import { looked } from "../../../test/browser/looks.js";

const ANNA = "anna-may-read-and-operate";
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const TOKENS = [
  `anna:${sha256(ANNA)}:read+operate`,
  `reader:${sha256(STAFF.read)}:read`,
  `scraper:${sha256(STAFF.metrics)}:metrics`,
  `shop:${sha256(STAFF.order)}:order+operate`,
].join(",");

const FITS = "document.documentElement.scrollWidth <= innerWidth";
/** The first rule adds one dollar more. */
const DEARER = RETAIL.replace('addFixed: "1.00"', 'addFixed: "2.00"');
const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);

/** The shipped sandbox configuration, except that the demo reseller's domains expire at known distances from today. */
function world(): string {
  const shipped = z
    .looseObject({ resellers: z.array(z.looseObject({ id: z.string() })) })
    .parse(parse(readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8")));
  const domains = [
    ["lapsed.af", -2, false],
    ["soon.af", 3, false],
    ["soon-too.af", 3, true],
    ["month.com.af", 25, true],
    ["later.af", 45, false],
    ["latest.org.af", 88, true],
    ["far.af", 360, true],
  ] as const;
  return stringify({
    ...shipped,
    resellers: shipped.resellers.map((reseller) => ({
      ...reseller,
      ...(reseller.id === "demo" && {
        domains: domains.map(([name, days, autoRenew]) => ({
          name,
          registered: "2020-01-01",
          expires: inDays(days),
          autoRenew,
        })),
      }),
    })),
  });
}

describeWithBrowser("the operator page", () => {
  let browser: Browser;
  let service: Service;
  const folder = temporaryFolder();
  const file = join(folder.path, "retail.yaml");
  const open: Visit[] = [];
  /** Its cart, prices and domains are changed by one test. */
  let own: Service;
  let receiver: Server;
  beforeAll(async () => {
    writeFileSync(file, RETAIL);
    receiver = createServer((_request, response) => response.end());
    await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
    const { port } = z.object({ port: z.int() }).parse(receiver.address());
    const notify = {
      NOTIFY_URL: `http://127.0.0.1:${port}/`,
      NOTIFY_SECRET: "a-secret-of-sixteen-or-more",
    };
    const started = (env: Readonly<Record<string, string>>) =>
      startService({ clock: systemClock, world: world(), env: { STAFF_TOKENS: TOKENS, ...env } });
    [browser, service, own] = await Promise.all([
      startBrowser(),
      started({}),
      started({ RETAIL_CONFIG: file, ...notify }),
    ]);
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    for (const one of [service, own]) await one.close();
    receiver.close();
    folder.remove();
  });
  // Nothing may have been loaded from other hosts, violated the policy or failed unnoticed.
  afterEach(async () => {
    for (const one of open.splice(0)) {
      await one.close();
      expect(one.faults).toEqual([]);
    }
  });

  async function openPage(options: BrowserContextOptions = DESKTOP, at = service): Promise<Visit> {
    const visited = await visit(browser, at.url, options);
    open.push(visited);
    // Time passes as usual, but the test can advance it.
    await visited.page.clock.install();
    await visited.page.goto("/staff");
    return visited;
  }
  async function signIn(page: Page, token: string): Promise<void> {
    await page.getByLabel("Staff token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
  async function signedIn(options: BrowserContextOptions = DESKTOP): Promise<Visit> {
    const visited = await openPage(options);
    await signIn(visited.page, ANNA);
    await visited.page.getByRole("heading", { name: "Right now" }).waitFor();
    return visited;
  }
  /** Polls from here, because the page's policy forbids waiting inside the page. */
  const untilTrue = (page: Page, script: string): Promise<void> =>
    until(async () => (await page.evaluate(script)) === true, script);
  const waitForText = (page: Page, text: string | RegExp): Promise<void> =>
    page.getByText(text).first().waitFor();
  /** Waits until the overview is shown that is requested after `act`. */
  async function nextReading(page: Page, act: () => Promise<void>): Promise<void> {
    const updated = page.locator("#updated");
    const before = await updated.textContent();
    await act();
    await until(async () => (await updated.textContent()) !== before, "the next reading");
  }
  /** Answers this part from now on with what `change` makes of the service's answer. */
  const changed = <T>(page: Page, part: string, shape: z.ZodType<T>, change: (now: T) => object) =>
    page.route(`**/v1/staff/${part}`, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ json: change(shape.parse(await answer.json())) });
    });
  const hide = (page: Page, isHidden: boolean): Promise<void> =>
    page.evaluate(
      `Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} }); document.dispatchEvent(new Event("visibilitychange"))`,
    );
  /** The figures of the minutes before `nowMs`. */
  function history(count: number, nowMs: number) {
    const minutes = Array.from({ length: count }, (_, at) => count - at);
    const flat = (value: number) => minutes.map(() => value);
    return {
      everyMs: 60_000,
      at: minutes.map((ago) => new Date(nowMs - ago * 60_000).toISOString()),
      used: minutes.map((ago) => 400 + Math.round(300 * Math.sin(ago / 120))),
      budget: flat(997),
      waitMs: perLane(() => flat(40)),
      hitRate: flat(0.9),
      meanMs: flat(50),
      p95Ms: flat(120),
      failed: flat(1),
      calls: flat(9),
    };
  }
  /**
   * A script that says whether this line is drawn between these shares of the chart's width, in its own colour, which axes and labels don't use. It
   * reads a copy, because the browser warns if a canvas is read repeatedly.
   */
  const isDrawn = (chart: number, line: string, from = 0, to = 1): string => `(() => {
    const canvas = document.querySelectorAll("#charts canvas")[${chart}];
    const colour = getComputedStyle(canvas).getPropertyValue("${line}").trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(Math.round(width * ${from}), 0, Math.round(width * ${to - from}), height);
    for (let at = 0; at < data.length; at += 4)
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) return true;
    return false;
  })()`;

  test("asks for a token and explains why one isn't accepted, keeps it only in memory, loses no price file when it is refused, and says if it lacks a scope", async () => {
    const { page, axe } = await openPage();
    await signIn(page, "not-a-token-that-anybody-has");
    await waitForText(page, "The service doesn't accept this token.");
    expect(await axe()).toEqual([]);
    await signIn(page, STAFF.metrics);
    await waitForText(page, "This token can't read: it doesn't have the read scope.");
    await signIn(page, "two words");
    await waitForText(page, /This isn't a token/);
    expect(await page.getByRole("heading", { name: "Right now" }).isVisible()).toBe(false);
    await signIn(page, ANNA);
    await waitForText(page, "Silver");
    const kept =
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML, document.getElementById('token').value])";
    expect(await page.evaluate(kept)).not.toContain(ANNA);
    expect(await page.context().cookies()).toEqual([]);

    // Refused while a file is being edited and a purge is to be confirmed.
    const text = page.locator("#preview-text");
    await text.fill("currency: USD");
    const purges: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/cache/purge")) purges.push(request.url());
    });
    await page.getByRole("button", { name: "Everything" }).press("Enter");
    await waitForText(page, /^This costs up to \d+ calls/);
    await page.route("**/v1/staff/**", (route) => route.fulfill({ status: 401 }));
    await page.clock.fastForward(10_000);
    await waitForText(page, "The service doesn't accept this token. Sign in again.");
    expect(await page.getByText("Silver").count()).toBe(0);
    await page.unroute("**/v1/staff/**");
    await page.keyboard.type(ANNA);
    await page.keyboard.press("Enter");
    await waitForText(page, "Silver");
    expect([await page.getByRole("dialog").count(), purges]).toEqual([0, []]);
    expect(await text.inputValue()).toBe("currency: USD");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Staff token").waitFor();
    expect([await text.inputValue(), await page.getByText("Silver").count()]).toEqual(["", 0]);
    expect(await page.title()).toBe("Operator · .af names");
    await signIn(page, STAFF.read);
    await waitForText(page, "Silver");
    await page.getByRole("button", { name: "Everything" }).click();
    await page.getByRole("button", { name: "Purge", exact: true }).click();
    await waitForText(page, "This token can't purge: it doesn't have the operate scope.");
    await page.reload();
    await page.getByLabel("Staff token").waitFor();
  });

  test.each(
    looked([
      ["phone-dark", { ...PHONE, colorScheme: "dark" }],
      ["phone-light", { ...PHONE, colorScheme: "light" }],
      ["desktop-dark", { ...DESKTOP, colorScheme: "dark" }],
      ["desktop-light", { ...DESKTOP, colorScheme: "light" }],
    ] as const),
  )(
    "shows tier, balance and what it covers, credentials, and prices with notes in low rows, estimates what the next tier would have saved, has no axe violations and fits the screen: %s",
    async (name, options) => {
      const { page, axe, picture } = await openPage(options);
      expect(await page.evaluate(FITS)).toBe(true);
      await picture(`operator-sign-in-${name}`);
      await page.route("**/v1/staff/history", (route) => route.fulfill({ json: history(1440, Date.now()) }));
      const failed = new Date(Date.now() - 3 * DAY_MS);
      await changed(page, "overview", overviewShape, ({ upstream, ...now }) => {
        const at = { lastSuccessAt: new Date().toISOString(), lastFailureAt: failed.toISOString() };
        return { ...now, upstream: { ...upstream, ...at } };
      });
      const warning = "its price is older than allowed, so it is shown as stale and not signed";
      await changed(page, "prices", staffPricesShape, ({ prices, ...all }) => ({
        ...all,
        prices: prices.map((price) => ({ ...price, warning })),
      }));
      await signIn(page, ANNA);
      for (const text of [
        "Silver",
        "18 more domains to Gold",
        "1,843.50 USD",
        "covers 91 typical orders, 115 with the credit limit",
        "A typical order is a .af registration for 1 year at 20.21 USD wholesale.",
        "accepted",
        "within 30 days",
      ])
        await waitForText(page, text);
      expect(await axe()).toEqual([]);
      expect(await page.evaluate(FITS)).toBe(true);
      // The header stays in view, so it takes at most two lines, also with alarms and notes.
      await page.getByRole("link", { name: /^1 alarm, \d notes?$/ }).waitFor();
      expect((await page.locator("header").boundingBox())?.height).toBeLessThan(90);
      await picture(`operator-${name}`);
      // With the day, because the page can stay open overnight.
      expect(await page.locator("#updated").textContent()).toMatch(/^as of \d+ \w+, [\d:]{8}$/);
      const day = failed.toLocaleDateString("en-GB", { dateStyle: "medium" });
      const last = await page.getByText(/^Last answer: \d\d:\d\d\b/).innerText();
      expect(last).toContain(`Last failure: ${day}, `);
      const row = page.locator("#prices tbody tr").first();
      expect(await row.getByRole("cell").allInnerTexts()).toEqual([
        "registration",
        "1 year",
        "20.21 USD",
        "26.99 USD",
        "6.78 USD",
        "25.1%",
        "rule 1",
        warning,
      ]);
      expect((await row.boundingBox())?.height).toBeLessThan(60);
      await page.getByLabel("Show", { exact: true }).selectOption(".net.af");
      await until(async () => (await page.locator("#prices tbody tr").count()) === 6, "the filter");

      await page.getByText("What would Gold save?").click();
      await waitForText(page, "Enter Gold's wholesale prices to see the difference.");
      const renewal = page.getByRole("row", { name: "1 × .af renewal" });
      const now = parseFloat((await renewal.getByRole("cell").first().textContent()) ?? "");
      const field = page.getByLabel(".af renewal at Gold");
      await field.pressSequentially((now - 1.5).toFixed(2));
      await waitForText(page, "In the last 30 days, Gold would have saved 1.50 USD.");
      await field.press("ControlOrMeta+a");
      await field.pressSequentially("much");
      await waitForText(page, "Enter Gold's wholesale prices to see the difference.");
      expect(await field.getAttribute("aria-invalid")).toBe("true");
    },
  );

  test("lists first the domains that have expired or soon will, finds and sorts all by keyboard, and leaves a list as it is when a refresh brings nothing new", async () => {
    const { page } = await signedIn();
    const names = () => page.locator("#domains .scroll tbody th").allInnerTexts();
    await waitForText(page, "within 90 days");
    expect(await page.locator(".tile").allInnerTexts()).toEqual([
      "1\nexpired",
      ...[
        [3, 30],
        [4, 60],
        [5, 90],
      ].map(([n, days]) => `${n}\nwithin ${days} days`),
      "7\nall domains",
    ]);
    const soon = ["lapsed.af", "soon.af", "soon-too.af", "month.com.af"];
    expect(await names()).toEqual([...soon, "later.af", "latest.org.af"]);
    expect(await page.locator("#domains tbody tr").first().innerText()).toContain("2 days ago");
    await page.getByRole("button", { name: "within 30 days" }).press("Enter");
    expect(await names()).toEqual(soon);
    const day = page.getByRole("button", { name: /: 2 domains expire$/ });
    await day.focus();
    await page.keyboard.press("Enter");
    expect(await names()).toEqual(["soon.af", "soon-too.af"]);
    // The button that was pressed still has the focus.
    expect(await page.locator(":focus").getAttribute("aria-label")).toMatch(/: 2 domains expire$/);
    expect(await day.getAttribute("aria-pressed")).toBe("true");

    await page.getByLabel("Search all domains").fill("AR");
    expect(await names()).toEqual(["far.af"]);
    await page.getByLabel("Search all domains").fill("nowhere");
    await waitForText(page, "None.");
    await page.getByRole("button", { name: "all domains" }).click();
    expect((await names()).at(-1)).toBe("far.af");
    const byName = page.getByRole("button", { name: "Domain", exact: true });
    await byName.focus();
    await page.keyboard.press("Enter");
    expect((await names()).at(0)).toBe("far.af");
    await page.keyboard.press("Enter");
    expect((await names()).at(-1)).toBe("far.af");
    expect(await page.locator('th[aria-sort="descending"]').innerText()).toContain("Domain");

    await changed(page, "domains", staffDomainsShape, ({ domains, ...all }) => ({
      ...all,
      domains: domains
        .filter(({ domain }) => domain === "soon.af")
        .flatMap((one) => Array.from({ length: 60 }, (_, at) => ({ ...one, domain: `soon-${at}.af` }))),
    }));
    await page.clock.fastForward(300_000);
    await until(async () => (await page.locator(".month").count()) === 1, "the only month");
    await waitForText(page, /^No domain expires in .* and /);
    await page.getByRole("region", { name: "All domains" }).focus();
    await page.keyboard.press("End");
    const place = "[document.activeElement.getAttribute('aria-label'), document.activeElement.scrollTop]";
    await untilTrue(
      page,
      "(({ scrollTop, clientHeight, scrollHeight }) => scrollTop > 0 && scrollTop + clientHeight === scrollHeight)(document.activeElement)",
    );
    const before = await page.evaluate(place);
    await changed(page, "prices", staffPricesShape, (all) => ({ ...all, asOf: "2026-01-05T12:00:00.000Z" }));
    await page.clock.fastForward(30_000);
    await waitForText(page, /^the oldest is from 5 Jan 2026/);
    expect(await page.evaluate(place)).toEqual(before);
  });

  test("never hides the keyboard's focus behind its header on a desktop at 400 %, and shows in forced colours what is pressed and a chart's lines", async () => {
    const { page } = await signedIn({ viewport: { width: 320, height: 256 }, forcedColors: "active" });
    await waitForText(page, "within 90 days");
    const borders = `new Set([...document.querySelectorAll("#spans button")].map((one) =>
      getComputedStyle(one).borderTop)).size`;
    expect(await page.evaluate(borders)).toBe(2);
    const keys = `[...document.querySelectorAll(".legend")[1].querySelectorAll(".key")].map((key) =>
      getComputedStyle(key, "::before").backgroundColor)`;
    expect(new Set(await page.evaluate<string[]>(keys)).size).toBe(6);
    const covered = `(() => {
      const { top, bottom } = document.activeElement.getBoundingClientRect();
      return document.querySelector(".top").getBoundingClientRect().bottom > (top + bottom) / 2
        ? document.activeElement.outerHTML : null;
    })()`;
    const stops: unknown[] = [];
    await page.getByRole("button", { name: "Preview" }).focus();
    do {
      await page.keyboard.press("Shift+Tab");
      stops.push(await page.evaluate("document.activeElement.id"));
      expect(await page.evaluate(covered)).toBeNull();
    } while (stops.at(-1) !== "list-expired" && stops.length < 60);
    expect(stops).toContain("domain-search");
    expect(stops.at(-1)).toBe("list-expired");
  });

  test("shows each alarm with what to do, bad ones first, their number wherever one scrolls, and announces only those that are new; says why it has to wait, counts down to the next retry of each part, and recovers by itself", async () => {
    const { page } = await signedIn();
    await waitForText(page, "A domain has expired: lapsed.af (2 days ago).");
    await waitForText(page, /^Renew it in the reseller portal/);
    await waitForText(page, "A domain expires within 7 days without auto-renewal: soon.af (in 3 days).");
    await untilTrue(page, `/^\\(\\d+\\) Operator/.test(document.title)`);
    await page.getByRole("heading", { name: "Audit" }).scrollIntoViewIfNeeded();
    const count = page.getByRole("link", { name: /^1 alarm/ });
    expect((await count.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    await count.press("Enter");

    const todo = "What to do about it is said here.";
    const alarm = (level: "bad" | "warn", text: string) => ({ kind: text, level, text, todo });
    let alarms = [alarm("warn", "3 of 28 prices are doubtful."), alarm("warn", "No TLD has a margin.")];
    await changed(page, "overview", overviewShape, (now) => ({ ...now, alarms }));
    await nextReading(page, () => page.clock.fastForward(5_000));
    await page.evaluate(`
      globalThis.added = [];
      new MutationObserver((records) => {
        for (const { addedNodes } of records) for (const node of addedNodes) added.push(node.textContent);
      }).observe(document.getElementById("alarms"), { childList: true, subtree: true });`);
    alarms = [alarm("warn", "2 of 28 prices are doubtful."), alarm("warn", "No TLD has a margin.")];
    await nextReading(page, () => page.clock.fastForward(5_000));
    alarms = [...alarms, alarm("bad", "The registry refuses every credential.")];
    await nextReading(page, () => page.clock.fastForward(5_000));
    expect(await page.evaluate("added")).toEqual([
      `Note: 2 of 28 prices are doubtful. ${todo}`,
      `Alarm: The registry refuses every credential. ${todo}`,
    ]);
    expect(await page.locator("#alarms li").allInnerTexts()).toEqual([
      `Alarm: The registry refuses every credential.\n${todo}`,
      `Note: 2 of 28 prices are doubtful.\n${todo}`,
      `Note: No TLD has a margin.\n${todo}`,
    ]);

    await page.unroute("**/v1/staff/overview");
    const failing = (part: string, status: number, retryAfter: string, body = {}) =>
      page.route(`**/v1/staff/${part}`, (route) =>
        route.fulfill({ status, headers: { "Retry-After": retryAfter }, body: JSON.stringify(body) }),
      );
    const hasRecovered = () => untilTrue(page, `document.getElementById("notice").hidden`);
    await failing("audit", 503, "60");
    await page.clock.fastForward(10_000);
    await waitForText(page, "The registry can't be asked right now.");
    await failing("overview", 429, "7");
    await page.clock.fastForward(5_000);
    await waitForText(page, /Too many requests from this address\./);
    await waitForText(page, /^Retrying in [67] s\.$/);
    await page.unroute("**/v1/staff/overview");
    await page.clock.fastForward(7_000);
    await page.getByText("Too many requests from this address.").waitFor({ state: "hidden" });
    expect(await page.locator("#notice-words").textContent()).toBe("The registry can't be asked right now.");
    await waitForText(page, /^Retrying in 4\d s\.$/);
    await page.unroute("**/v1/staff/audit");
    await page.clock.fastForward(60_000);
    await hasRecovered();
    await failing("overview", 503, "1", { code: "shutting_down", detail: "x" });
    await page.clock.fastForward(5_000);
    await waitForText(page, "The service is shutting down.");
    await page.unroute("**/v1/staff/overview");
    await page.route("**/v1/staff/**", (route) => route.abort("internetdisconnected"));
    // By now every part has been requested at least once more.
    await page.clock.fastForward(300_000);
    await waitForText(page, "The service can't be reached.");
    await page.unroute("**/v1/staff/**");
    await page.clock.fastForward(6_000);
    await hasRecovered();
  });

  test("shows the cost of a purge at once and asks for confirmation", async () => {
    const { page, axe } = await openPage();
    let isSignedIn = false;
    // The second overview never arrives.
    await page.route("**/v1/staff/overview", async (route) => {
      if (!isSignedIn) await route.continue();
      isSignedIn = true;
    });
    await signIn(page, ANNA);
    for (const text of ["Silver", "within 90 days"]) await waitForText(page, text);
    const calls = service.calls();
    await page.getByRole("button", { name: "Everything" }).press("Enter");
    await waitForText(
      page,
      /^This costs up to \d+ calls; the budget is 997 in 60 s\. Prices are refreshed immediately/,
    );
    expect(await axe()).toEqual([]);
    expect(await page.evaluate(FITS)).toBe(true);
    await page.keyboard.press("Escape");
    expect(service.calls()).toBe(calls);
    await page.getByRole("button", { name: "Availability", exact: true }).click();
    await page.getByRole("button", { name: "Purge", exact: true }).click();
    await waitForText(page, /^\d+ checked names? will be refreshed\.$/);
  });

  test("draws charts of up to a day that grow with every refresh; while it is hidden it asks for nothing, and fills in those hours later if they are known", async () => {
    const { page } = await openPage();
    const HOURS_MS = 3 * 3_600_000;
    let minutesKnown = 1440;
    let longWaits = 0;
    await page.route("**/v1/staff/history", async (route) =>
      route.fulfill({ json: history(minutesKnown, await page.evaluate<number>("Date.now()")) }),
    );
    await changed(page, "overview", overviewShape, (now) => {
      const { exact } = now.quota.lanes;
      const served = exact.served + longWaits;
      const waitedMsTotal = exact.waitedMsTotal + longWaits * 10_000;
      const lanes = { ...now.quota.lanes, exact: { ...exact, served, waitedMsTotal } };
      return { ...now, quota: { ...now.quota, lanes } };
    });
    await nextReading(page, () => signIn(page, ANNA));
    const quota = page.getByLabel(/^Quota in use/);
    const first = await quota.getAttribute("aria-label");
    await service.ask("/v1/availability?domain=chart.af");
    await page.clock.fastForward(5_000);
    await until(async () => (await quota.getAttribute("aria-label")) !== first, "the second refresh");
    await waitForText(page, /^\d+ of 997$/);
    await waitForText(page, /^of \d+ calls? in ten minutes$/);
    // Of lines that overlap, the last one is visible.
    for (const [chart, line] of ["--line-1", "--line-6", "--line-5"].entries())
      expect([line, await page.evaluate(isDrawn(chart, line))]).toEqual([line, true]);
    await page.getByRole("button", { name: "1 day" }).press("Enter");
    await page.getByLabel(/^Quota in use in the last day/).waitFor();
    await untilTrue(page, isDrawn(0, "--line-1", 0, 0.33));

    await hide(page, true);
    let asked = 0;
    const count = (): unknown => (asked += 1);
    page.on("request", count);
    [longWaits, minutesKnown] = [100, 0];
    await page.clock.fastForward(HOURS_MS);
    expect(asked).toBe(0);
    page.off("request", count);
    await nextReading(page, () => hide(page, false));
    expect(await page.getByLabel(/^Waits by lane/).getAttribute("aria-label")).toContain("; now – ");
    expect(await page.evaluate(isDrawn(0, "--line-1", 0.9, 0.97))).toBe(false);
    await hide(page, true);
    minutesKnown = 1440;
    await page.clock.fastForward(HOURS_MS);
    await hide(page, false);
    await untilTrue(page, isDrawn(0, "--line-1", 0.9, 0.97));
    await page.getByRole("button", { name: "10 minutes" }).press("Enter");
    await page.getByLabel(/^Quota in use in the last ten minutes/).waitFor();
  });

  async function save(page: Page, name: string): Promise<string> {
    const download = page.waitForEvent("download");
    await page.keyboard.press("Enter");
    const saved = await download;
    expect(saved.suggestedFilename()).toBe(name);
    return readFileSync(await saved.path(), "utf8");
  }

  test("lets an operator see which signed carts need a hand, order, find an expired domain, preview and apply a price, by keyboard on a phone", async () => {
    const sign = async (domain: string): Promise<string> => {
      const items = [{ domain, action: "registration", years: 1 }];
      const { text } = await own.ask("/v1/quotes", { method: "POST", body: { items } });
      return claimsOf(/"promise":"([^"]+)"/.exec(text)?.[1] ?? "").jti;
    };
    const paid = await sign("kabul.af");
    await sign("kabul.com.af");
    const ordering = { method: "POST", headers: bearer("order") };
    const ordered = { state: "ordered", reference: "2026-0042" };
    await own.ask(`/v1/staff/promises/${paid}`, { ...ordering, body: ordered });
    const permissions = ["clipboard-read", "clipboard-write"];
    const { page, axe, picture } = await openPage({ ...PHONE, acceptDownloads: true, permissions }, own);
    let isManaged = false;
    // The checkout said so two days ago.
    await page.route("**/v1/staff/promises*", async (route) => {
      const answer = await route.fetch();
      if (isManaged || route.request().headers()["accept"] !== "application/json")
        return route.fulfill({ response: answer });
      const all = followedCartsShape.parse(await answer.json());
      const at = new Date(Date.now() - 2 * DAY_MS).toISOString();
      const promises = all.promises.map(({ checkout, ...cart }) => ({
        ...cart,
        checkout: checkout && { ...checkout, at },
      }));
      await route.fulfill({ json: { ...all, promises } });
    });
    await page.getByLabel("Staff token").waitFor();
    await page.keyboard.type(ANNA);
    await page.keyboard.press("Enter");
    await waitForText(page, "A domain has expired: lapsed.af (2 days ago).");
    const carts = page.getByRole("region", { name: "Signed lines" }).locator("tbody tr");
    await carts.first().waitFor();
    expect(await carts.allInnerTexts()).toEqual([
      expect.stringMatching(
        /^kabul\.af\s+registration, 1 year[\s\S]*26\.99 USD\s+20\.21 USD[\s\S]*open, ordered\s*ordered a day ago, but not managed/,
      ),
      expect.stringMatching(/^kabul\.com\.af[\s\S]*open\s*since /),
    ]);
    await tabTo(page, /^Show signed lines$/);
    await page.keyboard.type("needs");
    await until(async () => (await carts.count()) === 1, "the filter");
    await tabTo(page, /^Download CSV$/);
    expect(await save(page, "promises.csv")).toMatch(/^id,issuedAt,validUntil,domain,/);
    await tabTo(page, /^Copy the order: registration kabul\.af 1$/);
    await page.keyboard.press("Enter");
    await waitForText(page, "Copied: registration kabul.af 1");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("registration kabul.af 1");
    await picture("operator-carts");
    await tabTo(page, /^Download CSV$/);
    const lines = (await save(page, "domains.csv")).split("\r\n");
    expect(lines.map((line) => line.split(",")[0])).toEqual(
      expect.arrayContaining(["domain", "lapsed.af", "far.af"]),
    );

    await tabTo(page, /^Text$/);
    await page.keyboard.insertText(DEARER);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText(/^The file is valid\. It changes rules\./).waitFor();
    const changes = page.getByRole("region", { name: "Prices that would change" }).locator("tbody tr");
    expect(await changes.count()).toBe(1);
    expect(await changes.innerText()).toMatch(/\.af\s+registration, 1 year\s+26\.99 USD\s+→ 27\.99 USD/);
    await waitForText(page, "27 other prices stay the same.");
    expect(await axe()).toEqual([]);
    expect(await page.evaluate(FITS)).toBe(true);
    const all = RETAIL.replace('"5.00"', '"9.00"').replace('addFixed: "0.50"', 'addFixed: "9.50"');
    for (const [text, words] of [
      [all, "1 other price stays the same."],
      [`# the same prices\n${RETAIL}`, "No price changes."],
    ] as const) {
      await page.locator("#preview-text").fill(text);
      await page.getByRole("button", { name: "Preview" }).press("Enter");
      await waitForText(page, words);
    }
    writeFileSync(file, DEARER);
    await until(async () => !(await own.ask("/v1/prices")).text.includes('"26.99"'), "the new prices");

    // As in the sandbox's portal.
    own.sandbox.control.order("demo", { domain: "kabul.af", action: "registration", years: 1 });
    isManaged = true;
    await own.ask("/v1/staff/cache/purge", { ...ordering, body: { what: "account" } });
    await own.ask("/v1/staff/domains", { headers: { Authorization: `Bearer ${ANNA}` } });
    await page.getByLabel("Show signed lines").selectOption("managed");
    await page.clock.fastForward(30_000);
    await carts.filter({ hasText: "kabul.af" }).filter({ hasText: "managed" }).waitFor();
    await page
      .getByRole("row", { name: /^7 days\s+2 names, .*1 name, 26\.99 USD\s+1 name, 26\.99 USD/ })
      .waitFor();
    await waitForText(page, /^Notices: /);
    const actions = page.getByRole("region", { name: "Staff actions" });
    await actions.getByText("price file changed").waitFor();
    const done = await actions.locator("tbody tr").allInnerTexts();
    expect(done).toContainEqual(expect.stringMatching(/–\s+price file changed\s+[0-9a-f]{12}\s+applied/));
    expect(done).toContainEqual(expect.stringMatching(/anna\s+tried a price change\s+1 changes\s+done/));
    await picture("operator-story-audit");
    await page.goto("/?lang=en");
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody .amount").first().innerText()).toBe("$27.99");
  });
});
