/** What is known about a name after checks of several terms, in any order; with a simulated clock and upstream. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { createPool } from "../../src/cache/cache.js";
import { createStamps } from "../../src/clock.js";
import { parseDomainName } from "../../src/domain-name.js";
import { parseWholesale, type Wholesale } from "../../src/money.js";
import {
  checkCaution,
  createNameFacts,
  type NameFact,
  type NameFacts,
  statusCaution,
  type VisitorAsk,
} from "../../src/storefront/name-facts.js";
import type { Answered } from "../../src/upstream/call.js";
import type { Check } from "../../src/upstream/contract.js";
import { FakeClock } from "../support/fake-clock.js";

const KABUL = parseDomainName("kabul.af", [".af"], "domain");
const STATUS_FRESH_MS = 20_000;
const CHECK_FRESH_MS = 60_000;
const USABLE_MS = 600_000;

function usd(amount: string): Wholesale {
  const price = parseWholesale(amount, "USD");
  if (price === null) throw new Error(`${amount} isn't a price`);
  return price;
}

/** A call in flight. `arrive` delivers its answer. */
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
    marks: { note: () => {} },
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

/** Waits a moment for the next call. */
async function nextCall(after = calls.length): Promise<Call> {
  await clock.advance(1);
  const call = calls[after];
  if (call === undefined) throw new Error("no call was made");
  return call;
}

/** Checks the name for this term, and delivers this answer. */
async function learn(years: number, answer: Check, sinceMs?: number): Promise<NameFact> {
  const before = calls.length;
  const found = facts.find(ask, KABUL, years, sinceMs);
  await (await nextCall(before)).arrive(answer);
  return found;
}

test("nothing is known at first, and then only about the term that was checked", async () => {
  expect([facts.taken(KABUL), facts.fresh(KABUL, 1)]).toEqual([undefined, undefined]);
  await learn(1, available());
  expect([1, 2].map((years) => facts.fresh(KABUL, years)?.status)).toEqual(["available", undefined]);
});

describe("a name that is taken by a check of one term", () => {
  test("is taken for every term, from memory", async () => {
    await learn(1, taken());
    const found = await facts.find(ask, KABUL, 2);
    expect([found.status, found.source, calls.length, hits()]).toEqual(["taken", "hit", 1, 1]);
    expect([facts.fresh(KABUL, 2), facts.taken(KABUL)]).toMatchObject([found, found]);
  });

  test('is taken for a term found available before, even once "taken" is past its freshness', async () => {
    await learn(2, available());
    await learn(1, taken());
    await clock.advance(STATUS_FRESH_MS + 1);
    const found = await facts.find(ask, KABUL, 2);
    expect([found.status, found.source, calls.length]).toEqual(["taken", "stale", 2]);
    expect(facts.taken(KABUL)).toEqual(found);
  });

  test("is checked again for a caller that needs a later check", async () => {
    await learn(1, taken());
    const found = await learn(2, available(), clock.monotonic());
    expect([found.status, found.source, facts.taken(KABUL)]).toEqual(["available", "miss", undefined]);
  });
});

describe("a name that is available again by a check of another term", () => {
  async function makeAvailableAgain(): Promise<void> {
    await learn(1, taken());
    await learn(2, available(), clock.monotonic());
  }

  test("is checked again for the term for which it was taken", async () => {
    await makeAvailableAgain();
    expect(facts.fresh(KABUL, 1)).toBeUndefined();
    expect([(await learn(1, available("19.00"))).status, calls.length]).toEqual(["available", 3]);
    expect(facts.fresh(KABUL, 1)).toMatchObject({ status: "available", source: "hit" });
  });

  test("is checked again even if the later status is past its freshness and the outdated check isn't", async () => {
    await makeAvailableAgain();
    await clock.advance(STATUS_FRESH_MS + 1);
    expect(facts.fresh(KABUL, 1)).toBeUndefined();
    expect((await learn(1, available())).status).toBe("available");
  });

  test("is taken if an even later check says so", async () => {
    await makeAvailableAgain();
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

describe("two overlapping checks that contradict each other", () => {
  /** The check for two years is requested first and answered last. */
  async function overlapping(sinceMs?: number): Promise<{ found: Promise<NameFact> }> {
    const found = facts.find(ask, KABUL, 2, sinceMs);
    const long = await nextCall(0);
    const short = facts.find(ask, KABUL, 1);
    await (await nextCall(1)).arrive(taken());
    expect((await short).status).toBe("taken");
    await long.arrive(available());
    return { found };
  }

  test("leave the name taken for a caller that accepts any fact", async () => {
    const { found } = await overlapping();
    expect([(await found).status, (await found).source, calls.length]).toEqual(["taken", "miss", 2]);
  });

  test("are decided by a third one, requested after both, for a caller that needs a recent check", async () => {
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
    const shown = facts.shownPrices(KABUL, [1, 2, 3]).map(({ what, pooled }) => [what.years, pooled.value]);
    expect(shown).toEqual([
      [1, { status: "available", wholesale: usd("1450.00"), epoch: "one" }],
      [2, { status: "available", wholesale: usd("2900.00"), epoch: "one" }],
    ]);
  });

  test("are unknown if the checks of a taken name have none", async () => {
    await learn(1, taken());
    expect(facts.shownPrices(KABUL, [1])).toEqual([]);
  });
});

describe("of two values, while it is unknown which is newer,", () => {
  const priced = (check: Check) => ({ ...check, epoch: "one" });

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
      checkCaution(priced(taken()), priced(taken())),
    ],
    [
      "the higher price beside a taken name wins",
      checkCaution(priced(taken("2.00")), priced(taken("1.00"))),
      checkCaution(priced(taken("1.00")), priced(taken("2.00"))),
      checkCaution(priced(taken("1.00")), priced(taken("1.00"))),
    ],
    [
      "a price beside a taken name wins over none",
      checkCaution(priced(taken("1.00")), priced(taken())),
      checkCaution(priced(taken()), priced(taken("1.00"))),
      checkCaution(priced(taken()), priced(taken())),
    ],
    [
      "the higher price wins",
      checkCaution(priced(available("21.00")), priced(available("20.00"))),
      checkCaution(priced(available("20.00")), priced(available("21.00"))),
      checkCaution(priced(available()), priced(available())),
    ],
  ])("%s", (_what, more, less, equal) => {
    expect([Math.sign(more), Math.sign(less), equal]).toEqual([1, -1, 0]);
  });
});
