/** The client package while the device's clock is set: what it waits for, holds or knows lasts no longer than promised. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Clock, install } from "@sinonjs/fake-timers";
import { aheadMs } from "../src/clock.js";
import { createCart, createClient, now } from "../src/index.js";

const HOUR_MS = 3_600_000;

let timers: Clock;
let asked: number;

beforeEach(() => {
  // Not earlier than the client has seen, perhaps in another suite of this process.
  timers = install({ now: now(), toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  asked = 0;
});
afterEach(() => {
  timers.uninstall();
});

/** Timers aren't affected, as when a person or the network sets a device's clock. */
const setClockBy = (ms: number): void => timers.setSystemTime(Date.now() + ms);

function clientOf(body: () => object, headers: Readonly<Record<string, string>> = {}) {
  return createClient({
    fetch: () => {
      asked += 1;
      return Promise.resolve(Response.json(body(), { headers }));
    },
  });
}

/** Signed now for 15 minutes. */
function signed() {
  const iat = Math.floor(Date.now() / 1000);
  const claims = Buffer.from(JSON.stringify({ iat, exp: iat + 900 })).toString("base64url");
  return { items: [], total: [], promise: `a.${claims}.c`, validUntil: new Date().toISOString() };
}

test("its clock is the device's, and continues at the same pace when that is set back and right again", () => {
  const startMs = Date.now();
  expect([now(), aheadMs()]).toEqual([startMs, 0]);
  setClockBy(-HOUR_MS);
  timers.tick(1_000);
  expect([now(), aheadMs()]).toEqual([startMs + 1_000, HOUR_MS]);
  setClockBy(HOUR_MS);
  timers.tick(1_000);
  expect([now(), aheadMs()]).toEqual([startMs + 2_000, 0]);
});

test("a known answer is revalidated when it is too old, even if the clock was set back", async () => {
  const client = clientOf(() => ({ prices: [] }), { ETag: '"1"', "Cache-Control": "max-age=5" });
  for (let times = 0; times < 3; times += 1) await client.prices();
  expect(asked).toBe(2);
  setClockBy(-2 * HOUR_MS);
  await timers.tickAsync(4_000);
  await client.prices();
  expect(asked).toBe(2);
  await timers.tickAsync(2_000);
  await client.prices();
  expect(asked).toBe(3);
});

test("a confirmed cart expires on time if the clock is set back, and as soon as the device wakes up if it slept", async () => {
  const cart = createCart(clientOf(signed));
  cart.add({ domain: "kabul.af", action: "registration" });
  await cart.confirm();
  setClockBy(-HOUR_MS);
  await timers.tickAsync(890_000);
  expect(cart.state.phase).toBe("confirmed");
  await timers.tickAsync(10_000);
  expect(cart.state.phase).toBe("expired");
  setClockBy(HOUR_MS);
  await cart.confirm();
  // Timers stood still meanwhile.
  setClockBy(HOUR_MS);
  await timers.tickAsync(1_000);
  expect(cart.state.phase).toBe("expired");
  cart.stop();
});

test("a retry that becomes due while a page is frozen is made when it continues, and has time for its answer", async () => {
  const client = createClient({
    fetch: async (_url, init) => {
      asked += 1;
      if (asked === 1)
        return Response.json({ code: "quota_exhausted" }, { status: 503, headers: { "Retry-After": "50" } });
      await new Promise((later) => setTimeout(later, 800));
      init?.signal?.throwIfAborted();
      return Response.json({ prices: [] });
    },
  });
  const answer = client.prices();
  await timers.tickAsync(10_000);
  // All clocks run meanwhile; every timer that is overdue then fires once.
  timers.jump(600_000);
  await timers.tickAsync(2_000);
  expect(await answer).toEqual({ prices: [] });
  expect(asked).toBe(2);
});

test("a call still ends when its time has passed", async () => {
  const client = createClient({
    timeoutMs: 2_500,
    fetch: (_url, init) =>
      new Promise((_, failed) => {
        init?.signal?.addEventListener("abort", () => failed(init.signal?.reason));
      }),
  });
  let problem: unknown;
  client.prices().catch((error: unknown) => {
    problem = error;
  });
  await timers.tickAsync(2_499);
  expect(problem).toBeUndefined();
  await timers.tickAsync(1);
  expect(problem).toMatchObject({ code: "unreachable" });
});
