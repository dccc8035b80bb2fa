/** The clocks of replicas may differ by seconds, or stand still for a while: no replica takes an old answer of another for a recent one. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { describeWithRedis, startRedis } from "../support/redis.js";
import { type ServiceProcess, spawnService, temporaryFolder, until } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { registration, shopAt } from "../truth/shop.js";

type Shop = ReturnType<typeof shopAt>;

const AHEAD_MS = 7_000;
const AHEAD = `data:text/javascript,const now = Date.now; Date.now = () => now() + ${AHEAD_MS};`;

const SUSPENDED_MS = 8_000;
/** From SIGUSR2 on, the monotonic clock is behind, as if it had stood still because the machine was suspended. */
const SUSPENDED = `data:text/javascript,
  const now = performance.now.bind(performance);
  let behindMs = 0;
  performance.now = () => now() - behindMs;
  process.on("SIGUSR2", () => {
    behindMs = ${SUSPENDED_MS};
    console.log("suspended");
  });`.replaceAll("\n", "");

async function withReplicas(
  strange: string,
  act: (strange: ServiceProcess, shops: Record<"strange" | "right", Shop>, sandbox: Sandbox) => Promise<void>,
): Promise<void> {
  const redis = await startRedis();
  const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
  const folder = temporaryFolder();
  const env = (name: string) => ({
    ...upstreamAt(sandbox),
    REDIS_URL: redis.url,
    REPLICAS_MAX: "2",
    UPSTREAM_RATE_LIMIT: "1000",
    CLIENT_RATE_PER_MINUTE: "1000000",
    QUOTA_COLD_START: "assume-free",
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    STATE_DIR: `${folder.path}/${name}`,
  });
  const replica = spawnService(env("strange"), { node: ["--import", strange] });
  const right = spawnService(env("right"));
  try {
    const shops = {
      strange: shopAt({ ...replica, port: await replica.listening }),
      right: shopAt({ ...right, port: await right.listening }),
    };
    for (const { ask } of [replica, right])
      await until(async () => (await ask("/v1/prices")).text.split('"price"').length === 29, "the prices");
    await act(replica, shops, sandbox);
  } finally {
    await Promise.all([replica.stop(), right.stop()]);
    await sandbox.close();
    await redis.close();
    folder.remove();
  }
}

describeWithRedis("a replica", () => {
  test(
    "whose wall clock is ahead doesn't bring back 'available' where another has learned 'taken' since, and nothing is signed",
    () =>
      withReplicas(AHEAD, async (_, { strange, right }, sandbox) => {
        expect((await strange.availability("kabul.af")).status).toBe("available");
        sandbox.control.setTaken("kabul.af", true);
        const seemsRecentAt = performance.now() + AHEAD_MS + 300;
        expect((await right.availability("kabul.af", 2)).status).toBe("taken");
        await pause(seemsRecentAt - performance.now());
        const { items, signed } = await right.cart(registration("kabul.af"));
        expect([items[0]?.status, signed]).toEqual(["taken", []]);
        expect((await right.availability("kabul.af")).status).toBe("taken");
      }),
    40_000,
  );

  test(
    "whose machine was suspended doesn't sign what another knew before, as if no time had passed",
    () =>
      withReplicas(SUSPENDED, async ({ child, stdout }, { strange, right }, sandbox) => {
        expect((await right.availability("kabul.af")).status).toBe("available");
        sandbox.control.setTaken("kabul.af", true);
        await pause(SUSPENDED_MS);
        child.kill("SIGUSR2");
        await until(() => stdout.includes("suspended"), "the suspension");
        const { items, signed } = await strange.cart(registration("kabul.af"));
        expect([items[0]?.status, signed]).toEqual(["taken", []]);
      }),
    40_000,
  );
});
