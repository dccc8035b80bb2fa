/** The limit of new names over four replicas and one real Redis: together they admit what one would. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type ColdLimit, createColdLimit } from "../../src/http/edge/cold-limit.js";
import { createSharedCounts } from "../../src/http/edge/shared-counts.js";
import type { RedisLink } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";

const PER_MINUTE = 20;
const REPLICAS = 4;

/** A client's minute doesn't refill while a busy machine takes its time. */
const stillClock = { ...systemClock, monotonic: () => 0 };

const pass = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

describeWithRedis("the limit of new names over four replicas", () => {
  let server: RedisServer;
  let links: RedisLink[];
  let limits: ColdLimit[];

  beforeEach(async () => {
    server = await startRedis();
    links = Array.from({ length: REPLICAS }, () =>
      connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) }),
    );
    limits = links.map((link) =>
      createColdLimit({
        perMinute: PER_MINUTE,
        isContested: () => true,
        clock: stillClock,
        share: (onCounted) =>
          createSharedCounts({
            link,
            name: "cold",
            replicasMax: REPLICAS,
            clock: systemClock,
            onCounted,
          }),
      }),
    );
    await until(() => links.every((link) => link.reachable()), "the connections");
    await until(
      async () => (await server.command("PUBSUB", "NUMSUB", "af-storefront:counts:cold")).includes(":4"),
      "the subscriptions",
    );
  });
  afterEach(async () => {
    for (const link of links) link.close();
    await server.close();
  });

  function isAdmitted(at: number, client: string): boolean {
    const limit = limits[at % REPLICAS];
    if (limit === undefined) throw new Error("there is no such replica");
    if (limit.refusal(client, client) !== null) return false;
    limit.count(client);
    return true;
  }

  async function admitted(everyMs: number, times = 4 * PER_MINUTE): Promise<number> {
    let count = 0;
    for (let request = 0; request < times; request += 1) {
      if (isAdmitted(request, "a")) count += 1;
      if (everyMs > 0) await pass(everyMs);
    }
    return count;
  }

  test("admits a minute's worth of a client that asks one after another, and no more", async () => {
    const count = await admitted(20);
    expect(count).toBeGreaterThanOrEqual(0.9 * PER_MINUTE);
    expect(count).toBeLessThanOrEqual(1.1 * PER_MINUTE);
  });

  test("admits no more of one that asks all of them at one moment, again and again", async () => {
    const first = await admitted(0);
    expect(first).toBeLessThanOrEqual(PER_MINUTE);
    await pass(300);
    const more = (await admitted(0)) + first;
    expect(more).toBeLessThanOrEqual(1.1 * PER_MINUTE);
  });

  test("admits the share of each while Redis is gone", async () => {
    await server.kill();
    await until(() => links.every((link) => !link.reachable()), "the loss");
    const count = await admitted(20);
    expect(count).toBeLessThanOrEqual(1.1 * PER_MINUTE);
    expect(count).toBeGreaterThan(0.7 * PER_MINUTE);
  });
});
