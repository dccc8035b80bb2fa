/**
 * `npm run bench -- reservations`: what several replicas over one real Redis promise to visitors who wait, whether it holds wherever they
 * return, and whether carts are served; on a simulated clock.
 */
import { WINDOW_MS } from "../quota/support/asks.js";
import { mulberry } from "../quota/support/crowd.js";
import { largestWindow } from "../quota/support/rolling.js";
import { openTimedFleet } from "../quota/support/timed-fleet.js";
import { counted, servedWithin, useOfSafeBound, waits } from "../quota/support/waits.js";
import { startRedis } from "../support/redis-server.js";
import { table } from "./table.js";

const BUDGET = 57;
const WINDOWS = 30;
const BALANCES = ["round robin", "at random"] as const;
const CROWDS = [
  { load: 1, carts: 1 / 3 },
  { load: 2, carts: 0 },
  { load: 2, carts: 1 / 3 },
  { load: 5, carts: 1 / 3 },
];
const NEARBY_MS = 0.3;
const FAR_MS = 50;
const ROWS = [
  ...[1, 2, 4, 8, 16].flatMap((replicas) =>
    CROWDS.flatMap((crowd) =>
      BALANCES.slice(0, replicas).map((balance) => ({
        replicas,
        replicasMax: replicas,
        ...crowd,
        balance,
        oneWayMs: NEARBY_MS,
      })),
    ),
  ),
  ...[
    { replicas: 2, replicasMax: 4 },
    { replicas: 3, replicasMax: 5 },
    { replicas: 4, replicasMax: 8 },
  ].flatMap((some) =>
    CROWDS.map((crowd) => ({ ...some, ...crowd, balance: BALANCES[1], oneWayMs: NEARBY_MS })),
  ),
  ...CROWDS.map((crowd) => ({
    replicas: 4,
    replicasMax: 4,
    ...crowd,
    balance: BALANCES[1],
    oneWayMs: FAR_MS,
  })),
];
const PATIENCE_MS = 8000;

const share = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(3));

export async function benchReservations(): Promise<void> {
  console.log(
    `\nReplicas over one Redis for ${WINDOWS} windows, with a budget of ${BUDGET}; half of the visitors honour Retry-After`,
  );
  const rows: string[][] = [];
  for (const { replicas, replicasMax, load, carts, balance, oneWayMs } of ROWS) {
    const redis = await startRedis();
    const random = mulberry(1);
    const fleet = await openTimedFleet({
      redisUrl: redis.url,
      replicas,
      replicasMax,
      budget: BUDGET,
      latencyMs: () => oneWayMs + random(),
      commandTimeoutMs: Math.max(100, 6 * oneWayMs),
    });
    const seen = await waits(
      { budget: BUDGET, windows: WINDOWS, load, carts, seed: 1 },
      {
        clock: fleet.clock,
        quotas: fleet.replicas.map(({ quota }) => quota),
        balance: balance === "round robin" ? (request) => request : () => Math.floor(random() * replicas),
      },
    );
    fleet.close();
    await redis.close();
    const { claimed, served } = seen.reservations;
    const cartsSeen = counted(seen, WINDOWS).filter(({ lane }) => lane === "checkout");
    const visitors = `${load} times the budget${carts > 0 ? " and carts at a third of it" : ""}`;
    rows.push([
      `${replicas}${replicasMax > replicas ? ` of at most ${replicasMax}` : ""}, ${visitors}, ${balance}${oneWayMs === FAR_MS ? `, round trip of ${2 * FAR_MS} ms to Redis` : ""}`,
      `${served} of ${claimed}`,
      share(served / claimed),
      share(servedWithin(cartsSeen, PATIENCE_MS)),
      share(useOfSafeBound(seen, BUDGET, WINDOWS)),
      `${largestWindow(seen.arrivals, WINDOW_MS)} of ${BUDGET}`,
    ]);
  }
  console.log(
    table(
      ["replicas, visitors", "reservations honoured", "share", "carts within 8 s", "use", "largest window"],
      rows,
    ),
  );
}
