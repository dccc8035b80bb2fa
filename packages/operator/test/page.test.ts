/** The operator page in a real browser: staff sign in, watch and purge. The token stays in memory, and nothing is loaded from other hosts. */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { systemClock } from "../../../src/clock.js";
import { perLane } from "../../../src/quota/lane.js";
import { overviewShape, staffDomainsShape, staffPricesShape } from "../../../src/wire/staff.js";
import { type Service, STAFF, startService, until } from "../../../test/support/service.js";
import {
  describeWithBrowser,
  DESKTOP,
  PHONE,
  startBrowser,
  STARTING_MS,
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
].join(",");

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
  const open: Visit[] = [];
  beforeAll(async () => {
    [browser, service] = await Promise.all([
      startBrowser(),
      startService({ clock: systemClock, world: world(), env: { STAFF_TOKENS: TOKENS } }),
    ]);
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    await service.close();
  });
  /** Closes all visits. Nothing may have been loaded from other hosts, violated the policy or failed unnoticed. */
  async function closeVisits(): Promise<void> {
    for (const one of open.splice(0)) {
      await one.close();
      expect(one.faults).toEqual([]);
    }
  }
  afterEach(closeVisits);

  async function openPage(options: BrowserContextOptions = DESKTOP, origin = service.url): Promise<Visit> {
    const visited = await visit(browser, origin, options);
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
  async function signedIn(options: BrowserContextOptions = DESKTOP, origin = service.url): Promise<Visit> {
    const visited = await openPage(options, origin);
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
   * A script that says whether the first chart's line is drawn between these shares of the chart's width. It reads a copy, because the browser warns if
   * a canvas is read repeatedly.
   */
  const isDrawn = (from: number, to: number): string => `(() => {
    const canvas = document.querySelector("#charts canvas");
    const colour = getComputedStyle(canvas).getPropertyValue("--line-1").trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(Math.round(width * ${from}), 0, Math.round(width * ${to - from}), height);
    for (let at = 0; at < data.length; at += 4)
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) return true;
    return false;
  })()`;

  test("asks for a token and explains why one isn't accepted", async () => {
    const { page } = await openPage();
    await signIn(page, "not-a-token-that-anybody-has");
    await waitForText(page, "The service doesn't accept this token.");
    await signIn(page, STAFF.metrics);
    await waitForText(page, "This token can't read: it doesn't have the read scope.");
    await signIn(page, "two words");
    await waitForText(page, /This isn't a token/);
    expect(await page.getByRole("heading", { name: "Right now" }).isVisible()).toBe(false);
  });

  test("keeps the token only in memory, and forgets it on sign-out or reload", async () => {
    const { page } = await signedIn();
    const kept =
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML, document.getElementById('token').value])";
    expect(await page.evaluate(kept)).not.toContain(ANNA);
    expect(await page.context().cookies()).toEqual([]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Staff token").waitFor();
    expect(await page.getByText("Silver").count()).toBe(0);
    await signIn(page, ANNA);
    await waitForText(page, "Silver");
    await page.reload();
    await page.getByLabel("Staff token").waitFor();
  });

  test("keeps a price file that is being edited when the token is refused, until sign-out", async () => {
    const { page } = await signedIn();
    const text = page.locator("#preview-text");
    await text.fill("currency: USD");
    await page.route("**/v1/staff/**", (route) => route.fulfill({ status: 401 }));
    await page.clock.fastForward(10_000);
    await page.getByLabel("Staff token").waitFor();
    await page.unroute("**/v1/staff/**");
    await signIn(page, ANNA);
    await waitForText(page, "Silver");
    expect(await text.inputValue()).toBe("currency: USD");
    await page.getByRole("button", { name: "Sign out" }).click();
    expect(await text.inputValue()).toBe("");
  });

  test("says how many prices a changed price file leaves as they are", async () => {
    const { page } = await signedIn();
    const shipped = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");
    const dearer = shipped
      .replace('addFixed: "5.00"', 'addFixed: "9.00"')
      .replace('addFixed: "0.50"', 'addFixed: "9.50"');
    await page.locator("#preview-text").fill(dearer);
    await page.getByRole("button", { name: "Preview" }).press("Enter");
    await waitForText(page, "1 other price stays the same.");
    await page.locator("#preview-text").fill(`# the same prices\n${shipped}`);
    await page.getByRole("button", { name: "Preview" }).press("Enter");
    await waitForText(page, "No price changes.");
  });

  test("says on which day its figures were current, because it can stay open overnight", async () => {
    const { page } = await signedIn();
    expect(await page.locator("#updated").textContent()).toMatch(/^as of \d+ \w+, [\d:]{8}$/);
  });

  test("estimates what the next tier would have saved, at prices that staff enter", async () => {
    const { page, axe } = await signedIn(PHONE);
    await page.getByText("What would Gold save?").click();
    await waitForText(page, "Enter Gold's wholesale prices to see the difference.");
    const row = page.getByRole("row", { name: "1 × .af renewal" });
    const now = parseFloat((await row.getByRole("cell").first().textContent()) ?? "");
    const field = page.getByLabel(".af renewal at Gold");
    await field.pressSequentially((now - 1.5).toFixed(2));
    await waitForText(page, "In the last 30 days, Gold would have saved 1.50 USD.");
    await field.press("ControlOrMeta+a");
    await field.pressSequentially("much");
    await waitForText(page, "Enter Gold's wholesale prices to see the difference.");
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    expect(await axe()).toEqual([]);
    await page.locator("#savings").screenshot({ path: "test-output/operator-savings.png" });
  });

  test("draws charts that grow with every refresh", async () => {
    const { page } = await signedIn();
    const quota = page.getByLabel(/^Quota in use/);
    await quota.waitFor();
    const first = await quota.getAttribute("aria-label");
    // The charts show changes: one request that costs a call, and one that doesn't.
    for (let times = 0; times < 2; times += 1) await service.ask("/v1/availability?domain=chart.af");
    await page.clock.fastForward(5_000);
    await until(async () => (await quota.getAttribute("aria-label")) !== first, "the second refresh");
    await waitForText(page, /^\d+ of 997$/);
    await waitForText(page, /^since startup; now \d+%$/);
    // Each chart has the colour of its line, which axes and labels don't use. Of lines that overlap, the last one is visible.
    const lines = await page.evaluate(`
      ["--line-1", "--line-6", "--line-2", "--line-3", "--line-5"].map((name, index) => {
        const canvas = document.querySelectorAll("#charts canvas")[index];
        const colour = getComputedStyle(canvas).getPropertyValue(name).trim();
        const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        for (let at = 0; at < data.length; at += 4)
          if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) return name;
        return "no " + name;
      })`);
    expect(lines).toEqual(["--line-1", "--line-6", "--line-2", "--line-3", "--line-5"]);
  });

  test("shows tier, balance and what it covers, credentials and prices", async () => {
    const { page } = await signedIn();
    await waitForText(page, "Silver");
    await waitForText(page, "18 more domains to Gold");
    await waitForText(page, "1,843.50 USD");
    await waitForText(page, "covers 91 typical orders, 115 with the credit limit");
    await waitForText(page, "A typical order is a .af registration for 1 year at 20.21 USD wholesale.");
    await waitForText(page, "accepted");
    const row = page
      .getByRole("row")
      .filter({ hasText: "registration" })
      .filter({ hasText: "1 year" })
      .first();
    expect(await row.getByRole("cell").allInnerTexts()).toEqual([
      "registration",
      "1 year",
      "20.21 USD",
      "26.99 USD",
      "6.78 USD",
      "25.1%",
      "rule 1",
      "",
    ]);
    await page.getByLabel("Show", { exact: true }).selectOption(".net.af");
    await untilTrue(page, `document.querySelectorAll("#prices tbody tr").length === 6`);
  });

  test("says on which day the registry last failed, unless that is today", async () => {
    const { page } = await openPage();
    const failed = new Date(Date.now() - 3 * DAY_MS);
    await page.route("**/v1/staff/overview", async (route) => {
      const answer = await route.fetch();
      const now = overviewShape.parse(await answer.json());
      const upstream = {
        ...now.upstream,
        lastSuccessAt: new Date().toISOString(),
        lastFailureAt: failed.toISOString(),
      };
      await route.fulfill({ json: { ...now, upstream } });
    });
    await signIn(page, ANNA);
    const words = page.getByText(/^Last answer: \d\d:\d\d\b/);
    await words.waitFor();
    const day = failed.toLocaleDateString("en-GB", { dateStyle: "medium" });
    expect(await words.innerText()).toContain(`Last failure: ${day}, `);
  });

  test("keeps the prices' rows low on a phone, even with notes", async () => {
    const { page } = await openPage(PHONE);
    const warning = "its price is older than allowed, so it is shown as stale and not signed";
    await page.route("**/v1/staff/prices", async (route) => {
      const answer = await route.fetch();
      const all = staffPricesShape.parse(await answer.json());
      await route.fulfill({ json: { ...all, prices: all.prices.map((price) => ({ ...price, warning })) } });
    });
    await signIn(page, ANNA);
    const row = page.locator("#prices tbody tr").first();
    await row.getByText(warning).waitFor();
    expect((await row.boundingBox())?.height).toBeLessThan(60);
  });

  test("lists first the domains that have expired or soon will, and can filter them by keyboard", async () => {
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
  });

  test.each([
    ["a phone", PHONE.viewport],
    ["a desktop at 400 %", { width: 320, height: 256 }],
  ])("never hides the keyboard's focus behind its header: %s", async (_, viewport) => {
    const { page } = await signedIn({ viewport });
    await waitForText(page, "within 90 days");
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

  test("shows in forced colours which button is pressed, and the colours of a chart's lines", async () => {
    const { page } = await signedIn({ ...DESKTOP, forcedColors: "active" });
    await waitForText(page, "within 90 days");
    const borders = `new Set([...document.querySelectorAll("#spans button")].map((one) =>
      getComputedStyle(one).borderTop)).size`;
    expect(await page.evaluate(borders)).toBe(2);
    const keys = `[...document.querySelectorAll(".legend")[1].querySelectorAll(".key")].map((key) =>
      getComputedStyle(key, "::before").backgroundColor)`;
    expect(new Set(await page.evaluate<string[]>(keys)).size).toBe(6);
  });

  test("shows months without expiries as a line instead of a calendar", async () => {
    const { page } = await openPage();
    await page.route("**/v1/staff/domains", async (route) => {
      const answer = await route.fetch();
      const all = staffDomainsShape.parse(await answer.json());
      const domains = all.domains.filter(({ domain }) => domain === "soon.af");
      await route.fulfill({ json: { ...all, domains } });
    });
    await signIn(page, ANNA);
    await waitForText(page, /^No domain expires in /);
    expect(await page.locator(".month").count()).toBe(1);
  });

  test("finds and sorts all domains", async () => {
    const { page } = await signedIn();
    const names = () => page.locator("#domains .scroll tbody th").allInnerTexts();
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
  });

  test("leaves a scrolled list of domains and its focus as they are when a refresh brings nothing new", async () => {
    const { page } = await openPage();
    await page.route("**/v1/staff/domains", async (route) => {
      const answer = await route.fetch();
      const all = staffDomainsShape.parse(await answer.json());
      const domains = all.domains
        .filter(({ domain }) => domain === "soon.af")
        .flatMap((soon) => Array.from({ length: 60 }, (_, at) => ({ ...soon, domain: `soon-${at}.af` })));
      await route.fulfill({ json: { ...all, domains } });
    });
    await signIn(page, ANNA);
    await waitForText(page, "20.21 USD");
    await page.getByRole("region", { name: /^Expired, or expiring/ }).focus();
    await page.keyboard.press("End");
    const place = "[document.activeElement.getAttribute('aria-label'), document.activeElement.scrollTop]";
    await untilTrue(
      page,
      "(({ scrollTop, clientHeight, scrollHeight }) => scrollTop > 0 && scrollTop + clientHeight === scrollHeight)(document.activeElement)",
    );
    const before = await page.evaluate(place);
    await page.route("**/v1/staff/prices", async (route) => {
      const answer = await route.fetch();
      const all = staffPricesShape.parse(await answer.json());
      await route.fulfill({ json: { ...all, asOf: "2026-01-05T12:00:00.000Z" } });
    });
    await page.clock.fastForward(30_000);
    await waitForText(page, /^the oldest is from 5 Jan 2026/);
    expect(await page.evaluate(place)).toEqual(before);
  });

  test("shows each alarm with what to do, and their number in the tab title and wherever one scrolls", async () => {
    const { page } = await signedIn();
    await waitForText(page, "A domain has expired: lapsed.af (2 days ago).");
    await waitForText(page, /^Renew it in the reseller portal/);
    await waitForText(page, "A domain expires within 7 days without auto-renewal: soon.af (in 3 days).");
    await untilTrue(page, `/^\\(\\d+\\) Operator/.test(document.title)`);
    await page.getByRole("heading", { name: "Audit" }).scrollIntoViewIfNeeded();
    const count = page.getByRole("link", { name: /^1 alarm/ });
    expect((await count.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    await count.press("Enter");
    await page.getByRole("button", { name: "Sign out" }).click();
    expect(await page.title()).toBe("Operator · .af names");
  });

  test("has bad alarms first, then notes, each with what to do", async () => {
    const { page } = await signedIn();
    const todo = "What to do about it is said here.";
    await page.route("**/v1/staff/overview", async (route) => {
      const answer = await route.fetch();
      const now = overviewShape.parse(await answer.json());
      const alarms = [
        { kind: "doubtful", level: "warn", text: "3 of 28 prices are doubtful.", todo },
        { kind: "credential", level: "bad", text: "The registry refuses every credential.", todo },
      ];
      await route.fulfill({ json: { ...now, alarms } });
    });
    await page.clock.fastForward(5_000);
    await waitForText(page, "3 of 28 prices are doubtful.");
    expect(await page.locator("#alarms li").allInnerTexts()).toEqual([
      `Alarm: The registry refuses every credential.\n${todo}`,
      `Note: 3 of 28 prices are doubtful.\n${todo}`,
    ]);
  });

  test("lets a screen reader read out only alarms that are new or have changed", async () => {
    const { page } = await signedIn();
    await waitForText(page, "A domain has expired: lapsed.af (2 days ago).");
    const alarm = (level: "bad" | "warn", text: string) => ({ kind: text, level, text, todo: "Look at it." });
    let more = [alarm("warn", "3 prices are doubtful.")];
    await page.route("**/v1/staff/overview", async (route) => {
      const answer = await route.fetch();
      const now = overviewShape.parse(await answer.json());
      await route.fulfill({ json: { ...now, alarms: [...now.alarms, ...more] } });
    });
    await nextReading(page, () => page.clock.fastForward(5_000));
    await page.evaluate(`
      globalThis.added = [];
      new MutationObserver((records) => {
        for (const { addedNodes } of records) for (const node of addedNodes) added.push(node.textContent);
      }).observe(document.getElementById("alarms"), { childList: true, subtree: true });`);
    more = [alarm("warn", "2 prices are doubtful.")];
    await nextReading(page, () => page.clock.fastForward(5_000));
    const changed = expect.stringMatching(/^Note: 2 prices are doubtful\./);
    expect(await page.evaluate("added")).toEqual([changed]);
    more = [alarm("bad", "The registry keeps failing."), ...more];
    await nextReading(page, () => page.clock.fastForward(5_000));
    const first = expect.stringMatching(/^Alarm: The registry keeps failing/);
    expect(await page.evaluate("added")).toEqual([changed, first]);
  });

  test("shows the cost of a purge and asks for confirmation, and says if the token lacks the scope", async () => {
    const { page, axe } = await signedIn();
    const calls = service.calls();
    await page.getByRole("button", { name: "Everything" }).press("Enter");
    await waitForText(
      page,
      /^This costs up to \d+ calls; the budget is 997 in 60 s\. Prices are refreshed immediately/,
    );
    expect(await axe()).toEqual([]);
    await page.keyboard.press("Escape");
    expect(service.calls()).toBe(calls);
    await page.getByRole("button", { name: "Availability", exact: true }).click();
    await page.getByRole("button", { name: "Purge", exact: true }).click();
    await waitForText(page, /^\d+ checked names? will be refreshed\.$/);
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, STAFF.read);
    await waitForText(page, "Silver");
    await page.getByRole("button", { name: "Everything" }).click();
    await page.getByRole("button", { name: "Purge", exact: true }).click();
    await waitForText(page, "This token can't purge: it doesn't have the operate scope.");
  });

  test("shows the cost of a purge at once, even if the next overview is slow", async () => {
    const { page } = await openPage();
    let isSignedIn = false;
    await page.route("**/v1/staff/overview", async (route) => {
      if (!isSignedIn) await route.continue();
      isSignedIn = true;
    });
    await signIn(page, ANNA);
    await page.getByRole("button", { name: "Everything" }).click();
    await waitForText(page, /^This costs up to \d+ calls/);
  });

  test("can be signed in to when the token was refused while a purge was to be confirmed, and purges nothing", async () => {
    const { page } = await signedIn();
    const purges: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/cache/purge")) purges.push(request.url());
    });
    await page.getByRole("button", { name: "Everything" }).press("Enter");
    await waitForText(page, /^This costs up to \d+ calls/);
    await page.route("**/v1/staff/**", (route) => route.fulfill({ status: 401 }));
    await page.clock.fastForward(10_000);
    await waitForText(page, "The service doesn't accept this token. Sign in again.");
    await page.unroute("**/v1/staff/**");
    await page.keyboard.type(ANNA);
    await page.keyboard.press("Enter");
    await waitForText(page, "Silver");
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(purges).toEqual([]);
  });

  test("has charts that start before the page was opened, and show up to a day", async () => {
    const { page } = await openPage();
    await page.route("**/v1/staff/history", (route) => route.fulfill({ json: history(1440, Date.now()) }));
    await signIn(page, ANNA);
    await page.getByRole("button", { name: "1 day" }).press("Enter");
    await page.getByLabel(/^Quota in use in the last day/).waitFor();
    await untilTrue(page, isDrawn(0, 0.33));
    await page.getByRole("button", { name: "10 minutes" }).press("Enter");
    await page.getByLabel(/^Quota in use in the last ten minutes/).waitFor();
  });

  test("draws the hours for which it was hidden from the history, or not at all, and counts nothing of them as current", async () => {
    const { page } = await openPage();
    const HOURS_MS = 3 * 3_600_000;
    let minutesKnown = 0;
    let longWaits = 0;
    await page.route("**/v1/staff/history", async (route) =>
      route.fulfill({ json: history(minutesKnown, await page.evaluate<number>("Date.now()")) }),
    );
    await page.route("**/v1/staff/overview", async (route) => {
      const answer = await route.fetch();
      const now = overviewShape.parse(await answer.json());
      const { exact } = now.quota.lanes;
      const served = exact.served + longWaits;
      const waitedMsTotal = exact.waitedMsTotal + longWaits * 10_000;
      const lanes = { ...now.quota.lanes, exact: { ...exact, served, waitedMsTotal } };
      await route.fulfill({ json: { ...now, quota: { ...now.quota, lanes } } });
    });
    await nextReading(page, () => signIn(page, ANNA));
    await page.getByRole("button", { name: "1 day" }).press("Enter");
    await nextReading(page, () => page.clock.fastForward(5_000));
    await hide(page, true);
    longWaits = 100;
    await page.clock.fastForward(HOURS_MS);
    await nextReading(page, () => hide(page, false));
    expect(await page.getByRole("listitem").filter({ hasText: "Visitors are waiting" }).count()).toBe(0);
    expect(await page.getByLabel(/^Waits by lane/).getAttribute("aria-label")).toContain("; now – ");
    expect(await page.evaluate(isDrawn(0.9, 0.97))).toBe(false);
    await hide(page, true);
    minutesKnown = 1440;
    await page.clock.fastForward(HOURS_MS);
    await hide(page, false);
    await untilTrue(page, isDrawn(0.9, 0.97));
  });

  test("says why it has to wait, recovers by itself, and signs out when the token is no longer accepted", async () => {
    const { page } = await signedIn();
    const problem = (status: number, headers: Record<string, string> = {}, body = {}) => ({
      status,
      headers,
      body: JSON.stringify(body),
    });
    await page.route("**/v1/staff/overview", (route) => route.fulfill(problem(429, { "Retry-After": "7" })));
    await page.clock.fastForward(5_000);
    await waitForText(page, "Too many requests from this address.");
    await waitForText(page, /^Retrying in [67] s\.$/);
    await page.unroute("**/v1/staff/overview");
    await page.clock.fastForward(7_000);
    await untilTrue(page, `document.getElementById("notice").hidden`);
    const stopping = problem(503, { "Retry-After": "1" }, { code: "shutting_down" });
    await page.route("**/v1/staff/overview", (route) => route.fulfill(stopping));
    await page.clock.fastForward(5_000);
    await waitForText(page, "The service is shutting down.");
    await page.unroute("**/v1/staff/overview");
    await page.route("**/v1/staff/overview", (route) => route.fulfill(problem(401)));
    await page.clock.fastForward(5_000);
    await waitForText(page, "The service doesn't accept this token. Sign in again.");
    expect(await page.getByText("Silver").count()).toBe(0);
  });

  test("counts down to the next retry of a part that still fails, after another part has recovered", async () => {
    const { page } = await signedIn();
    await waitForText(page, "Silver");
    const failing = (part: string, retryAfter: string) =>
      page.route(`**/v1/staff/${part}`, (route) =>
        route.fulfill({
          status: part === "audit" ? 503 : 429,
          headers: { "Retry-After": retryAfter },
          body: "{}",
        }),
      );
    await failing("audit", "60");
    await page.clock.fastForward(10_000);
    await waitForText(page, "The registry can't be asked right now.");
    await failing("overview", "7");
    await page.clock.fastForward(5_000);
    await waitForText(page, /Too many requests from this address\./);
    await waitForText(page, /^Retrying in [67] s\.$/);
    await page.unroute("**/v1/staff/overview");
    await page.clock.fastForward(7_000);
    await page.getByText("Too many requests from this address.").waitFor({ state: "hidden" });
    expect(await page.locator("#notice-words").textContent()).toBe("The registry can't be asked right now.");
    await waitForText(page, /^Retrying in 4\d s\.$/);
  });

  test("says only until a few seconds after its return that the service can't be reached", async () => {
    const { page } = await signedIn();
    await waitForText(page, "Silver");
    await page.route("**/v1/staff/**", (route) => route.abort("internetdisconnected"));
    // By now every part has been requested at least once more.
    await page.clock.fastForward(300_000);
    await waitForText(page, "The service can't be reached.");
    await page.unroute("**/v1/staff/**");
    await page.clock.fastForward(6_000);
    await untilTrue(page, `document.getElementById("notice").hidden`);
  });

  test("sends no requests while it is hidden", async () => {
    const { page } = await signedIn();
    await waitForText(page, "Silver");
    await hide(page, true);
    let asked = 0;
    page.on("request", () => {
      asked += 1;
    });
    await page.clock.fastForward(600_000);
    expect(asked).toBe(0);
    const next = page.waitForRequest("**/v1/staff/overview");
    await hide(page, false);
    await next;
  });

  test("raises an alarm when the registry's list is cut off at a hundred domains", async () => {
    const big = await startService({
      clock: systemClock,
      reseller: "big",
      warm: false,
      env: { STAFF_TOKENS: TOKENS },
    });
    try {
      const { page, picture } = await signedIn(DESKTOP, big.url);
      await waitForText(page, /The registry lists only 100 domains, but the account has 130\./);
      await picture("operator-truncated");
      await closeVisits();
    } finally {
      await big.close();
    }
  });

  test.each(
    looked(
      [
        ["desktop-light", { ...DESKTOP, colorScheme: "light" }],
        ["phone-light", { ...PHONE, colorScheme: "light" }],
        ["desktop-dark", { ...DESKTOP, colorScheme: "dark" }],
        ["phone-dark", { ...PHONE, colorScheme: "dark" }],
      ] as const,
      3,
    ),
  )("has no axe violations and fits the screen: %s", async (name, options) => {
    const visited = await openPage(options);
    const { page } = visited;
    const fits = () => page.evaluate("document.documentElement.scrollWidth <= innerWidth");
    expect(await visited.axe()).toEqual([]);
    expect(await fits()).toBe(true);
    await visited.picture(`operator-sign-in-${name}`);
    await signIn(page, ANNA);
    for (const text of ["Silver", "within 30 days", "20.21 USD", "accepted"]) await waitForText(page, text);
    // A few minutes of traffic, so that the picture shows something.
    for (let minute = 0; minute < 8; minute += 1) {
      for (let asked = 0; asked <= minute % 3; asked += 1)
        await service.ask(`/v1/availability?domain=${name}-${minute}-${asked}.af`);
      const refreshed = page.waitForResponse("**/v1/staff/overview");
      await page.clock.fastForward(60_000);
      await refreshed;
    }
    expect(await visited.axe()).toEqual([]);
    expect(await fits()).toBe(true);
    // The header stays in view, so it takes at most two lines, also with alarms and notes.
    await page.getByRole("link", { name: /^1 alarm, \d notes?$/ }).waitFor();
    expect((await page.locator("header").boundingBox())?.height).toBeLessThan(90);
    await visited.picture(`operator-${name}`);
  });
});
