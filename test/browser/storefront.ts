/** Visitors at the storefront: opens pages at the service's time, finds their parts, and types into them. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { FakeClock } from "../support/fake-clock.js";
import { RETAIL } from "../support/retail.js";
import { type Service, type ServiceOptions, startService, until } from "../support/service.js";
import { DESKTOP, startBrowser, STARTING_MS, type Visit, visit } from "./browser.js";

export { RETAIL };

/** The same with registrations under these TLDs 10 % cheaper, each until its time. */
export function saleOf(...ends: readonly (readonly [tld: string, to: string])[]): string {
  const sales = ends.map(
    ([tld, to]) =>
      `{ id: sale${tld}, match: { tld: ${tld}, action: registration }, percentOff: "10", from: "2026-01-01T00:00:00Z", to: "${to}" }`,
  );
  return RETAIL.replace("promotions: []", `promotions: [${sales.join(", ")}]`);
}

export interface VisitorOptions extends BrowserContextOptions {
  readonly language?: string;
  /** The page's clock advances only when the test advances it. */
  readonly stopped?: boolean;
  readonly at?: Service;
  readonly path?: string;
  readonly before?: (page: Page) => Promise<unknown>;
}

export type Visitor = Visit & { readonly page: Page };

export interface Shop {
  readonly clock: FakeClock;
  readonly service: Service;
  /** Starts another service, which is closed at the end of the test. */
  start(options: Omit<ServiceOptions, "clock">): Promise<Service>;
  visitor(options?: VisitorOptions): Promise<Visitor>;
}

/** One browser and one service for a suite. After each test, no page may have done anything that it must never do. */
export function openShop(options: Omit<ServiceOptions, "clock"> = {}): Shop {
  const clock = new FakeClock();
  let browser: Browser;
  let service: Service;
  let visits: Visit[] = [];
  let others: Service[] = [];
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    service = await startService({ clock, ...options });
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

  return {
    clock,
    get service() {
      return service;
    },
    async start(more) {
      const other = await startService({ clock, ...more });
      others.push(other);
      return other;
    },
    async visitor({ language = "en", stopped = false, at = service, path = "/", before, ...rest } = {}) {
      const opened = await visit(browser, at.url, { ...DESKTOP, ...rest });
      visits.push(opened);
      const { page } = opened;
      if (stopped) await page.clock.install({ time: clock.now() - 60_000 });
      else await page.clock.setSystemTime(clock.now());
      await before?.(page);
      await page.goto(`${path}${path.includes("?") ? "&" : "?"}lang=${language}`);
      await page.locator("tbody tr").first().waitFor();
      if (stopped) await page.clock.pauseAt(clock.now());
      return opened;
    },
  };
}

/** Types into the search box of a page with a stopped clock, with this time between keys. */
export async function typeSlowly(page: Page, text: string, keyMs: number): Promise<void> {
  await page.locator("#query").focus();
  for (const [at, letter] of Array.from(text).entries()) {
    if (at > 0) await page.clock.runFor(keyMs);
    await page.keyboard.type(letter);
  }
}

export const status = (page: Page) => page.locator("#search-status");
export const cartStatus = (page: Page) => page.locator("#cart-status");
export const searchIs = (page: Page, kind: string) =>
  page.locator(`#search-status[data-kind="${kind}"]`).waitFor();
export const cartIs = (page: Page, kind: string) =>
  page.locator(`#cart-status[data-kind="${kind}"]`).waitFor();
/** Waits until a search has succeeded. */
export const done = (page: Page) => searchIs(page, "done");

/** Advances a stopped clock until this is the search's state, whatever its requests need of real time. */
export async function runUntil(page: Page, kind: string): Promise<void> {
  await until(async () => {
    await page.clock.runFor(1_000);
    return (await status(page).getAttribute("data-kind")) === kind;
  }, kind);
}

/** Replaces the text in the search box at once, as a paste would, and presses Enter. */
export async function enter(page: Page, text: string): Promise<void> {
  await page.locator("#query").press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}

/** Does so and waits for the results. */
export async function searchFor(page: Page, text: string): Promise<void> {
  await enter(page, text);
  await done(page);
}

/** Searches kabul and puts these names into the cart. */
export async function put(page: Page, ...domains: readonly string[]): Promise<void> {
  await searchFor(page, "kabul");
  for (const domain of domains) await row(page, domain).locator("button").press("Enter");
}

export async function confirm(page: Page, becomes: string): Promise<void> {
  await page.locator("#cart-confirm").press("Enter");
  await cartIs(page, becomes);
}

export const focusedId = (page: Page): Promise<unknown> => page.evaluate("focused().id");

/** Presses the key until what has this id has the focus. */
export async function moveTo(page: Page, id: string, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  for (let presses = 0; (await focusedId(page)) !== id && presses < 30; presses += 1)
    await page.keyboard.press(key);
  expect(await focusedId(page)).toBe(id);
}

/** What is asked for by searches, or names, that can call the upstream: grows from now on. */
export function requestsOf(page: Page, path: string): string[] {
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === path && !searchParams.has("only"))
      asked.push(searchParams.get("q") ?? searchParams.get("domain") ?? "");
  });
  return asked;
}

/** Timers aren't affected, as when a person or the network sets a device's clock. */
export async function setClockBy(page: Page, ms: number): Promise<void> {
  await page.clock.setSystemTime(Number(await page.evaluate("Date.now()")) + ms);
}

export const row = (page: Page, domain: string) => page.locator(`.name[data-domain="${domain}"]`);

const tidy = (text: string): string => text.replaceAll(/[ \n]+/g, " ").trim();
export const read = async (what: Locator): Promise<string> => tidy((await what.textContent()) ?? "");
export const texts = async (page: Page, what: string): Promise<string[]> =>
  (await page.locator(what).allTextContents()).map(tidy);
