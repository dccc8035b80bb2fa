/** The wall clocks of replicas may differ by seconds: no replica takes an old answer of another for a recent one. */
import { expect, test } from "@jest/globals";
import { newPromiseKey } from "../../src/retail/promise.js";
import { startSandbox } from "../../src/sandbox/sandbox.js";
import { describeWithRedis, startRedis } from "../support/redis.js";
import { spawnService, temporaryFolder, until } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { registration, shopAt } from "../truth/shop.js";

const AHEAD_MS = 7_000;
const AHEAD = `data:text/javascript,const now = Date.now; Date.now = () => now() + ${AHEAD_MS};`;

describeWithRedis("a replica whose wall clock is ahead of another's", () => {
  test("doesn't bring back 'available' where the other has learned 'taken' since, and nothing is signed", async () => {
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
    const ahead = spawnService(env("ahead"), { node: ["--import", AHEAD] });
    const right = spawnService(env("right"));
    try {
      const [aheadShop, shop] = [
        shopAt({ ...ahead, port: await ahead.listening }),
        shopAt({ ...right, port: await right.listening }),
      ];
      for (const { ask } of [ahead, right])
        await until(async () => (await ask("/v1/prices")).text.split('"price"').length === 29, "the prices");
      expect((await aheadShop.availability("kabul.af")).status).toBe("available");
      sandbox.control.setTaken("kabul.af", true);
      const seemsRecentAt = performance.now() + AHEAD_MS + 300;
      expect((await shop.availability("kabul.af", 2)).status).toBe("taken");
      await new Promise((done) => setTimeout(done, seemsRecentAt - performance.now()));
      const { items, signed } = await shop.cart(registration("kabul.af"));
      expect([items[0]?.status, signed]).toEqual(["taken", []]);
      expect((await shop.availability("kabul.af")).status).toBe("taken");
    } finally {
      await Promise.all([ahead.stop(), right.stop()]);
      await sandbox.close();
      await redis.close();
      folder.remove();
    }
  }, 40_000);
});
