/** A fleet uses its budget again in the minute after a fault, when visitors ask for twice as much. `npm run bench -- recovery` runs more faults. */
import { expect, test } from "@jest/globals";
import { describeWithRedis, startRedis } from "../support/redis.js";
import { ask, WINDOW_MS } from "./support/asks.js";
import { BUDGET, FAULTS, recovery } from "./support/recovery.js";
import { openTimedFleet } from "./support/timed-fleet.js";

describeWithRedis("in the minute after a replica was killed and restarted,", () => {
  test("a fleet uses more than 0.85 of its budget, and never exceeds it", async () => {
    const { use, largest } = await recovery(FAULTS["a replica is killed and started"], 1);
    const [, first] = use;
    expect(first).toBeGreaterThan(0.85);
    expect(largest).toBeLessThanOrEqual(BUDGET);
  });
});

describeWithRedis("after the only other replica was killed,", () => {
  test("one whose machine stalls twice a minute uses the pool again once the other's calls have rested", async () => {
    const server = await startRedis();
    const { clock, ...fleet } = await openTimedFleet({
      redisUrl: server.url,
      replicas: 2,
      replicasMax: 4,
      budget: BUDGET,
      latencyMs: () => 0.3,
    });
    const [other, stalling] = fleet.replicas;
    if (other === undefined || stalling === undefined) throw new Error("there are no two replicas");
    const calledAt: number[] = [];
    let requests = 0;
    async function visit(): Promise<void> {
      requests += 1;
      await stalling?.quota
        .run(ask({ client: `${requests}`, queryKey: `${requests}` }), async () => {
          calledAt.push(clock.monotonic());
        })
        .catch(() => undefined);
    }

    other.kill();
    for (let halfMinutes = 0; halfMinutes < 5; halfMinutes += 1) {
      await clock.advance(300);
      stalling.stop();
      await clock.advance(900);
      stalling.resume();
      for (let seconds = 0; seconds < 30; seconds += 1) {
        for (let visits = 0; visits < 2; visits += 1) void visit();
        await clock.advance(1000);
      }
    }
    const lastWindow = calledAt.filter((at) => at > clock.monotonic() - WINDOW_MS);
    const shareOfOther = Math.floor(BUDGET / 4);
    expect(lastWindow.length).toBeGreaterThan(0.9 * (BUDGET - shareOfOther));
    expect(lastWindow.length).toBeLessThanOrEqual(BUDGET - shareOfOther);
    fleet.close();
    await server.close();
  });
});
