/** Which prices are trusted: what each kind of evidence makes doubtful on startup, during a request, and on other replicas. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { createStamps } from "../../src/clock.js";
import type { Wholesale } from "../../src/money.js";
import {
  createPriceEpochs,
  type InEpoch,
  type PriceEpochs,
  type PriceEvidence,
} from "../../src/retail/price-epoch.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const START = Date.UTC(2026, 2, 20);
const DAY_MS = 24 * 3_600_000;

const usd = (amount: string): Wholesale => ({ kind: "wholesale", amount, currency: "USD" });
const QUOTE: PriceEvidence = {
  kind: "quote",
  tld: "af",
  action: "renewal",
  years: 2,
  from: usd("17.31"),
  to: usd("22.50"),
};
const PURGE: PriceEvidence = { kind: "purge" };

let clock: FakeClock;
let stamp: () => number;
let lines: string[];
let epochs: PriceEpochs;

function createEpochs(): PriceEpochs {
  return createPriceEpochs({ stamp, clock, log: recordingLog(lines) });
}

/** A price requested and answered now. */
function asked(of: PriceEpochs = epochs): InEpoch {
  const askedMs = stamp();
  return { epoch: of.of(askedMs), askedMs };
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  lines = [];
  epochs = createEpochs();
  epochs.resume(null);
});

describe.each<PriceEvidence>([QUOTE, PURGE, { kind: "tier", from: "gold", to: "silver" }])(
  "evidence of the kind $kind",
  (evidence) => {
    test("makes every price requested before it doubtful, and none requested after it", () => {
      const before = asked();
      expect(epochs.isDoubtful(before)).toBe(false);
      epochs.end(evidence);
      expect(epochs.isDoubtful(before)).toBe(true);
      const after = asked();
      expect(epochs.isDoubtful(after)).toBe(false);
      epochs.end(evidence);
      expect([before, after].map(epochs.isDoubtful)).toEqual([true, true]);
    });

    test("labels a request in flight with the epoch that it ends", () => {
      const askedMs = stamp();
      epochs.end(evidence);
      const answered = { epoch: epochs.of(askedMs), askedMs };
      expect(epochs.isDoubtful(answered)).toBe(true);
      epochs.end(evidence);
      expect(epochs.isDoubtful({ epoch: epochs.of(askedMs), askedMs })).toBe(true);
    });

    test("can itself be labelled with the epoch that it starts", () => {
      const askedMs = stamp();
      epochs.end(evidence);
      expect(epochs.isDoubtful({ epoch: epochs.current(), askedMs })).toBe(false);
    });

    test("is listed for staff with its time, and reported to listeners", () => {
      let calls = 0;
      epochs.onChange(() => (calls += 1));
      epochs.end(evidence);
      expect(calls).toBe(1);
      expect(epochs.ended()).toEqual([{ evidence, atMs: START }]);
    });
  },
);

describe("the ended epochs", () => {
  test("are kept for a day, at most fifty of them, newest first", async () => {
    epochs.end(PURGE);
    await clock.advance(1_000);
    epochs.end(QUOTE);
    expect(epochs.ended().map(({ evidence, atMs }) => [evidence.kind, atMs - START])).toEqual([
      ["quote", 1_000],
      ["purge", 0],
    ]);
    await clock.advance(DAY_MS - 1_000);
    expect(epochs.ended().map(({ evidence }) => evidence.kind)).toEqual(["quote"]);
    for (let times = 0; times < 60; times += 1) epochs.end(PURGE);
    expect(epochs.ended()).toHaveLength(50);
  });

  test("never return: no two epochs have the same mark", () => {
    const marks = new Set([epochs.current()]);
    for (const evidence of [QUOTE, QUOTE, PURGE, PURGE, QUOTE]) {
      epochs.end(evidence);
      marks.add(epochs.current());
    }
    expect(marks.size).toBe(6);
  });

  test("are logged with their kind and combination, but without amounts", () => {
    epochs.end(QUOTE);
    epochs.end(PURGE);
    const logged = lines.join("\n");
    expect(logged).toContain("prices.epoch.ended");
    expect(logged).toContain("renewal");
    expect(logged).not.toMatch(/17\.31|22\.50|USD/);
  });
});

describe("a price that differs from an earlier one", () => {
  test("only confirms a change that was noticed since the earlier one was requested", () => {
    const before = asked();
    epochs.end(QUOTE);
    expect(epochs.hasChangedSince(before)).toBe(true);
    epochs.end(PURGE);
    expect(epochs.hasChangedSince(before)).toBe(true);
    const after = asked();
    expect(epochs.hasChangedSince(after)).toBe(false);
    epochs.noteTier("gold", stamp());
    epochs.noteTier("silver", stamp());
    expect(epochs.hasChangedSince(after)).toBe(true);
  });

  test("is a new change after a purge, which doesn't prove a change", () => {
    epochs.end(QUOTE);
    const before = asked();
    epochs.end(PURGE);
    epochs.end(PURGE);
    expect(epochs.hasChangedSince(before)).toBe(false);
  });

  test("only confirms a change since the epoch of the earlier one, even if that has a later time by another clock", () => {
    const { epoch } = asked();
    epochs.end(QUOTE);
    expect(epochs.hasChangedSince({ epoch, askedMs: stamp() })).toBe(true);
  });

  test("is compared by request time if the epoch of the earlier one is unknown", () => {
    const askedMs = stamp();
    epochs.end(QUOTE);
    expect(epochs.hasChangedSince({ epoch: "of another replica", askedMs })).toBe(true);
    expect(epochs.hasChangedSince({ epoch: "of another replica", askedMs: stamp() })).toBe(false);
  });

  test("belongs to no known epoch if it was requested before the oldest one", () => {
    const askedMs = stamp();
    const first = epochs.of(askedMs);
    for (let ended = 0; ended < 50; ended += 1) epochs.end(PURGE);
    expect(epochs.of(askedMs)).not.toBe(first);
    expect(epochs.isDoubtful({ epoch: epochs.of(askedMs), askedMs })).toBe(true);
  });
});

describe("the tier", () => {
  test("ends the epoch if it has changed, and only then", () => {
    expect(epochs.tier()).toBeNull();
    epochs.noteTier("gold", stamp());
    const before = asked();
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(before)).toBe(false);
    expect(epochs.ended()).toEqual([]);
    epochs.noteTier("silver", stamp());
    expect(epochs.tier()).toBe("silver");
    expect(epochs.isDoubtful(before)).toBe(true);
    expect(epochs.ended()).toEqual([{ evidence: { kind: "tier", from: "gold", to: "silver" }, atMs: START }]);
    expect(lines.join("\n")).toContain("account.tier.changed");
  });

  test("that changes back ends an epoch again, and makes no earlier price trusted", () => {
    epochs.noteTier("gold", stamp());
    const gold = asked();
    epochs.noteTier("silver", stamp());
    const silver = asked();
    epochs.noteTier("gold", stamp());
    expect([gold, silver].map(epochs.isDoubtful)).toEqual([true, true]);
    expect(epochs.ended()).toHaveLength(2);
  });
});

describe("saved prices", () => {
  let saved: InEpoch;

  /** Starts with saved prices that were learned under that tier. */
  function restart(tier: string | null): void {
    epochs = createEpochs();
    saved = { epoch: epochs.current(), askedMs: stamp() - 3_600_000 };
    epochs.resume(tier);
    saved = { ...saved, epoch: epochs.current() };
  }

  test("are doubtful until the tier is known to be the one they were learned under", () => {
    restart("gold");
    expect(epochs.awaitsTierSinceMs()).not.toBeNull();
    expect(epochs.isDoubtful(saved)).toBe(true);
    let changes = 0;
    epochs.onChange(() => (changes += 1));
    epochs.noteTier("gold", stamp());
    expect(epochs.awaitsTierSinceMs()).toBeNull();
    expect(epochs.isDoubtful(saved)).toBe(false);
    expect(changes).toBeGreaterThan(0);
    expect(epochs.ended()).toEqual([]);
  });

  test("aren't confirmed by a tier that was requested before the start, which may have changed in between", () => {
    const beforeMs = stamp();
    restart("gold");
    epochs.noteTier("gold", beforeMs);
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.awaitsTierSinceMs()).toBeGreaterThan(beforeMs);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(false);
  });

  test("stay doubtful if the tier has changed, which ends their epoch", () => {
    restart("gold");
    epochs.noteTier("silver", stamp());
    expect(epochs.awaitsTierSinceMs()).toBeNull();
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.ended()).toMatchObject([{ evidence: { kind: "tier", from: "gold", to: "silver" } }]);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
  });

  test("learned under an unknown tier stay doubtful whatever the tier is, without ending an epoch", () => {
    restart(null);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.ended()).toEqual([]);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.awaitsTierSinceMs()).toBeNull();
  });

  test("don't make prices doubtful that were requested since startup", () => {
    restart("gold");
    expect(epochs.isDoubtful(asked())).toBe(false);
  });

  test("stay doubtful for good when an epoch ends before the tier is known", () => {
    restart("gold");
    epochs.end(QUOTE);
    expect(epochs.awaitsTierSinceMs()).toBeNull();
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.isDoubtful(asked())).toBe(false);
  });

  test("give the tier that the first one is compared with, even after an epoch has ended", () => {
    for (const evidence of [QUOTE, PURGE]) {
      restart("gold");
      epochs.end(evidence);
      const gold = asked();
      epochs.noteTier("silver", stamp());
      expect([epochs.isDoubtful(gold), epochs.ended()[0]?.evidence.kind]).toEqual([true, "tier"]);
    }
  });
});
