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

  test("waits during a burst of connections, and is then done in order, one item per turn", async () => {
    const queue = createBurstQueue();
    const done: number[] = [];
    await burst(queue, 20);
    for (let n = 0; n < 5; n += 1) queue.run(() => done.push(n));
    await burst(queue, 20);
    expect(done).toEqual([]);
    await turn();
    expect(done.length).toBeLessThanOrEqual(1);
    for (let n = 0; n < 10; n += 1) await turn();
    expect(done).toEqual([0, 1, 2, 3, 4]);
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
