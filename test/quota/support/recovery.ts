/**
 * Measures how much of its budget a fleet uses in the minutes after a fault, when visitors ask for twice as much. Redis is real and the clock is
 * simulated.
 */
import type { Quota } from "../../../src/quota/quota.js";
import { startRedis } from "../../support/redis-server.js";
import { WINDOW_MS } from "./asks.js";
import { mulberry } from "./crowd.js";
import { largestWindow } from "./rolling.js";
import { openTimedFleet, type TimedFleet } from "./timed-fleet.js";
import { waits } from "./waits.js";

export const BUDGET = 57;
export const REPLICAS = 4;
export const LOAD = 2;
const WINDOWS = 10;
/** By then the fleet calls at a steady rate. */
const FAULT_AT_MS = 5 * WINDOW_MS;
const FAULT_MS = 30_000;
/** For how many windows after a fault the use is measured. */
export const WINDOWS_AFTER = 3;

interface FaultContext {
  readonly fleet: TimedFleet;
  readonly quotas: Quota[];
  /** Calls `act` this long after the start of the fault. */
  after(ms: number, act: () => void): void;
}
type Fault = (context: FaultContext) => void;

const killed: Fault = ({ fleet, quotas, after }) => {
  fleet.replicas[1]?.kill();
  after(FAULT_MS, () => {
    void fleet.start("place 1").then(({ quota }) => {
      quotas[1] = quota;
    });
  });
};
const cutOff =
  (which: readonly number[], forMs = FAULT_MS): Fault =>
  ({ fleet, after }) => {
    for (const index of which) fleet.replicas[index]?.cutOff(() => null);
    after(forMs, () => {
      for (const index of which) fleet.replicas[index]?.heal();
    });
  };
const emptied: Fault = ({ fleet, after }) => {
  after(FAULT_MS, () => void fleet.rollBack());
};
const snapshot: Fault = ({ fleet, after }) => {
  void fleet.snapshot("snapshot");
  after(FAULT_MS, () => void fleet.rollBack("snapshot"));
};
const stopped: Fault = ({ fleet, after }) => {
  fleet.replicas[1]?.stop();
  after(80_000, () => fleet.replicas[1]?.resume());
};
const ALL = [0, 1, 2, 3];
const together =
  (...faults: readonly Fault[]): Fault =>
  (context) => {
    for (const fault of faults) fault(context);
  };

interface FaultSettings {
  readonly fault: Fault;
  readonly endsAfterMs?: number;
}

export const FAULTS = {
  "no fault": { fault: () => {} },
  "a replica is killed and started": { fault: killed },
  "a replica is stopped past a window": { fault: stopped, endsAfterMs: 80_000 },
  "a replica is cut off from Redis": { fault: cutOff([1]) },
  "Redis hangs": { fault: cutOff(ALL) },
  "Redis is emptied": { fault: emptied },
  "Redis is started with an old snapshot": { fault: snapshot },
  "Redis hangs, then is emptied": { fault: together(cutOff(ALL), emptied) },
  "Redis hangs, then has an old snapshot": { fault: together(cutOff(ALL), snapshot) },
  "a replica is killed and started + Redis hangs": { fault: together(killed, cutOff(ALL)) },
  "a replica is killed and started + a replica is cut off from Redis": {
    fault: together(killed, cutOff([2])),
  },
  "a replica is killed and started + Redis is emptied": { fault: together(killed, emptied) },
  "a replica is cut off from Redis + another is stopped past a window": {
    fault: together(cutOff([2]), stopped),
    endsAfterMs: 80_000,
  },
  "a replica is cut off from Redis + Redis has an old snapshot": { fault: together(cutOff([2]), snapshot) },
} satisfies Readonly<Record<string, FaultSettings>>;

export interface RecoveryResult {
  /** The share of the budget that was used during the fault, and in each of the windows after it. */
  readonly use: readonly [during: number, ...after: number[]];
  /** The maximum number of calls in any window. */
  readonly largest: number;
}

/** Runs a fleet through one fault. */
export async function recovery(
  { fault, endsAfterMs = FAULT_MS }: FaultSettings,
  seed: number,
): Promise<RecoveryResult> {
  const redis = await startRedis();
  const random = mulberry(seed);
  const fleet = await openTimedFleet({
    redisUrl: redis.url,
    replicas: REPLICAS,
    budget: BUDGET,
    latencyMs: () => 0.3 + random(),
  });
  const { clock } = fleet;
  const quotas = fleet.replicas.map(({ quota }) => quota);
  const faultAt = clock.monotonic() + FAULT_AT_MS;
  clock.after(FAULT_AT_MS, () => {
    fault({ fleet, quotas, after: (ms, act) => void clock.after(ms, act) });
  });
  const { arrivals } = await waits(
    { budget: BUDGET, windows: WINDOWS, load: LOAD, seed },
    { clock, quotas, balance: (request) => request % REPLICAS },
  );
  fleet.close();
  await redis.close();
  const useIn = (from: number, to: number): number =>
    arrivals.filter((at) => at >= from && at < to).length / ((BUDGET * (to - from)) / WINDOW_MS);
  const endedAt = faultAt + endsAfterMs;
  const after = Array.from({ length: WINDOWS_AFTER }, (_, index) =>
    useIn(endedAt + index * WINDOW_MS, endedAt + (index + 1) * WINDOW_MS),
  );
  return { use: [useIn(faultAt, endedAt), ...after], largest: largestWindow(arrivals, WINDOW_MS) };
}
