/** Which prices are trusted: what each kind of evidence makes doubtful on startup, during a request, and on other replicas. */
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

/** Connects replicas. Messages are in flight until `deliver` is called. */
class Wire {
  readonly #lines: { mark: string | null; readonly acts: ((wasPublished: boolean) => void)[] }[] = [];
  #inFlight: (() => void)[] = [];

  channel(mark: string | null = "first"): Channel & { reach(stored: string | null): void } {
    const line = { mark, acts: [] as ((wasPublished: boolean) => void)[] };
    let offered = "";
    this.#lines.push(line);
    return {
      mark: () => line.mark,
      publish: (next = `mark ${Math.random()}`) => {
        line.mark = next;
        for (const other of this.#lines)
          if (other !== line)
            this.#inFlight.push(() => {
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
      // Reaches Redis, which has this mark, if any.
      reach: (stored) => {
        line.mark = stored ?? offered;
        if (stored !== null) for (const act of line.acts) act(true);
      },
    };
  }

  deliver(): void {
    for (const arrive of this.#inFlight.splice(0)) arrive();
  }
}

let clock: FakeClock;
let stamp: () => number;
let lines: string[];
let epochs: PriceEpochs;

function epochsOn(channel: Channel | null): PriceEpochs {
  return createPriceEpochs({ channel, stamp, clock, log: recordingLog(lines) });
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
  epochs = epochsOn(null);
  epochs.resume({ tier: null });
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
      const changes = epochs.changes();
      epochs.end(evidence);
      expect([calls, epochs.changes()]).toEqual([1, changes + 1]);
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

  test("is a new change after a purge or an epoch ended by another replica, which don't prove a change", () => {
    epochs.end(QUOTE);
    const before = asked();
    epochs.end(PURGE);
    epochs.end({ kind: "replica" });
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

describe("with several replicas,", () => {
  let wire: Wire;
  let one: PriceEpochs;
  let two: PriceEpochs;

  beforeEach(() => {
    wire = new Wire();
    one = epochsOn(wire.channel());
    two = epochsOn(wire.channel());
    for (const replica of [one, two]) replica.resume({ tier: null });
  });

  test("the prices of one are trusted on another until either has evidence against them", () => {
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
  ])("the same evidence, a $what, noticed by two at once ends one epoch once", ({ end }) => {
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

  test("a change noticed by two at once, each by another price, ends one epoch once", () => {
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

  test("a change of tier that ended the epoch on one doesn't end the next one on the other", () => {
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

  test("different evidence on two at once makes every earlier price doubtful on both", () => {
    const before = asked(one);
    one.end(QUOTE);
    two.end(PURGE);
    wire.deliver();
    for (const replica of [one, two]) expect(replica.isDoubtful(before)).toBe(true);
  });

  test("purges on two at once end an epoch each", () => {
    one.end(PURGE);
    two.end(PURGE);
    expect(one.current()).not.toBe(two.current());
  });

  test("one that starts later joins the current epoch without ending it", () => {
    one.end(QUOTE);
    const price = asked(one);
    wire.deliver();
    const late = wire.channel(null);
    const three = epochsOn(late);
    late.reach(one.current());
    three.resume({ tier: null, liveSinceMs: price.askedMs - 1 });
    expect(three.isDoubtful(price)).toBe(false);
    expect(three.ended()).toEqual([]);
  });

  test("one that receives its first mark before it has started records no end of an epoch", () => {
    const three = epochsOn(wire.channel(null));
    one.end(PURGE);
    wire.deliver();
    three.resume({ tier: null });
    expect(three.ended()).toEqual([]);
    expect(three.isDoubtful(asked(one))).toBe(false);
  });

  test("one that finds an empty Redis after its start keeps its own epoch", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume({ tier: null });
    const price = asked(three);
    late.reach(null);
    expect(three.isDoubtful(price)).toBe(false);
    three.end(QUOTE);
    expect(three.isDoubtful(price)).toBe(true);
  });

  test("one that finds another epoch in Redis after its start doubts its prices, and records this", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume({ tier: null });
    const price = asked(three);
    const changes = three.changes();
    late.reach(one.current());
    expect(three.isDoubtful(price)).toBe(true);
    expect(three.changes()).toBeGreaterThan(changes);
    expect(three.ended()).toMatchObject([{ evidence: { kind: "replica" } }]);
  });

  describe("one that reaches Redis only after its start", () => {
    /** The price was requested before the start, and shared under the tier "gold". `tierFirst`: what the upstream answers before Redis is reached. */
    function reached(tierFirst: string | null): { readonly late: PriceEpochs; readonly price: InEpoch } {
      const price = asked(one);
      const channel = wire.channel(null);
      const late = epochsOn(channel);
      late.resume({ tier: null });
      late.onJoined(() => {
        expect(late.isDoubtful(price)).toBe(true);
        late.resume({ tier: "gold" });
      });
      if (tierFirst !== null) late.noteTier(tierFirst, stamp());
      channel.reach(one.current());
      return { late, price };
    }

    test("doubts the prices from before until the tier is known to be the same", () => {
      const { late, price } = reached(null);
      expect([late.isDoubtful(price), late.isDoubtful(asked(one))]).toEqual([true, false]);
      expect(late.awaitsTierSinceMs()).not.toBeNull();
      late.noteTier("gold", stamp());
      expect([late.isDoubtful(price), late.awaitsTierSinceMs()]).toEqual([false, null]);
    });

    test("compares the tier that it has learned without Redis", () => {
      expect(reached("gold").late.awaitsTierSinceMs()).toBeNull();
      const { late, price } = reached("silver");
      expect(late.isDoubtful(price)).toBe(true);
      expect(late.ended()[0]?.evidence).toEqual({ kind: "tier", from: "gold", to: "silver" });
    });
  });

  test("one that ended an epoch without Redis ends it on the others once they can be reached", () => {
    const late = wire.channel(null);
    const three = epochsOn(late);
    three.resume({ tier: null });
    const price = asked(one);
    three.end(QUOTE);
    wire.deliver();
    expect(one.isDoubtful(price)).toBe(true);
    expect(one.current()).toBe(three.current());
  });
});
