/** The simulated Redis of the tests replies like a real one to the same commands. */
import { expect } from "@jest/globals";
import { createInvalidation } from "../../src/cache/invalidation.js";
import { redisPool } from "../../src/cache/redis-pool.js";
import type { SharedPool } from "../../src/cache/replicas.js";
import { systemClock } from "../../src/clock.js";
import { connectRedis } from "../../src/redis-link.js";
import type { RedisLink } from "../../src/redis.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { describeWithRedis, startRedis } from "../support/redis.js";
import { recordingLog } from "../support/service.js";
import { SimulatedValues } from "../support/simulated-redis.js";
import { concurrentTest } from "../support/stories.js";
import { randomOf } from "../truth/history.js";

const plain = (reply: unknown): unknown => {
  const text = typeof reply === "string" ? reply : "";
  return text.startsWith("[") ? JSON.parse(text) : reply;
};

async function open() {
  const redis = await startRedis();
  const link = connectRedis({ url: fixedSecret(redis.url), clock: systemClock, log: recordingLog([]) });
  await link.firstContact(5_000);
  const simulated = new SimulatedValues(() => systemClock.monotonic());
  const replies: [unknown, unknown][] = [];
  /** Sends each command to both, and returns the reply of the real one. */
  const both: RedisLink = {
    reachable: () => link.reachable(),
    state: () => link.state(),
    refusals: () => link.refusals(),
    aheadMs: () => link.aheadMs(),
    knowsTime: () => link.knowsTime(),
    firstContact: (withinMs) => link.firstContact(withinMs),
    publish: (channel, message) => link.publish(channel, message),
    channel: (channel) => link.channel(channel),
    subscribe: () => {},
    onReachable: () => {},
    close: () => {},
    async run(script, key, args) {
      const reply = await link.run(script, key, args);
      replies.push([plain(reply), plain(simulated.run(script, key, args))]);
      return reply;
    },
    async get(key) {
      const reply = await link.get(key);
      replies.push([plain(reply), plain(simulated.get(key))]);
      return reply;
    },
    async set(key, value, ttlMs) {
      await link.set(key, value, ttlMs);
      simulated.set(key, value, ttlMs);
    },
    async claim(key, value, ttlMs) {
      const reply = await link.claim(key, value, ttlMs);
      replies.push([reply, simulated.claim(key, value, ttlMs)]);
      return reply;
    },
  };
  return {
    both,
    replies,
    async close() {
      link.close();
      await redis.close();
    },
  };
}

describeWithRedis("the simulated Redis", () => {
  const test = concurrentTest(open);

  test("keeps facts, marks and claims as Redis does", async ({ both, replies }) => {
    const random = randomOf(1);
    const clock = new FakeClock();
    const replica = (): SharedPool<string> =>
      redisPool({
        link: both,
        name: "words",
        purges: null,
        source: () => "the upstream",
        decode: (data) => (typeof data === "string" ? data : undefined),
        clock,
      });
    const replicas = [replica(), replica(), replica()];
    for (let step = 0; step < 300; step += 1) {
      const at = replicas[Math.floor(random() * replicas.length)]?.at(`key ${Math.floor(random() * 3)}`);
      await clock.advance(Math.floor(random() * 300));
      const askedMs = clock.monotonic() - random() * 400;
      const fact = { value: "a", askedMs, answeredMs: askedMs + random() * 300 };
      if (random() < 0.7) for (let n = random(); n < 1; n += 0.6) await at?.write(fact, 60_000);
      else if (random() < 0.5) await at?.read();
      else {
        const claim = await at?.claim();
        await at?.claim();
        await claim?.release();
      }
    }
    const invalidations = replicas.map(() => createInvalidation(both, clock));
    const channels = invalidations.map((one) => one.channel("prices"));
    for (let step = 0; step < 30; step += 1) {
      const at = Math.floor(random() * 3);
      if (random() < 0.5) channels[at]?.publish();
      await invalidations[at]?.published();
      await clock.advance(2_500);
    }
    for (const { close } of invalidations) close();
    expect(replies.length).toBeGreaterThan(300);
    for (const [real, simulated] of replies) expect(simulated).toEqual(real);
  });
});
