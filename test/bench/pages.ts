/** `npm run bench -- pages`: how long the pages take to appear on a slow mobile network, compared with a single round trip. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { startService } from "./candidates.js";
import { interleaved } from "./rounds.js";
import { figure, median, table } from "./table.js";

const CHROMIUM = "/usr/bin/chromium";
const ROUND_TRIP_MS = 400;
/** 400 kbit/s. */
const BYTES_PER_MS = 50;
const PAGES = { storefront: "/", staff: "/staff" } as const;
const VIEWS = ["first view", "second view"] as const;

interface View {
  readonly shownMs: number;
  readonly bytes: number;
}

export async function benchPages({ rounds = 5 }: { rounds?: number }): Promise<void> {
  if (!existsSync(CHROMIUM)) {
    console.log("chromium isn't installed, so the pages aren't measured");
    return;
  }
  const server = await startService();
  await server.firstAnswer({ path: "/livez" }, 200);
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const seen = new Map<string, View[]>();
  for (const [page, path] of interleaved(rounds, Object.entries(PAGES))) {
    const views = await visit(browser, `http://127.0.0.1:${server.port}${path}`);
    for (const [at, view] of views.entries()) {
      const row = `${page}: ${VIEWS[at]}`;
      seen.set(row, [...(seen.get(row) ?? []), view]);
    }
  }
  await browser.close();
  await server.stop();
  console.log(
    `\nPages at 400 kbit/s and a round trip of ${ROUND_TRIP_MS} ms: medians of ${rounds} interleaved visits of each`,
  );
  console.log(
    table(
      ["page", "ms to first paint", "× one round trip", "kB"],
      [...seen].map(([name, views]) => {
        const shownMs = median(views.map((view) => view.shownMs));
        const kB = median(views.map(({ bytes }) => bytes)) / 1000;
        return [name, figure(shownMs), figure(shownMs / ROUND_TRIP_MS), figure(kB)];
      }),
    ),
  );
}

/** A first visit, and another one right after it. */
async function visit(browser: Browser, url: string): Promise<View[]> {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  const throughput = BYTES_PER_MS * 1000;
  await network.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: ROUND_TRIP_MS,
    downloadThroughput: throughput,
    uploadThroughput: throughput,
  });
  let bytes = 0;
  network.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  const views: View[] = [];
  for (const _view of VIEWS) {
    bytes = 0;
    await page.goto(url, { waitUntil: "networkidle" });
    const shownMs = Number(
      await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
    );
    views.push({ shownMs, bytes });
    await page.goto("about:blank");
  }
  await context.close();
  return views;
}
