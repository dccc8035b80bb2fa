/** Prices that may be wrong: signs of premium, totals below those of shorter terms, promotions, and lists that become old. */
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import {
  bearer,
  problemOf,
  inTime,
  type Service,
  type ServiceOptions,
  startService,
  until,
} from "../support/service.js";

const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1, 2], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "25" }]
premium: { markupPercent: "15" }
`;
/** The ordinary prices of the sandbox's first reseller, for one year and for two. */
interface Shop {
  readonly service: Service;
  readonly clock: FakeClock;
  /** What the upstream quotes for a registration of one year and of two. */
  readonly base: readonly [string, string];
}

async function inShop(
  check: (shop: Shop) => Promise<void>,
  options: Partial<ServiceOptions> = {},
): Promise<void> {
  const clock = options.clock ?? new FakeClock();
  const service = await startService({ retail, ...options, clock });
  try {
    await until(() => service.log.some((line) => line.includes('"known":5')), "the whole list");
    const list = await staffPrices(service);
    const amount = (years: number) =>
      list.find((one) => one.action === "registration" && one.years === years)?.wholesale.amount ?? "";
    await check({ service, clock, base: [amount(1), amount(2)] });
  } finally {
    await service.close();
  }
}

async function staffPrices(service: Service) {
  const { body } = await service.ask("/v1/staff/prices", { headers: bearer("read") });
  return z
    .object({
      prices: z.array(
        z.object({ action: z.string(), years: z.number(), wholesale: z.object({ amount: z.string() }) }),
      ),
    })
    .parse(body).prices;
}

const answers = (
  service: Service,
  operation: "check" | "quote" | "domains",
  patch: unknown,
  calls?: number,
): void =>
  service.sandbox.control.setFault(operation, {
    fault: "patched",
    patch,
    ...(calls !== undefined && { calls }),
  });

async function found(service: Service, domain: string, years = 1): Promise<unknown> {
  return (await service.ask(`/v1/availability?domain=${domain}&years=${years}`)).body;
}

const cartShape = z.object({
  items: z.array(z.object({ price: z.unknown(), premium: z.boolean(), problem: z.unknown().optional() })),
  promise: z.string().nullable(),
});
/** The cart of one line; a refusal as a line without a price. */
async function cart(service: Service, clock: FakeClock, domain: string, action: string, years = 1) {
  const body = { items: [{ domain, action, years }] };
  const answer = await inTime(clock, service.ask("/v1/quotes", { method: "POST", body }));
  if (answer.status !== 200) return { price: null, promise: null };
  const { items, promise } = cartShape.parse(answer.body);
  return { price: items[0]?.price ?? null, promise };
}
const UNSIGNED = { price: null, promise: null };

describe("a name with a sign of premium beside the ordinary price", () => {
  const SIGNS: readonly (readonly [string, (base: string) => unknown])[] = [
    ["a flag", () => ({ premium: true })],
    ["a flag beside the price", () => ({ pricing: { is_premium: true } })],
    ["a flag as a word", () => ({ isPremium: "yes" })],
    ["a flag as a number", () => ({ premium_domain: 1 })],
    ["a flag that isn't one", () => ({ premium: "maybe" })],
    ["an object", () => ({ premium: { tier: "gold" } })],
    ["a second price", () => ({ premium_price: "2497.50" })],
    ["a second price beside the first", () => ({ pricing: { premium_amount: "2497.50" } })],
    ["a second price as a number", () => ({ pricing: { premiumPrice: 2497.5 } })],
    ["another total", () => ({ pricing: { total: "2497.50" } })],
    ["another price", () => ({ price: "2497.50" })],
    ["a whole number as another price", () => ({ price: 2497 })],
    ["a price of the registration", () => ({ registration_price: "2497.50" })],
    ["a fee", () => ({ fees: { setup: "150.00" } })],
    ["a class", () => ({ class: "premium" })],
    ["a class beside the price", () => ({ pricing: { price_class: "premium-A" } })],
    ["a class that isn't known", () => ({ pricing: { class: "BBB" } })],
    ["a type", () => ({ type: "PREMIUM" })],
    ["a list of tags", () => ({ tags: ["short", "premium"] })],
    ["a category", () => ({ category: "platinum" })],
    ["a note", () => ({ pricing: { note: "Premium name" } })],
    ["a kind of premium", () => ({ premiumType: "registry" })],
    ["a price as text", () => ({ price: "USD 2,497.50" })],
    ["a price to buy it at once", () => ({ buy_now: "2497.50" })],
    ["a flag of the aftermarket", () => ({ aftermarket: true })],
  ];

  test("has no ordinary price, nothing is signed, and staff are told", async () => {
    await inShop(async ({ service, clock, base }) => {
      for (const [at, [what, sign]] of SIGNS.entries()) {
        const name = `sign-${at}.af`;
        answers(service, "check", { ...base_(base[0]), ...deep(sign(base[0]), base[0]) });
        expect([what, await found(service, name)]).toMatchObject([
          what,
          {
            status: "available",
            premium: /premium|class|category|aftermarket/i.test(JSON.stringify(sign(""))),
            price: null,
            renewal: null,
          },
        ]);
        expect([what, await cart(service, clock, name, "registration")]).toEqual([what, UNSIGNED]);
        expect([what, await cart(service, clock, name, "renewal")]).toEqual([what, UNSIGNED]);
        expect([what, await cart(service, clock, name, "transfer")]).toEqual([what, UNSIGNED]);
      }
      const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
      expect(JSON.stringify(body)).toContain("a sign of premium");
    });
  });

  test("that is taken isn't renewed at the ordinary price", async () => {
    await inShop(async ({ service, clock }) => {
      for (const [at, sign] of [
        { premium: true },
        { class: "premium" },
        { premium_price: "2497.50" },
      ].entries()) {
        const name = `taken-sign-${at}.af`;
        answers(service, "check", { available: false, status: "taken", pricing: null, ...sign });
        expect(await found(service, name)).toMatchObject({ status: "taken" });
        expect(await cart(service, clock, name, "renewal")).toEqual(UNSIGNED);
      }
    });
  });

  test("in its record isn't renewed at the ordinary price", async () => {
    const own = { domain: "own.af", status: "active", expires_at: "2027-05-04", premium: true };
    await inShop(async ({ service, clock }) => {
      answers(service, "domains", { domains: [own] });
      await service.ask("/v1/staff/cache/purge", {
        method: "POST",
        headers: bearer("operate"),
        body: { what: "account" },
      });
      await service.ask("/v1/staff/domains", { headers: bearer("read") });
      expect(await cart(service, clock, "own.af", "renewal")).toEqual(UNSIGNED);
    });
  });

  test("is sold as premium if its price is another one, and only a flag says so", async () => {
    await inShop(async ({ service, clock }) => {
      answers(service, "check", { ...base_("2497.50"), premium: true });
      const price = { amount: "2872.13", currency: "USD" };
      expect(await found(service, "gold.af")).toMatchObject({ premium: true, price });
      expect(await cart(service, clock, "gold.af", "registration")).toMatchObject({ price });
    });
  });

  test.each<[string, (base: string) => unknown]>([
    ["a flag that says no", () => ({ premium: false, is_premium: "no", isPremium: 0, premium_price: null })],
    ["an empty object", () => ({ premium: {}, premium_info: { is_premium: false, price: null } })],
    ["an ordinary class", () => ({ class: "standard", category: "normal" })],
    ["the same amount again", (base) => ({ price: base, total: Number(base), pricing: { total: base } })],
    ["prices of other actions", () => ({ renewal_price: "99.00", pricing: { transfer_price: "98.00" } })],
    ["a price for the public", () => ({ pricing: { retail_price: "99.00", list_price: "98.00" } })],
    ["a tax", () => ({ pricing: { vat_amount: "2.00", tax_total: "3.00" } })],
    ["a word that denies it", () => ({ type: "non-premium", note: "not premium" })],
    ["the reseller's tier", () => ({ tier: "Gold" })],
    ["a fee of zero", () => ({ premium_fee: "0.00", fees: { setup: "0.00" } })],
  ])("unlike one with %s, which is ordinary", async (_what, more) => {
    await inShop(async ({ service, base }) => {
      answers(service, "check", { ...base_(base[0]), ...deep(more(base[0]), base[0]) });
      expect(await found(service, "plain.af")).toMatchObject({ premium: false, price: { currency: "USD" } });
    });
  });
});

test.each([
  [{ renewal: { amount: "500.00", currency: "USD" } }],
  [{ renewals: [{ years: 1, price: "500.00" }] }],
])("a name whose check states %j has no renewal price of the list, and none is signed", (stated) =>
  inShop(async ({ service, base }) => {
    answers(service, "check", { ...base_(base[0]), ...stated });
    expect(await found(service, "plain.af")).toMatchObject({ renewal: null, price: { currency: "USD" } });
    const body = { items: [{ domain: "plain.af", action: "renewal", years: 1 }] };
    const { code } = problemOf(await service.ask("/v1/quotes", { method: "POST", body }));
    expect(code).toBe("upstream_contract");
  }),
);

function base_(amount: string) {
  return { available: true, status: "available", pricing: { amount, currency: "USD" } };
}
/** The sign, with the price that it stands beside. */
function deep(sign: unknown, amount: string): object {
  const { pricing, ...rest } = z.looseObject({ pricing: z.looseObject({}).optional() }).parse(sign);
  return { ...rest, pricing: { amount, currency: "USD", ...pricing } };
}

describe("a total below that of a shorter term", () => {
  test("is neither shown nor signed for a premium name, whatever is asked first", async () => {
    await inShop(async ({ service, clock }) => {
      const costs = (amount: string): void =>
        service.sandbox.control.setFault("check", { fault: "patched", patch: base_(amount) });
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

  test.each(["registration", "renewal"] as const)(
    "is neither listed nor signed in the list of %s prices, and staff are told",
    async (action) => {
      const clock = new FakeClock();
      await inShop(
        async ({ service }) => {
          const { control } = service.sandbox;
          control.setPrice("demo", { tld: ".af", action, years: 2, amountCents: 1001 });
          await service.ask("/v1/staff/cache/purge", {
            method: "POST",
            headers: bearer("operate"),
            body: { what: "prices" },
          });
          const path = `/v1/prices?action=${action}`;
          const terms = async (): Promise<unknown> =>
            z
              .object({ prices: z.array(z.object({ years: z.number() })) })
              .parse((await service.ask(path)).body)
              .prices.map(({ years }) => years);
          await until(async () => JSON.stringify(await terms()) === "[1]", "the end of the price");
          const quote = await service.ask(`/v1/quotes?tld=.af&action=${action}&years=2`);
          expect(quote.body).toMatchObject({ code: "upstream_contract" });
          expect(await cart(service, clock, "kabul.af", action, 2)).toEqual(UNSIGNED);
          const told = JSON.stringify(
            (await service.ask("/v1/staff/prices", { headers: bearer("read") })).body,
          );
          expect(told).toContain("isn't above that of a shorter term");
          control.setPrice("demo", { tld: ".af", action, years: 2, amountCents: 9001 });
          await service.ask("/v1/staff/cache/purge", {
            method: "POST",
            headers: bearer("operate"),
            body: { what: "prices" },
          });
          await until(async () => {
            await clock.advance(5_000);
            return JSON.stringify(await terms()) === "[1,2]";
          }, "the new price");
        },
        { clock },
      );
    },
  );
});

test("a price list with doubtful prices isn't stored by any cache", () =>
  inShop(async ({ service }) => {
    const cacheControl = async () => (await service.ask("/v1/prices")).headers["cache-control"];
    expect(await cacheControl()).toMatch(/^public/);
    service.sandbox.control.setFault("quote", { fault: "silence-before-head" });
    const purge = { method: "POST", headers: bearer("operate"), body: { what: "prices" } };
    expect((await service.ask("/v1/staff/cache/purge", purge)).status).toBe(200);
    expect(await cacheControl()).toBe("no-store");
  }));

describe("a promotion", () => {
  const promoted = (rule: string, percentOff: string, currency = "USD", rate = "1") => `
currency: ${currency}
rates: { USD: "${rate}" }
catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1, 2], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "1", ${rule} }]
promotions:
  - { id: nowruz, match: { action: registration }, percentOff: "${percentOff}", from: 2026-03-19T00:00:00Z, to: 2026-03-20T00:30:00Z }
`;
  const priceShape = z.object({
    prices: z.tuple([
      z.object({
        price: z.object({ amount: z.string() }),
        promotion: z.object({ regular: z.object({ amount: z.string() }) }).optional(),
      }),
    ]),
  });
  test.each([
    ['step: "10"', "7.7", "JPY", "155.3", /0$/],
    ['step: "0.05"', "7.7", "USD", "1", /[05]$/],
    ['ending: "0.99"', "13", "USD", "1", /\.99$/],
    ['ending: "9"', "13", "JPY", "155.3", /9$/],
  ])("keeps the rule's %s with %s %% off in %s", async (rule, percentOff, currency, rate, written) => {
    await inShop(
      async ({ service }) => {
        const { body } = await service.ask("/v1/prices?action=registration&years=1");
        const [{ price, promotion }] = priceShape.parse(body).prices;
        expect(price.amount).toMatch(written);
        expect(Number(price.amount)).toBeLessThan(Number(promotion?.regular.amount));
        expect(Number(price.amount)).toBeGreaterThanOrEqual(
          Number(promotion?.regular.amount) * (1 - Number(percentOff) / 100),
        );
      },
      { retail: promoted(rule, percentOff, currency, rate) },
    );
  });

  test("that would leave the price where it is isn't shown", async () => {
    await inShop(
      async ({ service }) => {
        const { body } = await service.ask("/v1/prices?action=registration&years=1");
        expect(priceShape.parse(body).prices[0].promotion).toBeUndefined();
      },
      { retail: promoted('step: "50"', "0.1") },
    );
  });

  test("isn't outlived by an availability in any cache", async () => {
    const clock = new FakeClock();
    await inShop(
      async ({ service }) => {
        const cacheControl = async () =>
          (await service.ask("/v1/availability?domain=kabul.af")).headers["cache-control"];
        await clock.advance(Date.parse("2026-03-20T00:30:00Z") - clock.now() - 20_000);
        expect(await cacheControl()).toBe("private, max-age=5");
        await clock.advance(18_000);
        for (let times = 0; times < 2; times += 1) expect(await cacheControl()).toBe("private, max-age=2");
        await clock.advance(2_000);
        expect(await cacheControl()).toBe("private, max-age=5");
      },
      { clock, retail: promoted('step: "0.05"', "10") },
    );
  });

  test("isn't outlived by the price list in any cache", async () => {
    const clock = new FakeClock();
    await inShop(
      async ({ service }) => {
        const cacheControl = async () => (await service.ask("/v1/prices")).headers["cache-control"];
        expect(await cacheControl()).toBe("public, max-age=300, stale-while-revalidate=1500");
        const left = Date.parse("2026-03-20T00:30:00Z") - clock.now();
        await clock.advance(left - 37_000);
        expect(await cacheControl()).toBe("public, max-age=37, stale-while-revalidate=0");
        await clock.advance(37_000);
        expect(await cacheControl()).toBe("public, max-age=300, stale-while-revalidate=3600");
      },
      { clock, retail: promoted('step: "0.05"', "10") },
    );
  });
});

test("a renewal that becomes dearer is shown within ten minutes while the budget is idle", async () => {
  const clock = new FakeClock();
  await inShop(
    async ({ service }) => {
      service.sandbox.control.setPrice("demo", {
        tld: ".af",
        action: "renewal",
        years: 1,
        amountCents: 4000,
      });
      for (let minutes = 0; minutes < 10; minutes += 1) {
        for (let at = 0; at < 12; at += 1) await clock.advance(5_000);
        await new Promise((done) => setTimeout(done, 20));
      }
      const { body } = await service.ask("/v1/prices?action=renewal&years=1");
      expect(body).toMatchObject({ prices: [{ price: { amount: "50.00" } }] });
    },
    { clock },
  );
});

test.each([
  ["true", true],
  ["false", false],
  ["~", null],
])(
  "the page knows whether a restore includes a renewal only if the shop says so: %s",
  async (said, known) => {
    await inShop(
      async ({ service }) => {
        const { text } = await service.ask("/", { headers: { Accept: "text/html" } });
        expect(text).toContain(`"restoreIncludesRenewal":${known}`);
      },
      { retail: `${retail}shop: { restoreIncludesRenewal: ${said} }\n` },
    );
  },
);
