/** Which prices may decide: what each kind of evidence makes doubtful, at a start, during a question, and on other replicas. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Channel } from "../../src/cache/invalidation.js";
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

/** Connects replicas; a message is on its way until it is delivered. */
class Wire {
  readonly #lines: { mark: string | null; readonly acts: ((wasPublished: boolean) => void)[] }[] = [];
  #onTheWay: (() => void)[] = [];

  channel(mark: string | null = "first"): Channel & { find(stored: string | null): void } {
    const line = { mark, acts: [] as ((wasPublished: boolean) => void)[] };
    let offered = "";
    this.#lines.push(line);
    return {
      mark: () => line.mark,
      publish: (next = `mark ${Math.random()}`) => {
        line.mark = next;
        for (const other of this.#lines)
          if (other !== line)
            this.#onTheWay.push(() => {
              if (other.mark === next) return;
              other.mark = next;
              for (const act of other.acts) act(true);
            });
      },
      subscribe: (act) => {
        line.acts.push(act);
      },
      offer: (first) => {
        offered = first;
      },
      // Redis is found, with the mark that it has, if any.
      find: (stored) => {
        line.mark = stored ?? offered;
        if (stored !== null) for (const act of line.acts) act(true);
      },
    };
  }

  deliver(): void {
    for (const arrive of this.#onTheWay.splice(0)) arrive();
  }
}

let clock: FakeClock;
let stamp: () => number;
let lines: string[];
let epochs: PriceEpochs;

function epochsOn(channel: Channel | null): PriceEpochs {
  return createPriceEpochs({ channel, stamp, clock, log: recordingLog(lines) });
}

/** A price asked and answered now. */
function asked(of: PriceEpochs = epochs): InEpoch {
  const askedMs = stamp();
  return { epoch: of.of(askedMs), askedMs };
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  lines = [];
  epochs = epochsOn(null);
  epochs.resume(null);
});

describe.each<PriceEvidence>([QUOTE, PURGE, { kind: "tier", from: "gold", to: "silver" }])(
  "evidence of the kind $kind",
  (evidence) => {
    test("makes every price asked before it doubtful, and none asked after it", () => {
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

    test("is listed for staff with its time for a day, newest first, and reported to listeners", () => {
      let calls = 0;
      epochs.onChange(() => (calls += 1));
      const changes = epochs.changes();
      epochs.end(evidence);
      expect([calls, epochs.changes()]).toEqual([1, changes + 1]);
      expect(epochs.ended()).toEqual([{ evidence, atMs: START }]);
    });
  },
);

describe("the epochs ended", () => {
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
    const names = new Set([epochs.current()]);
    for (const evidence of [QUOTE, QUOTE, PURGE, PURGE, QUOTE]) {
      epochs.end(evidence);
      names.add(epochs.current());
    }
    expect(names.size).toBe(6);
  });

  test("are logged by kind and place, without an amount", () => {
    epochs.end(QUOTE);
    epochs.end(PURGE);
    const logged = lines.join("\n");
    expect(logged).toContain("prices.epoch.ended");
    expect(logged).toContain("renewal");
    expect(logged).not.toMatch(/17\.31|22\.50|USD/);
  });
});

describe("a price that differs from the one before", () => {
  test("only confirms a change that was seen since that one was asked for", () => {
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

  test("counts as a new change after a purge or an epoch that another replica has ended, which are no evidence of a change", () => {
    epochs.end(QUOTE);
    const before = asked();
    epochs.end(PURGE);
    epochs.end({ kind: "replica" });
    expect(epochs.hasChangedSince(before)).toBe(false);
  });

  test("only confirms a change after its epoch, though another replica asked for it later by its own clock", () => {
    const { epoch } = asked();
    epochs.end(QUOTE);
    expect(epochs.hasChangedSince({ epoch, askedMs: stamp() })).toBe(true);
  });

  test("of an unknown epoch confirms what was seen since it was asked for", () => {
    const askedMs = stamp();
    epochs.end(QUOTE);
    expect(epochs.hasChangedSince({ epoch: "of another replica", askedMs })).toBe(true);
    expect(epochs.hasChangedSince({ epoch: "of another replica", askedMs: stamp() })).toBe(false);
  });

  test("and was asked for before the oldest known epoch belongs to none", () => {
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

  test("that changes back ends an epoch again, and restores no earlier price", () => {
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

  /** A start with prices that were learned under that tier. */
  function restart(tier: string | null): void {
    epochs = epochsOn(null);
    saved = { epoch: epochs.current(), askedMs: stamp() - 3_600_000 };
    epochs.resume({ tier });
    saved = { ...saved, epoch: epochs.current() };
  }

  test("are doubtful until the tier is known to be the one they were learned under", () => {
    restart("gold");
    expect(epochs.awaitsTierSinceMs()).not.toBeNull();
    expect(epochs.isDoubtful(saved)).toBe(true);
    const changes = epochs.changes();
    epochs.noteTier("gold", stamp());
    expect(epochs.awaitsTierSinceMs()).toBeNull();
    expect(epochs.isDoubtful(saved)).toBe(false);
    expect(epochs.changes()).toBeGreaterThan(changes);
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

  test("learned under an unknown tier stay doubtful whatever it is, without ending an epoch", () => {
    restart(null);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.ended()).toEqual([]);
    epochs.noteTier("gold", stamp());
    expect(epochs.isDoubtful(saved)).toBe(true);
    expect(epochs.awaitsTierSinceMs()).toBeNull();
  });

  test("don't make those asked since the start doubtful", () => {
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

  test("don't exist if nothing was saved", () => {
    expect(epochs.awaitsTierSinceMs()).toBeNull();
    expect(epochs.isDoubtful(asked())).toBe(false);
  });
});

describe("of two replicas", () => {
  let wire: Wire;
  let one: PriceEpochs;
  let two: PriceEpochs;

  beforeEach(() => {
    wire = new Wire();
    one = epochsOn(wire.channel());
    two = epochsOn(wire.channel());
    for (const replica of [one, two]) replica.resume(null);
  });

  test("the prices of one are trusted on the other, until either has evidence against them", () => {
    const price = asked(one);
    expect(two.isDoubtful(price)).toBe(false);
    one.end(QUOTE);
    expect(one.isDoubtful(price)).toBe(true);
    wire.deliver();
    expect(two.isDoubtful(price)).toBe(true);
    const after = asked(one);
    expect(two.isDoubtful(after)).toBe(false);
  });

  test("the one that receives the evidence records it, notifies listeners, and distrusts its requests in flight", () => {
    let calls = 0;
    two.onChange(() => (calls += 1));
    const askedMs = stamp();
    one.end(QUOTE);
    wire.deliver();
    expect(calls).toBe(1);
    expect(two.ended()).toEqual([{ evidence: { kind: "replica" }, atMs: START }]);
    expect(two.isDoubtful({ epoch: two.of(askedMs), askedMs })).toBe(true);
    expect(one.isDoubtful({ epoch: two.of(askedMs), askedMs })).toBe(true);
    expect(two.isDoubtful(asked(two))).toBe(false);
  });

  test("a price of the new epoch is doubtful until the replica knows about that epoch", () => {
    one.end(QUOTE);
    const price = asked(one);
    expect(two.isDoubtful(price)).toBe(true);
    wire.deliver();
    expect(two.isDoubtful(price)).toBe(false);
  });

  test.each([
    { what: "quote", end: (replica: PriceEpochs) => replica.end(QUOTE) },
    { what: "tier", end: (replica: PriceEpochs) => replica.noteTier("silver", stamp()) },
  ])("the same evidence, a $what, noticed by both at once ends one epoch once", ({ end }) => {
    for (const replica of [one, two]) replica.noteTier("gold", stamp());
    end(one);
    end(two);
    const after = [asked(one), asked(two)];
    wire.deliver();
    expect(one.current()).toBe(two.current());
    for (const replica of [one, two]) {
      expect(after.map(replica.isDoubtful)).toEqual([false, false]);
      expect(replica.ended()).toHaveLength(1);
    }
  });

  test("a change noticed by both at once, each by another price, ends one epoch once", () => {
    one.end(QUOTE);
    two.end({ ...QUOTE, years: 5 });
    const after = [asked(one), asked(two)];
    wire.deliver();
    expect(one.current()).toBe(two.current());
    for (const replica of [one, two]) expect(after.map(replica.isDoubtful)).toEqual([false, false]);
  });

  test("a tier that changes after a quote has shown a change ends the next epoch", () => {
    for (const replica of [one, two]) replica.noteTier("gold", stamp());
    one.end(QUOTE);
    const between = asked(one);
    one.noteTier("silver", stamp());
    expect(one.isDoubtful(between)).toBe(true);
  });

  test("the tier that one has ended the epoch on doesn't end the next one on the other", () => {
    for (const replica of [one, two]) replica.noteTier("gold", stamp());
    one.noteTier("silver", stamp());
    wire.deliver();
    const after = asked(one);
    two.noteTier("silver", stamp());
    wire.deliver();
    expect([one, two].map((replica) => replica.isDoubtful(after))).toEqual([false, false]);
    expect(one.ended()).toHaveLength(1);
    expect(two.tier()).toBe("silver");
  });

  test("different evidence on both at once leaves every price asked before it doubtful on both", () => {
    const before = asked(one);
    one.end(QUOTE);
    two.end(PURGE);
    wire.deliver();
    for (const replica of [one, two]) expect(replica.isDoubtful(before)).toBe(true);
  });

  test("purges on both at once end an epoch each", () => {
    one.end(PURGE);
    two.end(PURGE);
    expect(one.current()).not.toBe(two.current());
  });

  test("one that starts later joins the epoch in force, without ending it", () => {
    one.end(QUOTE);
    const price = asked(one);
    wire.deliver();
    const late = wire.channel(null);
    const three = epochsOn(late);
    late.find(one.current());
    three.resume(null);
    expect(three.isDoubtful(price)).toBe(false);
    expect(three.ended()).toEqual([]);
  });

  test("one that receives its first mark before it has started records no end of an epoch", () => {
    const three = epochsOn(wire.channel(null));
    one.end(PURGE);
    wire.deliver();
    three.resume(null);
    expect(three.ended()).toEqual([]);
    expect(three.isDoubtful(asked(one))).toBe(false);
  });

  test("one that finds an empty Redis after its start keeps its own epoch", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume(null);
    const price = asked(three);
    late.find(null);
    expect(three.isDoubtful(price)).toBe(false);
    three.end(QUOTE);
    expect(three.isDoubtful(price)).toBe(true);
  });

  test("one that finds another epoch in Redis after its start doubts its prices, and logs it", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume(null);
    const price = asked(three);
    const changes = three.changes();
    late.find(one.current());
    expect(three.isDoubtful(price)).toBe(true);
    expect(three.changes()).toBeGreaterThan(changes);
    expect(three.ended()).toMatchObject([{ evidence: { kind: "replica" } }]);
  });

  test("one that ended an epoch without Redis does so on the others once it is found", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume(null);
    const price = asked(one);
    three.end(QUOTE);
    wire.deliver();
    expect(one.isDoubtful(price)).toBe(true);
    expect(one.current()).toBe(three.current());
  });
});
