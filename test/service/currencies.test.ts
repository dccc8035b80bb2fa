/** Prices in an unexpected currency are never converted by accident, never remembered, and never taken for premium prices. */
import { isDeepStrictEqual } from "node:util";
import { afterEach, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, problemOf, type Service, startService, until } from "../support/service.js";

const world = (currency: string): string => `
rateLimit: { limit: 1000, windowMs: 60000 }
nameservers: [ns1.example.af, ns2.example.af]
tiers: [{ name: Silver, fromDomains: 0, discountPercent: 0 }, { name: Gold, fromDomains: 1, discountPercent: 0 }]
priceLists:
  ${currency}: { .af: { registration: ["20.00"], renewal: ["30.00"], transfer: ["20.00"], restore: ["80.00"] } }
names: { takenPercent: 0, taken: [] }
resellers:
  - id: demo
    accountNumber: RS-1
    currency: ${currency}
    tier: Silver
    balance: "100.00"
    creditLimit: "0.00"
    credentials: [{ key: currency-demo-key, secret: currency-demo-secret }]
    domains: []
`;

const retail = (rates: string): string => `
currency: USD
rates: ${rates}
catalog: [{ tld: .af, years: { registration: [1], renewal: [1] } }]
rules: [{ match: {}, markupPercent: "50" }]
premium: { markupPercent: "15" }
`;

/** Prices are refreshed every 48 s. */
const cache = `
availability:
  entries: 10
  available: { freshMs: 10000, usableMs: 60000 }
  taken: { freshMs: 10000, usableMs: 60000 }
  failureMs: 0
prices: { entries: 10, freshMs: 60000, usableMs: 3600000, failureMs: 0 }
tier: { entries: 1, freshMs: 60000, usableMs: 60000, failureMs: 0 }
account: { entries: 10, freshMs: 60000, usableMs: 60000, failureMs: 0 }
`;

const usd = (amount: string) => ({ amount, currency: "USD" });
const REGISTRATION = { tld: ".af", action: "registration", years: 1, price: usd("30.00") };
const RENEWAL = { tld: ".af", action: "renewal", years: 1, price: usd("45.00") };

let service: Service;
let clock: FakeClock;

async function start(rates: string, currency = "USD"): Promise<void> {
  clock = new FakeClock();
  service = await startService({
    clock,
    world: world(currency),
    retail: retail(rates),
    cache,
    // Long enough for the clock to be advanced while calls are in flight.
    env: { UPSTREAM_TIMEOUT_MS: "60000" },
    warm: currency === "USD",
  });
}

afterEach(() => service.close());

/** Makes the upstream answer this operation in EUR. */
function answerInEuro(operation: "check" | "quote"): void {
  service.sandbox.control.setFault(operation, { fault: "currency-other" });
}

const availability = async (name: string) => (await service.ask(`/v1/availability?domain=${name}`)).body;
/** If no price is known, the answer is a problem. */
const priceList = z.object({ prices: z.array(z.unknown()) }).catch({ prices: [] });
const prices = async () => priceList.parse((await service.ask("/v1/prices")).body).prices;
const countOf = (event: string) => service.log.filter((line) => line.includes(`"event":"${event}"`)).length;

const purgePrices = () =>
  service.ask("/v1/staff/cache/purge", {
    method: "POST",
    headers: bearer("operate"),
    body: { what: "prices" },
  });

/** Advances the clock until the condition holds. */
function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  return until(async () => {
    await clock.advance(5_000);
    return condition();
  });
}

describe("a currency without a rate", () => {
  test("in a check is a contract violation, and the name's next check is correct", async () => {
    await start('{ USD: "1" }');
    answerInEuro("check");
    const answer = await service.ask("/v1/availability?domain=free.af");
    expect(problemOf(answer).code).toBe("upstream_contract");
    service.sandbox.control.clearFaults();
    expect(await availability("free.af")).toMatchObject({ status: "available", price: usd("30.00") });
  });

  test("in a quote is a contract violation, and leaves no price behind", async () => {
    await start('{ GBP: "1.3" }', "EUR");
    const answer = await service.ask("/v1/quotes?tld=.af&action=renewal&years=1");
    expect(problemOf(answer).code).toBe("upstream_contract");
    expect(await prices()).toEqual([]);
  });

  test("in quotes leaves the known prices unchanged", async () => {
    await start('{ USD: "1" }');
    answerInEuro("quote");
    expect((await purgePrices()).status).toBe(200);
    await eventually(() => countOf("upstream.failed") >= 2);
    expect(await prices()).toEqual([REGISTRATION, RENEWAL]);
    service.sandbox.control.clearFaults();
    expect(await availability("free.af")).toMatchObject({ status: "available", price: usd("30.00") });
  });
});

describe("a currency with a rate that isn't the one of the known prices", () => {
  test("in a check leaves the name without a price, and doesn't make it premium", async () => {
    await start('{ USD: "1", EUR: "1.1" }');
    answerInEuro("check");
    expect(await availability("free.af")).toMatchObject({ status: "available", premium: false, price: null });
    expect(countOf("price.not.formed")).toBe(1);
  });

  test("in quotes leaves the known prices unchanged until staff purge them", async () => {
    await start('{ USD: "1", EUR: "1.1" }');
    answerInEuro("quote");
    await eventually(() => countOf("prices.currency.changed") >= 2);
    expect(await prices()).toEqual([REGISTRATION, RENEWAL]);
    expect((await purgePrices()).status).toBe(200);
    const converted = [
      { ...REGISTRATION, price: usd("33.00") },
      { ...RENEWAL, price: usd("49.50") },
    ];
    await eventually(async () => isDeepStrictEqual(await prices(), converted));
  });

  test("in quotes is accepted after a change of tier, which makes the known prices doubtful", async () => {
    await start('{ USD: "1", EUR: "1.1" }');
    await eventually(() => service.calls("GET /api/v1/account/tier") === 1);
    service.sandbox.control.setTier("demo", "Gold");
    answerInEuro("quote");
    await eventually(() => countOf("account.tier.changed") === 1);
    const converted = [
      { ...REGISTRATION, price: usd("33.00") },
      { ...RENEWAL, price: usd("49.50") },
    ];
    await eventually(async () => isDeepStrictEqual(await prices(), converted));
  });
});
