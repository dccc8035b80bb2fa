/** Prices that may be wrong or have changed: signs of premium, totals below those of shorter terms, other currencies, promotions, and lists that become old. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { staffPricesShape } from "../../src/wire/staff.js";
import { quotesShape } from "../../src/wire/visitors.js";
import { FakeClock, settle } from "../support/fake-clock.js";
import { usd } from "../shop/shop.js";
import { healthCheck, purge, staffRead } from "../support/staff.js";
import {
  bearer,
  CHECK,
  inTime,
  PRICING,
  problemOf,
  type Service,
  type ServiceOptions,
  startService,
  until,
  withService,
} from "../support/service.js";
import { isDeepStrictEqual } from "node:util";

const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1, 2], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "25" }]
premium: { markupPercent: "15" }
`;
interface Shop {
  readonly service: Service;
  readonly clock: FakeClock;
  /** What the upstream quotes for a registration of one year and of two. */
  readonly base: readonly [string, string];
}

function inShop(
  check: (shop: Shop) => Promise<void>,
  options: Partial<Pick<ServiceOptions, "retail">> = {},
): Promise<void> {
  return withService({ retail, ...options }, async (service, clock) => {
    await until(() => service.log.some((line) => line.includes('"known":5')), "the whole list");
    const { prices: list } = await pricesOf(service);
    const amount = (years: number) =>
      list.find((one) => one.action === "registration" && one.years === years)?.wholesale.amount ?? "";
    await check({ service, clock, base: [amount(1), amount(2)] });
  });
}

const timesOf = ({ log }: Service, event: string): number =>
  log.filter((line) => line.includes(`"event":"${event}"`)).length;
const eventually = (
  clock: FakeClock,
  condition: () => boolean | Promise<boolean>,
  what?: string,
): Promise<void> =>
  until(async () => {
    await clock.advance(5_000);
    return condition();
  }, what);
const pricesOf = async (service: Service) =>
  staffPricesShape.parse((await staffRead(service, "prices")).body);

const answers = (service: Service, operation: "check" | "domains", patch: unknown): void =>
  service.sandbox.control.setFault(operation, { fault: "patched", patch });

async function found(service: Service, domain: string, years = 1): Promise<unknown> {
  return (await service.ask(`/v1/availability?domain=${domain}&years=${years}`)).body;
}

/** The cart of one line; a refusal as a line without a price. */
async function cart(service: Service, clock: FakeClock, domain: string, action: string, years = 1) {
  const body = { items: [{ domain, action, years }] };
  const answer = await inTime(clock, service.ask("/v1/quotes", { method: "POST", body }));
  if (answer.status !== 200) return { price: null, promise: null };
  const { items, promise } = quotesShape.parse(answer.body);
  return { price: items[0]?.price ?? null, promise };
}
const UNSIGNED = { price: null, promise: null };

describe("a name with a sign of premium beside the ordinary price", () => {
  /** One of each kind, and whether the name is shown as premium. */
  const SIGNS: readonly (readonly [what: string, sign: object, isPremium: boolean])[] = [
    ["a flag", { premium: true }, true],
    ["an object", { premium: { tier: "gold" } }, true],
    ["a second price", { pricing: { premium_amount: "2497.50" } }, true],
    ["a price as text", { price: "USD 2,497.50" }, false],
    ["a class that isn't known", { pricing: { class: "BBB" } }, true],
    ["a note", { pricing: { note: "Premium name" } }, true],
  ];

  test("has no ordinary price, nothing is signed, and staff see why", async () => {
    await inShop(async ({ service, clock, base }) => {
      for (const [at, [what, sign, premium]] of SIGNS.entries()) {
        const name = `sign-${at}.af`;
        answers(service, "check", { ...priced(base[0]), ...beside(sign, base[0]) });
        const shown = { status: "available", premium, price: null, renewal: null };
        expect([what, await found(service, name)]).toMatchObject([what, shown]);
        for (const action of ["registration", "renewal", "transfer"])
          expect([what, await cart(service, clock, name, action)]).toEqual([what, UNSIGNED]);
      }
      const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
      expect(JSON.stringify(body)).toContain("a sign of premium");
    });
  });

  test("that is taken, or in its record, isn't renewed at the ordinary price", async () => {
    const own = { domain: "own.af", status: "active", expires_at: "2027-05-04", premium: true };
    await inShop(async ({ service, clock }) => {
      for (const [at, sign] of [{ premium: true }, { class: "premium" }].entries()) {
        const name = `taken-sign-${at}.af`;
        answers(service, "check", { available: false, status: "taken", pricing: null, ...sign });
        expect(await found(service, name)).toMatchObject({ status: "taken" });
        expect(await cart(service, clock, name, "renewal")).toEqual(UNSIGNED);
      }
      service.sandbox.control.clearFaults();
      answers(service, "domains", { domains: [own] });
      await purge(service, "account");
      await service.ask("/v1/staff/domains", { headers: bearer("read") });
      expect(await cart(service, clock, "own.af", "renewal")).toEqual(UNSIGNED);
    });
  });

  test("is sold as premium if its price is another one, and only a flag says so", async () => {
    await inShop(async ({ service, clock }) => {
      answers(service, "check", { ...priced("2497.50"), premium: true });
      const price = usd("2872.13");
      expect(await found(service, "gold.af")).toMatchObject({ premium: true, price });
      expect(await cart(service, clock, "gold.af", "registration")).toMatchObject({ price });
    });
  });

  test("is unlike one whose other fields say that it is ordinary, or nothing about it", async () => {
    await inShop(async ({ service, base }) => {
      const [amount] = base;
      const more: readonly object[] = [
        { premium: false, is_premium: "no", isPremium: 0, premium_price: null },
        { class: "standard", category: "normal", tier: "Gold" },
        { price: amount, total: Number(amount), pricing: { total: amount } },
        { renewal_price: "99.00", pricing: { transfer_price: "98.00" } },
        { pricing: { retail_price: "99.00", list_price: "98.00", vat_amount: "2.00" } },
      ];
      for (const [at, fields] of more.entries()) {
        answers(service, "check", { ...priced(amount), ...beside(fields, amount) });
        const shown = await found(service, `plain-${at}.af`);
        expect([fields, shown]).toMatchObject([fields, { premium: false, price: { currency: "USD" } }]);
      }
    });
  });
});

test("a name whose check states what its renewal costs has no renewal price of the list, and none is signed", () =>
  inShop(async ({ service, base }) => {
    const stated = [
      { renewal: { amount: "500.00", currency: "USD" } },
      { renewals: [{ years: 1, price: "500.00" }] },
    ];
    for (const [at, renewal] of stated.entries()) {
      const domain = `plain-${at}.af`;
      answers(service, "check", { ...priced(base[0]), ...renewal });
      expect(await found(service, domain)).toMatchObject({ renewal: null, price: { currency: "USD" } });
      const body = { items: [{ domain, action: "renewal", years: 1 }] };
      const { code } = problemOf(await service.ask("/v1/quotes", { method: "POST", body }));
      expect(code).toBe("upstream_contract");
    }
  }));

function priced(amount: string) {
  return { available: true, status: "available", pricing: { amount, currency: "USD" } };
}
/** The fields, with the price that they stand beside. */
function beside(fields: object, amount: string): object {
  const { pricing, ...rest } = z.looseObject({ pricing: z.looseObject({}).optional() }).parse(fields);
  return { ...rest, pricing: { amount, currency: "USD", ...pricing } };
}

describe("a total below that of a shorter term", () => {
  test("is neither shown nor signed for a premium name, whatever is asked first", async () => {
    await inShop(async ({ service, clock }) => {
      const costs = (amount: string): void => answers(service, "check", priced(amount));
      for (const [name, one, two] of [
        ["per-year.af", "600.00", "452.75"],
        ["same.af", "600.00", "600.00"],
      ] as const) {
        costs(one);
        expect(await found(service, name, 1)).toMatchObject({ premium: true, price: { amount: "690.00" } });
        costs(two);
        expect(await found(service, name, 2)).toMatchObject({ status: "available", price: null });
        expect(await cart(service, clock, name, "registration", 2)).toEqual(UNSIGNED);
      }
      expect(service.log.some((line) => line.includes("price_not_for_term"))).toBe(true);
    });
  });

  test("is neither listed nor signed in the list of prices, and staff see why", async () => {
    await inShop(async ({ service, clock }) => {
      const { control } = service.sandbox;
      const actions = ["registration", "renewal"] as const;
      const setPrices = async (amountCents: number): Promise<void> => {
        for (const action of actions) control.setPrice("demo", { tld: ".af", action, years: 2, amountCents });
        await purge(service, "prices");
      };
      const terms = async (): Promise<readonly string[]> =>
        z
          .object({ prices: z.array(z.object({ action: z.string(), years: z.number() })) })
          .parse((await service.ask("/v1/prices")).body)
          .prices.map(({ action, years }) => `${action} ${years}`);
      await setPrices(1001);
      await until(async () => (await terms()).length === 3, "the end of the prices");
      expect(await terms()).toEqual(["registration 1", "renewal 1", "transfer 1"]);
      for (const action of actions) {
        const quote = await service.ask(`/v1/quotes?tld=.af&action=${action}&years=2`);
        expect(quote.body).toMatchObject({ code: "upstream_contract" });
        expect(await cart(service, clock, "kabul.af", action, 2)).toEqual(UNSIGNED);
      }
      const seen = await service.ask("/v1/staff/prices", { headers: bearer("read") });
      expect(seen.text).toContain("isn't above that of a shorter term");
      await setPrices(9001);
      await eventually(clock, async () => (await terms()).length === 5, "the new prices");
    });
  });
});

describe("a price in a currency that the known prices don't have", () => {
  const retailWith = (rates: string): string => `${retail}rates: ${rates}\n`;
  const answersInEuro = ({ sandbox }: Service, operation: "check" | "quote"): void =>
    sandbox.control.setFault(operation, { fault: "currency-other" });
  const currencies = async (service: Service): Promise<readonly string[]> => [
    ...new Set((await pricesOf(service)).prices.map(({ wholesale }) => wholesale.currency)),
  ];
  test("and no rate, is a contract violation in a check or quote, and leaves nothing behind", async () => {
    await inShop(async ({ service, clock }) => {
      const before = (await service.ask("/v1/prices")).text;
      answersInEuro(service, "check");
      const answer = await service.ask("/v1/availability?domain=kabul.af");
      expect(problemOf(answer).code).toBe("upstream_contract");
      answersInEuro(service, "quote");
      await purge(service, "prices");
      const failed = timesOf(service, "upstream.failed");
      await eventually(clock, () => timesOf(service, "upstream.failed") >= failed + 2);
      expect(JSON.parse((await service.ask("/v1/prices")).text)).toEqual(JSON.parse(before));
      service.sandbox.control.clearFaults();
      // Failures are remembered for less.
      await clock.advance(60_000);
      const shown = { status: "available", premium: false, price: { currency: "USD" } };
      expect(await found(service, "kabul.af")).toMatchObject(shown);
    });
  });

  test("and no rate, is a contract violation from the first quote", () =>
    withService({ retail: retailWith('{ GBP: "1.3" }'), reseller: "euro", warm: false }, async (service) => {
      for (const path of ["/v1/quotes?tld=.af&action=renewal&years=1", "/v1/prices"])
        expect(problemOf(await service.ask(path)).code).toBe("upstream_contract");
    }));

  test("but a rate, leaves a name without a price, and the known prices unchanged until staff purge them or the tier changes", async () => {
    await inShop(
      async ({ service, clock }) => {
        answersInEuro(service, "check");
        const unpriced = { status: "available", premium: false, price: null };
        expect(await found(service, "kabul.af")).toMatchObject(unpriced);
        expect(timesOf(service, "price.not.formed")).toBe(1);
        answersInEuro(service, "quote");
        await eventually(clock, () => timesOf(service, "prices.currency.changed") >= 2);
        expect(await currencies(service)).toEqual(["USD"]);
        await purge(service, "prices");
        await eventually(clock, async () => (await currencies(service)).join() === "EUR");
        service.sandbox.control.clearFaults();
        service.sandbox.control.setTier("demo", "Gold");
        await eventually(clock, () => timesOf(service, "account.tier.changed") === 1);
        await eventually(clock, async () => (await currencies(service)).join() === "USD");
      },
      { retail: retailWith('{ USD: "1", EUR: "1.1" }') },
    );
  });
});

test("a price list with doubtful prices isn't stored by any cache", () =>
  inShop(async ({ service }) => {
    const cacheControl = async () => (await service.ask("/v1/prices")).headers["cache-control"];
    expect(await cacheControl()).toMatch(/^public/);
    service.sandbox.control.setFault("quote", { fault: "silence-before-head" });
    await purge(service, "prices");
    expect(await cacheControl()).toBe("no-store");
  }));

test("a promotion isn't outlived by an availability or the price list in any cache", async () => {
  const promoted = `${retail}promotions: [{ id: nowruz, match: { action: registration }, percentOff: "10", from: 2026-03-19T00:00:00Z, to: 2026-03-20T00:30:00Z }]\n`;
  await inShop(
    async ({ service, clock }) => {
      const leftMs = (): number => Date.parse("2026-03-20T00:30:00Z") - clock.now();
      const cacheControl = async () => [
        (await service.ask("/v1/availability?domain=kabul.af")).headers["cache-control"],
        (await service.ask("/v1/prices")).headers["cache-control"],
      ];
      const longest = "private, max-age=5";
      expect(await cacheControl()).toEqual([longest, "public, max-age=300, stale-while-revalidate=1500"]);
      await clock.advance(leftMs() - 37_000);
      expect(await cacheControl()).toEqual([longest, "public, max-age=37, stale-while-revalidate=0"]);
      await clock.advance(leftMs() - 2_000);
      for (let times = 0; times < 2; times += 1) expect((await cacheControl())[0]).toBe("private, max-age=2");
      await clock.advance(2_000);
      expect(await cacheControl()).toEqual([longest, "public, max-age=300, stale-while-revalidate=3600"]);
    },
    { retail: promoted },
  );
});

test("a renewal that becomes dearer is shown within ten minutes while the budget is idle", () =>
  inShop(async ({ service, clock }) => {
    const dearer = { tld: ".af", action: "renewal", years: 1, amountCents: 4000 } as const;
    service.sandbox.control.setPrice("demo", dearer);
    for (let minutes = 0; minutes < 10; minutes += 1) {
      await clock.advance(60_000);
      await new Promise((done) => setTimeout(done, 20));
    }
    const { body } = await service.ask("/v1/prices?action=renewal&years=1");
    expect(body).toMatchObject({ prices: [{ price: { amount: "50.00" } }] });
  }));

describe("a change of the tier", () => {
  const WARNING = { status: "warn", output: "Price warnings exist; see the staff price list." };
  const TIER = "GET /api/v1/account/tier";
  const SOLD = 3;

  /** Three prices, each with a markup of 50 % and a fixed amount. */
  const retail = (addFixed: string): string => `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2, 3] } }]
rules: [{ match: {}, markupPercent: "50", addFixed: "${addFixed}" }]
`;

  const changesOf = async (service: Service): Promise<number> =>
    (await pricesOf(service)).prices.filter(({ changed }) => changed !== undefined).length;

  describe("the tier", () => {
    let clock: FakeClock;
    let service: Service;
    beforeEach(async () => {
      clock = new FakeClock();
      service = await startService({ clock, retail: retail("1.00") });
    });
    afterEach(() => service.close());

    /** Waits for the first tier request, with which later ones are compared. */
    async function untilFirstTier(): Promise<void> {
      await clock.advance(5_000);
      await until(() => service.calls(TIER) === 1);
    }

    const untilRefreshed = () =>
      until(async () => (await changesOf(service)) === SOLD, "the refresh of the prices");

    test("is first requested five seconds after a start, because the price list goes first, then once per freshness period, and prices stay while it is unchanged", async () => {
      await clock.advance(4_900);
      expect([service.calls(PRICING), service.calls(TIER)]).toEqual([SOLD, 0]);
      await clock.advance(100);
      await until(() => service.calls(TIER) === 1);
      for (const calls of [2, 3]) {
        await clock.advance(295_000);
        expect(service.calls(TIER)).toBe(calls - 1);
        await clock.advance(6_000);
        await until(() => service.calls(TIER) === calls);
      }
      // In ten minutes with an idle budget, each price is requested once more, whatever the tier.
      expect([service.calls(PRICING), timesOf(service, "account.tier.changed")]).toEqual([2 * SOLD, 0]);
    });

    test("causes an immediate refresh of all prices when it changes, each change is reported, and for a day /health warns without business figures", async () => {
      await untilFirstTier();
      expect(await healthCheck(service, "prices")).toEqual({ status: "pass" });
      service.sandbox.control.setTier("demo", "Gold");
      await clock.advance(301_000);
      await untilRefreshed();
      expect([service.calls(PRICING), timesOf(service, "account.tier.changed")]).toEqual([2 * SOLD, 1]);
      const { prices, warnings } = await pricesOf(service);
      expect(prices[0]).toMatchObject({
        wholesale: usd("18.92"),
        changed: {
          from: usd("20.21"),
          by: usd("-1.29"),
          at: expect.stringMatching(/^2026-03-20T00:05:0[56]/),
        },
      });
      expect(warnings).toEqual(["3 of 3 wholesale prices changed in the last 24 hours."]);
      expect(JSON.stringify(service.log)).not.toContain("Gold");
      await clock.advance(1_000);
      expect(await healthCheck(service, "prices")).toEqual(WARNING);
      clock.stepWall(24 * 3_600_000);
      const isPassing = async () =>
        isDeepStrictEqual(await healthCheck(service, "prices"), { status: "pass" });
      await eventually(clock, isPassing, "the refresh of the prices that are a day old");
      expect((await pricesOf(service)).warnings).toEqual([]);
    });

    test("is requested within a freshness period even if the clock is set back after staff have requested it", async () => {
      await untilFirstTier();
      await clock.advance(200_000);
      await purge(service, "account");
      await service.ask("/v1/staff/tier", { headers: bearer("read") });
      clock.stepWall(-24 * 3_600_000);
      await clock.advance(100_000);
      service.sandbox.control.setTier("demo", "Gold");
      await clock.advance(300_000);
      await untilRefreshed();
    });

    test("is requested only when visitors leave room in the quota", () =>
      withService(
        { retail: retail("1.00"), env: { UPSTREAM_RATE_LIMIT: "10", UPSTREAM_RATE_HEADROOM: "3" } },
        async (busy, small) => {
          for (const name of ["kabul", "google"]) await busy.ask(`/v1/availability?domain=${name}.af`);
          await small.advance(55_000);
          expect(busy.calls(TIER)).toBe(0);
          await small.advance(10_000);
          await until(() => busy.calls(TIER) === 1, "the first tier request");
        },
      ));
  });

  test("a problem with prices is reported to staff in sentences, and to everyone as a status", () =>
    withService({ retail: retail("0") }, async (service, clock) => {
      const { warnings } = await pricesOf(service);
      expect(warnings).toEqual([expect.stringContaining("nearly the same multiple")]);
      await clock.advance(1_000);
      expect(await healthCheck(service, "prices")).toEqual(WARNING);

      service.sandbox.control.setFault("quote", { fault: "currency-other" });
      await clock.advance(1);
      await purge(service, "prices");
      const why =
        "The registry service's answer wasn't understood (a price in a currency that is not expected).";
      await until(
        async () => (await pricesOf(service)).warnings[1] === `3 of 3 prices couldn't be refreshed: ${why}`,
        "the second warning",
      );

      // A purge isn't evidence of a change.
      const doubt =
        "This price may be outdated. It is shown as stale and not signed until it has been refreshed.";
      expect((await pricesOf(service)).prices.map(({ warning: one }) => one)).toEqual([doubt, doubt, doubt]);

      service.sandbox.control.clearFaults();
      await eventually(clock, async () => (await pricesOf(service)).warnings.length === 1, "the refresh");
    }));

  const shown = z.object({ price: z.object({ amount: z.string() }).nullable(), stale: z.boolean() });

  test("under a full load of searches, the first price is right at once, no other one seems certain, and the whole list is right within one window", () =>
    withService({ env: { UPSTREAM_RATE_LIMIT: "60" } }, async (service, clock) => {
      const WINDOW_MS = 60_000;
      const STEP_MS = 500;
      const calls = (): number => service.calls(CHECK) + service.calls(PRICING);
      let rightAtCalls: number | null = null;
      const wrong: string[] = [];
      const searches: Promise<void>[] = [];
      const search = async (): Promise<void> => {
        const { status, body } = await service.ask(`/v1/availability?domain=load-${searches.length}.af`);
        if (status !== 200) return;
        const { price, stale } = shown.parse(body);
        if (price?.amount === "23.99") rightAtCalls ??= calls();
        else if (price !== null && (price.amount !== "26.99" || (rightAtCalls !== null && !stale)))
          wrong.push(`${price.amount}, stale ${stale}`);
      };
      const step = async (): Promise<void> => {
        searches.push(search());
        for (let turns = 0; turns < 60; turns += 1) await settle();
        await clock.advance(STEP_MS);
      };
      /** Whether every price has been refreshed and has changed. */
      const isRight = async (): Promise<boolean> => {
        const { prices } = await pricesOf(service);
        return (
          prices.length === 28 && prices.every(({ doubtful, changed }) => !doubtful && changed !== undefined)
        );
      };
      await clock.advance(2 * WINDOW_MS);
      for (let passedMs = 0; passedMs < WINDOW_MS; passedMs += STEP_MS) await step();

      service.sandbox.control.setTier("demo", "Platinum");
      const before = calls();
      let rightAfterMs = 0;
      for (; rightAfterMs <= WINDOW_MS && !(await isRight()); rightAfterMs += STEP_MS) await step();
      await inTime(clock, Promise.all(searches));
      expect(wrong).toEqual([]);
      expect((rightAtCalls ?? Infinity) - before).toBeLessThanOrEqual(4);
      expect(rightAfterMs).toBeLessThanOrEqual(WINDOW_MS);
    }));

  test("a price that a visitor requests during a refresh is the next one to be refreshed", () =>
    withService({}, async (service) => {
      const { control } = service.sandbox;
      const availability = async () =>
        shown.parse((await service.ask("/v1/availability?domain=kabul.af")).body);
      expect(await availability()).toMatchObject({ stale: false });
      const refreshed: string[] = [];
      control.watch(({ operation, fact }) => {
        if (operation === "quote") refreshed.push(`${fact.tld} ${fact.action} ${fact.years}`);
      });
      const hold = control.hold({ operation: "quote", calls: 2, decided: "on-arrival" });
      await purge(service, "prices");
      await until(() => hold.answers().length === 2, "the request of the first two prices");
      expect(await availability()).toMatchObject({ stale: true });
      hold.release();
      await until(async () => !(await availability()).stale, "the refresh of the visitor's price");
      // Two are refreshed at a time.
      expect(refreshed.indexOf(".af registration 1")).toBeLessThanOrEqual(3);
    }));
});
