/** Minutes without the upstream: prices stay available, the upstream gets only a few calls, and everything works soon after it is back. */
import { expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/wire/document.js";
import { healthShape } from "../../src/wire/service.js";
import { priceListShape, searchShape } from "../../src/wire/visitors.js";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { matchesDocument } from "../support/openapi.js";
import { SMALL_SHOP } from "../support/retail.js";
import { bearer, callsOf, CHECK, problemOf, type Service, until, withService } from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { upstreamAt } from "../support/upstream.js";

const LIST = "GET /api/v1/domains";
const MINUTE_MS = 60_000;
/** The longest time that a circuit stays open before a trial request. */
const TRIAL_MS = 30_000;

/** How long a refused credential isn't used: after the first refusal, and after each later one. */
const FIRST_PAUSE_S = 5;
const LATER_PAUSE_S = 75;

/** The number of calls that were sent, whether or not they arrived. */
function sent({ log }: Service): number {
  return log.filter((line) => line.includes('"event":"upstream.call"')).length;
}

test("one of the reseller's own names is checked once their list is past its freshness, and unknown if it can't be", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    const { control } = service.sandbox;
    const look = async (name: string): Promise<unknown> =>
      (await service.ask(`/v1/availability?domain=${name}`)).body;
    await until(() => service.calls(LIST) === 1, "the list of the reseller's own names");
    const taken = { status: "taken", price: null, stale: false };
    expect([await look("khyber.af"), service.calls(CHECK)]).toEqual([expect.objectContaining(taken), 0]);
    control.setFault("domains", { fault: "status-500" });
    control.setTaken("khyber.af", false);
    await clock.advance(6 * MINUTE_MS);
    expect(await look("khyber.af")).toMatchObject({ status: "available", stale: false });
    expect(await look("bamyan.af")).toMatchObject(taken);
    expect(service.calls(CHECK)).toBe(2);
    control.setFault("check", { fault: "status-500" });
    expect(await look("saffron.af")).toMatchObject({ code: "upstream_failed" });
  }));

/** Sends what visitors and staff request in a few seconds. Together it needs every operation of the upstream. */
async function sendTraffic(service: Service, second: number): Promise<void> {
  const staff = { headers: bearer("read") };
  const name = `name-${second}.af`;
  await Promise.all([
    service.ask(`/v1/availability?domain=${name}`),
    service.ask(`/v1/search?q=word-${second}`),
    service.ask("/v1/quotes?tld=.af&action=renewal&years=1"),
    service.ask("/v1/quotes", {
      method: "POST",
      body: { items: [{ domain: `cart-${second}.af`, action: "registration", years: 1 }] },
    }),
    service.ask("/v1/staff/domains", staff),
    service.ask("/v1/staff/domains/khyber.af", staff),
    service.ask("/v1/staff/balance", staff),
    service.ask("/v1/staff/tier", staff),
  ]);
}

const openCircuits = async (service: Service): Promise<readonly string[]> =>
  (await overviewOf(service)).upstream.openCircuits;

/** The most calls in any minute, of calls in thirds of a minute. */
const busiestMinute = (thirds: readonly number[]): number =>
  Math.max(...thirds.map((third, at) => third + (thirds[at + 1] ?? 0) + (thirds[at + 2] ?? 0)));

test("eight minutes of reset connections leave prices unchanged, cause only a few calls, and are over with a trial request", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    const { control } = service.sandbox;
    const known = priceListShape.parse((await service.ask("/v1/prices")).body);
    control.setFault("all", { fault: "reset-on-accept" });

    const thirds: number[] = [];
    for (let third = 0; third < 24; third += 1) {
      const before = sent(service);
      await sendTraffic(service, third);
      // Just before the next traffic, so that the calls of a single moment aren't counted at both ends of a minute.
      await clock.advance(19_999);
      thirds.push(sent(service) - before);
      await clock.advance(1);
      const prices = await service.ask("/v1/prices");
      expect(priceListShape.parse(prices.body)).toEqual(known);
    }
    // Without the calls that discovered the outage: five of one operation, and one of each other. Only prices are refreshed after that, which
    // adds one to the five trial requests of a minute.
    const settled = thirds.slice(4);
    expect(busiestMinute(settled)).toBeLessThanOrEqual(6);
    expect(busiestMinute(settled)).toBeGreaterThanOrEqual(3);
    expect(busiestMinute(thirds)).toBeLessThanOrEqual(57);

    const name = await service.ask("/v1/availability?domain=kabul.af");
    expect(problemOf(name).code).toBe("upstream_failed");
    const search = await service.ask("/v1/search?q=kabul");
    expect(search.body).toMatchObject({ complete: false, results: [{ status: "unknown" }] });
    const state = healthShape.parse((await service.ask("/health")).body);
    expect(state.checks.upstream).toMatchObject([{ status: "warn" }]);
    expect(await openCircuits(service)).toEqual(
      expect.arrayContaining(["check", "domains", "domain", "balance", "tier"]),
    );

    control.clearFaults();
    await clock.advance(TRIAL_MS);
    await until(async () => {
      await clock.advance(1000);
      return (await service.ask("/v1/availability?domain=kabul.af")).status === 200;
    }, "the first successful answer");
    const checked = await service.ask("/v1/availability?domain=herat.af");
    expect(checked.body).toMatchObject({ stale: false });
    expect((await service.ask("/v1/quotes?tld=.af&action=renewal&years=1")).status).toBe(200);
    expect(await openCircuits(service)).not.toContain("check");
  }));

test("a silent upstream makes five visitors wait, and none after them", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    service.sandbox.control.setFault("check", { fault: "silence-before-head" });
    const of = (name: string) => service.ask(`/v1/availability?domain=${name}.af`);
    const first = Promise.all(Array.from({ length: 5 }, (_, n) => of(`first-${n}`)));
    await until(() => service.calls(CHECK) === 5);
    await clock.advance(5000);
    for (const answer of await first) expect(problemOf(answer).code).toBe("upstream_timeout");
    // The clock stands still, so a visitor who waited would wait forever.
    for (let n = 0; n < 10; n += 1) expect(problemOf(await of(`later-${n}`)).code).toBe("upstream_timeout");
    expect(service.calls(CHECK)).toBe(5);
  }));

test("a price list that was never loaded gives the reason and a retry time, as documented and as other answers do, and health fails", async () => {
  const sandbox = await startSandbox();
  sandbox.control.revoke(sandbox.credential().key);
  const env = { ...upstreamAt(sandbox), QUOTA_COLD_START: "assume-free" };
  try {
    await withService({ at: sandbox, retail: SMALL_SHOP, warm: false, env }, async ({ ask }, clock) => {
      const refusalOf = async (path: string): Promise<unknown> => {
        const answer = await ask(path);
        matchesDocument(openApiDocument({ version: "1" }), "get", path, answer);
        const { status, code, retryAfter } = problemOf(answer);
        return [status, code, retryAfter];
      };
      await until(async () => (await ask("/v1/prices")).status !== 503, "the refusal of the credential");
      const state = await ask("/health");
      expect([state.status, state.body]).toMatchObject([
        503,
        {
          status: "fail",
          checks: {
            upstream: [{ status: "fail", output: "Every credential is refused." }],
            prices: [{ status: "warn", output: "No prices are known yet." }],
          },
        },
      ]);
      expect((await ask("/livez")).status).toBe(200);
      for (const pauseS of [FIRST_PAUSE_S, LATER_PAUSE_S]) {
        expect(await refusalOf("/v1/availability?domain=kabul.af")).toEqual([502, "upstream_failed", pauseS]);
        const { results } = searchShape.parse((await ask("/v1/search?q=herat")).body);
        expect(new Set(results.map(({ retryAfter }) => retryAfter))).toEqual(new Set([pauseS]));
        // The list is retried every five seconds, even without visitors.
        expect(await refusalOf("/v1/prices")).toEqual([502, "upstream_failed", 5]);
        await clock.advance(pauseS * 1000);
      }
    });
  } finally {
    await sandbox.close();
  }
});

test("a failing operation doesn't affect the others", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    service.sandbox.control.setFault("check", { fault: "status-500" });
    for (let n = 0; n < 20; n += 1)
      expect(problemOf(await service.ask(`/v1/availability?domain=name-${n}.af`)).code).toBe(
        "upstream_failed",
      );
    expect(service.calls(CHECK)).toBe(5);
    expect(await openCircuits(service)).toEqual(["check"]);
    const refused = problemOf(await service.ask("/v1/availability?domain=another.af"));
    expect(refused.retryAfter).toBeGreaterThan(20);
    expect((await service.ask("/v1/staff/tier", { headers: bearer("read") })).status).toBe(200);
    service.sandbox.control.clearFaults();
    await clock.advance((refused.retryAfter ?? 0) * 1000);
    expect((await service.ask("/v1/availability?domain=another.af")).status).toBe(200);
    expect(await openCircuits(service)).toEqual([]);
  }));

test("a visitor whose call is answered with a short pause during a longer one gets a retry time after the longer one", () =>
  withService({ retail: SMALL_SHOP }, async (service) => {
    const { control } = service.sandbox;
    control.setBehaviour({ afterMs: 500 });
    control.setFault("check", { fault: "limit-zero" });
    const calls = service.calls(CHECK);
    const slow = service.ask("/v1/availability?domain=herat.af");
    await until(() => service.calls(CHECK) > calls, "the first call");
    control.setBehaviour({ afterMs: 0 });
    control.setFault("check", { fault: "limit-endless" });
    expect(problemOf(await service.ask("/v1/availability?domain=kabul.af")).retryAfter).toBe(60);
    expect(problemOf(await slow).retryAfter).toBe(60);
  }));

test("a credential revoked while idle costs at most five calls in five minutes, and known facts are still shown", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    const { sandbox } = service;
    await service.ask("/v1/availability?domain=google.af");
    const { key } = sandbox.credential();
    sandbox.control.revoke(key);
    const refusals = (): number => sandbox.stats().credentials.find((one) => one.key === key)?.refused ?? 0;
    const accepted = callsOf(sandbox);
    await service.ask("/v1/availability?domain=the-one-that-finds-out.af");
    expect(refusals()).toBe(1);
    for (let second = 0; second < 300; second += 30) {
      await Promise.all([sendTraffic(service, second), service.ask("/v1/availability?domain=google.af")]);
      const state = await service.ask("/health");
      expect([state.status, healthShape.parse(state.body).status]).toEqual([503, "fail"]);
      await clock.advance(30_000);
    }
    expect(callsOf(sandbox)).toBe(accepted);
    expect(refusals()).toBeLessThanOrEqual(5);
    expect(priceListShape.parse((await service.ask("/v1/prices")).body).prices).toHaveLength(2);
    expect((await service.ask("/v1/availability?domain=google.af")).body).toMatchObject({ status: "taken" });
  }));

test("staff see the shape of unexpected fields in upstream answers, and a metric counts them", () =>
  withService({ retail: SMALL_SHOP }, async (service) => {
    service.sandbox.control.setShapes({ preset: "documented", envelope: "meta", takenStatus: "registered" });
    await service.ask("/v1/staff/tier", { headers: bearer("read") });
    const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
    expect(body).toMatchObject({
      unexpected: expect.arrayContaining([
        { operation: "tier", what: "message (string)", count: 1, firstSeen: "2026-03-20T00:00:00.000Z" },
        { operation: "tier", what: "meta (object)", count: 1, firstSeen: "2026-03-20T00:00:00.000Z" },
      ]),
    });
    const metrics = await service.ask("/metrics", { headers: bearer("metrics") });
    expect(metrics.text).toMatch(/^upstream_unexpected_total\{operation="tier"\} 2$/m);
  }));
