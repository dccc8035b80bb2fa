/** The order of the queue: which kind of request goes next, whose turn it is, and what a new request waits behind. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { compareUsage, type UsageLevel } from "../../src/quota/scheduler/fair-share.js";
import {
  type Ahead,
  callsBefore,
  FIRST_TURNS,
  type Heads,
  type Kind,
  nextKind,
  turnsAfter,
} from "../../src/quota/scheduler/priority.js";

const LITTLE: UsageLevel = { network: 0, client: 0 };
const MORE: UsageLevel = { network: 1, client: 1 };

/** The kinds that get the next calls while all of these keep waiting. */
function play(heads: Heads, calls: number, reserveLeft = true): (Kind | undefined)[] {
  let turns = FIRST_TURNS;
  return Array.from({ length: calls }, () => {
    const kind = nextKind(heads, turns, reserveLeft);
    if (kind !== undefined) turns = turnsAfter(turns, kind, heads);
    return kind;
  });
}

const all = (usage: UsageLevel = LITTLE): Required<Heads> => ({
  cart: usage,
  reserved: usage,
  newcomer: usage,
  returner: usage,
  refresh: usage,
  suggestion: usage,
});

/** All heads without these kinds. */
function without(...kinds: Kind[]): Heads {
  return Object.fromEntries(Object.entries(all()).filter(([kind]) => !kinds.some((one) => one === kind)));
}

describe("usage levels", () => {
  test("are compared by the network first, then by the client", () => {
    expect(compareUsage({ network: 0, client: 5 }, { network: 1, client: 0 })).toBeLessThan(0);
    expect(compareUsage({ network: 1, client: 0 }, { network: 0, client: 5 })).toBeGreaterThan(0);
    expect(compareUsage({ network: 1, client: 0 }, { network: 1, client: 1 })).toBeLessThan(0);
    expect(compareUsage({ network: 1, client: 1 }, { network: 1, client: 0 })).toBeGreaterThan(0);
    expect(compareUsage(MORE, MORE)).toBe(0);
  });
});

describe("the next call", () => {
  test("goes to nobody if nobody waits", () => {
    expect(nextKind({}, FIRST_TURNS, true)).toBeUndefined();
  });

  test("goes to the only kind that waits, whichever it is", () => {
    for (const kind of ["cart", "reserved", "newcomer", "returner", "refresh", "suggestion"] as const)
      for (const reserveLeft of [true, false])
        expect(nextKind({ [kind]: MORE }, FIRST_TURNS, reserveLeft)).toBe(kind);
  });

  test("goes to a cart, and every third time to a reservation", () => {
    expect(play({ cart: MORE, reserved: LITTLE }, 7)).toEqual([
      "cart",
      "cart",
      "reserved",
      "cart",
      "cart",
      "reserved",
      "cart",
    ]);
  });

  test("goes to a reservation before everyone else, and before a cart if the reserve is used up", () => {
    expect(play(without("cart", "refresh"), 5)).toEqual(Array.from({ length: 5 }, () => "reserved"));
    expect(play({ cart: LITTLE, reserved: LITTLE }, 3, false)).toEqual(["reserved", "reserved", "reserved"]);
  });

  test("goes to a cart before any visitor within the reserve, and after newcomers with equal usage beyond it", () => {
    const heads = { cart: MORE, newcomer: LITTLE, returner: LITTLE };
    expect(play(heads, 3)).toEqual(["cart", "cart", "cart"]);
    expect(play(heads, 4, false)).toEqual(["newcomer", "returner", "newcomer", "returner"]);
    expect(play({ cart: LITTLE, newcomer: LITTLE }, 2, false)).toEqual(["newcomer", "newcomer"]);
    expect(play({ cart: LITTLE, newcomer: MORE }, 2, false)).toEqual(["cart", "cart"]);
    expect(play({ cart: LITTLE, newcomer: MORE, returner: LITTLE }, 2, false)).toEqual(["cart", "cart"]);
    expect(play({ cart: MORE, newcomer: MORE, returner: LITTLE }, 2, false)).toEqual([
      "returner",
      "returner",
    ]);
  });

  test("alternates between newcomers and returners with equal usage, and otherwise goes to those with less", () => {
    expect(play({ newcomer: LITTLE, returner: LITTLE }, 4)).toEqual([
      "newcomer",
      "returner",
      "newcomer",
      "returner",
    ]);
    expect(play({ newcomer: LITTLE, returner: MORE }, 3)).toEqual(["newcomer", "newcomer", "newcomer"]);
    expect(play({ newcomer: MORE, returner: LITTLE }, 3)).toEqual(["returner", "returner", "returner"]);
  });

  test("makes up for turns that newcomers weren't there to take, and for no others", () => {
    const both = { newcomer: LITTLE, returner: LITTLE };
    let turns = FIRST_TURNS;
    const serve = (kind: Kind, times: number): void => {
      for (let n = 0; n < times; n += 1)
        turns = turnsAfter(turns, kind, { ...both, reserved: LITTLE, cart: LITTLE });
    };
    const next = (times: number): (Kind | undefined)[] =>
      Array.from({ length: times }, () => {
        const kind = nextKind(both, turns, true);
        if (kind !== undefined) turns = turnsAfter(turns, kind, both);
        return kind;
      });
    serve("returner", 2);
    expect(next(4)).toEqual(["newcomer", "newcomer", "newcomer", "returner"]);
    serve("newcomer", 20);
    serve("reserved", 3);
    serve("cart", 3);
    expect(next(3)).toEqual(["returner", "newcomer", "returner"]);
    serve("returner", 50);
    expect(next(12).filter((kind) => kind === "newcomer")).toHaveLength(11);
  });

  test("goes to a refresh if no visitor waits, and every tenth time even if some do", () => {
    expect(nextKind({ refresh: MORE, suggestion: LITTLE }, FIRST_TURNS, true)).toBe("refresh");
    for (const heads of [without("suggestion"), without("cart", "reserved"), without("newcomer", "returner")])
      expect(play(heads, 30).flatMap((kind, at) => (kind === "refresh" ? at : []))).toEqual([9, 19, 29]);
    expect(play(without("refresh"), 30)).not.toContain("refresh");
  });

  test("goes to a reservation only after carts that went while it waited", () => {
    let turns = FIRST_TURNS;
    for (let n = 0; n < 5; n += 1) turns = turnsAfter(turns, "cart", { cart: MORE });
    const both = { cart: MORE, reserved: LITTLE };
    expect(nextKind(both, turns, true)).toBe("cart");
    turns = turnsAfter(turns, "cart", both);
    // A refresh in between doesn't count as a cart.
    for (let n = 0; n < 3; n += 1) turns = turnsAfter(turns, "refresh", { ...both, refresh: LITTLE });
    expect(nextKind(both, turns, true)).toBe("cart");
    turns = turnsAfter(turns, "cart", both);
    expect(nextKind(both, turns, true)).toBe("reserved");
  });

  test("still goes to a visitor if a refresh that was due has left", () => {
    let turns = FIRST_TURNS;
    for (let n = 0; n < 9; n += 1)
      turns = turnsAfter(turns, "newcomer", { newcomer: LITTLE, refresh: LITTLE });
    expect(nextKind({ newcomer: LITTLE, refresh: LITTLE }, turns, true)).toBe("refresh");
    expect(nextKind({ newcomer: LITTLE }, turns, true)).toBe("newcomer");
  });

  test("isn't due to a refresh because of calls made before it came", () => {
    const heads = { newcomer: LITTLE };
    let turns = FIRST_TURNS;
    for (let n = 0; n < 20; n += 1) turns = turnsAfter(turns, "newcomer", heads);
    expect(nextKind({ ...heads, refresh: LITTLE }, turns, true)).toBe("newcomer");
  });

  test("goes to a suggestion only if nobody else waits", () => {
    expect(play(all(), 100)).not.toContain("suggestion");
  });

  test("goes to a waiting reservation at least three times out of ten, whatever else waits", () => {
    const usage = fc.record({ network: fc.nat(3), client: fc.nat(3) });
    const heads = fc.record(
      { cart: usage, newcomer: usage, returner: usage, refresh: usage, suggestion: usage },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(heads, fc.boolean()), { minLength: 60, maxLength: 60 }), (moments) => {
        let turns = FIRST_TURNS;
        let reserved = 0;
        for (const [others, reserveLeft] of moments) {
          const waiting = { ...others, reserved: LITTLE };
          const kind = nextKind(waiting, turns, reserveLeft);
          if (kind === undefined) throw new Error("no kind got the call");
          if (kind === "reserved") reserved += 1;
          turns = turnsAfter(turns, kind, waiting);
        }
        expect(reserved).toBeGreaterThanOrEqual(0.3 * moments.length - 1);
      }),
    );
  });
});

describe("a new request", () => {
  const NOBODY: Ahead = {
    carts: 0,
    reserved: 0,
    refresh: 0,
    own: 0,
    ownEquals: 0,
    othersWithLess: 0,
    othersEqual: 0,
  };

  test.each<[string, "cart" | "newcomer" | "returner", Partial<Ahead>, number]>([
    ["nobody", "newcomer", {}, 0],
    ["carts and reservations, as a newcomer", "newcomer", { carts: 2, reserved: 3 }, 5],
    ["carts and reservations, as a returner", "returner", { carts: 2, reserved: 3 }, 5],
    ["requests of its own kind", "newcomer", { own: 4, ownEquals: 2 }, 4],
    ["requests of the other kind with less usage", "newcomer", { othersWithLess: 3 }, 3],
    ["only one equal of the other kind, because they alternate", "newcomer", { othersEqual: 9 }, 1],
    [
      "its own equals and one more of the other kind, because they alternate",
      "returner",
      { own: 3, ownEquals: 3, othersEqual: 9 },
      7,
    ],
    [
      "no more equals of the other kind than there are",
      "newcomer",
      { own: 3, ownEquals: 3, othersEqual: 2 },
      5,
    ],
    ["carts, as a cart", "cart", { own: 4 }, 4],
    ["a reservation every third time, as a cart", "cart", { own: 3, reserved: 9 }, 5],
    ["no more reservations than there are, as a cart", "cart", { own: 3, reserved: 1 }, 4],
    ["no visitors, as a cart", "cart", { othersWithLess: 5, othersEqual: 5 }, 0],
    ["a refresh every tenth time", "newcomer", { carts: 20, refresh: 9 }, 22],
    ["no more refreshes than there are", "newcomer", { carts: 20, refresh: 1 }, 21],
  ])("waits behind %s", (_, kind, ahead, calls) => {
    expect(callsBefore(kind, { ...NOBODY, ...ahead })).toBe(calls);
  });
});
