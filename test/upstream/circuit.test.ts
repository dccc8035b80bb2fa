/** When an operation is left alone, who tries it again, and when it is back. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Circuit, createCircuits, type Ending } from "../../src/upstream/circuit.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const ALONE_MS = 30_000;
const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;

let clock: FakeClock;
let lines: string[];
let circuits: (operation: (typeof OPERATIONS)[number]) => Circuit;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  circuits = createCircuits(OPERATIONS, { clock, log: recordingLog(lines), trialAfterMs: ALONE_MS });
});

function call(circuit: Circuit, ending: Ending, isBackground = false): void {
  const end = circuit.begin(isBackground);
  if (end === null) throw new Error("no call may be made");
  end(ending);
}

/** Until it is left alone. */
function breakDown(circuit: Circuit): void {
  while (!circuit.isOpen) call(circuit, "upstream_failed");
}

function fail(circuit: Circuit, times = 5, by: Ending = "upstream_failed"): void {
  for (let n = 0; n < times; n += 1) call(circuit, by);
}

describe("an operation", () => {
  test.each(["upstream_failed", "upstream_contract", "upstream_timeout"] as const)(
    "is left alone after five times %s in a row, and says so",
    (code) => {
      const circuit = circuits("check");
      fail(circuit, 4, code);
      expect([circuit.isOpen, circuit.refusal(false)]).toEqual([false, null]);
      fail(circuit, 1, code);
      expect(circuit.isOpen).toBe(true);
      expect(circuit.begin(false)).toBeNull();
      const refusal = circuit.refusal(false);
      expect(refusal).toMatchObject({ code });
      expect(refusal?.retryAfterMs).toBeGreaterThan(ALONE_MS * 0.9 - 1);
      expect(refusal?.retryAfterMs).toBeLessThanOrEqual(ALONE_MS);
      expect(circuits("quote").refusal(false)).toBeNull();
      expect(lines).toEqual([expect.stringContaining(`"operation":"check","code":"${code}"`)]);
    },
  );

  test("is called on while some calls work", () => {
    const circuit = circuits("check");
    for (let n = 0; n < 20; n += 1) {
      fail(circuit, 4);
      call(circuit, "works");
    }
    expect(circuit.isOpen).toBe(false);
  });

  test("is not judged by calls that told nothing", () => {
    const circuit = circuits("check");
    fail(circuit, 4);
    fail(circuit, 20, "unknown");
    expect(circuit.isOpen).toBe(false);
    fail(circuit, 1);
    expect(circuit.isOpen).toBe(true);
  });

  test("may be tried at the time that was told, by one call, while all others are refused", async () => {
    const circuit = circuits("check");
    fail(circuit);
    const retryAfterMs = circuit.refusal(false)?.retryAfterMs ?? 0;
    await clock.advance(retryAfterMs - 1);
    expect(circuit.begin(false)).toBeNull();
    await clock.advance(1);
    const trial = circuit.begin(false);
    expect(trial).not.toBeNull();
    expect([circuit.begin(false), circuit.begin(true)]).toEqual([null, null]);
    expect(circuit.refusal(false)).toMatchObject({ code: "upstream_failed", retryAfterMs: undefined });
    trial?.("works");
    expect([circuit.isOpen, circuit.refusal(false)]).toEqual([false, null]);
    fail(circuit, 4);
    expect(circuit.isOpen).toBe(false);
  });

  test("is left alone again after a trial that fails, for the reason of the trial", async () => {
    const circuit = circuits("check");
    fail(circuit);
    await clock.advance(ALONE_MS);
    call(circuit, "upstream_timeout");
    expect(circuit.refusal(false)).toMatchObject({ code: "upstream_timeout" });
    await clock.advance(ALONE_MS * 0.9 - 1);
    expect(circuit.begin(false)).toBeNull();
    await clock.advance(ALONE_MS * 0.1 + 1);
    expect(circuit.begin(false)).not.toBeNull();
  });

  test("may be tried again at once after a trial that told nothing", async () => {
    const circuit = circuits("check");
    fail(circuit);
    await clock.advance(ALONE_MS);
    call(circuit, "unknown");
    expect(circuit.isOpen).toBe(true);
    await clock.advance(ALONE_MS / 3);
    expect(circuit.begin(false)).not.toBeNull();
  });

  test("is tried by background work before visitors are", async () => {
    const circuit = circuits("quote");
    fail(circuit);
    await clock.advance(ALONE_MS * 0.75);
    expect(circuit.begin(false)).toBeNull();
    expect(circuit.begin(true)).not.toBeNull();
  });

  test("is neither closed nor opened anew by calls from before it was opened", async () => {
    const circuit = circuits("check");
    const late = [circuit.begin(false), circuit.begin(false)];
    fail(circuit);
    const told = circuit.refusal(false)?.retryAfterMs;
    late[0]?.("works");
    late[1]?.("upstream_timeout");
    expect(circuit.refusal(false)).toMatchObject({ code: "upstream_failed", retryAfterMs: told });
  });
});

describe("all operations together", () => {
  test("one failure is enough where another operation is left alone, and five again when that is back", async () => {
    fail(circuits("check"));
    expect(circuits("quote").isOpen).toBe(false);
    fail(circuits("quote"), 1);
    expect(circuits("quote").isOpen).toBe(true);
    await clock.advance(ALONE_MS);
    call(circuits("check"), "works");
    call(circuits("quote"), "works");
    fail(circuits("quote"), 4);
    expect(circuits("quote").isOpen).toBe(false);
  });

  test("are tried at most six times a minute, however many are asked for, and each in its turn", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(5), fc.nat(400), fc.boolean()), { minLength: 2000, maxLength: 2000 }),
        async (asks) => {
          const time = new FakeClock();
          const of = createCircuits(OPERATIONS, {
            clock: time,
            log: recordingLog([]),
            trialAfterMs: ALONE_MS,
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

  test("do not wait for each other once one of them works", async () => {
    for (const operation of OPERATIONS) breakDown(circuits(operation));
    await clock.advance(ALONE_MS);
    for (const operation of OPERATIONS) call(circuits(operation), "works");
    expect(OPERATIONS.filter((operation) => circuits(operation).isOpen)).toEqual([]);
  });
});
