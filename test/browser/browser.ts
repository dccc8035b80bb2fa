/** Starts Debian's Chromium, or its headless shell if that is installed, and visits pages while recording everything that a page must never do. */
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { z } from "zod";
import { describeWith, pathOf } from "../support/tools.js";

/** The timeout of hooks that start a browser. The first start on a busy machine is slow. */
export const STARTING_MS = 60_000;

const CHROMIUM = pathOf("chromium");
const PICTURES = fileURLToPath(new URL("../../test-output/", import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A suite that needs a browser. */
export function describeWithBrowser(name: string, suite: () => void): void {
  describeWith("chromium", name, suite);
}

/**
 * Chromium's own sandbox needs permissions that containers don't have. The browser visits only the service. One renderer process for all pages
 * makes a page load a sixth cheaper.
 */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(CHROMIUM !== null && { executablePath: CHROMIUM }),
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--renderer-process-limit=1"],
    timeout: STARTING_MS - 5_000,
  });
}

export const DESKTOP = { viewport: { width: 1280, height: 900 } } as const;
export const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true } as const;

export interface Visit {
  readonly page: Page;
  /** What a page must never do: requests to other hosts, violations of its policy, and uncaught errors. */
  readonly faults: readonly string[];
  /** The transferred bytes of everything loaded from `/` and `/assets/`. */
  weight(): Promise<number>;
  /** What moved up or down without an input as its cause. */
  moved(): Promise<string[]>;
  /** The axe rules that the page violates now, each with the elements. */
  axe(): Promise<string[]>;
  /** With `PICTURES` set: saves a picture of the whole page as it is now, under test-output/. */
  picture(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Also gives tests `all`, `one` and `focused`, which see into the search element. */
const WATCH = `
  globalThis.all = (selector) => [document, ...document.querySelectorAll("af-domain-search")].flatMap((root) => [
    ...(root.shadowRoot ?? root).querySelectorAll(selector),
  ]);
  globalThis.one = (selector) => all(selector)[0];
  globalThis.focused = () => document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
  globalThis.watched = { moved: [], violations: [] };
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    watched.violations.push(effectiveDirective + " " + blockedURI);
  });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      // Text that changes within its line begins elsewhere in it.
      const nodes = entry.sources
        .filter(({ previousRect, currentRect }) => Math.abs(previousRect.y - currentRect.y) > 1)
        .map(({ node, previousRect, currentRect }) =>
          [node?.outerHTML?.slice(0, 80), previousRect.y, currentRect.y].join(" "));
      if (nodes.length === 0) continue;
      watched.moved.push(entry.value.toFixed(4) + " " + nodes.join(" "));
    }
  }).observe({ type: "layout-shift", buffered: true });
`;

/** Doesn't open a page yet, because routes and clocks have to be set before the first `page.goto`. */
export async function visit(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions,
  /** Other origins that the page may load from. */
  ...allowed: readonly string[]
): Promise<Visit> {
  const context = await browser.newContext({ baseURL: origin, locale: "en", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const faults: string[] = [];
  const sizes: Promise<number>[] = [];
  await page.addInitScript(WATCH);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // The page handles refusals and lost connections, but Chromium logs each of them.
    const isRefusal =
      /^Failed to load resource: (?:the server responded|net::ERR_INTERNET_DISCONNECTED)/.test(
        message.text(),
      );
    if (["error", "warning"].includes(message.type()) && !isRefusal)
      faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (![origin, ...allowed].includes(new URL(request.url()).origin))
      faults.push(`request: ${request.url()}`);
  });
  page.on("requestfinished", (request) => {
    if (/^\/(?:$|staff$|assets\/)/.test(new URL(request.url()).pathname))
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
  });
  return {
    page,
    faults,
    weight: async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0),
    moved: async () => z.array(z.string()).parse(await page.evaluate("watched.moved")),
    async axe() {
      if ((await page.evaluate("'axe' in globalThis")) === false) await page.evaluate(AXE);
      const found = await page.evaluate(`axe
        .run({ resultTypes: ["violations"], selectors: false })
        .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
      return z.array(z.string()).parse(found);
    },
    async picture(name) {
      if ((process.env["PICTURES"] ?? "") === "") return;
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: `${PICTURES}${name}.png`, fullPage: true });
    },
    async close() {
      const violations = z
        .array(z.string())
        .parse(page.isClosed() ? [] : await page.evaluate("watched.violations"));
      faults.push(...violations.map((what) => `policy: ${what}`));
      await context.close();
    },
  };
}

/** Presses Tab until what has the focus is labelled like this. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const label = await page.evaluate(
      `(() => { const at = document.activeElement; return at.labels?.[0]?.textContent ?? at.getAttribute("aria-label") ?? at.textContent; })()`,
    );
    if (name.test(String(label))) return;
  }
  throw new Error(`Tab never reaches ${String(name)}`);
}
