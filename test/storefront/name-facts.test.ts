/** What is known of a name, by which checks of which terms, whatever order they come in; with time and the upstream in the test's hand. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { createPool } from "../../src/cache/cache.js";
import { createStamps } from "../../src/clock.js";
import { parseDomainName } from "../../src/domain-name.js";
import { parseWholesale, type Wholesale } from "../../src/money.js";
import {
  checkCaution,
  createNameFacts,
  decodeStoredPricedCheck,
  decodeStoredStatus,
  type NameFact,
  type NameFacts,
  statusCaution,
  type VisitorAsk,
} from "../../src/storefront/name-facts.js";
import {
  createPremiumMarks,
  decodeStoredPremium,
  premiumCaution,
} from "../../src/storefront/premium-marks.js";
import type { Answered } from "../../src/upstream/call.js";
import type { Check } from "../../src/upstream/contract.js";
import { FakeClock } from "../support/fake-clock.js";

const KABUL = parseDomainName("kabul.af", [".af"], "domain");
const STATUS_FRESH_MS = 20_000;
const CHECK_FRESH_MS = 60_000;
const USABLE_MS = 600_000;

function usd(amount: string): Wholesale {
  const price = parseWholesale(amount, "USD");
  if (price === null) throw new Error(`${amount} is no price`);
  return price;
}

/** A call under way: `arrive` lets the upstream decide and its answer come in. */
interface Call {
  readonly years: number;
  arrive(answer: Check): Promise<void>;
}

let clock: FakeClock;
let facts: NameFacts;
let calls: Call[];
let hits: () => number;

beforeEach(() => {
  clock = new FakeClock();
  calls = [];
  const stamp = createStamps(clock);
  const poolOf = { entries: 100, failureMs: 0, clock, stamp };
  const checks = createPool<Parameters<typeof checkCaution>[0], VisitorAsk>({
    ...poolOf,
    freshness: () => ({ freshMs: CHECK_FRESH_MS, usableMs: USABLE_MS }),
    caution: checkCaution,
  });
  hits = () => checks.stats().counts.hit;
  facts = createNameFacts({
    pools: {
      checks,
      statuses: createPool({
        ...poolOf,
        freshness: () => ({ freshMs: STATUS_FRESH_MS, usableMs: USABLE_MS }),
        caution: statusCaution,
      }),
    },
    marks: createPremiumMarks({
      pool: createPool({
        ...poolOf,
        freshness: () => ({ freshMs: USABLE_MS, usableMs: USABLE_MS }),
        caution: premiumCaution,
      }),
      file: null,
      clock,
    }),
    epochs: { of: () => "one" },
    check(_ask, _name, years) {
      const askedMs = stamp();
      return new Promise<Answered<Check>>((done) => {
        calls.push({
          years,
          async arrive(value) {
            done({ value, askedMs, answeredMs: stamp() });
            await clock.advance(1);
          },
        });
      });
    },
  });
});

const ask: VisitorAsk = {
  lane: "exact",
  client: "visitor",
  waitUntilMs: Infinity,
  signal: new AbortController().signal,
  spend: () => undefined,
};

const available = (amount = "20.00"): Check => ({ status: "available", wholesale: usd(amount) });
const taken = (amount?: string): Check => ({
  status: "taken",
  ...(amount !== undefined && { wholesale: usd(amount) }),
});

/** The call that is made next, once it is under way. */
async function nextCall(after = calls.length): Promise<Call> {
  await clock.advance(1);
  const call = calls[after];
  if (call === undefined) throw new Error("no call was made");
  return call;
}

/** Has the name checked for this term, after a moment. */
async function learn(years: number, answer: Check, sinceMs?: number): Promise<NameFact> {
  const before = calls.length;
  const found = facts.find(ask, KABUL, years, sinceMs);
  await (await nextCall(before)).arrive(answer);
  return found;
}

test("nothing is known at first, and then of one term", async () => {
  expect([facts.isUnknown(KABUL, 1), facts.taken(KABUL), facts.fresh(KABUL, 1)]).toEqual([
    true,
    undefined,
    undefined,
  ]);
  await learn(1, available());
  expect([1, 2].map((years) => facts.isUnknown(KABUL, years))).toEqual([false, true]);
});

describe("taken, learned with one term", () => {
  test("is the answer for every term, from memory", async () => {
    await learn(1, taken());
    const found = await facts.find(ask, KABUL, 2);
    expect([found.status, found.source, calls.length, hits()]).toEqual(["taken", "hit", 1, 1]);
    expect([facts.fresh(KABUL, 2), facts.taken(KABUL)]).toEqual([found, found]);
    expect(facts.isUnknown(KABUL, 2)).toBe(false);
  });

  test("ends what another term has shown, also once it is past its freshness itself", async () => {
    await learn(2, available());
    await learn(1, taken());
    await clock.advance(STATUS_FRESH_MS + 1);
    const found = await facts.find(ask, KABUL, 2);
    expect([found.status, found.source, calls.length]).toEqual(["taken", "stale", 2]);
    expect(facts.taken(KABUL)).toEqual(found);
  });

  test("is not believed by who needs a later check", async () => {
    await learn(1, taken());
    const found = await learn(2, available(), clock.monotonic());
    expect([found.status, found.source, facts.taken(KABUL)]).toEqual(["available", "miss", undefined]);
  });
});

describe("a name that is available again by a check of another term", () => {
  async function isAvailableAgain(): Promise<void> {
    await learn(1, taken());
    await learn(2, available(), clock.monotonic());
  }

  test("is asked for again where it was taken", async () => {
    await isAvailableAgain();
    expect(facts.fresh(KABUL, 1)).toBeUndefined();
    expect([(await learn(1, available("19.00"))).status, calls.length]).toEqual(["available", 3]);
    expect(facts.fresh(KABUL, 1)).toMatchObject({ status: "available", source: "hit" });
  });

  test("is so too when what outdated the check is past its freshness, and the check is not", async () => {
    await isAvailableAgain();
    await clock.advance(STATUS_FRESH_MS + 1);
    expect(facts.fresh(KABUL, 1)).toBeUndefined();
    expect((await learn(1, available())).status).toBe("available");
  });

  test("stays taken where a still later check says so", async () => {
    await isAvailableAgain();
    await learn(1, taken(), clock.monotonic());
    expect([facts.fresh(KABUL, 1), facts.fresh(KABUL, 2)]).toMatchObject([
      { status: "taken", source: "hit" },
      { status: "taken", source: "hit" },
    ]);
    await clock.advance(STATUS_FRESH_MS + 1);
    expect([await facts.find(ask, KABUL, 1), calls.length]).toMatchObject([
      { status: "taken", source: "hit" },
      3,
    ]);
  });
});

describe("two checks under way at the same time that contradict each other", () => {
  /** The check for two years is asked first and answered last. */
  async function overlapping(sinceMs?: number): Promise<{ found: Promise<NameFact> }> {
    const found = facts.find(ask, KABUL, 2, sinceMs);
    const long = await nextCall(0);
    const short = facts.find(ask, KABUL, 1);
    await (await nextCall(1)).arrive(taken());
    expect((await short).status).toBe("taken");
    await long.arrive(available());
    return { found };
  }

  test("leave the name taken for who only looks", async () => {
    const { found } = await overlapping();
    expect([(await found).status, (await found).source, calls.length]).toEqual(["taken", "miss", 2]);
  });

  test("are decided by a third one for who has to be sure, asked after both", async () => {
    const { found } = await overlapping(clock.monotonic());
    expect(calls).toHaveLength(3);
    await calls[2]?.arrive(available());
    expect([(await found).status, (await found).source]).toEqual(["available", "miss"]);
    expect(facts.taken(KABUL)).toBeUndefined();
  });
});

describe("a name's own prices", () => {
  test("are those of its known checks, whether it is available or taken", async () => {
    await learn(1, available("1450.00"));
    await learn(2, taken("2900.00"), clock.monotonic());
    const shown = facts.shownPrices(KABUL, [1, 2, 3]).map(({ years, pooled }) => [years, pooled.value]);
    expect(shown).toEqual([
      [1, { status: "available", wholesale: usd("1450.00"), epoch: "one" }],
      [2, { status: "available", wholesale: usd("2900.00"), epoch: "one" }],
    ]);
  });

  test("don't come with every taken name", async () => {
    await learn(1, taken());
    expect(facts.shownPrices(KABUL, [1])).toEqual([]);
  });
});

describe("a name that was found to be premium", () => {
  async function decided(isPremium: boolean, years = 1, amount = "1450.00"): Promise<void> {
    const found = await learn(years, available(amount), clock.monotonic());
    if (found.status === "available") facts.noteVerdict(KABUL, years, found.pooled, isPremium);
    await clock.advance(1);
  }

  test("is so at that price, for that term", async () => {
    await decided(true);
    expect(facts.isPremium(KABUL)).toBe(true);
    const known = [
      [1, "1450.00"],
      [2, "1450.00"],
      [1, "1450.01"],
    ] as const;
    expect(known.map(([years, amount]) => facts.isKnownPremium(KABUL, years, usd(amount)))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("is ordinary again by a later decision, and not by an earlier one", async () => {
    const early = await learn(1, available("20.00"));
    await decided(true);
    if (early.status === "available") facts.noteVerdict(KABUL, 1, early.pooled, false);
    await clock.advance(1);
    expect(facts.isPremium(KABUL)).toBe(true);
    await decided(false, 1, "20.00");
    expect([facts.isPremium(KABUL), facts.isKnownPremium(KABUL, 1, usd("20.00"))]).toEqual([false, false]);
  });

  test("is none of those of which nothing was decided, or that they are ordinary", async () => {
    expect(facts.isPremium(KABUL)).toBe(false);
    await decided(false);
    expect([facts.isPremium(KABUL), facts.isKnownPremium(KABUL, 1, usd("1450.00"))]).toEqual([false, false]);
  });
});

describe("of two values, while it is unknown which is newer,", () => {
  const priced = (check: Check) => ({ ...check, epoch: "one" });
  const mark = (isPremium: boolean) => ({ isPremium, years: 1, wholesale: usd("20.00") });

  test.each([
    [
      "taken wins",
      statusCaution("taken", "available"),
      statusCaution("available", "taken"),
      statusCaution("taken", "taken"),
    ],
    [
      "a check that says taken wins, whatever it costs",
      checkCaution(priced(taken()), priced(available("99.00"))),
      checkCaution(priced(available()), priced(taken("99.00"))),
      checkCaution(priced(taken("1.00")), priced(taken("2.00"))),
    ],
    [
      "the higher price wins",
      checkCaution(priced(available("21.00")), priced(available("20.00"))),
      checkCaution(priced(available("20.00")), priced(available("21.00"))),
      checkCaution(priced(available()), priced(available())),
    ],
    [
      "premium wins",
      premiumCaution(mark(true), mark(false)),
      premiumCaution(mark(false), mark(true)),
      premiumCaution(mark(true), mark(true)),
    ],
  ])("%s", (_what, more, less, equal) => {
    expect([Math.sign(more), Math.sign(less), equal]).toEqual([1, -1, 0]);
  });
});

describe("what was stored is read back", () => {
  const price = { kind: "wholesale", amount: "20.00", currency: "USD" };

  test.each([
    ["available", decodeStoredStatus, "available"],
    ["taken", decodeStoredStatus, "taken"],
    ["an available name", decodeStoredPricedCheck, { status: "available", wholesale: price, epoch: "one" }],
    ["a taken name", decodeStoredPricedCheck, { status: "taken", epoch: "one" }],
    [
      "a taken name with a price",
      decodeStoredPricedCheck,
      { status: "taken", wholesale: price, epoch: "one" },
    ],
    ["a premium name", decodeStoredPremium, { isPremium: true, years: 2, wholesale: price }],
  ])("as it was: %s", (_what, decode, stored) => {
    expect(decode(JSON.parse(JSON.stringify(stored)))).toEqual(stored);
  });

  test.each([
    ["another word", decodeStoredStatus, "reserved"],
    ["no text", decodeStoredStatus, ""],
    ["an available name without a price", decodeStoredPricedCheck, { status: "available", epoch: "one" }],
    ["a check without its epoch", decodeStoredPricedCheck, { status: "taken" }],
    ["a check of no status", decodeStoredPricedCheck, { status: "reserved", wholesale: price, epoch: "one" }],
    ["no term", decodeStoredPremium, { isPremium: true, years: 0, wholesale: price }],
    ["a mark with more", decodeStoredPremium, { isPremium: true, years: 1, wholesale: price, more: 1 }],
    ["no mark", decodeStoredPremium, null],
  ])("and nothing else: %s", (_what, decode, stored) => {
    expect(decode(stored)).toBeUndefined();
  });
});
