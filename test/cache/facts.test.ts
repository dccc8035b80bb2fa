/** Which fact holds never depends on the order of arrival, and never contradicts the intervals. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Caution, type Evidence, type Fact, weigh } from "../../src/cache/facts.js";

type Status = "available" | "reserved" | "taken";

const RANK: Readonly<Record<Status, number>> = { available: 0, reserved: 1, taken: 2 };
const caution: Caution<Status> = (a, b) => RANK[a] - RANK[b];

const fact = (value: Status, askedMs: number, answeredMs: number): Fact<Status> => ({
  value,
  askedMs,
  answeredMs,
});

function weighAll(facts: readonly Fact<Status>[]): Evidence<Status> {
  const [first, ...others] = facts;
  if (first === undefined) throw new Error("there are no facts");
  return others.reduce((evidence, next) => weigh(evidence, next, caution), weigh(undefined, first, caution));
}

/** Facts that may overlap. No two of their stamps are equal. */
const overlapping = fc
  .uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 2, maxLength: 16 })
  .chain((stamps) =>
    fc
      .array(fc.constantFrom<Status>("available", "reserved", "taken"), { minLength: 8, maxLength: 8 })
      .map((values) =>
        values.flatMap((value, index): Fact<Status>[] => {
          const [a, b] = [stamps[2 * index], stamps[2 * index + 1]];
          return a === undefined || b === undefined ? [] : [fact(value, Math.min(a, b), Math.max(a, b))];
        }),
      ),
  );

const inAnyOrder = overlapping.chain((facts) =>
  fc.record({
    facts: fc.constant(facts),
    order: fc.shuffledSubarray(facts, { minLength: facts.length, maxLength: facts.length }),
  }),
);

/** Facts that don't overlap, in the order of their requests. */
const sequential = fc
  .array(fc.constantFrom<Status>("available", "taken"), { minLength: 1, maxLength: 10 })
  .map((values) => values.map((value, index) => fact(value, 10 * index, 10 * index + 5)));

const RUNS = { numRuns: 2_000 };

function standingOf(facts: readonly Fact<Status>[]): Fact<Status>[] {
  return facts.filter((one) => facts.every((other) => one.answeredMs >= other.askedMs));
}

const byAsking = (facts: readonly Fact<Status>[]): Fact<Status>[] =>
  [...facts].sort((a, b) => a.askedMs - b.askedMs);

describe("the fact that holds", () => {
  test("is the most cautious of those that no later one has replaced, and among equal ones the one requested last", () => {
    fc.assert(
      fc.property(inAnyOrder, ({ facts, order }) => {
        const { held, settled, standing } = weighAll(order);
        const expected = standingOf(facts);
        expect(byAsking(standing)).toEqual(byAsking(expected));
        const rank = Math.max(...expected.map(({ value }) => RANK[value]));
        const cautious = byAsking(expected).filter(({ value }) => RANK[value] === rank);
        expect(held).toEqual(cautious.at(-1));
        expect(settled).toBe(cautious.length === expected.length);
      }),
      RUNS,
    );
  });

  test("is the same for every order of arrival, even if facts arrive more than once", () => {
    fc.assert(
      fc.property(inAnyOrder, fc.infiniteStream(fc.nat()), ({ facts, order }, numbers) => {
        const again = [...numbers.take(4)].flatMap((at) => facts[at % facts.length] ?? []);
        const once = weighAll(facts);
        const otherwise = weighAll([...order, ...again]);
        expect(otherwise.held).toEqual(once.held);
        expect(otherwise.settled).toBe(once.settled);
        expect(otherwise.standing).toHaveLength(once.standing.length);
      }),
      RUNS,
    );
  });

  test("isn't weighed again when a standing fact arrives again", () => {
    const evidence = weighAll([fact("taken", 0, 10), fact("available", 5, 15)]);
    expect(weigh(evidence, fact("taken", 0, 10), caution)).toBe(evidence);
    expect(weigh(evidence, fact("available", 5, 15), caution)).toBe(evidence);
  });

  test("is replaced by even a less cautious fact requested after its answer, but not by one requested at that moment", () => {
    expect(weighAll([fact("taken", 0, 10), fact("available", 11, 20)]).held.value).toBe("available");
    const together = weighAll([fact("taken", 0, 10), fact("available", 10, 20)]);
    expect(together).toMatchObject({ held: { value: "taken" }, settled: false });
  });
});

describe("a run of equal answers", () => {
  const runs = fc.property(inAnyOrder, ({ order }) => {
    // After each arrival, not only after the last.
    for (let known = 1; known <= order.length; known += 1) {
      const arrived = order.slice(0, known);
      const { held, settled, unchangedSinceMs } = weighAll(arrived);
      if (!settled) {
        expect(unchangedSinceMs).toBe(Infinity);
        continue;
      }
      const differing = arrived.filter(({ value }) => value !== held.value);
      expect(differing.filter(({ answeredMs }) => answeredMs >= unchangedSinceMs)).toEqual([]);
      const starts = arrived.filter(({ value }) => value === held.value).map(({ answeredMs }) => answeredMs);
      expect(starts).toContain(unchangedSinceMs);
      expect(unchangedSinceMs).toBeLessThanOrEqual(held.answeredMs);
    }
  });

  test("starts with an answer equal to the current one, after every different one, whatever the order of arrival", () => {
    fc.assert(runs, { ...RUNS, numRuns: 3_000 });
  });

  test("starts with the first answer after the last different one, if the answers don't overlap", () => {
    fc.assert(
      fc.property(sequential, (facts) => {
        const { held, unchangedSinceMs } = weighAll(facts);
        const lastDiffering = facts.findLastIndex(({ value }) => value !== held.value);
        expect(unchangedSinceMs).toBe(facts[lastDiffering + 1]?.answeredMs);
      }),
      RUNS,
    );
  });

  test("isn't extended by an equal answer that arrives late, because a different one may lie between them", () => {
    const between = fact("taken", 20, 30);
    const { unchangedSinceMs } = weighAll([fact("available", 40, 50), between, fact("available", 0, 10)]);
    expect(unchangedSinceMs).toBe(50);
    expect(weighAll([fact("available", 40, 50), fact("available", 0, 10)]).unchangedSinceMs).toBe(50);
  });

  test("is ended by a different answer that arrives late and falls within it", () => {
    const run = [fact("available", 0, 10), fact("available", 40, 50)];
    expect(weighAll(run).unchangedSinceMs).toBe(10);
    expect(weighAll([...run, fact("taken", 20, 30)])).toMatchObject({ held: run[1], unchangedSinceMs: 50 });
    // Only its end falls within the run.
    expect(weighAll([...run, fact("taken", 5, 11)]).unchangedSinceMs).toBe(50);
    expect(weighAll([...run, fact("taken", 5, 10)]).unchangedSinceMs).toBe(50);
    expect(weighAll([...run, fact("taken", 5, 9)]).unchangedSinceMs).toBe(10);
  });
});

describe("when answers overtake each other,", () => {
  test("a slow one doesn't make a taken name available again before it is requested again", () => {
    const slow = fact("available", 0, 3_000);
    const inBetween = fact("taken", 1_000, 1_200);
    for (const order of [
      [slow, inBetween],
      [inBetween, slow],
    ]) {
      const evidence = weighAll(order);
      expect(evidence).toMatchObject({ held: inBetween, settled: false, unchangedSinceMs: Infinity });
      const again = fact("available", 3_001, 3_100);
      expect(weigh(evidence, again, caution)).toMatchObject({
        held: again,
        settled: true,
        unchangedSinceMs: 3_100,
      });
    }
  });

  test("a name is taken if it is taken for one of two terms", () => {
    const oneYear = fact("available", 0, 40);
    const twoYears = fact("taken", 10, 30);
    expect(weighAll([twoYears, oneYear]).held).toEqual(twoYears);
    expect(weighAll([oneYear, twoYears]).held).toEqual(twoYears);
  });

  test("the higher price counts if a quote was requested before a price change and answered after it", () => {
    const higher: Caution<string> = (a, b) => Number(a) - Number(b);
    const slow: Fact<string> = { value: "17.31", askedMs: 0, answeredMs: 3_000 };
    const changed: Fact<string> = { value: "22.50", askedMs: 2_000, answeredMs: 2_100 };
    const evidence = weigh(weigh(undefined, changed, higher), slow, higher);
    expect(evidence).toMatchObject({ held: changed, settled: false });
    const confirmed: Fact<string> = { value: "22.50", askedMs: 3_500, answeredMs: 3_600 };
    expect(weigh(evidence, confirmed, higher)).toMatchObject({ held: confirmed, settled: true });
  });
});
