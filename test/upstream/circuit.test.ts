/** When a circuit opens, which call becomes the trial request, and when the circuit closes. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Circuit, createCircuits, type Outcome } from "../../src/upstream/circuit.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const OPEN_MS = 30_000;
const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;

let clock: FakeClock;
let lines: string[];
let circuits: (operation: (typeof OPERATIONS)[number]) => Circuit;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  circuits = createCircuits(OPERATIONS, { clock, log: recordingLog(lines), halfOpenAfterMs: OPEN_MS });
});

function call(circuit: Circuit, outcome: Outcome, isBackground = false): void {
  const end = circuit.begin(isBackground);
  if (end === null) throw new Error("the circuit allows no call");
  end(outcome);
}

function failUntilOpen(circuit: Circuit): void {
  while (!circuit.isOpen) call(circuit, "upstream_failed");
}

function fail(circuit: Circuit, times = 5, outcome: Outcome = "upstream_failed"): void {
  for (let n = 0; n < times; n += 1) call(circuit, outcome);
}

describe("a circuit", () => {
  test.each(["upstream_failed", "upstream_contract", "upstream_timeout"] as const)(
    "opens after five consecutive %s outcomes, and logs it",
    (code) => {
      const circuit = circuits("check");
      fail(circuit, 4, code);
      expect([circuit.isOpen, circuit.rejection(false)]).toEqual([false, null]);
      fail(circuit, 1, code);
      expect(circuit.isOpen).toBe(true);
      expect(circuit.begin(false)).toBeNull();
      const rejection = circuit.rejection(false);
      expect(rejection).toMatchObject({ code });
      expect(rejection?.retryAfterMs).toBeGreaterThan(OPEN_MS * 0.9 - 1);
      expect(rejection?.retryAfterMs).toBeLessThanOrEqual(OPEN_MS);
      expect(circuits("quote").rejection(false)).toBeNull();
      expect(lines).toEqual([expect.stringContaining(`"operation":"check","code":"${code}"`)]);
    },
  );

  test("ignores inconclusive calls", () => {
    const circuit = circuits("check");
    fail(circuit, 4);
    fail(circuit, 20, "inconclusive");
    expect(circuit.isOpen).toBe(false);
    fail(circuit, 1);
    expect(circuit.isOpen).toBe(true);
  });

  test("lets one trial request through at the promised time and rejects all others", async () => {
    const circuit = circuits("check");
    fail(circuit);
    const retryAfterMs = circuit.rejection(false)?.retryAfterMs ?? 0;
    await clock.advance(retryAfterMs - 1);
    expect(circuit.begin(false)).toBeNull();
    await clock.advance(1);
    const trial = circuit.begin(false);
    expect(trial).not.toBeNull();
    expect([circuit.begin(false), circuit.begin(true)]).toEqual([null, null]);
    expect(circuit.rejection(false)).toMatchObject({ code: "upstream_failed", retryAfterMs: undefined });
    trial?.("success");
    expect([circuit.isOpen, circuit.rejection(false)]).toEqual([false, null]);
    fail(circuit, 4);
    expect(circuit.isOpen).toBe(false);
  });

  test("stays open after a failed trial request, with its error code", async () => {
    const circuit = circuits("check");
    fail(circuit);
    await clock.advance(OPEN_MS);
    call(circuit, "upstream_timeout");
    expect(circuit.rejection(false)).toMatchObject({ code: "upstream_timeout" });
    await clock.advance(OPEN_MS * 0.9 - 1);
    expect(circuit.begin(false)).toBeNull();
    await clock.advance(OPEN_MS * 0.1 + 1);
    expect(circuit.begin(false)).not.toBeNull();
  });

  test("is due for a background trial request about every 4 s, and every 12 s once the outage has lasted 30 s", async () => {
    const circuit = circuits("quote");
    fail(circuit);
    const trialsAt: number[] = [];
    for (const began = clock.monotonic(); clock.monotonic() - began < 70_000; await clock.advance(250)) {
      if (circuit.trialInMs() !== 0) continue;
      trialsAt.push(clock.monotonic() - began);
      call(circuit, "upstream_failed", true);
    }
    expect(trialsAt.map((at) => at / 1000)).toEqual([
      3.75, 7.5, 11.25, 15, 18.75, 22.5, 26.25, 30, 42, 54, 66,
    ]);
  });

  test("is due for a trial request after its first failure, before it opens, and not after a success", async () => {
    const circuit = circuits("quote");
    expect(circuit.trialInMs()).toBeNull();
    fail(circuit, 1);
    expect(circuit.trialInMs()).toBe(3750);
    await clock.advance(3750);
    expect(circuit.trialInMs()).toBe(0);
    const end = circuit.begin(true);
    // While it hangs, it isn't repeated immediately.
    expect(circuit.trialInMs()).toBe(3750);
    end?.("success");
    expect(circuit.trialInMs()).toBeNull();
  });
});

describe("the circuits of several operations", () => {
  test("open after one failure while another is open, and after five failures once that one has closed", async () => {
    fail(circuits("check"));
    expect(circuits("quote").isOpen).toBe(false);
    fail(circuits("quote"), 1);
    expect(circuits("quote").isOpen).toBe(true);
    await clock.advance(OPEN_MS);
    call(circuits("check"), "success");
    call(circuits("quote"), "success");
    fail(circuits("quote"), 4);
    expect(circuits("quote").isOpen).toBe(false);
  });

  test("let through at most six trial requests a minute in a lasting outage, some for each operation", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(5), fc.nat(400), fc.boolean()), { minLength: 2000, maxLength: 2000 }),
        async (asks) => {
          const time = new FakeClock();
          const of = createCircuits(OPERATIONS, {
            clock: time,
            log: recordingLog([]),
            halfOpenAfterMs: OPEN_MS,
          });
          for (const operation of OPERATIONS) failUntilOpen(of(operation));
          const trials: { readonly operation: string; readonly at: number }[] = [];
          for (const [index, pauseMs, isBackground] of asks) {
            await time.advance(pauseMs);
            const operation = OPERATIONS[index] ?? "check";
            const end = of(operation).begin(isBackground);
            if (end === null) continue;
            trials.push({ operation, at: time.monotonic() });
            end("upstream_failed");
          }
          const mostInAMinute = (counted: typeof trials): number =>
            Math.max(
              ...counted.map(
                ({ at }) => counted.filter((one) => one.at >= at && one.at < at + 60_000).length,
              ),
            );
          expect(mostInAMinute(trials)).toBeLessThanOrEqual(11);
          expect(mostInAMinute(trials.filter(({ at }) => at > OPEN_MS))).toBeLessThanOrEqual(6);
          expect(new Set(trials.map(({ operation }) => operation)).size).toBe(OPERATIONS.length);
        },
      ),
      { numRuns: 3 },
    );
  });

  test("take turns with their background trial requests", async () => {
    for (const operation of OPERATIONS) failUntilOpen(circuits(operation));
    const tried: string[] = [];
    while (tried.length < 4 * OPERATIONS.length) {
      await clock.advance(500);
      for (const operation of OPERATIONS)
        if (circuits(operation).trialInMs() === 0) {
          tried.push(operation);
          call(circuits(operation), "upstream_failed", true);
        }
    }
    expect(tried.slice(0, OPERATIONS.length)).toEqual(OPERATIONS);
    for (const operation of OPERATIONS)
      expect(tried.filter((one) => one === operation).length).toBeGreaterThanOrEqual(3);
  });
});
