/** The retry times of refused visitors: never more than a window, with a reservation if one is left, and what becomes of it. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { RESERVABLE } from "../../src/quota/scheduler/priority.js";
import {
  type Outlook,
  type Refused,
  Reservations,
  type SharedReservations,
  ticketKey,
} from "../../src/quota/scheduler/reservations.js";

const WINDOW_MS = 60_000;
const EVERY_MS = 1000;

let reservations = new Reservations();
let tickets = 0;
beforeEach(() => {
  reservations = new Reservations();
  tickets = 0;
});

/** One call a second, the first one a second from now. */
function outlook(now: number, more: Partial<Outlook> = {}): Outlook {
  return {
    now,
    windowMs: WINDOW_MS,
    pausedForMs: 0,
    callsUntil: (at) => Math.max(0, Math.floor((at - now) / EVERY_MS)),
    part: 1,
    waiting: 0,
    backAndWaiting: 0,
    ...more,
  };
}

function refuse(now: number, more: Partial<Refused & Outlook> = {}) {
  tickets += 1;
  const refused = {
    key: `ticket ${tickets}`,
    client: "a",
    askedAt: now,
    maxWaitMs: 8000,
    openPart: 1,
    ...more,
  };
  return reservations.refuse(refused, outlook(now, more));
}

function heldUntil(now: number, callsUntil: (at: number) => number): number | null {
  return reservations.heldUntil(now, { callsUntil, part: 1 });
}

const seconds = (ticket: { dueAt: number }, now: number): number => (ticket.dueAt - now) / 1000;

describe("a reservation", () => {
  test("is for the first second with enough calls, and leaves a part of the calls before each later second unreserved", () => {
    const refused = Array.from({ length: 18 }, () => refuse(0));
    expect(refused.map(({ isReserved }) => isReserved)).toEqual(refused.map(() => true));
    expect(refused.map((ticket) => seconds(ticket, 0))).toEqual([
      1, 3, 6, 10, 13, 16, 20, 23, 26, 30, 33, 36, 40, 43, 46, 50, 53, 56,
    ]);
    expect(reservations.size).toBe(18);
  });

  test("never exceeds the reservable part of the calls before any second, whenever visitors come", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4000), { maxLength: 80 }), (pauses) => {
        const history = new Reservations();
        const reserved: { key: string; dueAt: number }[] = [];
        let now = 0;
        for (const [n, pauseMs] of pauses.entries()) {
          now += pauseMs;
          const refused = { key: `${n}`, client: "a", askedAt: now, maxWaitMs: 8000, openPart: 1 };
          const { key, isReserved, dueAt } = history.refuse(refused, outlook(now));
          expect(dueAt - now).toBeLessThanOrEqual(WINDOW_MS);
          if (!isReserved) continue;
          const before = reserved.filter(
            (one) => one.dueAt <= dueAt && history.standing(one.key, now).kind !== "returner",
          );
          expect(before.length).toBeLessThan(RESERVABLE * ((dueAt - now) / EVERY_MS + 1));
          reserved.push({ key, dueAt });
        }
      }),
    );
  });

  test("leaves a call for each request that already waits", () => {
    expect(seconds(refuse(0, { waiting: 8 }), 0)).toBe(8);
    expect(seconds(refuse(0, { waiting: 12 }), 0)).toBe(13);
  });

  test("for a later second takes nothing from the seconds before it", () => {
    expect(seconds(refuse(0, { waiting: 40 }), 0)).toBe(40);
    expect(seconds(refuse(0), 0)).toBe(1);
    reservations = new Reservations();
    expect(seconds(refuse(7000, { waiting: 40, part: 1 / 2 }), 7000)).toBe(40);
    expect(seconds(refuse(7000, { part: 1 / 2 }), 7000)).toBe(1);
  });

  test("leaves one call, not two, for each returned visitor who waits", () => {
    expect(seconds(refuse(0, { waiting: 8, backAndWaiting: 4 }), 0)).toBe(13);
  });

  test("isn't looked for again for a tenth of a second once none is left", () => {
    const given: string[] = [];
    for (let ticket = refuse(0); ticket.isReserved; ticket = refuse(0)) given.push(ticket.key);
    for (const key of given) reservations.forget(key);
    expect(refuse(99).isReserved).toBe(false);
    expect(refuse(100).isReserved).toBe(true);
  });

  test("takes returned visitors who wait into account", () => {
    expect(seconds(refuse(0, { waiting: 2, backAndWaiting: 2 }), 0)).toBe(6);
  });

  test("isn't given to a busy client beyond the smaller part that is open to it", () => {
    const busy = { openPart: 1 / 8 };
    expect(
      [refuse(0, busy), refuse(0, busy), refuse(0, busy), refuse(0, busy)].map((one) => one.isReserved),
    ).toEqual([true, true, true, false]);
    expect(refuse(0).isReserved).toBe(true);
  });

  test("isn't given to work that waits forever, or when none is left", () => {
    expect(refuse(0, { maxWaitMs: Infinity }).isReserved).toBe(false);
    for (let n = 0; n < 40; n += 1) refuse(0);
    expect([refuse(0).isReserved, refuse(50).isReserved]).toEqual([false, false]);
    expect(refuse(4000).isReserved).toBe(true);
  });

  test("can be claimed from shortly before its second until shortly after the next one", () => {
    const { key, dueAt } = refuse(300);
    const standings = [dueAt - 251, dueAt - 250, dueAt, dueAt + 1500].map(
      (at) => reservations.standing(key, at).kind,
    );
    expect(standings).toEqual(["early", "reserved", "reserved", "reserved"]);
    expect(reservations.standing(key, dueAt + 2500).kind).toBe("returner");
    expect([reservations.size, reservations.lapsed(dueAt + 2500)]).toEqual([0, 1]);
  });

  test("is due only for its client, and only while it can be claimed", () => {
    const { dueAt } = refuse(300);
    expect([dueAt - 1300, dueAt, dueAt + 1500].map((at) => reservations.isDue("a", at))).toEqual([
      false,
      true,
      true,
    ]);
    expect([reservations.isDue("b", dueAt), reservations.isDue("a", dueAt + 2500)]).toEqual([false, false]);
  });

  test("is counted among those due within a time, and is the next one due until its holder is too late", () => {
    expect([reservations.dueWithin(60_000, 0), reservations.firstDueAt(0)]).toEqual([0, Infinity]);
    const dueInSeconds = [refuse(0), refuse(0), refuse(0)].map((ticket) => seconds(ticket, 0));
    expect(dueInSeconds).toEqual([1, 3, 6]);
    expect([0, 1000, 2000, 3000, 5999, 6000].map((ms) => reservations.dueWithin(ms, 0))).toEqual([
      0, 1, 1, 2, 2, 3,
    ]);
    expect([0, 3499, 3500, 5499, 5500].map((at) => reservations.firstDueAt(at))).toEqual([
      1000, 1000, 3000, 3000, 6000,
    ]);
    expect([reservations.dueWithin(0, 5500), reservations.firstDueAt(8500)]).toEqual([0, Infinity]);
  });

  test("belongs to a client and its query", () => {
    expect(ticketKey("a", "one")).toBe(ticketKey("a", "one"));
    expect(new Set([ticketKey("a", "one"), ticketKey("b", "one"), ticketKey("a", "two")]).size).toBe(3);
    expect(ticketKey("a", "kabul.af")).not.toContain("kabul");
  });

  test("is kept the first two times that its holder or somebody at the same address asks too early, and then lost", () => {
    for (let n = 0; n < 5; n += 1) refuse(0);
    const ticket = refuse(0);
    let last = ticket;
    for (const at of [1000, 2000]) {
      last = reservations.askedEarly(last, false, outlook(at));
      expect(last).toMatchObject({ isReserved: true, dueAt: ticket.dueAt, askedAt: 0 });
    }
    last = reservations.askedEarly(last, false, outlook(4000));
    expect(last).toMatchObject({ isReserved: false, dueAt: 4000 + WINDOW_MS, askedAt: 4000 });
    expect([reservations.size, reservations.standing(ticket.key, ticket.dueAt).kind]).toEqual([5, "early"]);
  });

  test("is kept however often its holder asks too early for other names of the same search", () => {
    let ticket = refuse(0, { waiting: 20 });
    for (let at = 1000; at < 10_000; at += 1000) ticket = reservations.askedEarly(ticket, true, outlook(at));
    expect(ticket.isReserved).toBe(true);
  });

  test("isn't made while it can't be published, and made again once it can", () => {
    let canPublish = false;
    reservations = new Reservations({ changed: () => {}, canPublish: () => canPublish });
    expect(refuse(0)).toMatchObject({ isReserved: false });
    canPublish = true;
    expect(refuse(0)).toMatchObject({ isReserved: true });
  });
});

describe("without a reservation,", () => {
  const full = { callsUntil: () => 1, waiting: 5 };

  test("the wait is a whole window, and starts over for a visitor who retries too early", () => {
    const ticket = refuse(0, full);
    expect([ticket.isReserved, seconds(ticket, 0)]).toEqual([false, 60]);
    const again = reservations.askedEarly(ticket, false, outlook(10_000, full));
    expect(again).toMatchObject({ isReserved: false, dueAt: 70_000, askedAt: 10_000 });
    expect(reservations.standing(ticket.key, 60_000).kind).toBe("early");
    expect(reservations.standing(ticket.key, 70_000).kind).toBe("returner");
  });

  test("a returner is a newcomer again after another minute", () => {
    const { key } = refuse(0, full);
    expect(reservations.standing(key, 119_000).kind).toBe("returner");
    refuse(121_500, full);
    expect(reservations.standing(key, 121_500).kind).toBe("newcomer");
  });

  test("a crowd is spread evenly over the last quarter of the window", () => {
    const waits = Array.from({ length: 400 }, () => seconds(refuse(0, full), 0));
    expect([Math.min(...waits), Math.max(...waits)]).toEqual([45, 60]);
    const perSecond = [...new Set(waits)].map((one) => waits.filter((other) => other === one).length);
    expect(perSecond).toEqual(Array.from({ length: 16 }, () => 400 / 16));
  });

  test("up to four times as many visitors return in a second as it has calls", () => {
    const many = { maxWaitMs: Infinity, callsUntil: (at: number) => (at >= 60_000 ? 600 : 0) };
    const waits = Array.from({ length: 100 }, () => seconds(refuse(0, many), 0));
    const returning = (second: number): number => waits.filter((one) => one === second).length;
    expect([60, 59, 58, 57].map(returning)).toEqual([40, 40, 20, 0]);
  });

  test("nobody returns before the end of a pause, and a crowd within a quarter of a window after it", () => {
    const paused = { pausedForMs: 55_000, maxWaitMs: Infinity, callsUntil: () => 57 };
    const waits = Array.from({ length: 400 }, () => seconds(refuse(0, paused), 0));
    expect([Math.min(...waits), Math.max(...waits)]).toEqual([55, 70]);
  });

  test("after a cold start the wait is a sixth longer, and it covers a longer pause of the upstream", () => {
    const cold = { callsUntil: (at: number) => (at >= 70_060 ? 57 : 0) };
    expect(seconds(refuse(0, cold), 0)).toBe(70);
    const paused = { pausedForMs: 200_000, callsUntil: (at: number) => (at >= 200_000 ? 57 : 0) };
    expect(seconds(refuse(0, paused), 0)).toBe(200);
  });

  test("the number of remembered tickets is bounded", () => {
    const first = refuse(0, full);
    for (let n = 0; n < 10_000; n += 1) refuse(0, full);
    expect(reservations.standing(first.key, 60_000).kind).toBe("newcomer");
  });
});

describe("a call", () => {
  /** The times until which `heldUntil` counts calls, one for each second that it looks at. */
  function lookedAt(now: number): number[] {
    const asked: number[] = [];
    expect(heldUntil(now, (at) => asked.push(at) + 9)).toBeNull();
    return asked;
  }

  test("is expected until three quarters of the patience after each second that is due within the patience", () => {
    expect(seconds(refuse(0, { waiting: 12 }), 0)).toBe(12);
    expect(lookedAt(3999)).toEqual([]);
    expect(lookedAt(4000)).toEqual([18_000]);
    expect(heldUntil(3999, () => 1)).toBeNull();
    expect(heldUntil(4000, () => 1)).toBe(13_800);
    expect(lookedAt(12_500)[0]).toBe(18_500);
  });

  test("is expected as if visitors waited for at least one second", () => {
    expect(seconds(refuse(0, { maxWaitMs: 0, waiting: 3 }), 0)).toBe(4);
    expect(lookedAt(4050)).toEqual([4800, 5750]);
    expect(heldUntil(4050, () => 1)).toBe(5100);
  });

  test("may be late by a second for a reservation, or by half of a shorter patience", () => {
    const callsUntil = (at: number): number => (at >= 1500 ? 4 : 0);
    expect(seconds(refuse(0, { callsUntil }), 0)).toBe(1);
    reservations = new Reservations();
    expect(seconds(refuse(0, { callsUntil, maxWaitMs: 998 }), 0)).toBe(2);
    reservations = new Reservations();
    expect(seconds(refuse(0, { callsUntil, maxWaitMs: 1000 }), 0)).toBe(1);
  });

  test("is held for reservations only if the calls after it couldn't serve them in time", () => {
    const scarce = (at: number): number => (at >= 5000 ? 1 : 0);
    refuse(0, { callsUntil: scarce });
    // The next call after this one is far away.
    expect(heldUntil(4100, () => 1)).toBe(5800);
    expect(heldUntil(4100, () => 2)).toBeNull();
    expect(heldUntil(5799, () => 1)).toBe(5800);
    expect(heldUntil(5800, () => 1)).toBeNull();
  });
});

/** Adds each published change: the key, and whether the reservation exists from then on. */
const recording = (changes: [string, boolean][]): Pick<SharedReservations, "changed" | "canPublish"> => ({
  changed: (key, made) => void changes.push([key, made !== null]),
  canPublish: () => true,
});

describe("a reservation shared between replicas", () => {
  const reserved = {
    key: "elsewhere",
    client: "b",
    dueAt: 10_000,
    askedAt: -1000,
    maxWaitMs: 8000,
    earlyAsks: 0,
  };

  test("is honoured here until its replica publishes that it is over", () => {
    reservations.learn(reserved.key, reserved, 0);
    expect(reservations.standing(reserved.key, 5000).kind).toBe("early");
    expect(reservations.standing(reserved.key, 10_000).kind).toBe("reserved");
    expect(reservations.isDue("b", 10_000)).toBe(true);
    reservations.learn(reserved.key, null, 10_000);
    expect(reservations.standing(reserved.key, 10_000).kind).toBe("newcomer");
  });

  test("is ignored once its second is over", () => {
    reservations.learn(reserved.key, reserved, 11_500);
    expect(reservations.size).toBe(1);
    reservations = new Reservations();
    reservations.learn(reserved.key, reserved, 12_500);
    expect([reservations.size, reservations.standing(reserved.key, 12_500).kind]).toEqual([0, "newcomer"]);
  });

  test("reduces what can be reserved here, and doesn't count as unclaimed here", () => {
    for (let n = 0; n < 6; n += 1)
      reservations.learn(`elsewhere ${n}`, { ...reserved, key: `elsewhere ${n}` }, 0);
    expect(Array.from({ length: 3 }, () => seconds(refuse(0), 0))).toEqual([20, 23, 26]);
    expect(reservations.own()).toHaveLength(3);
    expect([reservations.lapsed(12_600), reservations.size]).toEqual([0, 3]);
  });

  test("is this replica's own once it has been asked for too early here, because this one has published it again", () => {
    reservations.learn(reserved.key, reserved, 0);
    const standing = reservations.standing(reserved.key, 1000);
    if (!("ticket" in standing)) throw new Error("it is known");
    reservations.askedEarly(standing.ticket, false, outlook(1000));
    expect(reservations.own().map(({ key }) => key)).toEqual([reserved.key]);
  });

  test("is weighted by the likelihood of its claim here, if only this replica's calls count", () => {
    for (const key of ["one", "two", "three", "four"]) reservations.learn(key, { ...reserved, key }, 0);
    const held = (part: number) => reservations.heldUntil(9500, { callsUntil: () => 2, part });
    expect([held(1), held(1 / 4)]).toEqual([11_800, null]);
    expect(reservations.dueWithin(8000, 9500)).toBe(4);
    expect(seconds(refuse(0, { part: 1 / 4, waiting: 12 }), 0)).toBe(13);
  });

  test("for a later second takes nothing from earlier seconds, however likely its claim here is", () => {
    const four = ["one", "two", "three", "four"];
    for (const key of four)
      reservations.learn(`${key} soon`, { ...reserved, key: `${key} soon`, dueAt: 1000 }, 0);
    for (const key of four) reservations.learn(key, { ...reserved, key }, 0);
    expect(seconds(refuse(0, { part: 1 / 4 }), 0)).toBe(3);
  });

  test("needs no forgiveness here, because the refusal was charged by the other replica", () => {
    reservations.learn(reserved.key, reserved, 0);
    expect(reservations.standing(reserved.key, 10_000)).toMatchObject({ ticket: { isForgiven: true } });
    const { key, dueAt } = refuse(0);
    expect(reservations.standing(key, dueAt)).toMatchObject({ ticket: { isForgiven: false } });
  });

  test("is published again when its holder retries too early once; a ticket without one isn't published", () => {
    const changes: [string, boolean][] = [];
    reservations = new Reservations(recording(changes));
    const full = { callsUntil: () => 1, waiting: 5 };
    const without = refuse(0, full);
    reservations.askedEarly(without, false, outlook(1000, full));
    const ticket = refuse(1000, { waiting: 12 });
    reservations.askedEarly(ticket, false, outlook(2000));
    expect(changes).toEqual([
      [ticket.key, true],
      [ticket.key, false],
      [ticket.key, true],
    ]);
  });

  test("that is handed over to another quota ends here, and is that quota's own, which publishes it", () => {
    const mine = refuse(0);
    reservations.learn(reserved.key, reserved, 0);
    const handedOver = reservations.handOver();
    expect([handedOver.map(({ key }) => key), reservations.size]).toEqual([[mine.key], 1]);
    const changes: [string, boolean][] = [];
    const next = new Reservations(recording(changes));
    for (const reservation of handedOver) next.adopt(reservation, 1000);
    expect(next.standing(mine.key, mine.dueAt)).toMatchObject({
      kind: "reserved",
      ticket: { dueAt: mine.dueAt },
    });
    expect([next.own().map(({ key }) => key), changes]).toEqual([[mine.key], [[mine.key, true]]]);
    next.adopt(mine, 30_000);
    expect(next.size).toBe(0);
  });

  test("is published when it is made and when it is claimed, but not when it lapses", () => {
    const changes: [string, boolean][] = [];
    reservations = new Reservations(recording(changes));
    const [first, second] = [refuse(0), refuse(0)];
    reservations.forget(first.key);
    reservations.standing(second.key, 30_000);
    expect(changes).toEqual([
      [first.key, true],
      [second.key, true],
      [first.key, false],
    ]);
  });
});
