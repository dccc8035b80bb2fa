/** The rate limit is strict in every rolling window, by a clock that the test sets. */
import { describe, expect, it } from "@jest/globals";
import { RollingWindow } from "../src/rolling-window.js";
import { balance, call, closeAfterEach, failureOf, get, portal, post, start } from "./client.js";

closeAfterEach();

describe("the rolling rate limit", () => {
  const limited = { limit: 3, windowMs: 1000 };

  it("counts requests on arrival in a window that includes its start, and doesn't count refused ones", async () => {
    let at = 0;
    const sandbox = await start({ rateLimit: limited, now: () => at });
    const statusAt = async (time: number): Promise<number> => {
      at = time;
      return (await balance(sandbox)).status;
    };
    const seen = [];
    for (const time of [0, 400, 999, 999, 1000, 1000.5, 1400, 1401]) seen.push(await statusAt(time));
    expect(seen).toEqual([200, 200, 200, 429, 429, 200, 429, 200]);
    expect(sandbox.stats().credentials[0]).toMatchObject({ accepted: 5, rejected429: 3, largestWindow: 3 });
  });

  it("sends a Retry-After after which a request is accepted, but not one second earlier", async () => {
    let at = 0;
    const sandbox = await start({ rateLimit: { limit: 1, windowMs: 5000 }, now: () => at });
    await balance(sandbox);
    at = 700;
    const reply = await balance(sandbox);
    expect(failureOf(reply)).toBe("429 rate_limit_exceeded");
    expect(reply.headers.get("retry-after")).toBe("5");
    at = 700 + 4000;
    expect((await balance(sandbox)).status).toBe(429);
    at = 700 + 5000;
    expect((await balance(sandbox)).status).toBe(200);
  });

  it("never accepts more requests than the limit in any window, wherever it starts", () => {
    const window = new RollingWindow();
    const accepted: number[] = [];
    for (let step = 0, at = 0; step < 3_000; step += 1) {
      at += (step * 7) % 23;
      if (window.admit(at, { limit: 5, windowMs: 100 }) === null) accepted.push(at);
    }
    const inWindow = (end: number) => accepted.filter((at) => at >= end - 100 && at <= end).length;
    expect(Math.max(...accepted.map(inWindow))).toBe(5);
    expect(window.largest).toBe(5);
  });

  it("counts requests that fail for another reason, but not unauthenticated ones", async () => {
    const sandbox = await start({ rateLimit: limited, now: () => 0 });
    await call("GET", `${sandbox.url}/api/v1/domains`);
    await balance(sandbox, { key: sandbox.credential().key, secret: "wrong" });
    expect(failureOf(await get(sandbox, "/domains/nobody-has-this.af"))).toBe("404 domain_not_found");
    expect(failureOf(await get(sandbox, "/nothing"))).toBe("404 not_found");
    expect(failureOf(await post(sandbox, "/domains", {}))).toBe("405 method_not_allowed");
    expect(failureOf(await balance(sandbox))).toBe("429 rate_limit_exceeded");
    expect(sandbox.stats()).toMatchObject({ unknownKeys: 1 });
    expect(sandbox.stats().credentials[0]).toMatchObject({
      accepted: 3,
      rejected429: 1,
      refused: 1,
      byRoute: { "GET /api/v1/domains/{domain}": 1, other: 2 },
    });
  });

  it("can be changed while the sandbox runs, and is shown in the statistics", async () => {
    const sandbox = await start({ rateLimit: { limit: 1, windowMs: 1000 }, now: () => 0 });
    await balance(sandbox);
    sandbox.control.setRateLimit({ limit: 2, windowMs: 1000 });
    expect((await balance(sandbox)).status).toBe(200);
    expect((await balance(sandbox)).status).toBe(429);
    expect((await portal(sandbox, "GET", "/stats")).json).toMatchObject({ rateLimit: { limit: 2 } });
  });
});
