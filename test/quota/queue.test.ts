/** The lines of the queue: which request is first and last, what a new request would wait behind, and who counts as waiting. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Lane } from "../../src/quota/lane.js";
import type { UsageLevel } from "../../src/quota/scheduler/fair-share.js";
import type { Kind } from "../../src/quota/scheduler/priority.js";
import { GONE, kindOf, Queue, type Waiter } from "../../src/quota/scheduler/queue.js";
import { FakeClock } from "../support/fake-clock.js";
import { ask } from "./support/asks.js";

const NONE: UsageLevel = { network: 0, client: 0 };
const LITTLE: UsageLevel = { network: 0, client: 1 };
const MUCH: UsageLevel = { network: 1, client: 0 };
const LANES: Partial<Record<Kind, Lane>> = { cart: "checkout", refresh: "refresh", suggestion: "suggestion" };

let clock: FakeClock;
let queue: Queue;
let late: Waiter[];
beforeEach(() => {
  clock = new FakeClock();
  late = [];
  queue = new Queue({
    clock,
    most: 6,
    mostPerClient: 2,
    onLate: (waiter) => late.push(waiter),
    onGone: () => {},
    claim: () => null,
  });
});

function join(
  client: string,
  kind: Kind,
  usage: UsageLevel,
  rank = 0,
  signal = new AbortController().signal,
): void {
  const lane = LANES[kind] ?? "exact";
  const request = ask({ client, lane, signal, maxWaitMs: Infinity });
  queue.join(request, { kind, usage, rank, askedAt: rank, key: client }).catch((error: unknown) => {
    expect(error).toBe(GONE);
  });
}

const ends = (kind: Kind): (string | undefined)[] => [
  queue.first(kind)?.request.client,
  queue.last(kind)?.request.client,
];

/** The clients of one kind in the order in which they are served. */
function order(kind: Kind): string[] {
  const clients: string[] = [];
  for (let first = queue.first(kind); first !== undefined; first = queue.first(kind)) {
    clients.push(first.request.client);
    first.leave();
  }
  return clients;
}

describe("a line", () => {
  test("is ordered by usage, then by rank, then by arrival", () => {
    join("much", "newcomer", MUCH, 1);
    join("little later", "newcomer", LITTLE, 7);
    join("none", "newcomer", NONE, 9);
    join("little", "newcomer", LITTLE, 5);
    join("little as early", "newcomer", LITTLE, 5);
    expect(ends("newcomer")).toEqual(["none", "much"]);
    expect(order("newcomer")).toEqual(["none", "little", "little as early", "little later", "much"]);
  });

  test("compares the usage of the network before that of the client", () => {
    join("busy in a calm network", "newcomer", { network: 1, client: 9 });
    join("calm in a busy network", "newcomer", { network: 2, client: 0 });
    join("calm in a calm network", "newcomer", { network: 1, client: 8 });
    expect(order("newcomer")).toEqual([
      "calm in a calm network",
      "busy in a calm network",
      "calm in a busy network",
    ]);
  });

  test("can be left from any position, and the others stay", () => {
    const gone = new AbortController();
    join("none", "newcomer", NONE);
    join("little", "newcomer", LITTLE, 1, gone.signal);
    join("little too", "newcomer", LITTLE, 2);
    join("much", "newcomer", MUCH);
    gone.abort();
    expect(queue.size).toBe(3);
    queue.last("newcomer")?.leave();
    expect([queue.size, ...ends("newcomer")]).toEqual([2, "none", "little too"]);
    expect(order("newcomer")).toEqual(["none", "little too"]);
  });

  test("exists for each kind, and its first request can be compared with those of others", () => {
    join("cart", "cart", MUCH);
    join("returner", "returner", LITTLE);
    join("returner before", "returner", NONE);
    expect(queue.heads(["cart", "newcomer", "returner"])).toEqual({ cart: MUCH, returner: NONE });
    expect(queue.heads(["newcomer", "cart"])).toEqual({ cart: MUCH });
    expect([queue.waiting("returner"), queue.waiting("newcomer")]).toEqual([2, 0]);
  });
});

test("a new request waits behind those with less or equal usage, of its own kind and of the other", () => {
  for (const usage of [NONE, LITTLE]) join("newcomer", "newcomer", usage);
  for (const usage of [NONE, MUCH]) join("returner", "returner", usage);
  join("cart", "cart", NONE);
  const expected = { carts: 0, reserved: 0 };
  const ahead = (kind: "cart" | "newcomer" | "returner", usage: UsageLevel) => {
    const { own, ownEquals, othersWithLess, othersEqual } = queue.ahead(kind, usage, expected);
    return [own, ownEquals, othersWithLess, othersEqual];
  };
  expect(ahead("newcomer", NONE)).toEqual([1, 1, 0, 1]);
  expect(ahead("newcomer", LITTLE)).toEqual([2, 1, 1, 0]);
  expect(ahead("newcomer", MUCH)).toEqual([2, 0, 1, 1]);
  expect(ahead("returner", NONE)).toEqual([1, 1, 0, 1]);
  expect(ahead("returner", LITTLE)).toEqual([1, 0, 1, 1]);
  expect(ahead("returner", MUCH)).toEqual([2, 1, 2, 0]);
  expect(ahead("cart", NONE).slice(0, 2)).toEqual([1, 1]);
});

test("a new request waits behind carts, reservations and refreshes, including those expected in the meantime", () => {
  join("cart", "cart", NONE);
  join("reserved", "reserved", NONE);
  join("reserved too", "reserved", NONE);
  join("refresh", "refresh", NONE);
  expect(queue.ahead("newcomer", NONE, { carts: 2.9, reserved: 4 })).toMatchObject({
    carts: 3,
    reserved: 6,
    refresh: 1,
  });
});

describe("a waiting request", () => {
  test("counts as a visitor unless it is background work, even after such work has left", () => {
    const gone = new AbortController();
    join("a", "refresh", NONE, 0, gone.signal);
    join("a", "suggestion", NONE);
    expect([queue.size, queue.visitors, queue.hasOthers("b")]).toEqual([2, 0, false]);
    join("a", "newcomer", NONE);
    expect([queue.visitors, queue.hasOthers("a"), queue.hasOthers("b")]).toEqual([1, false, true]);
    gone.abort();
    expect([queue.size, queue.visitors, queue.hasOthers("a"), queue.hasOthers("b")]).toEqual([
      2,
      1,
      false,
      true,
    ]);
  });

  test("finds room up to the limit, and up to its client's own limit while others want calls", () => {
    join("a", "newcomer", NONE);
    expect(queue.hasRoom("a", true)).toBe(true);
    join("a", "returner", NONE);
    expect([queue.hasRoom("a", true), queue.hasRoom("a", false), queue.hasRoom("b", true)]).toEqual([
      false,
      true,
      true,
    ]);
    queue.first("returner")?.leave();
    expect(queue.hasRoom("a", true)).toBe(true);
    for (let n = 0; n < 5; n += 1) join(`other ${n}`, "newcomer", NONE);
    expect([queue.size, queue.hasRoom("b", false)]).toEqual([6, false]);
    queue.first("newcomer")?.leave();
    expect(queue.hasRoom("b", false)).toBe(true);
  });

  test("keeps its kind, unless it has become more or less urgent", () => {
    expect(
      (["newcomer", "returner", "reserved", "cart", "refresh"] as const).map((kind) => kindOf("exact", kind)),
    ).toEqual(["newcomer", "returner", "reserved", "newcomer", "newcomer"]);
    expect(kindOf("checkout", "returner")).toBe("cart");
    expect(kindOf("checkout", "reserved")).toBe("reserved");
    expect([kindOf("refresh", "newcomer"), kindOf("suggestion", "newcomer")]).toEqual([
      "refresh",
      "suggestion",
    ]);
  });
});
