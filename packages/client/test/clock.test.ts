/**
 * The client package by a clock that only the test advances: what it waits for, holds or knows lasts no longer than promised, also while the device's
 * clock is set; and how a cart is confirmed.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Clock, install } from "@sinonjs/fake-timers";
import { heldUntilMs } from "../src/cart.js";
import type { CartItem, StorefrontClient } from "../src/client.js";
import { aheadMs } from "../src/clock.js";
import { createCart, createClient, now } from "../src/index.js";

const HOUR_MS = 3_600_000;

type Answer = (init: RequestInit | undefined) => Response | Promise<Response>;

let timers: Clock;
let answers: Answer[];
let client: StorefrontClient;

beforeEach(() => {
  // Not earlier than the client has seen, perhaps in another suite of this process.
  timers = install({ now: now(), toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  answers = [];
  client = createClient({
    fetch: (_url, init) => Promise.resolve((answers.shift() ?? silent)(init)),
  });
});
afterEach(() => {
  timers.uninstall();
});

/** Timers aren't affected, as when a person or the network sets a device's clock. */
const setClockBy = (ms: number): void => timers.setSystemTime(Date.now() + ms);

function refused(code: string, status: number, retryAfter?: number): Answer {
  const headers = retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) };
  return () => Response.json({ code, detail: "No." }, { status, headers });
}

const silent: Answer = (init) =>
  new Promise((_, failed) => {
    init?.signal?.addEventListener("abort", () => failed(init.signal?.reason));
  });

/** Prices that are signed now for so long. */
function signed(seconds = 900, items: readonly object[] = []) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = Buffer.from(JSON.stringify({ iat, exp: iat + seconds })).toString("base64url");
  const validUntil = new Date(1000 * (iat + seconds)).toISOString();
  return { items, total: [], promise: `a.${claims}.c`, validUntil };
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
  const headers = { ETag: '"1"', "Cache-Control": "max-age=5" };
  answers = Array.from({ length: 3 }, () => () => Response.json({ prices: [] }, { headers }));
  for (let times = 0; times < 3; times += 1) await client.prices();
  expect(answers).toHaveLength(1);
  setClockBy(-2 * HOUR_MS);
  await timers.tickAsync(4_000);
  await client.prices();
  expect(answers).toHaveLength(1);
  await timers.tickAsync(2_000);
  await client.prices();
  expect(answers).toHaveLength(0);
});

test("a retry that becomes due while a page is frozen is made when it continues, and has time for its answer", async () => {
  answers = [
    refused("quota_exhausted", 503, 50),
    async (init) => {
      await new Promise((later) => setTimeout(later, 800));
      init?.signal?.throwIfAborted();
      return Response.json({ prices: [] });
    },
  ];
  const answer = client.prices();
  await timers.tickAsync(10_000);
  // All clocks run meanwhile; every timer that is overdue then fires once.
  timers.jump(600_000);
  await timers.tickAsync(2_000);
  expect(await answer).toEqual({ prices: [] });
});

/** What a fetch does if the connection is cut before the answer. */
const cutOff: Answer = () => Promise.reject(new TypeError("fetch failed"));

test.each<[string, Answer]>([
  ["a restart cuts the connection", cutOff],
  ["a proxy answers", () => new Response("<h1>Bad", { status: 503 })],
])("a request is repeated after a second if the service can't be reached and %s", async (_what, lost) => {
  answers = [lost, () => Response.json({ asOf: "now", prices: [] })];
  const waits: (number | string)[] = [];
  const asked = client.prices({}, { onWait: ({ code }, ms) => waits.push(code, ms) });
  await timers.tickAsync(999);
  expect([answers.length, waits]).toEqual([1, ["unreachable", 1000]]);
  await timers.tickAsync(1);
  expect(await asked).toEqual({ asOf: "now", prices: [] });
});

test("a streamed search continues if the first reconnect fails, too", async () => {
  const asked: (string | null)[] = [];
  const noting =
    (answer: Answer): Answer =>
    (init) => {
      asked.push(new Headers(init?.headers).get("last-event-id"));
      return answer(init);
    };
  const encoder = new TextEncoder();
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode('retry: 0\n\nid: 1\nevent: result\ndata: {"domain":"a.af"}\n\n'));
    },
    pull(controller) {
      controller.error(new TypeError("terminated"));
    },
  });
  const headers = { "Content-Type": "text/event-stream" };
  answers = [
    noting(() => new Response(broken, { headers })),
    noting(cutOff),
    noting(() => new Response('event: done\ndata: {"complete":true}\n\n', { headers })),
  ];
  const seen: string[] = [];
  const ended = (async () => {
    for await (const { event } of client.searchStream({ q: "a" })) seen.push(event);
  })();
  await timers.tickAsync(2_000);
  await ended;
  expect([seen, asked]).toEqual([
    ["result", "done"],
    [null, "1", "1"],
  ]);
});

describe("a cart", () => {
  const item = { domain: "kabul.af", action: "registration" } as const;
  let seen: unknown[];
  let cart: ReturnType<typeof createCart>;

  beforeEach(() => {
    seen = [];
    cart = createCart(client, ({ phase, quotes }) => seen.push([phase, quotes?.promise]));
  });
  afterEach(() => cart.stop());

  test("is confirmed with a promise, which expires on time if the clock is set back, and as soon as the device wakes up if it slept", async () => {
    const { promise, ...prices } = signed();
    answers = [() => Response.json({ promise, ...prices }), () => Response.json(signed())];
    expect(cart.add(item)).toBe(true);
    expect(await cart.confirm()).toBe(promise);
    setClockBy(-HOUR_MS);
    await timers.tickAsync(890_000);
    expect(cart.state).toMatchObject({ phase: "confirmed", quotes: { promise } });
    await timers.tickAsync(10_000);
    expect(seen).toEqual([
      ["open", undefined],
      ["confirming", undefined],
      ["confirmed", promise],
      ["expired", undefined],
    ]);
    setClockBy(HOUR_MS);
    await cart.confirm();
    // Timers stood still meanwhile.
    setClockBy(HOUR_MS);
    await timers.tickAsync(1_000);
    expect(cart.state.phase).toBe("expired");
  });

  test("is held no longer than its promise is valid, on a device whose clock is right, fast or slow, and however late the answer arrives", async () => {
    const issuedMs = 1000 * Math.floor(Date.now() / 1000);
    for (const offMs of [0, HOUR_MS, -HOUR_MS])
      expect(heldUntilMs(signed(), issuedMs + offMs)).toBe(issuedMs + offMs + 899_000);
    let signedMs = 0;
    answers = [
      refused("rate_limited", 429, 1),
      async () => {
        signedMs = now();
        const prices = signed();
        await new Promise((later) => setTimeout(later, 1_200));
        return Response.json(prices);
      },
    ];
    cart.add(item);
    const confirmed = cart.confirm();
    await timers.tickAsync(3_000);
    await confirmed;
    // The wait before the retry isn't subtracted.
    expect(cart.state.heldUntilMs).toBe(signedMs + 899_000);
  });

  test("holds signed prices while they are confirmed again, if that fails or gives no price, and until another promise replaces them or they expire", async () => {
    const line = { ...item, tld: ".af", price: { amount: "1.00", currency: "USD" }, status: "available" };
    const problem = { code: "upstream_timeout", detail: "Slow.", retryAfter: 5 };
    const unsigned = (more: object) => () =>
      Response.json({
        items: [{ ...line, price: null, ...more }],
        total: [],
        promise: null,
        validUntil: null,
      });
    const prices = signed(60, [line]);
    answers = [
      () => Response.json(prices),
      refused("rate_limited", 429, 1),
      refused("upstream_failed", 502),
      unsigned({ status: "not_checked", problem }),
      unsigned({ status: "taken" }),
      () => Response.json(signed(30)),
      () => Response.json(signed(60)),
      refused("upstream_failed", 502),
    ];
    cart.add(item);
    await cart.confirm();
    const confirmed = cart.confirm();
    await timers.tickAsync(1_000);
    expect(await confirmed).toBeNull();
    expect(seen).toEqual([
      ["open", undefined],
      ["confirming", undefined],
      ["confirmed", prices.promise],
      ["confirming", prices.promise],
      ["waiting", prices.promise],
      ["confirming", prices.promise],
      ["failed", prices.promise],
    ]);
    expect(cart.state.problem?.code).toBe("upstream_failed");
    expect(await cart.confirm()).toBeNull();
    const { promise } = prices;
    expect(cart.state).toMatchObject({ phase: "failed", problem: { retryAfter: 5 }, quotes: { promise } });
    expect(await cart.confirm()).toBeNull();
    expect(cart.state).toMatchObject({ phase: "confirmed", quotes: { promise: null }, heldUntilMs: null });

    await cart.confirm();
    await cart.confirm();
    await timers.tickAsync(50_000);
    expect(cart.state).toMatchObject({ phase: "confirmed", quotes: { promise: expect.any(String) } });
    await cart.confirm();
    await timers.tickAsync(10_000);
    expect(cart.state).toMatchObject({ phase: "failed", quotes: null, heldUntilMs: null });
  });

  test("drops a confirmation, finished or in progress, when it changes", async () => {
    answers = [() => Response.json(signed()), silent];
    cart.add(item);
    await cart.confirm();
    cart.add({ ...item, years: 2 });
    expect(cart.state).toMatchObject({ phase: "open", quotes: null, items: [{ ...item, years: 2 }] });
    const confirming = cart.confirm();
    cart.remove("kabul.af");
    expect(await confirming).toBeNull();
    expect(cart.state).toMatchObject({ phase: "open", items: [], problem: null });
  });

  test("can be restored with what an app stored, keeps what the app added to an item, and sends none of it", async () => {
    let sent: unknown;
    answers = [
      (init) => {
        sent = init?.body;
        return Response.json(signed());
      },
    ];
    const labelled = createCart<CartItem & { readonly label: string }>(client);
    const items = ["b.af", "a.af"].map((domain) => ({ ...item, domain, label: domain.toUpperCase() }));
    const quotes = signed(10);
    labelled.restore({ items, quotes: { ...quotes, items: [] }, heldUntilMs: now() + 10_000 });
    expect(labelled.state).toMatchObject({ phase: "confirmed", items, quotes: { promise: quotes.promise } });
    await timers.tickAsync(10_000);
    expect(labelled.state.phase).toBe("expired");
    labelled.add({ ...item, domain: "b.af", years: 2, label: "B" });
    expect(labelled.state.items.map(({ label }) => label)).toEqual(["B", "A.AF"]);
    await labelled.confirm();
    const sentItems = [
      { ...item, domain: "b.af", years: 2 },
      { ...item, domain: "a.af" },
    ];
    expect(sent).toBe(JSON.stringify({ items: sentItems }));
    labelled.stop();
  });

  test("holds twenty names", () => {
    for (let more = 0; more < 20; more += 1) cart.add({ ...item, domain: `${more}.af` });
    expect([cart.add(item), cart.add({ ...item, domain: "0.af", years: 2 })]).toEqual([false, true]);
  });
});
