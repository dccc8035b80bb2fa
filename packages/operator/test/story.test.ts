/** An operator's tasks by keyboard on a phone: find an expired domain, preview a price, apply it by file, and see it in the shop and the audit log. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { systemClock } from "../../../src/clock.js";
import { type Service, startService, temporaryFolder } from "../../../test/support/service.js";
import {
  describeWithBrowser,
  PHONE,
  startBrowser,
  STARTING_MS,
  tabTo,
  visit,
} from "../../../test/browser/browser.js";

const ANNA = "anna-may-read-and-operate";
const RETAIL = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8");
/** The first rule adds one dollar more. */
const DEARER = RETAIL.replace('addFixed: "1.00"', 'addFixed: "2.00"');

/** The shipped sandbox configuration, except that one of the demo reseller's domains expired yesterday. */
function world(): string {
  const shipped = z
    .looseObject({ resellers: z.array(z.looseObject({ id: z.string() })) })
    .parse(parse(readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8")));
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const domains = [
    { name: "khyber.af", registered: "2020-01-01", expires: yesterday, autoRenew: false },
    { name: "balkh.af", registered: "2020-01-01", expires: "2036-01-01", autoRenew: true },
  ];
  return stringify({
    ...shipped,
    resellers: shipped.resellers.map((one) => ({ ...one, ...(one.id === "demo" && { domains }) })),
  });
}

describeWithBrowser("an operator", () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "retail.yaml");
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    writeFileSync(file, RETAIL);
    const token = createHash("sha256").update(ANNA).digest("hex");
    [browser, service] = await Promise.all([
      startBrowser(),
      startService({
        clock: systemClock,
        world: world(),
        env: { RETAIL_CONFIG: file, STAFF_TOKENS: `anna:${token}:read+operate` },
      }),
    ]);
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    await service.close();
    folder.remove();
  });

  test("can find an expired domain, preview a price, apply it, and see it everywhere", async () => {
    const visited = await visit(browser, service.url, { ...PHONE, acceptDownloads: true });
    const { page, axe, picture } = visited;
    await page.goto("/staff");
    await page.getByLabel("Staff token").waitFor();
    await page.keyboard.type(ANNA);
    await page.keyboard.press("Enter");

    await page.getByText("A domain has expired: khyber.af (1 day ago).").waitFor();
    expect(await page.title()).toMatch(/^\(\d+\) /);
    expect(await page.locator("#domains tbody tr").first().innerText()).toMatch(/^khyber\.af.*1 day ago/s);
    await picture("operator-story-1-expired");
    expect(await axe()).toEqual([]);

    // Signed carts can be downloaded too.
    for (const _list of ["promises", "domains"]) await tabTo(page, /^Download CSV$/);
    const download = page.waitForEvent("download");
    await page.keyboard.press("Enter");
    const saved = await download;
    expect(saved.suggestedFilename()).toBe("domains.csv");
    const lines = readFileSync(await saved.path(), "utf8").split("\r\n");
    const first = lines.map((line) => line.split(",")[0] ?? "").toSorted();
    expect(first).toEqual(["", "balkh.af", "domain", "khyber.af"]);

    await tabTo(page, /^Text$/);
    await page.keyboard.insertText(DEARER);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText(/^The file is valid\. It changes rules\./).waitFor();
    const changed = page.getByRole("region", { name: "Prices that would change" }).locator("tbody tr");
    expect(await changed.count()).toBe(1);
    expect(await changed.innerText()).toMatch(/\.af\s+registration, 1 year\s+26\.99 USD\s+→ 27\.99 USD/);
    await page.getByText("27 other prices stay the same.").scrollIntoViewIfNeeded();
    await page.screenshot({ path: "test-output/operator-story-2-preview.png" });
    expect(await axe()).toEqual([]);

    writeFileSync(file, DEARER);
    const actions = page.getByRole("region", { name: "Staff actions" });
    await actions.getByText("price file changed").waitFor({ timeout: 30_000 });
    expect((await actions.locator("tbody tr").allInnerTexts()).slice(0, 2)).toEqual([
      expect.stringMatching(/–\s+price file changed\s+[0-9a-f]{12}\s+applied/),
      expect.stringMatching(/anna\s+tried a price change\s+1 changes\s+done/),
    ]);
    await picture("operator-story-3-audit");
    expect(await axe()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(PHONE.viewport.width);

    await page.goto("/?lang=en");
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody .amount").first().innerText()).toBe("$27.99");
    await visited.close();
    expect(visited.faults).toEqual([]);
  });
});
