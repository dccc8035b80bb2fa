/** When a circuit opens, who may send the trial request, and when it closes. */
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
  if (end === null) throw new Error("no call can be made");
  end(outcome);
}

/** Fails until the circuit opens. */
function breakDown(circuit: Circuit): void {
  while (!circuit.isOpen) call(circuit, "upstream_failed");
}

function fail(circuit: Circuit, times = 5, by: Outcome = "upstream_failed"): void {
  for (let n = 0; n < times; n += 1) call(circuit, by);
}

describe("a circuit", () => {
  test.each(["upstream_failed", "upstream_contract", "upstream_timeout"] as const)(
    "opens after five times %s in a row, and logs it",
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

  test("stays closed while some calls succeed", () => {
    const circuit = circuits("check");
    for (let n = 0; n < 20; n += 1) {
      fail(circuit, 4);
      call(circuit, "success");
    }
    expect(circuit.isOpen).toBe(false);
  });

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

  test("lets the next trial request through soon after an inconclusive one", async () => {
    const circuit = circuits("check");
    fail(circuit);
    await clock.advance(OPEN_MS);
    call(circuit, "inconclusive");
    expect(circuit.isOpen).toBe(true);
    await clock.advance(OPEN_MS / 3);
    expect(circuit.begin(false)).not.toBeNull();
  });

  test("is half-open earlier for background work than for visitors", async () => {
    const circuit = circuits("quote");
    fail(circuit);
    await clock.advance(OPEN_MS * 0.75);
    expect(circuit.begin(false)).toBeNull();
    expect(circuit.begin(true)).not.toBeNull();
  });

  test("ignores the outcome of calls from before it opened", async () => {
    const circuit = circuits("check");
    const late = [circuit.begin(false), circuit.begin(false)];
    fail(circuit);
    const retryAfterMs = circuit.rejection(false)?.retryAfterMs;
    late[0]?.("success");
    late[1]?.("upstream_timeout");
    expect(circuit.rejection(false)).toMatchObject({ code: "upstream_failed", retryAfterMs });
  });
});

describe("all circuits together", () => {
  test("open after one failure while another is open, and after five once that one has closed", async () => {
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

  test("let through at most six trial requests a minute, and some of each operation, under any load", async () => {
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
          for (const operation of OPERATIONS) breakDown(of(operation));
          const trials: { readonly operation: string; readonly at: number }[] = [];
          for (const [index, pauseMs, isBackground] of asks) {
            await time.advance(pauseMs);
            const operation = OPERATIONS[index] ?? "check";
            const end = of(operation).begin(isBackground);
            if (end === null) continue;
            trials.push({ operation, at: time.monotonic() });
            end("upstream_failed");
          }
          for (const { at } of trials)
            expect(
              trials.filter((other) => other.at >= at && other.at < at + 60_000).length,
            ).toBeLessThanOrEqual(6);
          expect(new Set(trials.map(({ operation }) => operation)).size).toBe(OPERATIONS.length);
        },
      ),
      { numRuns: 3 },
    );
  });

  test("don't wait for each other once one trial request has succeeded", async () => {
    for (const operation of OPERATIONS) breakDown(circuits(operation));
    await clock.advance(OPEN_MS);
    for (const operation of OPERATIONS) call(circuits(operation), "success");
    expect(OPERATIONS.filter((operation) => circuits(operation).isOpen)).toEqual([]);
  });
});
