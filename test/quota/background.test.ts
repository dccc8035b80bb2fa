/** Background work comes in rounds: one at a time, in the refresh lane, sooner where room is foretold, none after its stop. */
import { describe, expect, test } from "@jest/globals";
import { type BackgroundSettings, inBackground } from "../../src/quota/background.js";
import type { Ask } from "../../src/quota/quota.js";
import { FakeClock, settle } from "../support/fake-clock.js";

/** Rounds that end when the test says so, and when each began. */
class Rounds {
  readonly clock = new FakeClock();
  readonly began: number[] = [];
  readonly asks: Ask[] = [];
  roomInMs = 0;
  #end: (left: number | "no room") => void = () => {};

  start(settings: Partial<BackgroundSettings> = {}) {
    return inBackground({
      client: "test",
      round: (ask) => {
        this.began.push(this.clock.monotonic());
        this.asks.push(ask);
        return new Promise((done) => {
          this.#end = done;
        });
      },
      roomInMs: () => this.roomInMs,
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
  test("begins at once, or after its first pause, in the refresh lane", async () => {
    const at = new Rounds();
    at.start();
    expect(at.began).toEqual([0]);
    expect(at.asks[0]).toMatchObject({ lane: "refresh", client: "test", waitUntilMs: Infinity });
    const later = new Rounds();
    later.start({ firstInMs: 5000 });
    await later.clock.advance(4999);
    expect(later.began).toEqual([]);
    await later.clock.advance(1);
    expect(later.began).toEqual([5000]);
  });

  test("has its next round when the last one says so, counted from its end", async () => {
    const rounds = new Rounds();
    rounds.start();
    await rounds.clock.advance(7000);
    expect(rounds.began).toEqual([0]);
    await rounds.end(3000);
    await rounds.clock.advance(3000);
    expect(rounds.began).toEqual([0, 10_000]);
  });

  test("looks again when room is foretold, and no later than in 5 s", async () => {
    const rounds = new Rounds();
    rounds.start();
    rounds.roomInMs = 900;
    await rounds.end("no room");
    await rounds.clock.advance(1000);
    expect(rounds.began).toEqual([0, 1000]);
    rounds.roomInMs = 60_000;
    await rounds.end("no room");
    await rounds.clock.advance(5000);
    expect(rounds.began).toEqual([0, 1000, 6000]);
  });

  test("asked for during a round has one more right after it, however often it was asked for", async () => {
    const rounds = new Rounds();
    const background = rounds.start();
    for (let times = 0; times < 3; times += 1) background.now();
    expect(rounds.began).toEqual([0]);
    await rounds.end(60_000);
    expect(rounds.began).toEqual([0, 0]);
    await rounds.end(60_000);
    background.now();
    expect(rounds.began).toEqual([0, 0, 0]);
    await rounds.end(60_000);
    expect([rounds.began.length, rounds.clock.pending]).toEqual([3, 1]);
  });

  test("ends with its stop, which calls off what is under way", async () => {
    const rounds = new Rounds();
    const background = rounds.start();
    background.now();
    background.stop();
    expect(rounds.asks[0]?.signal.aborted).toBe(true);
    await rounds.end(1000);
    background.now();
    await rounds.clock.advance(60_000);
    expect([rounds.began.length, rounds.clock.pending]).toEqual([1, 0]);
  });
});
