/** `npm run bench -- reservations`: reservations over four replicas and one real Redis, honoured wherever their holders return. */
import { startRedis } from "../support/redis-server.js";
import { fleetCrowd } from "../quota/support/fleet-crowd.js";
import { largestWindow } from "../quota/support/rolling.js";
import { table } from "./table.js";

const REPLICAS = 4;
const BUDGET = 57;
const WINDOW_MS = 12_000;
const WINDOWS = 10;

const BALANCES: Readonly<Record<string, (request: number) => number>> = {
  "round robin": (request) => request,
  "at random": () => Math.floor(Math.random() * REPLICAS),
};

/** Prints the table. */
export async function benchReservations(): Promise<void> {
  console.log(
    `\n${REPLICAS} replicas over one Redis for ${WINDOWS} windows of ${WINDOW_MS} ms, a budget of ${BUDGET}; half of the visitors come back when told`,
  );
  const rows: string[][] = [];
  for (const load of [2, 5])
    for (const [name, balance] of Object.entries(BALANCES)) {
      const redis = await startRedis();
      const settings = { replicas: REPLICAS, budget: BUDGET, windowMs: WINDOW_MS, windows: WINDOWS };
      const { kept, arrivals } = await fleetCrowd({ redisUrl: redis.url, load, balance, ...settings });
      await redis.close();
      rows.push([
        `${load} times the budget, ${name}`,
        `${kept.served} of ${kept.came}`,
        `${largestWindow(arrivals, WINDOW_MS)} of ${BUDGET}`,
      ]);
    }
  console.log(table(["visitors", "kept and honoured", "worst window"], rows));
}
