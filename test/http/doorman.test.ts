/** New connections are let in before expensive work, a turn of the event loop at a time. */
import { describe, expect, test } from "@jest/globals";
import { createDoorman, type Doorman } from "../../src/http/edge/turns.js";

const turn = (): Promise<void> =>
  new Promise((done) => {
    setImmediate(done);
  });

async function crowd(door: Doorman, turns: number): Promise<void> {
  for (let n = 0; n < turns; n += 1) {
    door.accepted();
    await turn();
  }
}

describe("work", () => {
  test("is done at once while connections come now and then", async () => {
    const door = createDoorman();
    const done: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      door.accepted();
      door.run(() => done.push(n));
      await turn();
      await turn();
    }
    expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  test("waits while a crowd comes in, and is then done in order, a piece per turn", async () => {
    const door = createDoorman();
    const done: number[] = [];
    await crowd(door, 20);
    for (let n = 0; n < 5; n += 1) door.run(() => done.push(n));
    await crowd(door, 20);
    expect(done).toEqual([]);
    await turn();
    expect(done.length).toBeLessThanOrEqual(1);
    for (let n = 0; n < 10; n += 1) await turn();
    expect(done).toEqual([0, 1, 2, 3, 4]);
  });

  test("that comes while other work waits goes behind it", async () => {
    const door = createDoorman();
    const done: string[] = [];
    await crowd(door, 20);
    door.run(() => done.push("first"));
    await turn();
    door.run(() => done.push("second"));
    for (let n = 0; n < 5; n += 1) await turn();
    expect(done).toEqual(["first", "second"]);
  });

  test("goes on beside a crowd that doesn't end", async () => {
    const door = createDoorman();
    let done = 0;
    await crowd(door, 20);
    for (let n = 0; n < 50; n += 1) door.run(() => (done += 1));
    await crowd(door, 600);
    expect(done).toBeGreaterThan(40);
  });
});
