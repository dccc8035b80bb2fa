/** The table of signed carts and the notices on the staff page, by keyboard on a phone: from a signed cart to an order that staff see. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { Browser } from "playwright-core";
import { systemClock } from "../../../src/clock.js";
import { followedCartsShape } from "../../../src/wire/staff.js";
import {
  describeWithBrowser,
  PHONE,
  startBrowser,
  STARTING_MS,
  tabTo,
  visit,
} from "../../../test/browser/browser.js";
import { claimsOf } from "../../../test/support/promise.js";
import { bearer, type Service, STAFF, startService, until } from "../../../test/support/service.js";

const ANNA = "anna-may-read";
const entry = (name: string, token: string, scope: string): string =>
  `${name}:${createHash("sha256").update(token).digest("hex")}:${scope}`;
const NARROW = { ...PHONE, viewport: { width: 360, height: 740 } };
const DAY_MS = 86_400_000;

describeWithBrowser("the table of signed carts", () => {
  let browser: Browser;
  let service: Service;
  let receiver: Server;
  beforeAll(async () => {
    receiver = createServer((_request, response) => response.end());
    await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
    const address = receiver.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    [browser, service] = await Promise.all([
      startBrowser(),
      startService({
        clock: systemClock,
        env: {
          STAFF_TOKENS: [entry("anna", ANNA, "read"), entry("shop", STAFF.order, "order+operate")].join(","),
          NOTIFY_URL: `http://127.0.0.1:${port}/`,
          NOTIFY_SECRET: "a-secret-of-sixteen-or-more",
        },
      }),
    ]);
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    await service.close();
    receiver.close();
  });

  async function sign(domain: string): Promise<string> {
    const items = [{ domain, action: "registration", years: 1 }];
    const { text } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
    const [, promise = ""] = /"promise":"([^"]+)"/.exec(text) ?? [];
    return claimsOf(promise).jti;
  }

  test("shows what needs a hand first, copies the order, filters, and sees the name managed", async () => {
    const paid = await sign("kabul.af");
    await sign("kabul.com.af");
    await service.ask(`/v1/staff/promises/${paid}`, {
      method: "POST",
      headers: bearer("order"),
      body: { state: "ordered", reference: "2026-0042" },
    });
    const visited = await visit(browser, service.url, {
      ...NARROW,
      acceptDownloads: true,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const { page, axe, picture } = visited;
    let ordered = false;
    // The checkout said so two days ago, or has not been heard, as the test likes.
    await page.route("**/v1/staff/promises*", async (route) => {
      const answer = await route.fetch();
      if (route.request().headers()["accept"] !== "application/json")
        return route.fulfill({ response: answer });
      const all = followedCartsShape.parse(await answer.json());
      const at = new Date(Date.now() - 2 * DAY_MS).toISOString();
      const promises = all.promises.map((cart) => ({
        ...cart,
        checkout: cart.checkout && { ...cart.checkout, at },
      }));
      await route.fulfill({ json: ordered ? all : { ...all, promises } });
    });
    await page.clock.install();
    await page.goto("/staff");
    await page.getByLabel("Staff token").waitFor();
    await page.keyboard.type(ANNA);
    await page.keyboard.press("Enter");
    const rows = page.getByRole("region", { name: "Signed lines" }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(
        /^kabul\.af\s+registration, 1 year[\s\S]*26\.99 USD\s+20\.21 USD[\s\S]*open, ordered\s*ordered a day ago, but not managed/,
      ),
      expect.stringMatching(/^kabul\.com\.af[\s\S]*open\s*since /),
    ]);

    await tabTo(page, /^Show signed lines$/);
    await page.keyboard.type("needs");
    await until(async () => (await rows.count()) === 1, "the filter");
    await tabTo(page, /^Download CSV$/);
    const download = page.waitForEvent("download");
    await page.keyboard.press("Enter");
    const saved = await download;
    expect(saved.suggestedFilename()).toBe("promises.csv");
    expect(readFileSync(await saved.path(), "utf8").split("\r\n")[0]).toMatch(
      /^id,issuedAt,validUntil,domain,/,
    );
    await tabTo(page, /^Copy the order: registration kabul\.af 1$/);
    await page.keyboard.press("Enter");
    await page.getByText("Copied: registration kabul.af 1").waitFor();
    const line = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(await axe()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    await picture("operator-carts");

    // As in the sandbox's portal.
    const [, domain = ""] = line.split(" ");
    service.sandbox.control.order("demo", { domain, action: "registration", years: 1 });
    ordered = true;
    await service.ask("/v1/staff/cache/purge", {
      method: "POST",
      headers: bearer("order"),
      body: { what: "account" },
    });
    await service.ask("/v1/staff/domains", { headers: { Authorization: `Bearer ${ANNA}` } });
    await page.getByLabel("Show signed lines").selectOption("managed");
    await page.clock.fastForward(30_000);
    await rows.filter({ hasText: "kabul.af" }).filter({ hasText: "managed" }).waitFor();
    await page
      .getByRole("row", { name: /^7 days\s+2 names, .*1 name, 26\.99 USD\s+1 name, 26\.99 USD/ })
      .waitFor();
    await page.getByText(/^Notices: /).waitFor();
    await visited.close();
    expect(visited.faults).toEqual([]);
  });
});
