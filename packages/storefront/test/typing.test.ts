/** Typing costs no calls, and a search costs one call for each TLD sold. Calls are counted by the sandbox, and keys are pressed in a real browser. */
import { describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { CHECK, callsOf, type Service, until } from "../../../test/support/service.js";
import { describeWithBrowser } from "../../../test/browser/browser.js";
import {
  done,
  openShop,
  row,
  texts,
  typeSlowly,
  type Visitor,
  read,
} from "../../../test/browser/storefront.js";

/** Without suggestions, which use spare quota whether or not anybody needs them. */
const RETAIL = readFileSync(new URL("../../../config/retail.yaml", import.meta.url), "utf8").replace(
  /^suggestions:[^]*/m,
  "",
);
const TLDS_SOLD = 4;

/** Typed with only the page's clock replaced, so that a busy machine doesn't cause a pause. */
const NAMES = ["my-shop24", "www.bamyan-tours.com.af", "افغانستان"];
/** 100 labels from the file named by `TYPING_NAMES_FILE`, one a line, typed in real time. */
const CORPUS = (process.env["TYPING_NAMES_FILE"] ?? "") === "" ? [] : corpus();

function corpus(): string[] {
  const lines = readFileSync(process.env["TYPING_NAMES_FILE"] ?? "", "utf8").split("\n");
  const labels = lines.flatMap((line) => {
    const label = line.trim();
    return /^[a-z\d-]+$/.test(label) ? [label] : [];
  });
  const step = Math.floor(labels.length / 100);
  return labels.filter((_label, at) => at % step === 0).slice(0, 100);
}

describeWithBrowser("typing", () => {
  const shop = openShop({ retail: RETAIL });
  const checks = (service: Service = shop.service): number => callsOf(service.sandbox, CHECK);

  async function expireCaches(): Promise<void> {
    // No fact stays fresh for this long, so each word is new to the service.
    await shop.clock.advance(1_000_000);
    await until(() => shop.service.log.some((line) => line.includes("prices.refreshed")));
  }

  test("shows what is known and the list prices until a search starts", async () => {
    const { page } = await shop.visitor({ stopped: true });
    await shop.service.ask("/v1/availability?domain=kabul.af");
    const before = checks();
    await typeSlowly(page, "kabul", 120);
    await page.clock.runFor(300);
    await row(page, "kabul.af").getByText("Available").waitFor();
    expect(await texts(page, ".names .price")).toEqual([
      "$26.991 year",
      "$11.991 year",
      "$10.991 year",
      "$10.991 year",
    ]);
    expect(await read(page.locator("#search-status"))).toBe("Press Enter to search.");
    expect(checks()).toBe(before);
  });

  test.each(NAMES.map((name, at) => [[120, 250, 400][at % 3] ?? 0, name, at % 2 === 0] as const))(
    "at %i ms a key costs no call for %s before the search, which costs one for each TLD",
    async (keyMs, name, enters) => {
      await expireCaches();
      const { page } = await shop.visitor({ stopped: true });
      const before = checks();
      await typeSlowly(page, name, keyMs);
      await page.clock.runFor(keyMs);
      expect(checks() - before).toBe(0);
      if (enters) await page.keyboard.press("Enter");
      else {
        await page.clock.runFor(950 - keyMs);
        expect(checks() - before).toBe(0);
        await page.clock.runFor(50);
      }
      await done(page);
      expect(checks() - before).toBe(TLDS_SOLD);
      expect(await page.locator(".name").count()).toBe(TLDS_SOLD);
      await page.clock.runFor(30_000);
      expect(checks() - before).toBe(TLDS_SOLD);
    },
  );

  test("starts no search by itself if the text can't be a name", async () => {
    const { page } = await shop.visitor({ stopped: true });
    const before = checks();
    for (const text of ["ka", "a.af", "--", "kabul.", "@"]) {
      await page.locator("#query").focus();
      await page.keyboard.press("ControlOrMeta+a");
      await typeSlowly(page, text, 250);
      if (text !== "kabul.") await page.clock.runFor(60_000);
    }
    expect(checks() - before).toBe(0);
  });

  test("cancels the previous search, even one that waits", async () => {
    const asked: string[] = [];
    const { page } = await shop.visitor({
      stopped: true,
      before: (page) =>
        page.route("/v1/search?*", async (route) => {
          const { searchParams } = new URL(route.request().url());
          if (searchParams.has("only")) return route.continue();
          asked.push(searchParams.get("q") ?? "");
          if (asked.length === 1)
            return route.fulfill({
              status: 503,
              json: { code: "quota_exhausted", detail: "x" },
              headers: { "retry-after": "20" },
            });
          return route.continue();
        }),
    });
    await typeSlowly(page, "herat", 120);
    await page.keyboard.press("Enter");
    await page.locator('#search-status[data-kind="waiting"]').waitFor();
    await page.keyboard.type("y");
    await page.clock.runFor(999);
    expect(asked).toEqual(["herat"]);
    await page.clock.runFor(1);
    await done(page);
    await page.clock.runFor(60_000);
    expect(asked).toEqual(["herat", "heraty"]);
  });
});

describeWithBrowser("twelve people", () => {
  const shop = openShop();

  test("who each search one word within three seconds, with an unused budget, all get every TLD answered", async () => {
    const { clock } = shop;
    const service = await shop.start({
      env: { UPSTREAM_RATE_LIMIT: "60", CLIENT_COLD_PER_MINUTE: "20", CLIENT_RATE_PER_MINUTE: "120" },
      sandbox: { rateLimit: { limit: 60, windowMs: 60_000 } },
    });
    await clock.advance(61_000);
    const people: Visitor[] = [];
    for (let person = 0; person < 12; person += 1)
      people.push(await shop.visitor({ at: service, stopped: true }));
    const before = callsOf(service.sandbox, CHECK);
    const EVERY_MS = 250;
    const words =
      "saffron carpet almond lapis pamir tajik qandil wakhan zafaran kunduz badakhshan nuristan".split(" ");
    const open = new Set(people);
    for (let turn = 0; open.size > 0 && turn < 100; turn += 1) {
      const next = people[turn];
      if (next !== undefined) {
        await next.page.locator("#query").focus();
        await next.page.keyboard.type(words[people.indexOf(next)] ?? "");
        await next.page.keyboard.press("Enter");
      }
      const stepMs = next === undefined ? 1000 : EVERY_MS;
      await clock.advance(stepMs);
      for (const { page } of open) await page.clock.runFor(stepMs);
      for (const person of open)
        if (await person.page.locator('#search-status[data-kind="done"]').count()) open.delete(person);
    }
    expect(open.size).toBe(0);
    for (const { page } of people) {
      const answered = page.locator('.name:is([data-state="available"], [data-state="taken"])');
      expect(await answered.count()).toBe(TLDS_SOLD);
    }
    expect(callsOf(service.sandbox, CHECK) - before).toBeGreaterThanOrEqual(12 * TLDS_SOLD);
    expect(service.sandbox.stats().credentials[0]?.rejected429).toBe(0);
  }, 180_000);
});

(CORPUS.length === 0 ? describe.skip : describeWithBrowser)(
  "typing 100 names of the corpus in real time",
  () => {
    const shop = openShop({ retail: RETAIL });

    test.each([120, 250, 400])(
      "at %i ms a key costs no call before the search, which costs one for each TLD",
      async (keyMs) => {
        const checks = (): number => callsOf(shop.service.sandbox, CHECK);
        const wasted: string[] = [];
        const cost: Record<number, number> = {};
        const { page } = await shop.visitor();
        for (const name of CORPUS) {
          await shop.clock.advance(200_000);
          await page.locator("#query").focus();
          await page.keyboard.press("ControlOrMeta+a");
          await page.keyboard.press("Delete");
          const before = checks();
          await page.keyboard.type(name, { delay: keyMs });
          if (checks() !== before) wasted.push(name);
          await page.keyboard.press("Enter");
          await done(page);
          const calls = checks() - before;
          cost[calls] = (cost[calls] ?? 0) + 1;
        }
        expect(wasted).toEqual([]);
        expect(cost).toEqual({ [TLDS_SOLD]: CORPUS.length });
      },
      1_200_000,
    );
  },
);
