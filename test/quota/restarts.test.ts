/** Kills at random points, even between a ledger entry and its call, never let more calls than the budget reach the upstream. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { graceMsOf } from "../../src/quota/slot-table.js";
import type { Ledger } from "../../src/quota/ledger.js";
import { openFileLedger } from "../../src/quota/ledger-file.js";
import { FakeClock } from "../support/fake-clock.js";
import { largestWindow } from "./support/rolling.js";

const WINDOW_MS = 6000;
const LIMIT = 6;
const HEADROOM = 1;
const noLock = () => Promise.resolve(() => Promise.resolve());

type Step =
  | { readonly kind: "wait"; readonly ms: number }
  | {
      readonly kind: "calls";
      readonly count: number;
      readonly tookMs: number;
      readonly arrives: number;
      readonly abandoned: boolean;
    }
  | {
      readonly kind: "kill";
      readonly downMs: number;
      readonly between: boolean;
      readonly late: number;
      /** The limit of the next process. */
      readonly limit: number;
    };

const part = fc.double({ min: 0, max: 1, noNaN: true });
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 4000 }) }),
    fc.record({
      kind: fc.constant("calls" as const),
      count: fc.integer({ min: 1, max: 6 }),
      tookMs: fc.integer({ min: 0, max: 3000 }),
      arrives: fc.oneof(fc.constantFrom(0, 1), part),
      abandoned: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant("kill" as const),
      downMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3000 })),
      between: fc.boolean(),
      late: fc.oneof(fc.constantFrom(0, 1), part),
      limit: fc.constantFrom(LIMIT, LIMIT / 2),
    }),
  ),
  { minLength: 5, maxLength: 60 },
);

interface Flight {
  /** Whether its process was killed, so nobody settles it. */
  orphan: boolean;
  arrived: boolean;
  /** Whether it was settled, so it arrives within the recorded grace period even if the process is killed. */
  ended: boolean;
  readonly arrive: () => void;
}

/** Runs a script against the file in `directory`; returns when calls arrived at the upstream. */
async function play(
  directory: string,
  script: readonly Step[],
  coldStart: "assume-spent" | "assume-free",
): Promise<number[]> {
  const clock = new FakeClock();
  const arrivals: number[] = [];
  const graceMs = graceMsOf(WINDOW_MS);
  let flights: Flight[] = [];
  const start = (limit = LIMIT): Promise<Ledger> =>
    openFileLedger({
      directory,
      fingerprint: "model",
      limit,
      headroom: HEADROOM,
      windowMs: WINDOW_MS,
      coldStart,
      clock,
      onFault: (what) => {
        throw new Error(what);
      },
      uptimeMs: () => 1_000_000 + clock.monotonic(),
      claim: noLock,
    });
  let ledger = await start();

  async function call(step: Extract<Step, { kind: "calls" }>): Promise<void> {
    const owner = ledger;
    const slot = owner.take();
    if (slot === null) return;
    const flight: Flight = {
      orphan: false,
      arrived: false,
      ended: false,
      arrive: () => {
        if (!flight.arrived) arrivals.push(clock.monotonic());
        flight.arrived = true;
      },
    };
    flights.push(flight);
    const lastMs = step.abandoned ? step.tookMs + graceMs : step.tookMs;
    clock.after(lastMs * step.arrives, () => {
      if (!flight.orphan) flight.arrive();
    });
    clock.after(step.tookMs, () => {
      if (flight.orphan) return;
      flight.ended = true;
      owner.settle(slot, step.abandoned ? "abandoned" : "answered");
    });
  }

  for (const step of script) {
    if (step.kind === "wait") {
      await clock.advance(step.ms);
    } else if (step.kind === "calls") {
      for (let n = 0; n < step.count; n += 1) await call(step);
    } else {
      // Recorded, but killed before the call was sent.
      if (step.between) ledger.take();
      for (const flight of flights.filter(({ ended }) => !ended)) {
        flight.orphan = true;
        // A call in flight may arrive while no process runs, or within a grace period after the next start.
        clock.after((step.downMs + graceMs) * step.late, flight.arrive);
      }
      flights = [];
      // Closing writes nothing, so for the file it equals a kill, but it closes the file descriptor.
      await ledger.close();
      await clock.advance(step.downMs);
      ledger = await start(step.limit);
    }
  }
  await clock.advance(WINDOW_MS * 2);
  await ledger.close();
  return arrivals;
}

test.each(["assume-spent", "assume-free"] as const)(
  "no rolling window ever exceeds the budget, whenever the process is killed, even if its limit is changed (%s)",
  async (coldStart) => {
    const root = mkdtempSync(join(tmpdir(), "restarts-"));
    let run = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (script) => {
        run += 1;
        const arrivals = await play(join(root, `${run}`), script, coldStart);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(LIMIT - HEADROOM);
      }),
      { numRuns: 100 },
    );
    rmSync(root, { recursive: true });
  },
);

test("losing the file between two runs adds at most the headroom, so the limit isn't exceeded", async () => {
  const root = mkdtempSync(join(tmpdir(), "restarts-"));
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 4000 }), async (downMs) => {
      run += 1;
      const directory = join(root, `${run}`);
      const burst: Step = { kind: "calls", count: 6, tookMs: 100, arrives: 1, abandoned: false };
      const before = await play(directory, [burst], "assume-free");
      rmSync(directory, { recursive: true });
      const again: Step[] = Array.from({ length: 30 }, (_, n) =>
        n % 2 === 0 ? burst : { kind: "wait", ms: 500 },
      );
      const after = await play(directory, again, "assume-spent");
      const shifted = after.map((at) => at + 100 + downMs);
      expect(largestWindow([...before, ...shifted], WINDOW_MS)).toBeLessThanOrEqual(LIMIT);
      expect(after.filter((at) => at < WINDOW_MS / 2)).toHaveLength(HEADROOM);
    }),
    { numRuns: 20 },
  );
  rmSync(root, { recursive: true });
});
