/** The public API as visitors use it when something is short or broken: the quota, their own limits, or the upstream. */
import { describe, expect, jest, test } from "@jest/globals";
import { z } from "zod";
import { searchShape } from "../../src/wire/visitors.js";
import { FakeClock } from "../support/fake-clock.js";
import { plainShapes } from "../support/plain-shapes.js";
import {
  type Answer,
  CHECK,
  inTime,
  problemOf,
  type Service,
  type ServiceOptions,
  until,
  withService,
} from "../support/service.js";
import { queued } from "../support/staff.js";
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
