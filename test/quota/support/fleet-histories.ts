/** Random histories of a fleet under far more asks than there is budget: replicas and their Redis fail at random, together and in turn. */
import type { Quota } from "../../../src/quota/quota.js";
import { WINDOW_MS } from "./asks.js";
import { mulberry } from "./crowd.js";
import { openTimedFleet, type TimedReplica } from "./timed-fleet.js";
import { waits, type WaitsSeen } from "./waits.js";

export interface HistorySettings {
  readonly redisUrl: string;
  readonly seed: number;
  readonly replicas: number;
  readonly budget: number;
  readonly windows: number;
}

export interface HistorySeen extends WaitsSeen {
  /** What happened, with the second at which it did. */
  readonly events: readonly string[];
}

/** Fleets and budgets of several sizes. */
export function settingsOf(seed: number): Omit<HistorySettings, "redisUrl"> {
  return { seed, replicas: 2 + (seed % 3), budget: seed % 2 === 0 ? 57 : 20, windows: 8 };
}

const KEEP_EVERY_MS = 500;
/** A shorter loss of Redis with its last writes is what the headroom is for. */
const SHORTEST_FAILOVER_MS = 1500;
/** Before the end everything works again. */
const CALM_MS = 30_000;

export async function fleetHistory(settings: HistorySettings): Promise<HistorySeen> {
  const { seed, replicas: count, budget, windows } = settings;
  const random = mulberry(seed);
  const upTo = (most: number): number => random() * most;
  const oneOf = <T>(of: readonly T[]): T => {
    const one = of[Math.floor(random() * of.length)];
    if (one === undefined) throw new Error("there is nothing to choose from");
    return one;
  };
  /** How much longer each way to Redis takes at the moment, and at most once in a while. */
  let slow = { usuallyMs: 0, atMostMs: 0 };
  const late = (): number | null => (random() < 0.5 ? null : upTo(1000));
  const fleet = await openTimedFleet({
    ...settings,
    replicasMax: count + oneOf([0, 0, 1]),
    latencyMs: () =>
      0.2 + upTo(oneOf([1, 1, 1, 20])) + slow.usuallyMs + upTo(oneOf([0, 0, 0, 0, 1])) * slow.atMostMs,
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
  /** What each replica suffers from at the moment. */
  const ails = replicas.map(() => "");
  const kept: string[] = [];

  function keep(): void {
    kept.unshift(`kept ${kept.length % 200}`);
    void fleet.keep(kept[0] ?? "");
    clock.after(KEEP_EVERY_MS, keep);
  }

  function after(ms: number, act: () => void): void {
    clock.after(Math.min(ms, Math.max(1, endsAt - clock.monotonic())), act);
  }

  function ail(
    index: number,
    what: string,
    forMs: number,
    begin: (replica: TimedReplica) => void,
    end: (replica: TimedReplica) => void,
  ): void {
    const replica = replicas[index];
    if (replica === undefined || ails[index] !== "") return;
    note(`${what} ${index} for ${Math.round(forMs)} ms`);
    ails[index] = what;
    begin(replica);
    after(forMs, () => {
      note(`${what} ${index} ends`);
      end(replica);
      ails[index] = "";
    });
  }

  const cutOff = (index: number, forMs: number): void => {
    ail(
      index,
      "cut off",
      forMs,
      (one) => one.cutOff(late),
      (one) => one.mend(),
    );
  };

  const stop = (index: number): void => {
    ail(
      index,
      "stop",
      upTo(oneOf([500, 3000, 80_000])),
      (one) => one.stop(),
      (one) => one.resume(),
    );
  };

  /** Another one starts in its place; it may have gone on without Redis before. */
  function kill(index: number, cutOffForMs: number): void {
    const replica = replicas[index];
    if (replica === undefined || ails[index] !== "") return;
    note(`kill ${index}, cut off for ${Math.round(cutOffForMs)} ms`);
    ails[index] = "kill";
    if (cutOffForMs > 0) replica.cutOff(late);
    after(cutOffForMs, () => {
      replica.kill();
      after(upTo(oneOf([100, 5000, 30_000])), () => {
        const isCutOff = random() < 0.3;
        maybeOddClock();
        note(`start ${index}${isCutOff ? ", cut off" : ""}`);
        void fleet.start(`place ${index}`, { isCutOff }).then((started) => {
          replicas[index] = started;
          quotas[index] = started.quota;
          ails[index] = "";
          if (isCutOff) cutOff(index, upTo(oneOf([5000, 100_000])));
        });
      });
    });
  }

  /** One more starts somewhere else, perhaps while it can't reach Redis, and is killed. */
  let surplus = 0;
  function addOne(): void {
    if (ails.length > count) return;
    const isCutOff = random() < 0.5;
    ails[count] = "starts";
    maybeOddClock();
    note(`one more starts${isCutOff ? ", cut off" : ""}`);
    void fleet.start(`surplus ${(surplus += 1)}`, { isCutOff }).then((started) => {
      replicas[count] = started;
      quotas[count] = started.quota;
      ails[count] = "";
      if (isCutOff) cutOff(count, upTo(oneOf([5000, 200_000])));
      const end = (): void => {
        if (ails[count] !== "") {
          after(1000, end);
          return;
        }
        note("one more is killed");
        started.kill();
        for (const list of [replicas, quotas, ails]) list.length = count;
      };
      after(upTo(200_000), end);
    });
  }

  function stepClock(): void {
    const byMs = Math.round((upTo(2) - 1) * oneOf([2000, 60_000]));
    note(`the clock of Redis steps by ${byMs} ms`);
    fleet.stepRedisClock(byMs);
  }

  function stopRedis(): void {
    const forMs = upTo(oneOf([1000, 10_000, 90_000]));
    note(`Redis's machine stands still for ${Math.round(forMs)} ms`);
    fleet.stopRedis(forMs);
  }

  /** A new process can't tell of that. */
  function maybeOddClock(): void {
    oneOf([stepClock, stopRedis, null, null, null])?.();
  }

  /** Redis is away for everybody, and has lost something when it is back. */
  function failover(): void {
    const forMs = SHORTEST_FAILOVER_MS + upTo(oneOf([1000, 20_000]));
    for (const index of replicas.keys()) cutOff(index, forMs + upTo(oneOf([50, 3000, 20_000])));
    const lost = oneOf(["nothing", "writes", "writes", "writes", "snapshot", "everything"]);
    const back = lost === "writes" ? 1 + Math.floor(upTo(5)) : Math.floor(upTo(Math.min(150, kept.length)));
    const name = kept[back];
    note(`failover, loses ${lost} of ${back}`);
    if (random() < 0.2) stepClock();
    if (lost === "nothing" || name === undefined) return;
    after(upTo(forMs), () => {
      void fleet.lose(lost === "everything" ? undefined : name);
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
      slow = { usuallyMs: oneOf([0, 50, 100]), atMostMs: oneOf([0, 100, 500]) };
      note(`each way takes ${slow.usuallyMs} and up to ${slow.atMostMs} ms more for ${Math.round(forMs)} ms`);
      after(forMs, () => {
        note("the network is fast again");
        slow = { usuallyMs: 0, atMostMs: 0 };
      });
    },
    stepClock,
    stopRedis,
  ];
  function trouble(): void {
    clock.after(upTo(oneOf([2000, 20_000, 60_000])), () => {
      if (clock.monotonic() > endsAt) return;
      oneOf(faults)();
      trouble();
    });
  }

  /** Now and then all visitors come to one replica, so that the others lend. */
  let favourite: number | null = null;
  function choose(): void {
    favourite = oneOf([null, Math.floor(upTo(count))]);
    clock.after(upTo(100_000), choose);
  }

  function balance(): number {
    if (favourite !== null && (ails[favourite] === "" || ails[favourite] === "cut off")) return favourite;
    const living = [...ails.keys()].filter((index) => ails[index] === "" || ails[index] === "cut off");
    return living.length === 0 ? 0 : oneOf(living);
  }

  keep();
  choose();
  trouble();
  const crowd = { budget, windows, load: oneOf([1, 2, 5]), carts: oneOf([0, 1 / 3, 1]), seed };
  const seen = await waits(crowd, { clock, quotas, balance });
  fleet.close();
  return { ...seen, events };
}
