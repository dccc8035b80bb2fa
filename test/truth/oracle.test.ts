/** The oracle itself: it reports what was once wrongly shown or signed, and accepts correct answers. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { Evidence } from "./evidence.js";
import type { TermName, WorldStep } from "./history.js";
import { Oracle, type ShownAvailability } from "./oracle.js";
import { judgeSigned } from "./signing.js";
import { costOf, NAMES, partsOf, registrationOf, retail, World } from "./world.js";

const KABUL = 0;
const LATER_MS = 120_000;

let nowMs: number;
let world: World;
let evidence: Evidence;
let oracle: Oracle;
beforeEach(() => {
  nowMs = 0;
  world = new World({ schedule: () => 0, scheduled: () => [] }, () => nowMs);
  evidence = new Evidence();
  oracle = new Oracle(world, evidence);
});

const kinds = (): string[] => oracle.violations.map(({ kind }) => kind);
const money = (cents: number) => ({ cents, currency: "USD" });
const moments = (askedMs: number, arrivedMs: number) => ({
  arrivedMs: askedMs,
  decidedMs: askedMs,
  deliveredMs: arrivedMs,
});
const exchange = () => ({ startedMs: nowMs, endedMs: nowMs, isCalm: true });

function at(ms: number, step?: WorldStep): void {
  nowMs = ms;
  if (step !== undefined) world.change(step);
}
/** Adds a check with the current truth, which arrives at `arrivedMs`. */
function checked(years = 1, arrivedMs = nowMs): number {
  const domain = NAMES[KABUL];
  const cents = registrationOf(world.now, domain, years);
  const fact = { domain, years, available: !world.now.taken.has(domain), price: money(cents) };
  evidence.add({ operation: "check", fact, ...moments(nowMs, arrivedMs) }, false);
  return cents;
}
function quoted(term: TermName, arrivedMs = nowMs): number {
  const cents = costOf(world.now, term);
  const fact = { tld: ".af", ...partsOf(term), price: money(cents) };
  evidence.add({ operation: "quote", fact, ...moments(nowMs, arrivedMs) }, false);
  return cents;
}
function tierSeen(): void {
  const fact = { current: `T${world.now.tier}`, next: null, domainsNeeded: 0 };
  evidence.add({ operation: "tier", fact, ...moments(nowMs, nowMs) }, false);
}
function shown(cents: number | null, more: Partial<ShownAvailability> = {}): void {
  const answer = {
    status: "available",
    premium: false,
    cents,
    asOfMs: nowMs,
    stale: false,
    ...more,
  } as const;
  oracle.availability(KABUL, 1, answer, exchange());
}
const signed = (term: TermName, cents: number, wasPremium = false): void =>
  judgeSigned(oracle, { name: KABUL, term, cents }, wasPremium, exchange());

describe("the oracle accepts", () => {
  test("what was true, shown as soon as it is known and within its claimed age", () => {
    quoted("registration 1");
    const cents = retail(checked(), false);
    shown(cents);
    at(30_000, { taken: KABUL, is: true });
    shown(cents, { asOfMs: 0 });
    expect(kinds()).toEqual([]);
  });

  test("a premium name, a doubtful price marked as stale, and a signed price based on a fresh fact", () => {
    const old = quoted("renewal 1");
    at(1_000, { premium: KABUL, cents: 90_000 });
    const premium = retail(checked(), true);
    shown(premium, { premium: true });
    signed("registration 1", premium);
    at(LATER_MS, { list: 120 });
    quoted("registration 1");
    at(LATER_MS + 1);
    oracle.quote("renewal 1", retail(old, false), 0, true, exchange());
    at(LATER_MS + 2);
    signed("renewal 1", retail(quoted("renewal 1"), false));
    expect(kinds()).toEqual([]);
  });

  test("a check from before the new quotes, once the quote for its term agrees with it", () => {
    quoted("registration 1");
    at(LATER_MS, { list: 120 });
    const cents = checked();
    at(LATER_MS + 1);
    quoted("registration 1");
    at(LATER_MS + 2);
    shown(retail(cents, false));
    signed("registration 1", retail(cents, false));
    expect(kinds()).toEqual([]);
  });
});

describe("the oracle reports", () => {
  test("T1: an ordinary name shown and signed as premium after a change of the price list", () => {
    quoted("registration 1");
    at(LATER_MS, { list: 130 });
    const cents = retail(checked(), true);
    shown(cents, { premium: true });
    signed("registration 1", cents);
    expect(kinds()).toEqual(["shown: a price that was not true", "signed: under the wrong rule"]);
  });

  test("T2: an old check compared with a new quote", () => {
    const cents = retail(checked(), true);
    at(LATER_MS, { list: 130 });
    quoted("registration 1");
    shown(cents, { premium: true, asOfMs: LATER_MS });
    signed("registration 1", cents);
    expect(kinds()).toEqual(["shown: a price that was not true", "signed: under the wrong rule"]);
  });

  test("T3: a renewal signed at an outdated cost, below the floor and above it", () => {
    const cents = retail(quoted("renewal 1"), false);
    at(1, { price: "renewal 1", cents: 9_000 });
    at(LATER_MS);
    signed("renewal 1", cents);
    at(LATER_MS + 1, { price: "renewal 1", cents: 1_000 });
    at(2 * LATER_MS);
    signed("renewal 1", cents);
    expect(kinds()).toEqual(["signed: below floor", "signed: an outdated price"]);
  });

  test.each([1, 2])(
    "T4: a late 'available' in place of 'taken', which was learned with a term of %s",
    (years) => {
      const cents = retail(checked(1, 3_000), false);
      at(1_000, { taken: KABUL, is: true });
      checked(years, 1_500);
      at(4_000);
      shown(cents);
      signed("registration 1", cents);
      expect(kinds()).toEqual([
        "shown: a status that was already contradicted",
        "signed: a status that was already contradicted",
      ]);
      at(70_000);
      shown(cents, { asOfMs: 0 });
      signed("registration 1", cents);
      expect(kinds().slice(2)).toEqual([
        "shown: a status that was not true",
        "shown: a status that was already contradicted",
        "signed: a name that was not available",
        "signed: a status that was already contradicted",
      ]);
    },
  );

  test("T5: an ordinary renewal of a name that was shown as premium", () => {
    signed("renewal 1", retail(quoted("renewal 1"), false), true);
    expect(kinds()).toEqual(["signed: an ordinary price for a name shown as premium"]);
  });

  test("T6: prices of a previous tier, shown as fresh and signed", () => {
    tierSeen();
    const cents = retail(quoted("renewal 1"), false);
    at(10_000, { tier: 5 });
    tierSeen();
    at(10_001);
    oracle.quote("renewal 1", cents, 0, false, exchange());
    signed("renewal 1", cents);
    expect(kinds()).toEqual([
      "shown: a doubtful price as certain",
      "signed: a price that was already doubtful",
    ]);
  });

  test("an 'available' from more than a minute ago, whatever age it claims, and a price older than it claims", () => {
    const cents = retail(checked(), false);
    at(1_000, { taken: KABUL, is: true });
    at(LATER_MS);
    shown(cents, { asOfMs: 0, stale: true });
    oracle.listed("renewal 1", cents, 0, nowMs);
    expect(kinds()).toEqual(["shown: a status that was not true", "shown: a price that was not true"]);
  });
});
