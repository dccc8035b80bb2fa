/** Visitors at the storefront: opens pages at the service's time, finds their parts, and types into them. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { FakeClock } from "../support/fake-clock.js";
import { type Service, type ServiceOptions, startService } from "../support/service.js";
import { DESKTOP, startBrowser, STARTING_MS, type Visit, visit } from "./browser.js";

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

/** Waits until a search has succeeded. */
export function done(page: Page, timeout = 10_000): Promise<void> {
  return page.locator('#search-status[data-kind="done"]').waitFor({ timeout });
}

/** Replaces the text in the search box at once, as a paste would, and presses Enter. */
export async function enter(page: Page, text: string): Promise<void> {
  await page.locator("#query").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}

/** Types into the search box, presses Enter and waits for the results. */
export async function searchFor(page: Page, text: string): Promise<void> {
  await page.locator("#query").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await done(page);
}

export const row = (page: Page, domain: string) => page.locator(`.name[data-domain="${domain}"]`);

const tidy = (text: string): string => text.replaceAll(/[ \n]+/g, " ").trim();
export const read = async (what: Locator): Promise<string> => tidy((await what.textContent()) ?? "");
export const texts = async (page: Page, what: string): Promise<string[]> =>
  (await page.locator(what).allTextContents()).map(tidy);

/** Inspects a page with a stopped clock, which has to run meanwhile, and stops the clock `forMs` after the time at which it stood. */
export async function inspect(page: Page, forMs: number, inspection: () => Promise<void>): Promise<void> {
  const stoppedAtMs = Number(await page.evaluate("Date.now()"));
  await page.clock.resume();
  await inspection();
  await page.clock.pauseAt(stoppedAtMs + forMs);
}
