/** When a circuit opens, which call becomes the trial request, and when the circuit closes. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type Circuits, createCircuits, type Outcome } from "../../src/upstream/circuit.js";
import { type Operation, OPERATIONS } from "../../src/upstream/vocabulary.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const OPEN_MS = 30_000;

let clock: FakeClock;
let lines: string[];
let circuits: Circuits;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  circuits = createCircuits({ clock, log: recordingLog(lines), visitorAfterMs: OPEN_MS });
});

/** Makes a call if the circuit allows one, and returns whether it does. */
function call(operation: Operation, outcome: Outcome, isBackground = false): boolean {
  if (circuits.rejection(operation, isBackground) !== null) return false;
  circuits.begin(operation, isBackground)(outcome);
  return true;
}

function fail(operation: Operation, times = 5, outcome: Outcome = "upstream_failed"): void {
  for (let n = 0; n < times; n += 1) expect(call(operation, outcome)).toBe(true);
}

function failAll(): void {
  fail("check");
  for (const operation of OPERATIONS.slice(1)) fail(operation, 1);
  expect(circuits.open()).toEqual(OPERATIONS);
}

/** Makes the due trial requests for this long, looking twice a second; returns when each was made, in seconds, and for what. */
async function trials(forMs: number, outcome: Outcome = "upstream_failed"): Promise<[number, Operation][]> {
  const made: [number, Operation][] = [];
  for (const begunMs = clock.monotonic(); clock.monotonic() - begunMs < forMs; await clock.advance(250)) {
    const due = circuits.nextTrials();
    for (const operation of due?.inMs === 0 ? due.operations : []) {
      expect(call(operation, outcome, true)).toBe(true);
      made.push([(clock.monotonic() - begunMs) / 1000, operation]);
    }
  }
  return made;
}

describe("a circuit", () => {
  test.each(["upstream_failed", "upstream_contract", "upstream_timeout"] as const)(
    "opens after five consecutive %s outcomes, and logs it",
    (code) => {
      fail("check", 4, code);
      fail("check", 20, "inconclusive");
      expect(circuits.open()).toEqual([]);
      fail("check", 1, code);
      expect(circuits.open()).toEqual(["check"]);
      expect(circuits.rejection("check", false)).toMatchObject({ code, retryAfterMs: OPEN_MS });
      expect(circuits.rejection("quote", false)).toBeNull();
      expect(lines).toEqual([expect.stringContaining(`"operation":"check","code":"${code}"`)]);
    },
  );

  test("stays closed while some calls succeed", () => {
    for (let n = 0; n < 20; n += 1) {
      fail("check", 4);
      call("check", "success");
    }
    expect([circuits.open(), circuits.isFailing()]).toEqual([[], false]);
  });

  test("lets one visitor's trial request through at the promised time, and closes when it succeeds", async () => {
    fail("check");
    await clock.advance(OPEN_MS - 1);
    expect(call("check", "success")).toBe(false);
    await clock.advance(1);
    const end = circuits.begin("check", false);
    expect([call("check", "success"), call("check", "success", true)]).toEqual([false, false]);
    end("success");
    expect(circuits.open()).toEqual([]);
    fail("check", 4);
    expect(circuits.open()).toEqual([]);
  });

  test("stays open after a failed trial request, with its error code", async () => {
    fail("check");
    await clock.advance(OPEN_MS);
    call("check", "upstream_timeout");
    expect(circuits.rejection("check", false)).toMatchObject({
      code: "upstream_timeout",
      retryAfterMs: OPEN_MS,
    });
  });

  test("ignores the failure of a call that began before the last success", async () => {
    fail("quote");
    await clock.advance(4000);
    const hanging = circuits.begin("quote", true);
    await clock.advance(4000);
    call("quote", "success", true);
    hanging("upstream_timeout");
    expect([circuits.open(), circuits.isFailing(), circuits.nextTrials()]).toEqual([[], false, null]);
  });
});

describe("the trial requests in the background", () => {
  test("come about every 4 s, and every 12 s once something has failed for 30 s", async () => {
    fail("quote");
    expect((await trials(70_000)).map(([s]) => s)).toEqual([
      3.75, 7.5, 11.25, 15, 18.75, 22.5, 26.25, 30, 42, 54, 66,
    ]);
  });

  test("begin after the first failure, before the circuit opens, and end with a success", async () => {
    expect(circuits.nextTrials()).toBeNull();
    fail("quote", 1);
    expect(circuits.nextTrials()).toEqual({ operations: ["quote"], inMs: 3750 });
    await clock.advance(3750);
    const end = circuits.begin("quote", true);
    // While it hangs, it isn't repeated immediately.
    expect(circuits.nextTrials()).toEqual({ operations: ["quote"], inMs: 3750 });
    end("success");
    expect(circuits.nextTrials()).toBeNull();
  });

  test("become sparse while calls are rejected, which never opens the circuit", async () => {
    fail("domain", 1, "rejected");
    expect((await trials(40_000, "rejected")).map(([s]) => s)).toEqual([3.75, 15.75, 27.75, 39.75]);
    expect([circuits.open(), circuits.isFailing()]).toEqual([[], true]);
  });

  test("take turns, and there are at most six in a minute of a long outage, whatever visitors and background work ask for", async () => {
    failAll();
    await trials(OPEN_MS);
    const made: string[] = [];
    const ask = (operation: Operation, isBackground: boolean): void => {
      if (call(operation, "upstream_failed", isBackground)) made.push(operation);
    };
    for (let n = 0; n < 1000; n += 1) {
      await clock.advance(300);
      const due = circuits.nextTrials();
      if (n % 2 === 0 && due?.inMs === 0) for (const operation of due.operations) ask(operation, true);
      ask(OPERATIONS[(n * 7) % OPERATIONS.length] ?? "check", n % 5 === 0);
    }
    expect(made.length).toBeLessThanOrEqual(5 * 6);
    expect(new Set(made)).toEqual(new Set(OPERATIONS));
  });

  test("don't wait for each other once one has succeeded", async () => {
    failAll();
    await clock.advance(4000);
    expect(circuits.nextTrials()).toEqual({ operations: ["check"], inMs: 0 });
    call("check", "success", true);
    expect(circuits.nextTrials()).toEqual({ operations: OPERATIONS.slice(1), inMs: 0 });
    for (const operation of OPERATIONS.slice(1)) call(operation, "success", true);
    expect(circuits.open()).toEqual([]);
    fail("quote", 4);
    expect(circuits.open()).toEqual([]);
  });
});
