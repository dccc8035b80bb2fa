/** A replica with another budget doesn't take over the fleet's table after a silence. The clock is simulated and Redis is real. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { ask, WINDOW_MS } from "./support/asks.js";
import { openTimedFleet, type TimedFleet, type TimedReplica } from "./support/timed-fleet.js";

describeWithRedis("a replica with another budget", () => {
  let server: RedisServer;
  let fleet: TimedFleet;
  let other: TimedReplica;
  beforeEach(async () => {
    server = await startRedis();
    fleet = await openTimedFleet({
      redisUrl: server.url,
      replicas: 2,
      budget: 20,
      latencyMs: () => 0.5,
    });
    const starting = fleet.start("elsewhere", { budget: 30 });
    await fleet.clock.advance(2 * WINDOW_MS);
    other = await starting;
  });
  afterEach(async () => {
    fleet.close();
    await server.close();
  });

  /** How many of ten requests are served within half a window. */
  async function served({ quota }: TimedReplica): Promise<number> {
    let count = 0;
    const settled = Promise.allSettled(
      Array.from({ length: 10 }, async (_, index) =>
        quota.run(ask({ client: `${index}`, queryKey: `${index}`, maxWaitMs: WINDOW_MS / 2 }), async () => {
          count += 1;
          return Promise.resolve();
        }),
      ),
    );
    await fleet.clock.advance(WINDOW_MS / 2);
    await settled;
    return count;
  }

  async function silence(forMs: number): Promise<void> {
    for (const replica of fleet.replicas) replica.cutOff(() => null);
    await fleet.clock.advance(forMs);
    for (const replica of fleet.replicas) replica.heal();
    await fleet.clock.advance(1000);
  }

  test("gets nothing while the fleet is running, and nothing after a silence of five seconds", async () => {
    expect(await served(other)).toBe(0);
    await silence(5000);
    expect(await served(other)).toBe(0);
    for (const replica of fleet.replicas) expect(await served(replica)).toBeGreaterThan(4);
  });
});
