/**
 * `npm run bench -- reservations`: what people who wait are promised by several replicas over one real Redis, whether it holds wherever
 * they return, and whether carts are served; on a simulated clock.
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
const FLEETS = [1, 2, 4, 8, 16];
const CROWDS = [
  { load: 1, carts: 1 / 3 },
  { load: 2, carts: 0 },
  { load: 2, carts: 1 / 3 },
  { load: 5, carts: 0 },
];
const PATIENCE_MS = 8000;
const BALANCES = ["round robin", "at random"] as const;

const share = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(3));

/** Prints the table. */
export async function benchReservations(): Promise<void> {
  console.log(
    `\nReplicas over one Redis for ${WINDOWS} windows, a budget of ${BUDGET}; half of the visitors come back when told`,
  );
  const rows: string[][] = [];
  for (const replicas of FLEETS)
    for (const { load, carts } of CROWDS)
      for (const name of replicas === 1 ? BALANCES.slice(0, 1) : BALANCES) {
        const redis = await startRedis();
        const random = mulberry(1);
        const fleet = await openTimedFleet({
          redisUrl: redis.url,
          replicas,
          budget: BUDGET,
          latencyMs: () => 0.3 + random(),
        });
        const seen = await waits(
          { budget: BUDGET, windows: WINDOWS, load, carts, seed: 1 },
          {
            clock: fleet.clock,
            quotas: fleet.replicas.map(({ quota }) => quota),
            balance: name === "round robin" ? (request) => request : () => Math.floor(random() * replicas),
          },
        );
        fleet.close();
        await redis.close();
        const { came, served } = seen.kept;
        const cartsSeen = counted(seen, WINDOWS).filter(({ lane }) => lane === "checkout");
        rows.push([
          `${replicas}, ${load} times the budget${carts > 0 ? " and carts at a third" : ""}, ${name}`,
          `${served} of ${came}`,
          share(served / came),
          share(servedWithin(cartsSeen, PATIENCE_MS)),
          share(useOfSafeBound(seen, BUDGET, WINDOWS)),
          `${largestWindow(seen.arrivals, WINDOW_MS)} of ${BUDGET}`,
        ]);
      }
  console.log(
    table(
      ["replicas, visitors", "kept and honoured", "share", "carts within 8 s", "use", "worst window"],
      rows,
    ),
  );
}
