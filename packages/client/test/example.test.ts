/** The client package's plain page, as a visitor of a website sees it. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { type Service, startService } from "../../../test/support/service.js";
import {
  describeWithBrowser,
  PHONE,
  startBrowser,
  STARTING_MS,
  visit,
} from "../../../test/browser/browser.js";

const CLIENT = fileURLToPath(new URL("../", import.meta.url));
const PAGE = join(CLIENT, "examples/browser");

async function scriptFor(service: Service): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(PAGE, "main.js")],
    alias: { "af-storefront-client": join(CLIENT, "src/index.ts") },
    bundle: true,
    write: false,
    format: "esm",
  });
  return (outputFiles[0]?.text ?? "").replace("https://names.example.af", service.url);
}

describeWithBrowser("the plain page", () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
    browser = await startBrowser();
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    await service.close();
  });

  test("doesn't say of a name that nobody has checked that it isn't available", async () => {
    const { page, close } = await visit(browser, service.url, PHONE);
    try {
      const [html, script] = [readFileSync(join(PAGE, "index.html"), "utf8"), await scriptFor(service)];
      await page.route("**/example/", (route) => route.fulfill({ body: html, contentType: "text/html" }));
      await page.route("**/example/main.js", (route) =>
        route.fulfill({ body: script, contentType: "text/javascript" }),
      );
      await page.clock.install();
      await page.goto("/example/");
      await page.locator("#query").pressSequentially("kabul");
      const results = page.locator("#results li");
      await results.nth(3).waitFor();
      expect(service.calls("POST /api/v1/domains/check")).toBe(0);
      for (const text of await results.allInnerTexts()) expect(text).not.toContain("not available");
      await page.keyboard.press("Enter");
      await page.getByText("kabul.af: 26.99 USD").waitFor();
    } finally {
      await close();
    }
  });
});
