/** The service as a separate process, `node dist/main.js`: what it does while it runs, what it keeps across restarts, and how it stops. */
import { describe, expect, test } from "@jest/globals";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { openStream } from "../support/event-stream.js";
import { processes } from "../support/processes.js";
import { exchange } from "../support/raw.js";
import { callsOf, CHECK, PRICING, until } from "../support/service.js";
import { AVAILABLE } from "../upstream/support/bench.js";
import { startStub, success } from "../upstream/support/stub.js";

const here = processes();
const UNFINISHED_CART =
  "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{";

test("a request's ids are on all of its log lines and go upstream, and nothing else that the client sent does; an error that nothing catches ends the process with 1 and a last line", async () => {
  const stub = await startStub((socket, seen) => {
    const isQuote = seen.path === "/api/v1/pricing";
    success(isQuote ? { amount: "12.34", currency: "USD" } : AVAILABLE)(socket, seen);
  });
  const thrown = 'Object.assign(new RangeError("out of bounds"), { headers: { key: "SECRET" } })';
  const script = join(here.folder, "fails.mjs");
  writeFileSync(script, `process.on("SIGUSR2", () => { throw ${thrown}; });`);
  try {
    const upstream = {
      UPSTREAM_BASE_URL: stub.url,
      UPSTREAM_SERVICE_KEY: "a-service-key",
      UPSTREAM_SERVICE_SECRET: "a-service-secret",
      QUOTA_COLD_START: "assume-free",
    };
    const service = here.start(upstream, { node: ["--import", script] });
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const ask = (headers: Readonly<Record<string, string>>) =>
      service.ask("/v1/availability?domain=kabul.af", { headers });
    await service.listening;
    const answers = await Promise.all([
      ask({
        "x-request-id": "one-of-two",
        traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
        tracestate: "vendor=inbound",
        baggage: "inbound=1",
        authorization: "Bearer inbound",
        cookie: "inbound=1",
        "user-agent": "inbound",
        "accept-language": "inbound",
        "x-forwarded-for": "203.0.113.7",
        "x-service-key": "inbound",
        "x-inbound": "inbound",
      }),
      service.ask("/health", { headers: { "x-request-id": "two-of-two", traceparent: "inbound" } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);

    const checks = stub.seen.filter(({ path }) => path === "/api/v1/domains/check");
    const [{ headers }] = z.tuple([z.looseObject({ headers: z.map(z.string(), z.string()) })]).parse(checks);
    expect([...headers.keys()].toSorted().join(" ")).toBe(
      "accept accept-encoding connection content-length content-type host traceparent user-agent x-request-id x-service-key x-service-secret",
    );
    expect(headers.get("x-request-id")).toBe("one-of-two");
    expect(headers.get("traceparent")).toMatch(
      new RegExp(`^00-${traceId}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`),
    );
    expect(JSON.stringify(stub.seen.map((seen) => [...seen.headers]))).not.toMatch(/inbound|203\.0\.113/);

    service.child.kill("SIGUSR2");
    expect(await service.exited).toBe(1);
    expect(service.stderr).toEqual([]);
    expect(service.stdout.join("\n")).not.toContain("SECRET");
    expect(JSON.parse(service.stdout.at(-1) ?? "")).toMatchObject({
      level: "error",
      event: "server.crashed",
      reason: "out of bounds",
      stack: expect.stringContaining("RangeError"),
    });
    const lines = service.stdout.map((line) =>
      z
        .looseObject({
          event: z.string(),
          operation: z.string().optional(),
          requestId: z.string().optional(),
        })
        .parse(JSON.parse(line)),
    );
    const idsOf = (event: string, operation?: string) =>
      lines
        .filter((line) => line.event === event && (operation === undefined || line.operation === operation))
        .map(({ requestId, traceId: trace }) => [requestId, trace]);
    expect(idsOf("upstream.call", "check")).toEqual([["one-of-two", traceId]]);
    expect(idsOf("http.request")).toEqual(
      expect.arrayContaining([
        ["one-of-two", traceId],
        ["two-of-two", undefined],
      ]),
    );
    expect(lines.find(({ event }) => event === "server.listening")).not.toHaveProperty("requestId");
  } finally {
    await stub.close();
  }
});

describe("stopping", () => {
  test("serves everything for DRAIN_MS, so that balancers can notice, then finishes what is in flight and accepts nothing new", async () => {
    const { sandbox, env } = await here.upstream();
    const service = here.start({ ...env, NODE_ENV: "production", DRAIN_MS: "1500" });
    await service.listening;
    await until(() => callsOf(sandbox) >= 3, "the last startup call");
    sandbox.control.setBehaviour({ afterMs: 2500 });
    const slow = service.ask("/v1/availability?domain=kabul.af");
    await until(() => callsOf(sandbox, CHECK) === 1, "the call");
    const ended = service.stop();
    await until(() => service.stdout.some((line) => line.includes('"server.stopping"')), "the stop");
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([503, { status: "draining" }]);
    const cart = { method: "POST", body: { items: [{ domain: "herat.af", action: "renewal" }] } };
    for (const [path, question] of [
      ["/livez", {}],
      ["/v1/prices", {}],
      ["/staff", {}],
      ["/v1/quotes", cart],
    ] as const) {
      const { status, headers } = await service.ask(path, question);
      expect([path, status, headers["connection"]]).toEqual([path, 200, "close"]);
    }
    expect(await slow).toMatchObject({ status: 200, body: { status: "available" } });
    expect(await ended).toBe(0);
    await expect(service.ask("/livez")).rejects.toThrow();
    expect(service.stdout.at(-1)).toContain("server.stopped");
  });

  test("while it still starts, exits with 0 as well", async () => {
    let isStarting = false;
    const silentRedis = createServer(() => {
      isStarting = true;
    }).listen(0, "127.0.0.1");
    await once(silentRedis, "listening");
    const { port } = z.object({ port: z.int() }).parse(silentRedis.address());
    const { env } = await here.upstream();
    const service = here.start({ ...env, REDIS_URL: `redis://127.0.0.1:${port}` });
    await until(() => isStarting, "the connection to Redis");
    expect(service.stdout.join("\n")).not.toContain("listening");
    expect(await service.stop()).toBe(0);
    expect(service.stdout.at(-1)).toContain("server.stopped");
    silentRedis.close();
  });

  test("waits at most SHUTDOWN_GRACE_MS: for calls, whose requests are refused and streams ended then, for clients that never finish theirs, and for a log without a reader", async () => {
    const { sandbox, env } = await here.upstream();
    const service = here.start({ ...env, SHUTDOWN_GRACE_MS: "300" });
    const port = await service.listening;
    service.child.stdout?.destroy();
    await until(() => callsOf(sandbox) >= 3, "the last startup call");
    for (let n = 0; n < 3; n += 1) expect((await service.ask("/livez")).status).toBe(200);
    sandbox.control.setBehaviour({ afterMs: 3000 });
    const answers = ["/v1/availability?domain=kabul.af", "/v1/search?q=herat"].map((path) =>
      service.ask(path),
    );
    await until(() => callsOf(sandbox, CHECK) >= 2, "the calls");
    const stream = await openStream({ port }, "/v1/search?q=google");
    const unfinished = ["", "GET /livez HTTP/1.1\r\nHost: a\r\n", UNFINISHED_CART].map((text) =>
      exchange(port, text).catch(() => ""),
    );
    await service.ask("/livez");
    const ended = service.stop();
    for (const answer of answers)
      expect(await answer).toMatchObject({ status: 503, body: { code: "shutting_down", retryAfter: 1 } });
    expect((await stream.whole()).at(-1)).toMatchObject({ event: "done", data: { complete: false } });
    expect(await ended).toBe(0);
    await Promise.all(unfinished);
  });
});

test("after a restart the saved prices are shown even if the upstream fails, and premium names are still known; what is saved is only its owner's, and names nobody", async () => {
  const { sandbox, env } = await here.upstream();
  const stateDir = join(here.folder, "state");
  const savedNames = (): string[] =>
    readdirSync(stateDir).filter((file) => /^name-kinds\..*json$/.test(file));
  const first = here.start(env);
  await first.listening;
  await until(() => existsSync(join(stateDir, "prices.json")), "the save of the prices");
  expect(callsOf(sandbox, PRICING)).toBe(2);
  expect((await first.ask("/v1/availability?domain=gold.af")).body).toMatchObject({ premium: true });
  await until(() => savedNames().length > 0, "the save of the name");
  const before = await first.ask("/v1/prices");
  expect(await first.stop()).toBe(0);

  const { key, secret } = sandbox.credential();
  expect(statSync(stateDir).mode & 0o077).toBe(0);
  for (const name of readdirSync(stateDir, { recursive: true, encoding: "utf8" })) {
    const file = join(stateDir, name);
    expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
    if (statSync(file).isFile())
      expect(readFileSync(file, "latin1")).not.toMatch(new RegExp(`${key}|${secret}|gold`));
  }

  sandbox.control.setFault("quote", { fault: "status-500" });
  const second = here.start({ ...env, QUOTA_COLD_START: "assume-spent" });
  await second.listening;
  const after = await second.ask("/v1/prices");
  expect([after.status, after.body]).toEqual([200, before.body]);
  expect(after.headers["etag"]).toBe(before.headers["etag"]);
  // The record of the window was kept as well: the second process knows what the first one spent.
  expect((await second.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
  const items = [{ domain: "gold.af", action: "renewal", years: 1 }];
  expect((await second.ask("/v1/quotes", { method: "POST", body: { items } })).body).toMatchObject({
    code: "upstream_contract",
    detail: expect.stringContaining("premium name"),
  });
});
