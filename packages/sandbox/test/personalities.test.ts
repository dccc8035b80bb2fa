/**
 * The service's upstream client against everything that the document leaves open, over HTTP, in every pair of settings.
 * Answers are read correctly, or rejected where they are ambiguous. A price is never wrong, and a rate limit or a refused credential is never
 * mistaken for anything else.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { parseDomainName } from "../../../src/domain-name.js";
import { ServiceError } from "../../../src/errors.js";
import { type ShapeSettings, openPoints } from "../src/open-points.js";
import { shapeSettings } from "../src/presets.js";
import { type Sandbox, startSandbox } from "../src/sandbox.js";
import type { Combination } from "../../../src/upstream/contract.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { pairwise } from "./pairwise.js";
import { ask, type Bench, createBench } from "../../../test/upstream/support/bench.js";

const WIDE = { limit: 1_000_000, windowMs: 60_000 };
const name = (text: string) => parseDomainName(text, [".af", ".com.af", ".net.af", ".org.af"], "domain");
const AVAILABLE_NAME = name("kabul.af");
const MANAGED_NAME = name("teppich.com.af");
const RENEWAL: Combination = { tld: ".af", action: "renewal", years: 1 };
const eur = (amount: string) => ({ kind: "wholesale", amount, currency: "EUR" });

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ rateLimit: WIDE });
  sandbox.control.setPrice("euro", { tld: ".org.af", action: "restore", years: 1, amountCents: 8400 });
});

afterAll(() => sandbox.close());

function bench(credential = sandbox.credential("euro")): Bench {
  return createBench({ baseUrl: sandbox.url, clock: new FakeClock(Date.now()), credential });
}

/** What was learned, or the code of the ServiceError. */
async function outcome(work: Promise<{ readonly value: unknown }>): Promise<unknown> {
  try {
    return (await work).value;
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

/** Checks everything that the document specifies, with these settings of what it leaves open. */
async function expectFacts(settings: ShapeSettings): Promise<void> {
  const { upstream, pausesMs, credentials } = bench();
  const doubtful = "upstream_contract";
  const { quoteAmount, inputStatus, errorFlag, errorFields } = settings;
  const ofYear = (amount: string) => (quoteAmount === "minor-units" ? doubtful : eur(amount));
  const isUnit = settings.quoteFields === "unit" || settings.quoteFields === "per-year";
  const whole = quoteAmount === "number" || quoteAmount === "minor-units" ? doubtful : eur("84.00");
  const shown = { upper: "ACTIVE", lower: "active", title: "Active", epp: "ok" }[settings.statusWords];
  const hasFields = settings.listItems === "records" || settings.listItems === "wrapped";
  const own = await outcome(upstream.domain(ask(), MANAGED_NAME));
  const { value: list } = await upstream.domains(ask());
  const checkOf2 = await outcome(upstream.check(ask(), AVAILABLE_NAME, 2));

  expect({
    available: await outcome(upstream.check(ask(), AVAILABLE_NAME, 1)),
    availableFor2:
      settings.checkYears === "ignored" && settings.checkEcho === "none" ? "not stated" : checkOf2,
    taken: await outcome(upstream.check(ask(), name("google.af"), 1)),
    renewal: await outcome(upstream.quote(ask(), RENEWAL)),
    renewalFor2: await outcome(upstream.quote(ask(), { ...RENEWAL, years: 2 })),
    whole: await outcome(upstream.quote(ask(), { tld: ".org.af", action: "restore", years: 1 })),
    own,
    listed: list.records.find(({ domain }) => domain === MANAGED_NAME.ascii),
    count: list.records.length,
    foreign: await outcome(upstream.domain(ask(), AVAILABLE_NAME)),
    balance: await outcome(upstream.balance(ask())),
    tier: await outcome(upstream.tier(ask())),
    invalid: await outcome(upstream.quote(ask(), { ...RENEWAL, tld: ".gov.af" })),
    pausesMs,
    isRefused: credentials.states()[0]?.refused,
  }).toEqual({
    available: { status: "available", wholesale: eur("19.90") },
    availableFor2:
      settings.checkYears !== "ignored"
        ? { status: "available", wholesale: eur("38.80") }
        : settings.checkEcho === "none"
          ? "not stated"
          : doubtful,
    taken: {
      status: "taken",
      ...(settings.takenPricing === "price" && { wholesale: eur("19.90") }),
    },
    renewal: ofYear("21.75"),
    renewalFor2: isUnit ? doubtful : ofYear("42.70"),
    whole,
    own: {
      domain: "teppich.com.af",
      status: shown,
      registeredAt: "2024-12-24T00:00:00.000Z",
      expiresAt: expect.stringMatching(/^\d{4}-12-24T00:00:00\.000Z$/),
      autoRenew: false,
      nameservers: ["ns1.sandbox-dns.af", "ns2.sandbox-dns.af"],
    },
    listed: hasFields
      ? own
      : expect.objectContaining({
          domain: "teppich.com.af",
          status: settings.listItems === "brief" ? shown : null,
        }),
    count: 2,
    foreign: null,
    balance: {
      accountNumber: "RS-100733",
      balance: "312.40",
      currency: "EUR",
      creditLimit: "0.00",
      activeDomains: 2,
    },
    tier: { currentTier: "Bronze", nextTier: "Silver", domainsNeeded: 8 },
    // With status 200 only success: false says that it is an error.
    invalid:
      inputStatus === 200 && (errorFlag === "absent" || errorFields === "text")
        ? doubtful
        : "upstream_failed",
    pausesMs: [],
    isRefused: false,
  });
}

/** Checks the top tier, with a reseller that has reached it. */
async function expectTopTier({ topTier, tierFields }: ShapeSettings): Promise<void> {
  const tier = await outcome(bench(sandbox.credential("big")).upstream.tier(ask()));
  expect([topTier, tier]).toEqual([
    topTier,
    { currentTier: "Platinum", nextTier: null, domainsNeeded: tierFields === "nested" ? null : 0 },
  ]);
}

const WAIT_S = 45;

/** A rate limit pauses the quota for long enough and the credential stays in use, even where a 403 could be about a single domain. */
async function expectLimit({ retryAfter }: ShapeSettings): Promise<void> {
  const credential = sandbox.control.createCredential("euro");
  const { upstream, pausesMs, credentials } = bench(credential);
  sandbox.control.setRateLimit({ limit: 1, windowMs: WAIT_S * 1000 });
  try {
    await upstream.balance(ask());
    const limited = [
      () => upstream.check(ask(), AVAILABLE_NAME, 1),
      () => upstream.domain(ask(), MANAGED_NAME),
    ];
    for (const call of limited) expect(await outcome(call())).toBe("quota_exhausted");
    expect(pausesMs).toHaveLength(limited.length);
    const least = (WAIT_S - 5) * 1000;
    const most = { seconds: WAIT_S + 1, date: WAIT_S + 2, absent: 60, milliseconds: 300, absurd: 300 };
    for (const pauseMs of pausesMs) {
      expect(pauseMs).toBeGreaterThanOrEqual(least);
      expect(pauseMs).toBeLessThanOrEqual(most[retryAfter] * 1000);
    }
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  } finally {
    sandbox.control.setRateLimit(WIDE);
    sandbox.control.revoke(credential.key);
  }
}

/** A credential that is revoked or excluded is marked as refused, and never mistaken for anything else. */
async function expectRefusals(): Promise<void> {
  const revoked = sandbox.control.createCredential("euro");
  sandbox.control.revoke(revoked.key);
  const elsewhere = sandbox.control.createCredential("euro");
  sandbox.control.setAllowlist(elsewhere.key, ["192.0.2.1"]);
  const check = ({ upstream }: Bench) => upstream.check(ask(), AVAILABLE_NAME, 1);
  const record = ({ upstream }: Bench) => upstream.domain(ask(), MANAGED_NAME);
  for (const [credential, call] of [
    [revoked, check],
    [revoked, record],
    [elsewhere, record],
    [sandbox.credential("locked"), check],
  ] as const) {
    const tried = bench(credential);
    expect(await outcome(call(tried))).toBe("upstream_failed");
    expect(tried.credentials.states()).toMatchObject([{ refused: true }]);
    expect(tried.pausesMs).toEqual([]);
  }
  sandbox.control.revoke(elsewhere.key);
}

describe("the service understands", () => {
  const rows = pairwise(
    Object.fromEntries(openPoints().map(({ name: point, point: { settings } }) => [point, settings])),
  );
  test("every pair of settings, because each pair occurs in one of the rows", () => {
    expect(rows.length).toBeGreaterThanOrEqual(60);
    const points = openPoints();
    for (const [at, one] of points.entries()) {
      for (const other of points.slice(at + 1)) {
        const pairs = new Set(rows.map((row) => `${row.get(one.name)} ${row.get(other.name)}`));
        expect(pairs.size).toBe(one.point.settings.length * other.point.settings.length);
      }
    }
  });
  test.each(rows.map((row, index) => [index, Object.fromEntries(row)] as const))(
    "row %i of the pairs of settings",
    async (_index, row) => {
      sandbox.control.setShapes(row);
      const settings = shapeSettings(row);
      await expectFacts(settings);
      await expectTopTier(settings);
      await expectLimit(settings);
      await expectRefusals();
    },
  );
});
