/** One client in front of a fleet: all replicas together admit its limit, however its requests are spread. */
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis } from "../support/redis.js";
import { type Fleet, startFleet } from "../support/fleet.js";
import { problemOf, until } from "../support/service.js";

const LIMIT = 40;
const REPLICAS = 4;
/** Long enough for all replicas to hear of a wrong token, on a busy machine too. */
const TOLD_MS = 700;

describeWithRedis("a client in front of four replicas", () => {
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
    ["round robin", (request: number) => request],
    ["at one of them", () => 2],
    ["at one after the other", (request: number) => Math.floor(request / 50)],
  ])("that asks %s has its limit and no more", async (_name, at) => {
    expect(await oneByOne("203.0.113.1", 4 * LIMIT, at)).toBe(LIMIT);
    expect(await oneByOne("203.0.113.2", LIMIT / 2, at)).toBe(LIMIT / 2);
  });

  test("that has no address, by what the proxy says, has the whole limit at one of them", async () => {
    expect(await oneByOne("unknown", 2 * LIMIT, () => 1)).toBe(LIMIT);
  });

  test("that asks all of them at once has hardly more", async () => {
    const asked = Array.from({ length: 4 * LIMIT }, (_, request) => isAdmitted("203.0.113.1", request));
    const admitted = count(await Promise.all(asked));
    expect(admitted).toBeLessThanOrEqual(1.1 * LIMIT);
    expect(admitted).toBeGreaterThanOrEqual(0.9 * LIMIT);
  });

  test("and stays within its share is not counted in Redis", async () => {
    expect(await oneByOne("203.0.113.1", LIMIT, (request) => request)).toBe(LIMIT);
    expect(await fleet.redis.command("KEYS", "af-storefront:limit:*")).toBe("*0\r\n");
  });

  test("has the share of each replica while Redis hangs, and its limit when it is back", async () => {
    fleet.redis.hang();
    expect(await oneByOne("203.0.113.1", 2 * LIMIT, (request) => request)).toBe(LIMIT);
    expect(await oneByOne("203.0.113.2", 2 * LIMIT, () => 0)).toBe(LIMIT / REPLICAS);
    fleet.redis.wake();
    await until(() => isAdmitted("203.0.113.2", 0), "another request");
  });

  // In bursts at first: the replicas tell each other of wrong tokens ten times a second, without anybody waiting for it.
  test("that guesses tokens is stopped as soon at all of them as at one", async () => {
    const statuses: number[] = [];
    for (let guess = 0; guess < 160; guess += 1) {
      if (guess === 16 || guess === 32 || guess === 48) await pause(TOLD_MS);
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
