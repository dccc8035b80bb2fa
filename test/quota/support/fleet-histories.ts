/** Random histories of a fleet with far more requests than budget, in which replicas, connections and Redis fail, alone and together. */
import type { Quota } from "../../../src/quota/quota.js";
import { WINDOW_MS } from "./asks.js";
import { mulberry } from "./crowd.js";
import { openTimedFleet, type TimedReplica } from "./timed-fleet.js";
import { waits, type WaitsResult } from "./waits.js";

export interface HistorySettings {
  readonly redisUrl: string;
  readonly seed: number;
  readonly replicas: number;
  readonly budget: number;
  readonly windows: number;
}

export interface HistoryResult extends WaitsResult {
  /** The faults, each with its time in seconds. */
  readonly events: readonly string[];
}

/** Different fleet sizes and budgets for different seeds. */
export function settingsOf(seed: number): Omit<HistorySettings, "redisUrl"> {
  return { seed, replicas: 2 + (seed % 3), budget: seed % 2 === 0 ? 57 : 20, windows: 8 };
}

const SNAPSHOT_EVERY_MS = 500;
/** A shorter failover that loses the last writes is covered by the headroom. */
const MIN_FAILOVER_MS = 1500;
/** How long everything works again before the end. */
const CALM_MS = 30_000;

export async function fleetHistory(settings: HistorySettings): Promise<HistoryResult> {
  const { seed, replicas: count, budget, windows } = settings;
  const random = mulberry(seed);
  const upTo = (max: number): number => random() * max;
  const oneOf = <T>(choices: readonly T[]): T => {
    const one = choices[Math.floor(random() * choices.length)];
    if (one === undefined) throw new Error("there are no choices");
    return one;
  };
  /** The extra latency in each direction at the moment: always `usuallyMs`, and now and then up to `maxMs` more. */
  let slow = { usuallyMs: 0, maxMs: 0 };
  const late = (): number | null => (random() < 0.5 ? null : upTo(1000));
  const fleet = await openTimedFleet({
    ...settings,
    replicasMax: count + oneOf([0, 0, 1]),
    latencyMs: () =>
      0.2 + upTo(oneOf([1, 1, 1, 20])) + slow.usuallyMs + upTo(oneOf([0, 0, 0, 0, 1])) * slow.maxMs,
    arrivesLate: () => (random() < 0.5 ? 0 : late()),
  });
  const { clock, replicas } = fleet;
  const beganAt = clock.monotonic();
  const endsAt = beganAt + windows * WINDOW_MS - CALM_MS;
  const events: string[] = [];
  const note = (what: string): void => {
    events.push(`${((clock.monotonic() - beganAt) / 1000).toFixed(1)} ${what}`);
  };
  const quotas: Quota[] = replicas.map(({ quota }) => quota);
  /** The current fault of each replica; empty without one. */
  const faultOf = replicas.map(() => "");
  /** The names of the table's snapshots, newest first. */
  const snapshots: string[] = [];

  function takeSnapshots(): void {
    snapshots.unshift(`snapshot ${snapshots.length % 200}`);
    void fleet.snapshot(snapshots[0] ?? "");
    clock.after(SNAPSHOT_EVERY_MS, takeSnapshots);
  }

  function after(ms: number, act: () => void): void {
    clock.after(Math.min(ms, Math.max(1, endsAt - clock.monotonic())), act);
  }

  function inject(
    index: number,
    what: string,
    forMs: number,
    begin: (replica: TimedReplica) => void,
    end: (replica: TimedReplica) => void,
  ): void {
    const replica = replicas[index];
    if (replica === undefined || faultOf[index] !== "") return;
    note(`${what} ${index} for ${Math.round(forMs)} ms`);
    faultOf[index] = what;
    begin(replica);
    after(forMs, () => {
      note(`${what} ${index} ends`);
      end(replica);
      faultOf[index] = "";
    });
  }

  const cutOff = (index: number, forMs: number): void => {
    inject(
      index,
      "cut off",
      forMs,
      (one) => one.cutOff(late),
      (one) => one.heal(),
    );
  };

  const stop = (index: number): void => {
    inject(
      index,
      "stop",
      upTo(oneOf([500, 3000, 80_000])),
      (one) => one.stop(),
      (one) => one.resume(),
    );
  };

  /** Pauses a replica again and again for a moment, so that it receives several replies at once. */
  function keepBusy(index: number, untilMs: number): void {
    if (clock.monotonic() > untilMs) return;
    after(upTo(300), () => {
      const again = (): void => {
        keepBusy(index, untilMs);
      };
      const replica = replicas[index];
      if (replica === undefined || faultOf[index] !== "") {
        again();
        return;
      }
      faultOf[index] = "busy";
      replica.stop();
      after(upTo(oneOf([20, 200])), () => {
        replica.resume();
        faultOf[index] = "";
        again();
      });
    });
  }

  /** Kills a replica, which may have continued without Redis before, and starts another one in its place. */
  function kill(index: number, cutOffForMs: number): void {
    const replica = replicas[index];
    if (replica === undefined || faultOf[index] !== "") return;
    note(`kill ${index}, cut off for ${Math.round(cutOffForMs)} ms`);
    faultOf[index] = "kill";
    if (cutOffForMs > 0) replica.cutOff(late);
    after(cutOffForMs, () => {
      replica.kill();
      after(upTo(oneOf([100, 5000, 30_000])), () => {
        const isCutOff = random() < 0.3;
        maybeDisturbClock();
        note(`start ${index}${isCutOff ? ", cut off" : ""}`);
        void fleet.start(`place ${index}`, { isCutOff }).then((started) => {
          replicas[index] = started;
          quotas[index] = started.quota;
          faultOf[index] = "";
          if (isCutOff) cutOff(index, upTo(oneOf([5000, 100_000])));
        });
      });
    });
  }

  /** Starts another replica in a new place, perhaps cut off from Redis, and kills it later. */
  let surplus = 0;
  function addOne(): void {
    if (faultOf.length > count) return;
    const isCutOff = random() < 0.5;
    faultOf[count] = "starts";
    maybeDisturbClock();
    note(`one more starts${isCutOff ? ", cut off" : ""}`);
    void fleet.start(`surplus ${(surplus += 1)}`, { isCutOff }).then((started) => {
      replicas[count] = started;
      quotas[count] = started.quota;
      faultOf[count] = "";
      if (isCutOff) cutOff(count, upTo(oneOf([5000, 200_000])));
      const end = (): void => {
        if (faultOf[count] !== "") {
          after(1000, end);
          return;
        }
        note("one more is killed");
        started.kill();
        for (const list of [replicas, quotas, faultOf]) list.length = count;
      };
      after(upTo(200_000), end);
    });
  }

  function stepClock(): void {
    const byMs = Math.round((upTo(2) - 1) * oneOf([2000, 60_000, 60_000, 1_000_000]));
    note(`Redis's clock steps by ${byMs} ms`);
    fleet.stepRedisClock(byMs);
  }

  function stopRedis(): void {
    const forMs = upTo(oneOf([1000, 10_000, 90_000]));
    note(`Redis's machine is paused for ${Math.round(forMs)} ms`);
    fleet.stopRedis(forMs);
  }

  /** A process that has just started can't notice this. */
  function maybeDisturbClock(): void {
    oneOf([stepClock, stopRedis, null, null, null])?.();
  }

  /** Cuts all replicas off from Redis, which may have lost data when they reach it again. */
  function failover(): void {
    const forMs = MIN_FAILOVER_MS + upTo(oneOf([1000, 20_000]));
    for (const index of replicas.keys()) cutOff(index, forMs + upTo(oneOf([50, 3000, 20_000])));
    const lost = oneOf(["nothing", "writes", "writes", "writes", "snapshot", "everything"]);
    const back =
      lost === "writes" ? 1 + Math.floor(upTo(5)) : Math.floor(upTo(Math.min(150, snapshots.length)));
    const name = snapshots[back];
    note(`failover, loses ${lost}, ${back} snapshots back`);
    if (random() < 0.2) stepClock();
    if (lost === "nothing" || name === undefined) return;
    after(upTo(forMs), () => {
      void fleet.rollBack(lost === "everything" ? undefined : name);
    });
  }

  const faults = [
    () => {
      cutOff(Math.floor(upTo(count)), upTo(oneOf([500, 5000, 90_000, 200_000])));
    },
    () => {
      stop(Math.floor(upTo(count)));
    },
    () => {
      kill(Math.floor(upTo(count)), upTo(oneOf([0, 0, 1000, 10_000])));
    },
    failover,
    addOne,
    () => {
      const forMs = upTo(oneOf([1000, 10_000, 90_000]));
      slow = { usuallyMs: oneOf([0, 50, 100]), maxMs: oneOf([0, 100, 500]) };
      note(`latency grows by ${slow.usuallyMs} and up to ${slow.maxMs} ms for ${Math.round(forMs)} ms`);
      after(forMs, () => {
        note("latency is normal again");
        slow = { usuallyMs: 0, maxMs: 0 };
      });
    },
    stepClock,
    stopRedis,
    () => {
      note("Redis is emptied");
      void fleet.rollBack();
    },
    () => {
      const forMs = upTo(oneOf([5000, 60_000]));
      note(`all are busy for ${Math.round(forMs)} ms`);
      for (const index of replicas.keys()) keepBusy(index, clock.monotonic() + forMs);
    },
  ];
  function injectFaults(): void {
    clock.after(upTo(oneOf([2000, 20_000, 60_000])), () => {
      if (clock.monotonic() > endsAt) return;
      oneOf(faults)();
      injectFaults();
    });
  }

  /** At times all visitors come to this replica, so that the others lend. */
  let favourite: number | null = null;
  function chooseFavourite(): void {
    favourite = oneOf([null, Math.floor(upTo(count))]);
    clock.after(upTo(100_000), chooseFavourite);
  }

  function balance(): number {
    if (favourite !== null && (faultOf[favourite] === "" || faultOf[favourite] === "cut off"))
      return favourite;
    const living = [...faultOf.keys()].filter(
      (index) => faultOf[index] === "" || faultOf[index] === "cut off",
    );
    return living.length === 0 ? 0 : oneOf(living);
  }

  takeSnapshots();
  chooseFavourite();
  injectFaults();
  const crowd = { budget, windows, load: oneOf([1, 2, 5]), carts: oneOf([0, 1 / 3, 1]), seed };
  const result = await waits(crowd, { clock, quotas, balance });
  fleet.close();
  return { ...result, events };
}
