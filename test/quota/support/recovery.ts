/** What a fleet uses of its budget in the minutes after a fault, asked for twice as much; over a real Redis on a simulated clock. */
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
/** Until then the fleet has found its pace. */
const FAULT_AT_MS = 5 * WINDOW_MS;
const FAULT_MS = 30_000;
/** Shares of the budget are told for so many windows after a fault. */
export const WINDOWS_AFTER = 3;

interface Scene {
  readonly fleet: TimedFleet;
  readonly quotas: Quota[];
  /** Does it so long after the fault has begun. */
  after(ms: number, act: () => void): void;
}
type Fault = (scene: Scene) => void;

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
      for (const index of which) fleet.replicas[index]?.mend();
    });
  };
const emptied: Fault = ({ fleet, after }) => {
  after(FAULT_MS, () => void fleet.lose());
};
const snapshot: Fault = ({ fleet, after }) => {
  void fleet.keep("snapshot");
  after(FAULT_MS, () => void fleet.lose("snapshot"));
};
const stopped: Fault = ({ fleet, after }) => {
  fleet.replicas[1]?.stop();
  after(80_000, () => fleet.replicas[1]?.resume());
};
const ALL = [0, 1, 2, 3];
const together =
  (...faults: readonly Fault[]): Fault =>
  (scene) => {
    for (const fault of faults) fault(scene);
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

export interface RecoverySeen {
  /** Of the budget: while the fault lasted, and in each of the windows after it. */
  readonly use: readonly [during: number, ...after: number[]];
  /** The most calls in any window. */
  readonly largest: number;
}

/** Plays one of the faults. */
export async function recovery(
  { fault, endsAfterMs = FAULT_MS }: FaultSettings,
  seed: number,
): Promise<RecoverySeen> {
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
