/**
 * The public API as visitors use it when something is short or broken: the quota, their own limits, or the upstream. In minutes without the upstream,
 * prices stay available, it gets only a few calls, and everything works soon after it is back.
 */
import { describe, expect, jest, test } from "@jest/globals";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { openApiDocument } from "../../src/wire/document.js";
import { healthShape } from "../../src/wire/service.js";
import { priceListShape, searchShape } from "../../src/wire/visitors.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { plainShapes } from "../support/plain-shapes.js";
import { SMALL_SHOP } from "../support/retail.js";
import {
  type Answer,
  bearer,
  callsOf,
  CHECK,
  inTime,
  problemOf,
  type Service,
  type ServiceOptions,
  until,
  withService,
} from "../support/service.js";
import { overviewOf, queued } from "../support/staff.js";
import { upstreamAt } from "../support/upstream.js";

/** One price and one list are loaded at startup; visitors have the rest of a small budget. */
const ONE_TERM = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;
/** Two calls at startup, and two for visitors. */
const TWO_LEFT = { UPSTREAM_RATE_LIMIT: "7", UPSTREAM_RATE_HEADROOM: "3" };

const FOUR_TLDS = `
currency: USD
catalog:
  - { tld: .af, years: { registration: [1, 2] } }
  - { tld: .com.af, years: { registration: [1] } }
  - { tld: .net.af, years: { registration: [1] } }
  - { tld: .org.af, years: { registration: [1] } }
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

/** With one term, unless the options say otherwise. */
const withShop = (options: Partial<ServiceOptions>, act: Parameters<typeof withService>[1]): Promise<void> =>
  withService({ retail: ONE_TERM, ...options }, act);

const lookUp = ({ ask }: Service, name: string) => ask(`/v1/availability?domain=${name}.af`);
const registrations = (...domains: readonly string[]) => ({
  method: "POST",
  body: { items: domains.map((domain) => ({ domain, action: "registration", years: 1 })) },
});

describe("when quota is short", () => {
  test("a price list that isn't loaded yet gets a Retry-After of a window, or a sixth more after a cold start, and health warns", () =>
    withShop(
      {
        warm: false,
        env: (sandbox) => ({
          ...upstreamAt(sandbox),
          UPSTREAM_RATE_HEADROOM: "0",
        }),
      },
      async (service, clock) => {
        const retryAfter = async (): Promise<number> => {
          const answer = await service.ask("/v1/prices");
          return answer.status === 200 ? 0 : (problemOf(answer).retryAfter ?? NaN);
        };
        // The window before the start may have been used up, and abandoned slots stay unused for a sixth longer.
        expect(await retryAfter()).toBe(70);
        await clock.advance(11_000);
        expect(await retryAfter()).toBe(60);
        await clock.advance(9_000);
        const last = await retryAfter();
        expect(last).toBe(56);
        const health = await service.ask("/health");
        expect([health.status, health.body]).toMatchObject([
          200,
          {
            status: "warn",
            description: "Live upstream.",
            checks: { prices: [{ status: "warn", output: "No prices are known yet." }] },
          },
        ]);
        await clock.advance(last * 1000);
        await until(async () => (await retryAfter()) === 0, "the load of the price list");
      },
    ));

  test("an incomplete price list isn't cacheable", async () => {
    const shape = z.object({ prices: z.array(z.unknown()) });
    const env = { UPSTREAM_RATE_LIMIT: "6", UPSTREAM_RATE_HEADROOM: "3" };
    await withShop({ retail: FOUR_TLDS, env, warm: false }, async (service, clock) => {
      const list = async () => {
        const { body, headers } = await service.ask("/v1/prices");
        return { known: shape.parse(body).prices.length, cacheControl: headers["cache-control"] };
      };
      await clock.advance(5_000);
      const first = await list();
      expect([0, 5]).not.toContain(first.known);
      expect(first.cacheControl).toBe("no-store");
      await clock.advance(600_000);
      const whole = { known: 5, cacheControl: "public, max-age=300, stale-while-revalidate=3600" };
      expect(await list()).toEqual(whole);
    });
  });

  test("a new name is refused with an accurate Retry-After, and what is known is still shown", () =>
    withShop({ env: TWO_LEFT }, async (service, clock) => {
      await lookUp(service, "kabul");
      await lookUp(service, "google");
      expect(service.calls()).toBe(4);
      const problem = problemOf(await lookUp(service, "herat"));
      expect(problem).toMatchObject({ code: "quota_exhausted", retryAfter: 60, kept: true });
      for (const path of ["/v1/availability?domain=google.af", "/v1/prices"])
        expect((await service.ask(path)).status).toBe(200);
      const head = await service.ask("/v1/availability?domain=herat.af", { method: "HEAD" });
      expect(head.status).toBe(200);
      const known = await service.ask("/v1/availability?domain=herat.af&only=known");
      expect([known.status, known.body]).toMatchObject([200, { status: "unknown" }]);
      const search = await service.ask("/v1/search?q=balkh");
      expect([search.status, search.body]).toMatchObject([
        200,
        { complete: false, results: [{ status: "unknown" }] },
      ]);

      await clock.advance((problem.retryAfter ?? 0) * 1000);
      expect((await inTime(clock, lookUp(service, "herat"))).status).toBe(200);
      const [credential] = service.sandbox.stats().credentials;
      expect([credential?.rejected429, (credential?.largestWindow ?? 0) <= 4]).toEqual([0, true]);
    }));

  test("the last two calls serve a cart of two, and the next cart is refused as a whole, with an accurate Retry-After", () =>
    withShop({ env: TWO_LEFT }, async (service, clock) => {
      await until(() => service.calls() === 2);
      const first = await service.ask("/v1/quotes", registrations("kabul.af", "google.af"));
      expect([first.status, service.calls()]).toEqual([200, 4]);
      const second = () => service.ask("/v1/quotes", registrations("herat.af"));
      const problem = problemOf(await second());
      expect(problem.code).toBe("quota_exhausted");
      await clock.advance((problem.retryAfter ?? 0) * 1000);
      expect((await inTime(clock, second())).status).toBe(200);
    }));

  /** Ten calls: five prices and a list at startup, three names, and one that is left. */
  const ONE_LEFT = { UPSTREAM_RATE_LIMIT: "13", UPSTREAM_RATE_HEADROOM: "3" };
  const withOneLeft = (act: Parameters<typeof withService>[1]): Promise<void> =>
    withShop({ retail: FOUR_TLDS, env: ONE_LEFT }, async (service, clock) => {
      await service.ask("/v1/search?q=kabul&tlds=.af,.com.af,.net.af");
      expect(service.calls()).toBe(9);
      await act(service, clock);
    });

  test("a search returns what it could get, the exact name first, and when to retry the rest", () =>
    withOneLeft(async (service, clock) => {
      const answer = await service.ask("/v1/search?q=bank.com.af");
      expect(answer.status).toBe(200);
      const { results, complete } = searchShape.parse(answer.body);
      expect(complete).toBe(false);
      expect(results.map(({ domain, status }) => [domain, status])).toEqual([
        ["bank.com.af", "taken"],
        ["bank.af", "unknown"],
        ["bank.net.af", "unknown"],
        ["bank.org.af", "unknown"],
      ]);
      const [, unknown] = z.object({ results: z.array(z.unknown()) }).parse(answer.body).results;
      expect(unknown).toEqual({
        domain: "bank.af",
        unicodeName: "bank.af",
        tld: ".af",
        status: "unknown",
        available: false,
        premium: false,
        years: 1,
        price: null,
        renewal: null,
        asOf: null,
        stale: false,
        retryAfter: expect.any(Number),
        kept: true,
      });
      await clock.advance(Math.max(...results.map(({ retryAfter = 0 }) => retryAfter)) * 1000);
      const again = await inTime(clock, service.ask("/v1/search?q=bank.com.af"));
      expect(searchShape.parse(again.body).complete).toBe(true);
      const headers = { "If-None-Match": again.headers["etag"] ?? "" };
      const known = await service.ask("/v1/search?q=bank.com.af", { headers });
      expect([known.status, known.text]).toEqual([304, ""]);
    }));

  test.each<[string, (service: Service) => Promise<Answer>]>([
    ["search", ({ ask }) => ask("/v1/search?q=bank.com.af")],
    ["cart", ({ ask }) => ask("/v1/quotes", registrations("bank.com.af", "bank.af"))],
  ])(
    "a %s returns the wait that is left when it is answered, not when one of its names was refused, although the wall clock was set",
    (_what, ask) =>
      withOneLeft(async (service, clock) => {
        const hold = service.sandbox.control.hold({ operation: "check", calls: 1, decided: "on-arrival" });
        const asking = ask(service);
        const held = await hold.caught();
        await clock.advance(1_000);
        await service.ask("/livez");
        clock.stepWall(10 * 60_000);
        await clock.advance(3_000);
        await service.ask("/livez");
        held.release();
        const { text } = await asking;
        // A window, less four seconds.
        expect(/"retryAfter":(\d+)/.exec(text)?.[1]).toBe("56");
      }),
  );

  test("a request that can be served within QUOTA_MAX_WAIT_MS waits and is answered", () =>
    withShop({ env: { ...TWO_LEFT, QUOTA_MAX_WAIT_MS: "120000" } }, async (service, clock) => {
      await lookUp(service, "kabul");
      await lookUp(service, "google");
      const answers: Answer[] = [];
      const waiting = lookUp(service, "bank").then((answer) => answers.push(answer));
      await service.ask("/livez");
      expect(answers).toEqual([]);
      await inTime(clock, waiting);
      expect(answers[0]?.body).toMatchObject({ domain: "bank.af", status: "taken" });
    }));

  test("a pause requested by the upstream is respected, and visitors get an accurate Retry-After", () =>
    whileAnswering(async (service, clock, answers) => {
      answers({ status: 429, headers: { "Retry-After": "17" }, body: { success: false } });
      const first = problemOf(await lookUp(service, "kabul"));
      expect([first.code, first.retryAfter]).toEqual(["quota_exhausted", 17]);
      answers(null);
      const calls = service.calls();
      const second = problemOf(await lookUp(service, "herat"));
      expect([second.code, second.retryAfter]).toEqual(["quota_exhausted", 17]);
      expect(service.calls()).toBe(calls);
      await clock.advance(17_000);
      expect((await lookUp(service, "herat")).status).toBe(200);
    }));
});

describe("while a search waits for another name,", () => {
  test("a name whose last check expires isn't shown as available", () =>
    withShop({ retail: FOUR_TLDS }, async (service, clock) => {
      await lookUp(service, "kabul");
      await clock.advance(59_000);
      const { control } = service.sandbox;
      control.setFault("check", { fault: "status-500" });
      expect((await lookUp(service, "kabul")).body).toMatchObject({ status: "available", stale: true });
      control.clearFaults();
      const hold = control.hold({ operation: "check", calls: 1, decided: "on-arrival" });
      const asking = service.ask("/v1/search?q=kabul&tlds=.af,.com.af");
      const held = await hold.caught();
      await clock.advance(2_000);
      held.release();
      const { results } = searchShape.parse((await asking).body);
      expect(results.map(({ domain, status }) => [domain, status])).toEqual([
        ["kabul.af", "unknown"],
        ["kabul.com.af", "available"],
      ]);
    }));
});

describe("when a client sends too many requests", () => {
  const from = ({ ask }: Service, address: string, path: string) =>
    ask(path, { headers: { "X-Forwarded-For": address } });

  test("it is refused with a Retry-After after which it is served, and other clients aren't refused", async () => {
    const clock = new FakeClock(Date.now());
    // express-rate-limit reads the machine's clock.
    const machine = jest.spyOn(Date, "now").mockImplementation(() => clock.now());
    const env = { CLIENT_RATE_PER_MINUTE: "3", TRUST_PROXY_HOPS: "1" };
    await withShop({ clock, env }, async (service) => {
      const askFrom = (address: string) => from(service, address, "/v1/quotes?tld=.af&action=registration");
      for (let asked = 0; asked < 3; asked += 1) {
        const { status, headers } = await askFrom("203.0.113.5");
        expect(status).toBe(200);
        expect(headers["ratelimit"]).toMatch(new RegExp(`;\\s*r=${2 - asked};\\s*t=(?:60|59)$`));
        expect(headers["ratelimit-policy"]).toMatch(/q=3;\s*w=60/);
      }
      await clock.advance(12_500);
      const problem = problemOf(await askFrom("203.0.113.5"));
      expect([problem.code, problem.retryAfter]).toEqual(["rate_limited", 48]);
      expect((await askFrom("203.0.113.6")).status).toBe(200);
      await clock.advance(48_000);
      expect((await askFrom("203.0.113.5")).status).toBe(200);

      for (let host = 1; host <= 3; host += 1)
        expect((await askFrom(`2001:db8:0:aa00::${host}`)).status).toBe(200);
      expect((await askFrom("2001:db8:0:aaff::9")).status).toBe(429);
      expect((await askFrom("2001:db8:0:ab00::1")).status).toBe(200);
    }).finally(() => machine.mockRestore());
  });

  test("for new names, only these are refused while others want calls, with an accurate Retry-After", () =>
    withShop(
      {
        env: { CLIENT_COLD_PER_MINUTE: "2", TRUST_PROXY_HOPS: "1", UPSTREAM_RATE_LIMIT: "9" },
      },
      async (service, clock) => {
        const cold = (address: string, name: string) =>
          from(service, address, `/v1/availability?domain=${name}.af`);
        for (const name of ["google", "new-2", "new-3", "new-4"])
          expect((await cold("203.0.113.5", name)).status).toBe(200);
        // The budget is used up, and two requests wait for the calls that become available first.
        await clock.advance(55_000);
        const other = cold("203.0.113.6", "new-5");
        const own = cold("203.0.113.5", "new-6");
        await until(async () => (await queued(service)) === 2, "the wait of both");
        const calls = service.calls();
        const problem = problemOf(await cold("203.0.113.5", "new-7"));
        expect([problem.code, problem.retryAfter]).toEqual(["rate_limited", 5]);
        // Requests from one address get different times, one for each request, however many names it is for.
        const next = problemOf(await from(service, "203.0.113.5", "/v1/search?q=balkhi"));
        expect([next.code, next.retryAfter]).toEqual(["rate_limited", 35]);
        expect((await cold("203.0.113.5", "google")).status).toBe(200);
        for (const path of ["/v1/availability?domain=new-7.af", "/v1/search?q=balkhi"])
          expect((await from(service, "203.0.113.5", `${path}&only=known`)).status).toBe(200);
        expect(service.calls()).toBe(calls);
        for (const answer of [other, own]) expect((await inTime(clock, answer)).status).toBe(200);
        await clock.advance((problem.retryAfter ?? 0) * 1000);
        expect((await inTime(clock, cold("203.0.113.5", "new-7"))).status).toBe(200);
      },
    ));
});

/** Runs `act` with a service for which the upstream can answer every check alike. */
function whileAnswering(
  act: (
    service: Service,
    clock: FakeClock,
    answers: (answer: ReturnType<typeof plainShapes.check> | null) => void,
  ) => Promise<void>,
): Promise<void> {
  let given: ReturnType<typeof plainShapes.check> | null = null;
  const cache = `
availability:
  entries: 100
  available: { freshMs: 30000, usableMs: 60000 }
  taken: { freshMs: 100000, usableMs: 600000 }
  failureMs: 3000
prices: { entries: 100, freshMs: 3600000, usableMs: 172800000, failureMs: 10000 }
tier: { entries: 4, freshMs: 300000, usableMs: 3600000, failureMs: 10000 }
account: { entries: 100, freshMs: 300000, usableMs: 3600000, failureMs: 10000 }
`;
  const check: typeof plainShapes.check = (result) => given ?? plainShapes.check(result);
  return withShop({ cache, sandbox: { shapes: { ...plainShapes, check } } }, (service, clock) =>
    act(service, clock, (answer) => {
      given = answer;
    }),
  );
}

describe("when the upstream fails", () => {
  const marked = (answer: Answer) => ({ ...z.looseObject({}).parse(answer.body), stale: true });
  const DOWN = { status: 500, headers: {}, body: { success: false, error: { message: "SQL state 42" } } };

  test("an available name is shown, marked stale, for 60 s at most, and nothing of it is signed", () =>
    whileAnswering(async (service, clock, answers) => {
      const fresh = await lookUp(service, "kabul");
      answers(DOWN);
      await clock.advance(10_000);
      const cart = await service.ask("/v1/quotes", registrations("kabul.af"));
      expect(problemOf(cart).code).toBe("upstream_failed");
      await clock.advance(21_000);
      const stale = await lookUp(service, "kabul");
      expect([stale.status, stale.body]).toEqual([200, marked(fresh)]);
      await clock.advance(29_000);
      expect((await lookUp(service, "kabul")).body).toMatchObject({ stale: true });
      await clock.advance(1);
      expect(problemOf(await lookUp(service, "kabul")).code).toBe("upstream_failed");
    }));

  test("a taken name is shown, marked stale, past its freshness for as long as the configuration allows", () =>
    whileAnswering(async (service, clock, answers) => {
      const fresh = await lookUp(service, "google");
      answers(DOWN);
      await clock.advance(80_000);
      expect((await lookUp(service, "google")).body).toEqual(fresh.body);
      await clock.advance(520_000);
      expect((await lookUp(service, "google")).body).toEqual(marked(fresh));
      await clock.advance(1);
      expect((await lookUp(service, "google")).status).toBe(502);
    }));

  test("repeated requests make one call, and another follows only when the failure is forgotten", () =>
    whileAnswering(async (service, clock, answers) => {
      answers(DOWN);
      for (let asked = 0; asked < 10; asked += 1) expect((await lookUp(service, "kabul")).status).toBe(502);
      expect(service.calls(CHECK)).toBe(1);
      answers(null);
      await clock.advance(3000);
      expect((await lookUp(service, "kabul")).status).toBe(200);
    }));
});

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
