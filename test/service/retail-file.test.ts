/**
 * `RETAIL_CONFIG` is reloaded when it changes: a valid file takes effect for every answer at once, an invalid one never does.
 * `POST /v1/staff/prices/preview` shows what a file would change.
 */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer of a preview; nothing awaits the rows */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { openApiDocument } from "../../src/wire/document.js";
import { pricePreviewShape, staffPricesShape } from "../../src/wire/staff.js";
import { priceListShape } from "../../src/wire/visitors.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import {
  type Answer,
  bearer,
  PRICING,
  problemOf,
  type Service,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { purge } from "../support/staff.js";
import { claimsOf } from "../support/promise.js";
import { registration, renewal, RETAIL, shopAt, usd, WORLD } from "../shop/shop.js";

/** Wholesale: 17.31 to register, 20.00 to renew. */
const DEARER = RETAIL.replace('addFixed: "1.00"', 'addFixed: "2.00"');
const INVALID = RETAIL.replace('markupPercent: "50"', "markupPercent: 50");
/** Two polls of the file. */
const NOTICED_MS = 1_000;

let clock: FakeClock;
let service: Service;
let folder: ReturnType<typeof temporaryFolder>;
let file: string;

async function start(retail: string, world = WORLD): Promise<void> {
  clock = new FakeClock();
  folder = temporaryFolder();
  file = join(folder.path, "retail.yaml");
  writeFileSync(file, retail);
  service = await startService({ clock, world, env: { RETAIL_CONFIG: file } });
}

async function edit(text: string): Promise<void> {
  writeFileSync(file, text);
  await clock.advance(NOTICED_MS);
}

async function stop(): Promise<void> {
  await service.close();
  folder.remove();
}

/** What was logged before the test. */
let loggedBefore = 0;
beforeAll(() => start(RETAIL));
beforeEach(() => {
  loggedBefore = service.log.length;
});
afterEach(async () => {
  rmSync(file, { recursive: true, force: true });
  await edit(RETAIL);
  await edit(RETAIL);
});
afterAll(stop);

const shop = () => shopAt(service);
const staff = (path: string): Promise<Answer> => service.ask(path, { headers: bearer("read") });
/** Sold only by a changed file. */
const COM_WORLD = WORLD.replace(
  "names:",
  '    .com.af: { registration: ["10.00"], renewal: ["9.00"], transfer: ["9.00"], restore: ["9.00"] }\nnames:',
);
const events = (name: string) =>
  service.log.slice(loggedBefore).filter((line) => line.includes(`"event":"${name}"`));
const warningsOf = ({ body }: Answer) => staffPricesShape.parse(body).warnings;
const listed = async (): Promise<string[]> =>
  priceListShape
    .parse((await service.ask("/v1/prices")).body)
    .prices.map(({ tld, action, years, price }) => `${tld} ${action} ${years} ${price.amount}`);

describe("a valid file", () => {
  test("takes effect for every answer at once, whatever was cached, and makes no call", async () => {
    // Without the background calls of a service that has run for longer.
    await stop();
    await start(RETAIL);
    loggedBefore = 0;
    await until(() => service.calls() === 6, "the last startup call");
    const before = await service.ask("/v1/prices");
    // Twice, so that the fast path remembers the request and its answer.
    for (let times = 0; times < 2; times += 1)
      expect((await shop().availability("kabul.af")).price).toEqual(usd("26.97"));
    await shop().cart(registration("kabul.af"), renewal("herat.af"));
    const calls = service.calls();

    await edit(DEARER);

    expect((await shop().availability("kabul.af")).price).toEqual(usd("27.97"));
    expect((await shop().quote("renewal")).price).toEqual(usd("32.00"));
    expect(await listed()).toContain(".af registration 1 27.97");
    const search = await service.ask("/v1/search?q=kabul&only=known");
    expect(search.text).toContain('"amount":"27.97"');
    const again = await service.ask("/v1/prices", {
      headers: { "If-None-Match": before.headers["etag"] ?? "" },
    });
    expect(again.status).toBe(200);
    expect((await staff("/v1/staff/prices")).text).toContain('"amount":"27.97"');
    const { signed } = await shop().cart(registration("kabul.af"), renewal("herat.af"));
    expect(signed).toEqual(["kabul.af registration 27.97", "herat.af renewal 32.00"]);
    expect(service.calls() - calls).toBe(0);
    expect(events("retail.config.applied")).toHaveLength(1);
  });

  test("can remove terms, which disappear at once and without a call", async () => {
    const other = RETAIL.replace("registration: [1, 2], renewal: [1]", "registration: [1], renewal: [1]");
    await edit(other);
    expect((await listed()).filter((line) => line.startsWith(".af registration"))).toEqual([
      ".af registration 1 26.97",
    ]);
    expect(problemOf(await service.ask("/v1/availability?domain=kabul.af&years=2")).code).toBe(
      "invalid_request",
    );
    const before = service.calls(PRICING);
    await edit(other.replace("transfer: [1], restore: [1]", "transfer: [1]"));
    expect((await listed()).map((line) => line.split(" ")[1])).not.toContain("restore");
    expect(service.calls(PRICING) - before).toBe(0);
  });

  test("can sell other terms only, a TLD that is new, for example, whose prices are loaded without a restart, and until then visitors don't hear of a former failure", async () => {
    await stop();
    await start(RETAIL, COM_WORLD);
    expect(problemOf(await service.ask("/v1/availability?domain=kabul.com.af")).code).toBe("invalid_request");
    const warnings = async () => warningsOf(await staff("/v1/staff/prices")).join();
    service.sandbox.control.setFault("quote", { fault: "status-500" });
    await purge(service, "prices");
    await until(async () => {
      await clock.advance(100);
      return (await warnings()).includes("couldn't be refreshed");
    }, "a failed refresh");
    service.sandbox.control.clearFaults();
    await until(async () => {
      await clock.advance(1_000);
      return !(await warnings()).includes("refreshed");
    }, "the refresh of all prices");

    const hold = service.sandbox.control.hold({ operation: "quote", calls: 10 });
    await edit(RETAIL.replace(/catalog:.*/, "catalog: [{ tld: .com.af, years: { registration: [1] } }]"));
    expect(problemOf(await service.ask("/v1/prices"))).toMatchObject({
      code: "quota_exhausted",
      detail: "The price list hasn't been loaded yet.",
    });
    hold.release();
    await until(async () => {
      await clock.advance(100);
      return (await service.ask("/v1/prices")).status === 200;
    }, "the price of the new TLD");
    expect(await listed()).toEqual([".com.af registration 1 16.00"]);
    expect((await shop().availability("kabul.com.af")).price).toEqual(usd("16.00"));
    await stop();
    await start(RETAIL);
  });

  test("can change the currency, and no answer mixes both", async () => {
    await edit(RETAIL.replace("currency: USD", 'currency: AFN\nrates: { USD: "70" }'));
    expect((await shop().availability("kabul.af")).price).toEqual({ amount: "1818.55", currency: "AFN" });
    const { total } = await shop().cart(registration("kabul.af"), renewal("herat.af"));
    expect(total.map(({ currency }) => currency)).toEqual(["AFN"]);
    expect((await staff("/v1/staff/overview")).status).toBe(200);
  });

  test("can change how long a signed price is valid", async () => {
    await edit(`${RETAIL}promise: { validMs: 60000 }\n`);
    const { body } = await shop().post([renewal("kabul.af")]);
    const { promise } = z.object({ promise: z.string() }).parse(body);
    const { iat, exp } = claimsOf(promise);
    expect(exp - iat).toBe(60);
  });

  test("can say whether a restore includes a renewal, and the page knows it only if the file says so", async () => {
    for (const [said, known] of [
      ["true", true],
      ["false", false],
      ["~", null],
    ] as const) {
      await edit(`${RETAIL}shop: { restoreIncludesRenewal: ${said} }\n`);
      const { text } = await service.ask("/", { headers: { Accept: "text/html" } });
      expect(text).toContain(`"restoreIncludesRenewal":${known}`);
    }
  });

  test("can change exchange rates, at which staff then see the margins of carts that were signed before", async () => {
    const inAfghani = (rate: string) =>
      RETAIL.replace("currency: USD", `currency: AFN\nrates: { USD: "${rate}" }`);
    await edit(inAfghani("70"));
    const { body } = await shop().post([renewal("kabul.af")]);
    const { promise } = z.object({ promise: z.string() }).parse(body);
    await edit(inAfghani("80"));
    // 2,101 AFN, signed at 20 × 70 × 1.5 + 1.
    const margin = { amount: "501.00", currency: "AFN" };
    expect((await staff(`/v1/staff/promises/${claimsOf(promise).jti}`)).body).toMatchObject({
      items: [{ wholesale: usd("20.00"), margin, marginToday: margin }],
    });
  });

  test("can be replaced by a rename, or through symbolic links as in Kubernetes", async () => {
    writeFileSync(`${file}.new`, DEARER);
    renameSync(`${file}.new`, file);
    await clock.advance(NOTICED_MS);
    expect((await shop().quote("renewal")).price).toEqual(usd("32.00"));

    for (const [name, text] of Object.entries({ one: DEARER, two: RETAIL })) {
      mkdirSync(join(folder.path, name));
      writeFileSync(join(folder.path, name, "retail.yaml"), text);
    }
    symlinkSync("one", join(folder.path, "..data"));
    rmSync(file);
    symlinkSync(join("..data", "retail.yaml"), file);
    await clock.advance(NOTICED_MS);
    symlinkSync("two", join(folder.path, "..data_tmp"));
    renameSync(join(folder.path, "..data_tmp"), join(folder.path, "..data"));
    await clock.advance(NOTICED_MS);
    expect((await shop().quote("renewal")).price).toEqual(usd("31.00"));
  });
});

describe("an invalid file", () => {
  test("puts no amount into the log, even if one is used as a key", async () => {
    await edit(`${RETAIL}\n"wholesale 20.21 USD": 1\n`);
    const [rejected = ""] = events("retail.config.rejected");
    expect(rejected).toContain("an unknown key");
    expect(rejected).not.toMatch(/20|USD/);
  });

  test("with many faults reports about a hundred of them at most", async () => {
    await edit('"'.repeat(60_000));
    expect(warningsOf(await staff("/v1/staff/prices")).length).toBeLessThanOrEqual(110);
  });

  test("never takes effect, and staff see what is wrong with it until it is fixed", async () => {
    await edit(INVALID);
    expect((await shop().quote("renewal")).price).toEqual(usd("31.00"));
    const warnings = warningsOf(await staff("/v1/staff/prices"));
    expect(warnings).toContainEqual(
      expect.stringMatching(/^RETAIL_CONFIG .*rules\[0\]\.markupPercent: is a bare number/),
    );
    expect((await staff("/v1/staff/overview")).body).toMatchObject({
      prices: { config: { faults: [expect.stringContaining("rules[0].markupPercent")] } },
    });
    const health = await service.ask("/health");
    expect(health.body).toMatchObject({ checks: { prices: [{ status: "warn" }] } });
    expect(events("retail.config.rejected")).toEqual([expect.stringContaining("rules[0].markupPercent")]);

    await edit(RETAIL);
    expect(
      warningsOf(await staff("/v1/staff/prices")).filter((text) => text.includes("RETAIL_CONFIG")),
    ).toEqual([]);
    expect((await staff("/v1/staff/overview")).body).toMatchObject({ prices: { config: { faults: [] } } });
  });

  test("is also one that is missing, a folder, or too large", async () => {
    rmSync(file);
    await clock.advance(NOTICED_MS);
    expect(warningsOf(await staff("/v1/staff/prices"))).toContainEqual(
      expect.stringContaining("RETAIL_CONFIG"),
    );
    mkdirSync(file);
    await clock.advance(NOTICED_MS);
    rmSync(file, { recursive: true });
    await edit(`${DEARER}# ${"x".repeat(300_000)}`);
    expect((await shop().quote("renewal")).price).toEqual(usd("31.00"));
    await edit(DEARER);
    expect((await shop().quote("renewal")).price).toEqual(usd("32.00"));
  });

  test("that only looks valid because it is still being written isn't applied", async () => {
    const whole = `${DEARER}promotions:\n  - { id: eid, percentOff: "10", match: {}, from: 2026-03-01T00:00:00Z, to: 2026-04-01T00:00:00Z }\n`;
    // Cut off after the rules, the file is valid.
    writeFileSync(file, DEARER);
    await clock.advance(NOTICED_MS / 2);
    writeFileSync(file, whole);
    await clock.advance(NOTICED_MS / 2);
    expect((await shop().quote("renewal")).price).toEqual(usd("31.00"));
    await clock.advance(NOTICED_MS / 2);
    expect((await shop().quote("renewal")).price).toEqual(usd("28.80"));
    expect(events("retail.config.applied")).toHaveLength(1);
  });
});

describe("a preview", () => {
  const PATH = "/v1/staff/prices/preview";
  const post = (body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    service.ask(PATH, {
      method: "POST",
      headers: { ...bearer("operate"), "Content-Type": "application/yaml", ...headers },
      body,
    });

  async function preview(text: string) {
    const answer = await post(text);
    expect(answer.status).toBe(200);
    expect(answer.headers["cache-control"]).toBe("no-store");
    matchesDocument(openApiDocument({ version: "1.2.3" }), "post", PATH, answer);
    return pricePreviewShape.parse(answer.body);
  }

  test("of the file in effect shows no change", async () => {
    const { faults, sections, prices } = await preview(RETAIL);
    expect([faults, sections]).toEqual([[], []]);
    expect(prices.map(({ change }) => change)).toEqual(["same", "same", "same", "same", "same"]);
  });

  test("of other rules shows the current and new price and margin of each term, without taking effect or making a call", async () => {
    const calls = service.calls();
    const before = await service.ask("/v1/prices");
    const { prices, sections } = await preview(RETAIL.replace('addFixed: "1.00"', 'addFixed: "2.00"'));
    expect(sections).toEqual(["rules"]);
    const terms = [
      ["registration", 1, "17.31", "26.97", "9.66", "27.97", "10.66"],
      ["registration", 2, "33.00", "50.50", "17.50", "51.50", "18.50"],
      ["renewal", 1, "20.00", "31.00", "11.00", "32.00", "12.00"],
      ["transfer", 1, "19.00", "29.50", "10.50", "30.50", "11.50"],
      ["restore", 1, "80.00", "121.00", "41.00", "122.00", "42.00"],
    ] as const;
    expect(prices).toEqual(
      terms.map(([action, years, wholesale, retailNow, marginNow, retailThen, marginThen]) => ({
        tld: ".af",
        action,
        years,
        change: "changed",
        wholesale: usd(wholesale),
        now: { retail: usd(retailNow), margin: usd(marginNow), rule: "rule 1" },
        then: { retail: usd(retailThen), margin: usd(marginThen), rule: "rule 1" },
      })),
    );
    expect((await service.ask("/v1/prices")).text).toBe(before.text);
    expect(service.calls()).toBe(calls);
  });

  test("marks added and removed terms; an unknown wholesale price is a warning, not a call", async () => {
    const calls = service.calls();
    const { prices, warnings } = await preview(
      RETAIL.replace("renewal: [1], transfer: [1]", "renewal: [1, 3]"),
    );
    expect(prices.filter(({ change }) => change !== "same")).toEqual([
      expect.objectContaining({
        action: "renewal",
        years: 3,
        change: "added",
        wholesale: null,
        now: null,
        then: { retail: null, margin: null, rule: null },
      }),
      expect.objectContaining({ action: "transfer", change: "removed", then: null }),
    ]);
    expect(warnings).toContainEqual(expect.stringContaining("1 of 5 wholesale prices are unknown"));
    expect(service.calls()).toBe(calls);
  });

  test("warns of the new prices, and names promotions that aren't running", async () => {
    const { warnings } = await preview(
      `${RETAIL.replace('addFixed: "1.00", ', "")}promotions: [{ id: nowruz, match: {}, percentOff: "10", from: 2027-03-20T00:00:00Z, to: 2027-03-27T00:00:00Z }]\n`,
    );
    expect(warnings).toEqual([
      expect.stringMatching(/same multiple of wholesale in all 5 prices/),
      "Promotion nowruz starts at 2027-03-20T00:00:00.000Z and isn't included in these prices.",
    ]);
  });

  test("reports all faults of an invalid file at once", async () => {
    const { faults, prices } = await preview(
      RETAIL.replace('markupPercent: "50"', "markupPercent: 50").replace("currency: USD", "currency: US"),
    );
    expect(faults).toEqual([
      expect.stringMatching(/^currency: /),
      expect.stringMatching(/^rules\[0\]\.markupPercent: /),
    ]);
    expect(prices).toEqual([]);
    expect((await preview("")).faults).toEqual([expect.stringContaining("must be a mapping")]);
    expect((await preview("a: [")).faults).toHaveLength(1);
  });

  test("requires the operate scope, YAML, and a body within the size limit", async () => {
    expect(problemOf(await post(RETAIL, { Authorization: "" })).code).toBe("unauthenticated");
    expect(problemOf(await post(RETAIL, bearer("read"))).code).toBe("forbidden");
    for (const type of ["application/json", "text/plain", "text/yaml"])
      expect(problemOf(await post(RETAIL, { "Content-Type": type })).code).toBe("unsupported_media_type");
    const without = await service.ask(PATH, { method: "POST", headers: bearer("operate") });
    expect(problemOf(without).code).toBe("unsupported_media_type");
    const large = problemOf(await post(`${RETAIL}# ${"x".repeat(256 * 1024)}`));
    expect([large.code, large.detail]).toEqual(["payload_too_large", expect.stringContaining("64 kB")]);
    expect(problemOf(await service.ask(PATH)).code).toBe("method_not_allowed");
  });
});

test("a change while a cart waits for the upstream applies to every line that is shown or signed, and an invalid one to none", async () => {
  expect((await shop().availability("kabul.af")).price).toEqual(usd("26.97"));
  for (const [text, price] of [
    [DEARER, "27.97"],
    [INVALID, "27.97"],
  ] as const) {
    await purge(service, "availability");
    const hold = service.sandbox.control.hold({ operation: "check", calls: 1 });
    const cart = shop().cart(registration("kabul.af"), registration("herat.af"), renewal("khyber.af"));
    const late = await hold.caught();
    await edit(text);
    late.release();
    const { items, signed } = await cart;
    const expected = [
      `kabul.af registration ${price}`,
      `herat.af registration ${price}`,
      "khyber.af renewal 32.00",
    ];
    expect(signed).toEqual(expected);
    expect(items.map(({ domain, action, price }) => `${domain} ${action} ${price?.amount}`)).toEqual(
      expected,
    );
  }
});
