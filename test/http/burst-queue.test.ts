/** Expensive work waits while new connections arrive in every turn of the event loop. */
import { describe, expect, test } from "@jest/globals";
import { createBurstQueue, type BurstQueue } from "../../src/http/edge/burst-queue.js";

const turn = (): Promise<void> =>
  new Promise((done) => {
    setImmediate(done);
  });

async function burst(queue: BurstQueue, turns: number): Promise<void> {
  for (let n = 0; n < turns; n += 1) {
    queue.accepted();
    await turn();
  }
}

describe("work", () => {
  test("is done immediately while connections arrive now and then", async () => {
    const queue = createBurstQueue();
    const done: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      queue.accepted();
      queue.run(() => done.push(n));
      await turn();
      await turn();
    }
    expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  test("waits during a burst of connections, and is then done in order, a few pieces per turn", async () => {
    const queue = createBurstQueue();
    const done: number[] = [];
    const all = Array.from({ length: 100 }, (_, n) => n);
    await burst(queue, 20);
    for (const n of all) queue.run(() => done.push(n));
    await burst(queue, 20);
    expect(done).toEqual([]);
    for (let before = 0; done.length < all.length; before = done.length) {
      await turn();
      expect(done.length - before).toBeLessThan(10);
    }
    expect(done).toEqual(all);
  });

  test("that arrives steadily after a burst is soon done immediately again", async () => {
    const queue = createBurstQueue();
    let waiting = 0;
    await burst(queue, 20);
    const arrive = (): void => {
      waiting += 1;
      queue.run(() => (waiting -= 1));
    };
    for (let n = 0; n < 100; n += 1) arrive();
    for (let turns = 0; turns < 50; turns += 1) {
      for (let n = 0; n < 4; n += 1) arrive();
      await turn();
    }
    arrive();
    expect(waiting).toBe(0);
  });

  test("that arrives while other work waits is done after it", async () => {
    const queue = createBurstQueue();
    const done: string[] = [];
    await burst(queue, 20);
    queue.run(() => done.push("first"));
    await turn();
    queue.run(() => done.push("second"));
    for (let n = 0; n < 5; n += 1) await turn();
    expect(done).toEqual(["first", "second"]);
  });

  test("continues during a burst that doesn't end", async () => {
    const queue = createBurstQueue();
    let done = 0;
    await burst(queue, 20);
    for (let n = 0; n < 50; n += 1) queue.run(() => (done += 1));
    await burst(queue, 600);
    expect(done).toBeGreaterThan(40);
  });
});
