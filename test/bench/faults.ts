/**
 * `npm run bench -- faults [--histories N]`: random histories of a fleet whose replicas, connections and Redis fail, on a simulated clock.
 * Prints every history in which the budget was exceeded, with its seed and events.
 */
import { WINDOW_MS } from "../quota/support/asks.js";
import { fleetHistory, settingsOf } from "../quota/support/fleet-histories.js";
import { largestWindow } from "../quota/support/rolling.js";
import { startRedis } from "../support/redis-server.js";
import type { TruthOptions } from "./truth.js";

const HISTORIES = 1000;

export async function benchFaults({ histories = HISTORIES, seed = 1 }: TruthOptions): Promise<void> {
  const redis = await startRedis();
  let exceeded = 0;
  let calls = 0;
  let events = 0;
  for (let history = seed; history < seed + histories; history += 1) {
    await redis.command("FLUSHALL");
    const settings = settingsOf(history);
    const seen = await fleetHistory({ redisUrl: redis.url, ...settings });
    const largest = largestWindow(seen.arrivals, WINDOW_MS);
    calls += seen.arrivals.length;
    events += seen.events.length;
    if (largest <= settings.budget) continue;
    exceeded += 1;
    console.log(
      `\nseed ${history}: ${largest} calls in a window, budget ${settings.budget}\n  ${seen.events.join("\n  ")}`,
    );
  }
  console.log(`\n${histories} histories, ${calls} calls, ${events} events: ${exceeded} exceeded the budget`);
  await redis.close();
}
