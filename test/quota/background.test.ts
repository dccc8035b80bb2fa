/** Background work runs in rounds: one at a time, in the refresh lane, soon after room is predicted, and none after `stop`. */
import { describe, expect, test } from "@jest/globals";
import { type BackgroundSettings, inBackground } from "../../src/quota/background.js";
import type { Ask } from "../../src/quota/quota.js";
import { FakeClock, settle } from "../support/fake-clock.js";

/** Rounds that the test ends, and when each started. */
class Rounds {
  readonly clock = new FakeClock();
  readonly startedAt: number[] = [];
  readonly asks: Ask[] = [];
  backgroundRoomInMs = 0;
  #end: (left: number | "no room") => void = () => {};

  start(settings: Partial<BackgroundSettings> = {}) {
    return inBackground({
      client: "test",
      round: (ask) => {
        this.startedAt.push(this.clock.monotonic());
        this.asks.push(ask);
        return new Promise((done) => {
          this.#end = done;
        });
      },
      backgroundRoomInMs: () => this.backgroundRoomInMs,
      clock: this.clock,
      ...settings,
    });
  }

  async end(left: number | "no room"): Promise<void> {
    this.#end(left);
    await settle();
  }
}

describe("background work", () => {
  test("runs again soon after room is predicted, and after 5 s at the latest", async () => {
    const rounds = new Rounds();
    rounds.start();
    rounds.backgroundRoomInMs = 900;
    await rounds.end("no room");
    await rounds.clock.advance(1000);
    expect(rounds.startedAt).toEqual([0, 1000]);
    rounds.backgroundRoomInMs = 60_000;
    await rounds.end("no room");
    await rounds.clock.advance(5000);
    expect(rounds.startedAt).toEqual([0, 1000, 6000]);
  });

  test("requested during a round runs once more right after it, however often it was requested", async () => {
    const rounds = new Rounds();
    const background = rounds.start();
    for (let times = 0; times < 3; times += 1) background.now();
    expect(rounds.startedAt).toEqual([0]);
    await rounds.end(60_000);
    expect(rounds.startedAt).toEqual([0, 0]);
    await rounds.end(60_000);
    background.now();
    await settle();
    expect(rounds.startedAt).toEqual([0, 0, 0]);
    await rounds.end(60_000);
    expect([rounds.startedAt.length, rounds.clock.pending]).toEqual([3, 1]);
  });

  test("ends when it is stopped, which aborts the current round", async () => {
    const rounds = new Rounds();
    const background = rounds.start();
    background.now();
    background.stop();
    expect(rounds.asks[0]?.signal.aborted).toBe(true);
    await rounds.end(1000);
    background.now();
    await rounds.clock.advance(60_000);
    expect([rounds.startedAt.length, rounds.clock.pending]).toEqual([1, 0]);
  });
});
