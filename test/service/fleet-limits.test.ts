/** A client of a fleet: all replicas together admit its limit, however its requests are distributed. */
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis } from "../support/redis.js";
import { type Fleet, startFleet } from "../support/fleet.js";
import { problemOf, until } from "../support/service.js";

const LIMIT = 40;
const REPLICAS = 4;
/** Long enough for all replicas to learn of a wrong token, even on a busy machine. */
const PROPAGATION_MS = 700;

describeWithRedis("a client of four replicas", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet(REPLICAS, { CLIENT_RATE_PER_MINUTE: String(LIMIT), TRUST_PROXY_HOPS: "1" });
  });
  afterEach(() => fleet.close());

  async function isAdmitted(client: string, at: number): Promise<boolean> {
    const answer = await fleet.replicas[at % REPLICAS]?.ask("/v1/prices", {
      headers: { "X-Forwarded-For": client },
    });
    if (answer === undefined) throw new Error("there is no such replica");
    if (answer.status !== 429) return true;
    expect(problemOf(answer).code).toBe("rate_limited");
    expect(answer.headers["ratelimit"]).toContain("r=0;");
    return false;
  }
  const count = (admitted: readonly boolean[]): number => admitted.filter(Boolean).length;
  async function oneByOne(
    client: string,
    requests: number,
    at: (request: number) => number,
  ): Promise<number> {
    const admitted: boolean[] = [];
    for (let request = 0; request < requests; request += 1)
      admitted.push(await isAdmitted(client, at(request)));
    return count(admitted);
  }

  test.each([
    ["them round robin", (request: number) => request],
    ["only one of them", () => 2],
    ["them one after the other", (request: number) => Math.floor(request / 50)],
  ])("that asks %s gets its limit and no more", async (_name, at) => {
    expect(await oneByOne("203.0.113.1", 4 * LIMIT, at)).toBe(LIMIT);
    expect(await oneByOne("203.0.113.2", LIMIT / 2, at)).toBe(LIMIT / 2);
  });

  test("whose address the proxy doesn't know gets its whole limit from one of them", async () => {
    expect(await oneByOne("unknown", 2 * LIMIT, () => 1)).toBe(LIMIT);
  });

  test("that asks all of them at once gets hardly more than its limit", async () => {
    const requests = Array.from({ length: 4 * LIMIT }, (_, request) => isAdmitted("203.0.113.1", request));
    const admitted = count(await Promise.all(requests));
    expect(admitted).toBeLessThanOrEqual(1.1 * LIMIT);
    expect(admitted).toBeGreaterThanOrEqual(0.9 * LIMIT);
  });

  test("that stays within its share isn't counted in Redis", async () => {
    expect(await oneByOne("203.0.113.1", LIMIT, (request) => request)).toBe(LIMIT);
    expect(await fleet.redis.command("KEYS", "af-storefront:limit:*")).toBe("*0\r\n");
  });

  test("gets only the share of each replica while Redis hangs, and its limit again when Redis is back", async () => {
    fleet.redis.hang();
    expect(await oneByOne("203.0.113.1", 2 * LIMIT, (request) => request)).toBe(LIMIT);
    expect(await oneByOne("203.0.113.2", 2 * LIMIT, () => 0)).toBe(LIMIT / REPLICAS);
    fleet.redis.wake();
    const isBack = (log: readonly string[]): boolean =>
      log.findLast((line) => line.includes('"redis.'))?.includes("redis.reached") === true;
    await until(() => fleet.replicas.every(({ log }) => isBack(log)), "the reconnection of all replicas");
    await until(() => isAdmitted("203.0.113.2", 0), "the admission of another request");
    const left = LIMIT - LIMIT / REPLICAS - 1;
    expect(await oneByOne("203.0.113.2", 2 * LIMIT, (request) => request)).toBe(left);
  });

  // In bursts at first, because the replicas exchange wrong tokens ten times a second, in the background.
  test("that guesses tokens is stopped by all of them as soon as by one", async () => {
    const statuses: number[] = [];
    for (let guess = 0; guess < 160; guess += 1) {
      if (guess === 16 || guess === 32 || guess === 48) await pause(PROPAGATION_MS);
      const answer = await fleet.replicas[guess % REPLICAS]?.ask("/v1/staff/overview", {
        headers: {
          "X-Forwarded-For": `2001:db8::${(guess % 16).toString(16)}`,
          Authorization: "Bearer wrong",
        },
      });
      statuses.push(answer?.status ?? 0);
    }
    const compared = statuses.filter((status) => status === 401).length;
    expect(compared).toBeLessThanOrEqual(33);
    expect(compared).toBeGreaterThanOrEqual(27);
  });
});
