/** The limit on new names with four replicas and a real Redis: together they admit as much as a single replica would. */
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

/** A client's allowance doesn't refill, so that a slow machine doesn't change the result. */
const stillClock = { ...systemClock, monotonic: () => 0 };

const pass = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

describeWithRedis("the limit on new names across four replicas", () => {
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
    await until(() => links.every((link) => link.reachable()), "the connection of all replicas");
    await until(
      async () => (await server.command("PUBSUB", "NUMSUB", "af-storefront:counts:cold")).includes(":4"),
      "the subscription of all replicas",
    );
  });
  afterEach(async () => {
    for (const link of links) link.close();
    await server.close();
  });

  function isAdmitted(at: number, client: string): boolean {
    const limit = limits[at % REPLICAS];
    if (limit === undefined) throw new Error(`no replica for request ${at}`);
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

  test("admits the allowance of a minute from a client that sends requests one by one, and no more", async () => {
    const count = await admitted(20);
    expect(count).toBeGreaterThanOrEqual(0.9 * PER_MINUTE);
    expect(count).toBeLessThanOrEqual(1.1 * PER_MINUTE);
  });

  test("admits no more from a client that repeatedly sends requests to all replicas at the same moment", async () => {
    const first = await admitted(0);
    expect(first).toBeLessThanOrEqual(PER_MINUTE);
    await pass(300);
    const more = (await admitted(0)) + first;
    expect(more).toBeLessThanOrEqual(1.1 * PER_MINUTE);
  });

  test("ignores messages that it can't read, as from another release", async () => {
    for (const message of ["", "{", "[]", '["a"]', '["a",[["client","1"]]]', "null"])
      await server.command("PUBLISH", "af-storefront:counts:cold", message);
    expect(await admitted(20)).toBeLessThanOrEqual(1.1 * PER_MINUTE);
  });

  test("admits each replica's share while Redis is unreachable", async () => {
    await server.kill();
    await until(() => links.every((link) => !link.reachable()), "the loss of the connections");
    const count = await admitted(20);
    expect(count).toBeLessThanOrEqual(1.1 * PER_MINUTE);
    expect(count).toBeGreaterThan(0.7 * PER_MINUTE);
  });
});
