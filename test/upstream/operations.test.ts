/** The client against an upstream that misbehaves in every way: it fails in time, with our own errors, and the next call succeeds. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { parseDomainName } from "../../src/domain-name.js";
import type { ErrorCode } from "../../src/errors.js";
import { serving, traceIn } from "../../src/request-ids.js";
import type { Upstream } from "../../src/upstream/operations.js";
import { createTransport } from "../../src/upstream/transport.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { freePort } from "../support/free-port.js";
import {
  ACTIVE,
  ask,
  AVAILABLE,
  type Bench,
  createBench,
  expectNothingRevealed,
  KABUL,
  refusalOf,
} from "./support/bench.js";
import { answer, flood, head, json, type Play, startStub, type Stub, success } from "./support/stub.js";

const MIB = 1024 * 1024;
const PRICED = { status: "available", wholesale: { kind: "wholesale", amount: "12.34", currency: "USD" } };

let stub: Stub;

beforeAll(async () => {
  stub = await startStub(success(AVAILABLE));
});

beforeEach(() => {
  stub.forget();
});

afterAll(() => stub.close());

async function check(upstream: Upstream): Promise<unknown> {
  return (await upstream.check(ask(), KABUL, 1)).value;
}

interface BadAnswer {
  readonly code: ErrorCode;
  readonly timeoutMs?: number;
  readonly play: Play;
}

/** The call fails with this code and without revealing what was in the answer, and the next call succeeds. */
async function expectFailure({ code, timeoutMs = 3000, play }: BadAnswer): Promise<Bench> {
  const bench = createBench({ baseUrl: stub.url, timeoutMs });
  stub.next(play);
  const error = await refusalOf(check(bench.upstream));
  expect(error.code).toBe(code);
  expectNothingRevealed(error, bench.lines);
  expect(bench.upstream.health()).toMatchObject({ lastSuccessAt: null });
  expect(bench.upstream.health().lastFailureAt).not.toBeNull();
  await expect(check(bench.upstream)).resolves.toEqual(PRICED);
  expect(bench.upstream.health().lastSuccessAt).not.toBeNull();
  return bench;
}

describe("a request", () => {
  const operations: [string, (upstream: Upstream) => Promise<unknown>, string, string, string][] = [
    [
      "a check",
      (upstream) => upstream.check(ask(), KABUL, 2),
      "POST",
      "/api/v1/domains/check",
      '{"domain":"kabul.af","years":2}',
    ],
    [
      "a quote",
      (upstream) => upstream.quote(ask(), { tld: ".com.af", action: "renewal", years: 3 }),
      "POST",
      "/api/v1/pricing",
      '{"tld":".com.af","action":"renewal","years":3}',
    ],
    ["the list", (upstream) => upstream.domains(ask()), "GET", "/api/v1/domains", ""],
    [
      "one domain",
      (upstream) => upstream.domain(ask(), parseDomainName("کابل.af", [".af"], "domain")),
      "GET",
      "/api/v1/domains/xn--mgbc8fxs.af",
      "",
    ],
    ["the balance", (upstream) => upstream.balance(ask()), "GET", "/api/v1/account/balance", ""],
    ["the tier", (upstream) => upstream.tier(ask()), "GET", "/api/v1/account/tier", ""],
  ];

  test.each(operations)(
    "for %s has the documented method, path and body, and exactly the expected headers",
    async (_what, call, method, path, body) => {
      const { upstream } = createBench({ baseUrl: stub.url });
      stub.next(json({ success: false }));
      expect((await refusalOf(call(upstream))).code).toBe("upstream_failed");
      const [seen] = stub.seen;
      expect(stub.seen).toHaveLength(1);
      expect(seen).toMatchObject({ method, path, body });
      expect(Object.fromEntries(seen?.headers ?? [])).toEqual({
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": "af-storefront",
        "x-service-key": ACTIVE.key,
        "x-service-secret": ACTIVE.secret,
        host: new URL(stub.url).host,
        connection: "close",
        ...(method === "POST" && {
          "content-type": "application/json",
          "content-length": String(body.length),
        }),
      });
    },
  );

  test.each([".", "../account/balance", "a?b"])(
    "with a path that would be normalized is never sent (%j)",
    async (ascii) => {
      const { upstream, lines } = createBench({ baseUrl: stub.url });
      const error = await refusalOf(upstream.domain(ask(), { ...KABUL, ascii }));
      expect(error.code).toBe("internal");
      expectNothingRevealed(error, lines);
      expect(stub.seen).toHaveLength(0);
    },
  );

  test("isn't sent once its permit has expired, and no connection is made for it", async () => {
    let answered = 0;
    const transport = createTransport({ baseUrl: stub.url, timeoutMs: 2000, clock: systemClock });
    const send = (isValid: boolean) =>
      transport.send(
        { role: "active", ...ACTIVE, fingerprint: "abc" },
        { method: "GET", path: "/api/v1/account/tier" },
        { isValid: () => isValid, answered: () => (answered += 1) },
      );
    await expect(send(false)).rejects.toMatchObject({ code: "upstream_timeout" });
    expect([stub.sockets.length, answered]).toEqual([0, 0]);
    await send(true);
    expect([stub.sockets.length, answered]).toEqual([1, 1]);
  });

  test("has its own connection", async () => {
    const { upstream } = createBench({ baseUrl: stub.url });
    const keepAlive = json({ success: true, data: AVAILABLE }, 200, {
      Connection: "keep-alive",
      "Keep-Alive": "timeout=600",
    });
    stub.next(keepAlive, keepAlive, keepAlive);
    for (let call = 0; call < 3; call += 1) await check(upstream);
    expect(stub.sockets).toHaveLength(3);
    expect(stub.seen).toHaveLength(3);
  });

  test("never uses a proxy from the environment", async () => {
    const recorder = await startStub(success(AVAILABLE));
    const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = recorder.url;
    try {
      await expect(check(createBench({ baseUrl: stub.url }).upstream)).resolves.toEqual(PRICED);
      const https = createBench({ baseUrl: stub.url.replace("http:", "https:"), timeoutMs: 200 });
      expect((await refusalOf(check(https.upstream))).code).toMatch(/^upstream_(failed|timeout)$/);
      expect(recorder.sockets).toHaveLength(0);
    } finally {
      for (const [at, name] of names.entries()) {
        const value = before[at];
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      await recorder.close();
    }
  });
});

describe("a valid traceparent", () => {
  const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
  const PARENT_ID = "00f067aa0ba902b7";

  test.each([
    [`00-${TRACE_ID}-${PARENT_ID}-01`, true],
    [`00-${TRACE_ID}-${PARENT_ID}-00`, false],
    [`cc-${TRACE_ID}-${PARENT_ID}-01-what-the-future-will-be-like`, true],
  ])("such as %s is read", (field, isSampled) => {
    expect(traceIn(field)).toEqual({ id: TRACE_ID, isSampled });
  });

  test.each([
    undefined,
    "",
    `00-${TRACE_ID}-${PARENT_ID}-01-more`,
    `00-${"0".repeat(32)}-${PARENT_ID}-01`,
    `00-${TRACE_ID}-${"0".repeat(16)}-01`,
    `ff-${TRACE_ID}-${PARENT_ID}-01`,
    `00-${TRACE_ID}-${PARENT_ID}-01\n`,
  ])("isn't %j, which is ignored", (field) => {
    expect(traceIn(field)).toBeNull();
  });

  test("is continued upstream with a parent id of our own, with the request's id", async () => {
    const { upstream } = createBench({ baseUrl: stub.url });
    for (const flags of ["01", "00", "01"]) {
      const ids = { requestId: "r-1", trace: traceIn(`00-${TRACE_ID}-${PARENT_ID}-${flags}`) };
      await serving(ids, () => check(upstream));
    }
    const sent = stub.seen.map(({ headers }) => headers.get("traceparent") ?? "");
    const form = new RegExp(`^00-${TRACE_ID}-([0-9a-f]{16})-(0[01])$`);
    expect(sent.map((field) => form.exec(field)?.[2])).toEqual(["01", "00", "01"]);
    expect(new Set([PARENT_ID, ...sent.map((field) => form.exec(field)?.[1])]).size).toBe(4);
    expect(stub.seen[0]?.headers.get("x-request-id")).toBe("r-1");
  });
});

describe("an upstream that breaks the rules", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
  });
  afterAll(() => sandbox.close());

  test.each<[string, ErrorCode]>([
    ["silence-before-head", "upstream_timeout"],
    ["silence-in-body", "upstream_timeout"],
    ["drip-body", "upstream_timeout"],
    ["switching-protocols", "upstream_timeout"],
    ["reset-before-head", "upstream_failed"],
    ["reset-in-body", "upstream_failed"],
    ["end-in-body", "upstream_failed"],
    ["no-http", "upstream_failed"],
    ["headers-endless", "upstream_failed"],
    ["length-short", "upstream_failed"],
    ["html-200", "upstream_contract"],
    ["json-truncated", "upstream_contract"],
    ["gzip-truncated", "upstream_contract"],
  ])("by %s causes %s, and the next call succeeds", async (fault, code) => {
    const { upstream, answered } = createBench({
      baseUrl: sandbox.url,
      timeoutMs: code === "upstream_timeout" ? 200 : 3000,
      credential: sandbox.credential(),
    });
    sandbox.control.setFault("check", { fault, calls: 1, ms: 50 });
    expect((await refusalOf(check(upstream))).code).toBe(code);
    await expect(check(upstream)).resolves.toMatchObject({ status: "available" });
    expect(answered).toEqual([code === "upstream_contract", true]);
  });

  test("and doesn't listen is a failure", async () => {
    const { upstream, lines } = createBench({ baseUrl: `http://127.0.0.1:${await freePort()}` });
    const error = await refusalOf(check(upstream));
    expect(error.code).toBe("upstream_failed");
    expectNothingRevealed(error, lines);
  });
});

describe("a body", () => {
  test("that is a gzip bomb is rejected without using much memory", async () => {
    const bomb = gzipSync(Buffer.alloc(32 * MIB, 0x20), { level: 1 });
    expect(bomb.length).toBeLessThan(MIB);
    const before = process.memoryUsage();
    await expectFailure({
      code: "upstream_contract",
      play: answer(200, bomb, { "Content-Encoding": "gzip" }),
    });
    const after = process.memoryUsage();
    expect(after.arrayBuffers + after.external - before.arrayBuffers - before.external).toBeLessThan(
      16 * MIB,
    );
  });

  test.each<[string, string]>([
    ["with its length", head(200, { "Content-Length": String(50 * MIB) })],
    ["without a length", head(500, {})],
  ])("of 50 MB %s is rejected early", async (_what, first) => {
    await expectFailure({ code: "upstream_failed", play: flood(50 * MIB, first) });
    expect(stub.sockets[0]?.bytesWritten).toBeLessThan(16 * MIB);
  });
});

describe("a status", () => {
  test.each([201, 302, 304, 404, 503])("of %i is a failure, whatever the body", async (status) => {
    const body = status === 304 ? "" : JSON.stringify({ success: true, data: AVAILABLE });
    const bench = await expectFailure({ code: "upstream_failed", play: answer(status, body) });
    expect(bench.pausesMs).toEqual([]);
    expect(bench.credentials.states()).toMatchObject([{ refused: false }]);
  });

  test.each<[string, number, Readonly<Record<string, string>>]>([
    ["a number of seconds", 7000, { "Retry-After": "7" }],
    ["a date", 30_000, { "Retry-After": "Fri, 20 Mar 2026 00:00:30 GMT" }],
    ["nothing", 60_000, {}],
  ])("of 429 with %s in Retry-After pauses the credential for %i ms", async (_what, pauseMs, headers) => {
    const { upstream, pausesMs, lines, answered, credentials } = createBench({
      baseUrl: stub.url,
      clock: new FakeClock(Date.UTC(2026, 2, 20)),
      standby: true,
    });
    stub.next(answer(429, "marrow", headers));
    const error = await refusalOf(check(upstream));
    expect(error).toMatchObject({ code: "quota_exhausted", retryAfterMs: pauseMs });
    expect(pausesMs).toEqual([pauseMs]);
    expect(answered).toEqual([true]);
    expect(stub.seen).toHaveLength(1);
    expect(credentials.states()).toMatchObject([{ refused: false }, { refused: false }]);
    expectNothingRevealed(error, lines);
  });
});

describe("a rate limit", () => {
  test("is recognized in a compressed 403, and pauses the credential but doesn't refuse it", async () => {
    const { upstream, pausesMs, credentials, lines } = createBench({ baseUrl: stub.url });
    const body = JSON.stringify({ success: false, error: { code: "throttled", message: "marrow" } });
    stub.next(answer(403, gzipSync(body), { "Content-Encoding": "gzip" }));
    const error = await refusalOf(upstream.domain(ask(), KABUL));
    expect(error).toMatchObject({ code: "quota_exhausted", retryAfterMs: 60_000 });
    expectNothingRevealed(error, lines);
    expect(pausesMs).toEqual([60_000]);
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("has its Retry-After date compared with the upstream's own Date, if it sends one", async () => {
    const { upstream, pausesMs } = createBench({
      baseUrl: stub.url,
      clock: new FakeClock(Date.UTC(2030, 0)),
    });
    const until = "Fri, 20 Mar 2026 00:00:30 GMT";
    stub.next(
      answer(429, "", { "Retry-After": until, Date: "Fri, 20 Mar 2026 00:00:00 GMT" }),
      answer(429, "", { "Retry-After": until, Date: "marrow" }),
    );
    await refusalOf(check(upstream));
    await refusalOf(check(upstream));
    expect(pausesMs).toEqual([30_000, 1000]);
  });
});

describe("an answer with the credential in a text that is shown", () => {
  const escaped = (text: string): string =>
    text.replaceAll(/./g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);

  test("violates the contract", async () => {
    const data = (text: string) => ({ current_tier: `Tier ${text}` });
    const credential = { key: "Active-Key-7F3A", secret: "S3cret-0F-Our-Own" };
    const { upstream, lines } = createBench({ baseUrl: stub.url, credential });
    for (const part of [credential.key, credential.secret]) {
      const plain = JSON.stringify({ success: true, data: data(part) });
      for (const body of [plain, plain.replace(part, escaped(part))]) {
        stub.next(answer(200, body));
        const error = await refusalOf(upstream.tier(ask()));
        expect(error.code).toBe("upstream_contract");
        expect(lines.join().toLowerCase()).not.toContain(part.toLowerCase());
      }
    }
    stub.next(json({ success: true, data: data("ordinary-text") }));
    expect(JSON.stringify(await upstream.tier(ask()))).toContain("ordinary-text");
  });

  test("doesn't confirm a visitor's guess of the key, because a check has no such text", async () => {
    const { upstream } = createBench({ baseUrl: stub.url, credential: { ...ACTIVE, key: KABUL.ascii } });
    await expect(check(upstream)).resolves.toEqual(PRICED);
  });
});
