/** Hostile and unusual clients: every well-formed request is still answered, in order, and no client gets more than its share. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { comparable, play, playAlone, type Sent, sequences } from "../support/pipelining.js";
import { answersIn, CLOSE, exchange, get, type RawAnswer } from "../support/raw.js";
import {
  type Answer,
  bearer,
  problemOf,
  type Question,
  type Service,
  startService,
  until,
  withService,
} from "../support/service.js";
import { SMALL_SHOP } from "../support/retail.js";
import { healthCheck, overviewOf } from "../support/staff.js";
import { readFileSync } from "node:fs";
import { validateHeaderValue } from "node:http";
import { parseDomainName, parseSearchTerm } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { idnaVectors } from "../names/idna-vectors.js";

const WEBSITE = "https://www.example.af";
const KNOWN = "/v1/availability?domain=herat.af";
/** With this field, which has no meaning here, Express answers, and logs the request. */
const VIA_EXPRESS = { "Last-Event-ID": "none" };

let service: Service;
/** With a low limit for each client. */
let strict: Service;
beforeAll(async () => {
  const env = { CORS_ORIGINS: WEBSITE, TRUST_PROXY_HOPS: "1" };
  service = await startService({ clock: new FakeClock(), env });
  strict = await startService({
    clock: new FakeClock(),
    retail: SMALL_SHOP,
    env: { ...env, CLIENT_RATE_PER_MINUTE: "2", SECURITY_CONTACT: "mailto:security@example.af" },
  });
  await service.ask(KNOWN);
  await until(() => service.calls() === 30, "the last startup call");
});
afterAll(async () => {
  await service.close();
  await strict.close();
});

const statusesOf = (text: string): number[] => answersIn(text).map(({ status }) => status);

/** Parses an answer as a problem and checks everything that applies to all problems. */
function problemIn({ status, headers, body }: RawAnswer) {
  return problemOf({ status, headers, text: body, body: JSON.parse(body) });
}

/** The lines about an event, but for those before the given length of the log. */
function logged(event: string, since = 0): readonly Readonly<Record<string, unknown>>[] {
  return service.log
    .slice(since)
    .filter((line) => line.includes(`"event":"${event}"`))
    .map((line) => z.record(z.string(), z.unknown()).parse(JSON.parse(line)));
}

describe("requests pipelined on one connection", () => {
  const alone = new Map<string, Promise<unknown>>();
  function answerAlone(sent: Sent): Promise<unknown> {
    const known = alone.get(sent.bytes) ?? playAlone(service.port, sent).then(comparable);
    alone.set(sent.bytes, known);
    return known;
  }

  test("by several clients at once, in any order and split anywhere, get the same answers as each alone", async () => {
    const clients = sequences();
    await Promise.all(
      clients.map(async (sequence) => {
        const answers = (await play(service.port, sequence)).map(comparable);
        expect(answers).toEqual(await Promise.all(sequence.sent.map(answerAlone)));
      }),
    );
  });

  test("are answered up to the hundredth, and then the connection is closed", async () => {
    const paths = ["/livez", "/v1/prices", KNOWN, "/nothing"];
    const bodies = [/"live"/, /"prices"/, /"herat\.af"/, /"not_found"/];
    const pipelined = (count: number): string[] =>
      Array.from({ length: count }, (_, at) => get(paths[at % 4] ?? "", at === count - 1 ? CLOSE : {}));
    const answers = answersIn(await exchange(service.port, pipelined(100).join("")));
    expect(answers).toHaveLength(100);
    for (const [at, { body }] of answers.entries())
      expect([at, body]).toEqual([at, expect.stringMatching(bodies[at % 4] ?? /-/)]);
    // What isn't sent by then is lost.
    const text = await exchange(service.port, pipelined(150).join("")).catch(() => "");
    expect(text.split("HTTP/1.1 ").length - 1).toBeLessThanOrEqual(100);
    expect((await service.ask("/livez")).status).toBe(200);
  });
});

describe("malformed input", () => {
  const post = "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n";
  test.each([
    ["text that isn't HTTP", "hello\r\n\r\n"],
    ["two Content-Length headers", `${post}Content-Length: 2\r\n\r\nx`],
    ["Content-Length and Transfer-Encoding", `${post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a header without a name", "GET /livez HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"],
    ["a bare line feed", "GET /livez HTTP/1.1\nHost: a\n\n"],
  ])(
    "such as %s is answered and logged after the requests before it, and ends the connection",
    async (_what, garbage) => {
      const before = service.log.length;
      const slow = get("/v1/availability?domain=asked-just-now.af");
      const answers = answersIn(
        await exchange(service.port, get(KNOWN, VIA_EXPRESS).repeat(2) + slow + garbage),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 400]);
      for (const { body } of answers.slice(0, 2)) expect(body).toMatch(/^\{"domain":"herat\.af"/);
      const [last] = answers.slice(-1);
      expect(last && problemIn(last).code).toBe("invalid_request");
      expect(last?.headers["connection"]).toBe("close");
      const lines = () => logged("http.request", before);
      const id = last?.headers["x-request-id"];
      await until(() => lines().some(({ status, requestId }) => status === 400 && requestId === id));
      expect(lines().filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    },
  );

  test("in the body of a request is answered as part of this request", async () => {
    const post =
      "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    const [first, rejected, ...others] = answersIn(await exchange(service.port, [get(KNOWN) + post]));
    expect([first?.status, first?.headers["connection"], others]).toEqual([200, "keep-alive", []]);
    expect(rejected && problemIn(rejected).code).toBe("invalid_request");
    expect(rejected?.headers["connection"]).toBe("close");
  });

  test("in the body of a request that waits for the upstream ends the wait", async () => {
    const request =
      "GET /v1/availability?domain=asked-with-a-body.af HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    expect(statusesOf(await exchange(service.port, request))).toEqual([400]);
    expect(logged("internal")).toEqual([]);
  });

  test("after a request with Connection: close isn't answered", async () => {
    expect(statusesOf(await exchange(service.port, `${get(KNOWN, CLOSE)}hello\r\n\r\n`))).toEqual([200]);
  });

  test("with more than 16 kB of headers is answered with a 431", async () => {
    const long = get("/livez", { "X-Long": "x".repeat(20_000) });
    const [good, rejected, ...others] = answersIn(await exchange(service.port, get("/livez") + long));
    expect([good?.status, rejected?.status, others]).toEqual([200, 431, []]);
    expect(rejected && problemIn(rejected).code).toBe("headers_too_large");
  });
});

describe("a request", () => {
  test("without a Host is rejected with a problem, unless it is HTTP/1.0", async () => {
    const [rejected, ...others] = answersIn(
      await exchange(service.port, "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n"),
    );
    expect(others).toEqual([]);
    expect(rejected && problemIn(rejected)).toMatchObject({ code: "invalid_request" });
    expect(statusesOf(await exchange(service.port, "GET /livez HTTP/1.0\r\n\r\n"))).toEqual([200]);
  });

  test.each([
    ["/v1/prices", 2_100],
    ["/livez", 0],
  ])("to %s with a second Host after %i other headers is rejected", async (path, others) => {
    const text = `GET ${path} HTTP/1.1\r\nHost: a\r\n${"a:\r\n".repeat(others)}Host: b\r\nConnection: close\r\n\r\n`;
    const [rejected] = answersIn(await exchange(service.port, text));
    expect(rejected && problemIn(rejected).code).toBe("invalid_request");
  });

  test("with an unknown Expect is rejected", async () => {
    for (const Expect of ["foo", "100-continue, foo"])
      for (const path of ["/livez", KNOWN]) {
        const answers = answersIn(await exchange(service.port, get(path, { Expect, ...CLOSE })));
        const [rejected, ...others] = answers.filter(({ status }) => status !== 100);
        expect(others).toEqual([]);
        expect(rejected && problemIn(rejected).code).toBe("expectation_failed");
      }
  });

  test("with a body gets its 100 Continue", async () => {
    const body = '{"items":[{"domain":"herat.af","action":"registration","years":1}]}';
    const post = `POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-Continue\r\n`;
    const pieces = [`${post}Connection: close\r\n\r\n`, body];
    const answers = answersIn(await exchange(service.port, pieces, { invited: true }));
    expect(answers.map(({ status, body }) => [status, body.slice(0, 9)])).toEqual([
      [100, ""],
      [200, '{"items":'],
    ]);
  });

  test("that expects a 100 Continue before its turn can't disturb other answers", async () => {
    const text = get("/v1/availability?domain=slow-one.af") + get("/v1/prices", { Expect: "100-continue" });
    const answers = answersIn(await exchange(service.port, text + get("/livez", CLOSE)));
    expect(answers[0]?.body).toMatch(/slow-one\.af/);
    expect(JSON.parse(answers[1]?.body ?? "")).toMatchObject({ prices: expect.any(Array) });
  });

  test("with a second parameter after a thousand separators is read to the end", async () => {
    for (const path of ["/v1/prices?tld=.af", KNOWN, "/v1/quotes?tld=.af&action=renewal"]) {
      const answer = await service.ask(`${path}${"&".repeat(1_000)}bogus=1`);
      expect(problemOf(answer).errors).toEqual([expect.objectContaining({ field: "bogus" })]);
    }
  });

  test("with CONNECT is rejected after the answers to earlier requests", async () => {
    const answers = answersIn(
      await exchange(service.port, `${get(KNOWN)}CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n`),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 405]);
    const [, rejected] = answers;
    expect(rejected && problemIn(rejected).code).toBe("method_not_allowed");
  });

  test("to upgrade the connection is answered like any other", async () => {
    const upgrade = { Connection: "Upgrade, close", Upgrade: "websocket", "Sec-WebSocket-Version": "13" };
    expect(statusesOf(await exchange(service.port, get(KNOWN, upgrade)))).toEqual([200]);
  });
});

describe("a body that is larger than its route reads", () => {
  const head = (...fields: readonly string[]): string =>
    ["POST /v1/quotes HTTP/1.1", "Host: a", "Content-Type: application/json", ...fields, "", ""].join("\r\n");

  /** Sends `piece` again and again, and after a while reads the answer. */
  function upload(first: string, piece: string): Promise<string> {
    return new Promise((done, failed) => {
      const socket = connect(service.port, "127.0.0.1");
      socket.pause().setEncoding("latin1").write(first);
      const sending = setInterval(() => socket.write(piece), 5);
      setTimeout(() => socket.resume(), 200);
      socket.once("error", failed).once("data", (text: string) => {
        clearInterval(sending);
        socket.destroy();
        done(text);
      });
    });
  }

  test.each([
    ["declares its size", head("Content-Length: 99999999"), "x".repeat(10_000)],
    ["sends it in chunks", head("Transfer-Encoding: chunked"), `2710\r\n${"x".repeat(10_000)}\r\n`],
    ["compresses it", head("Content-Length: 99999999", "Content-Encoding: gzip"), "x".repeat(10_000)],
  ])(
    "is refused at once, and a client that %s and is still sending can read why",
    async (_, first, piece) => {
      const before = service.log.length;
      const [refused, ...others] = answersIn(await upload(first, piece));
      expect(others).toEqual([]);
      expect(refused && problemIn(refused)).toMatchObject({
        code: "payload_too_large",
        detail: "The body can be at most 32 kB.",
      });
      const lines = logged("http.request", before);
      expect(lines.map(({ status, code }) => [status, code])).toEqual([[413, "payload_too_large"]]);
      expect(logged("internal")).toEqual([]);
    },
  );
});

test("a client that has finished sending in the middle of a request gets the answers to earlier requests", async () => {
  const post =
    "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
  expect(statusesOf(await exchange(service.port, get(KNOWN) + post, { end: true }))).toEqual([200]);
  expect(statusesOf(await exchange(service.port, `${get(KNOWN)}GET /liv`, { end: true }))).toEqual([
    200, 400,
  ]);
});

describe("a client's address", () => {
  const remaining = async (forwarded: string, at = service): Promise<number> => {
    const { headers } = await at.ask("/v1/quotes?tld=.af&action=renewal", {
      headers: { "X-Forwarded-For": forwarded },
    });
    return Number(/r=(\d+)/.exec(headers["ratelimit"] ?? "")?.[1]);
  };

  test.each<[string, ...string[]]>([
    ["203.0.113.7", "203.0.113.7:1024", "203.0.113.7:65535", "::ffff:203.0.113.7", "[::ffff:203.0.113.7]:80"],
    [
      "2001:db8:1:2::1",
      "[2001:db8:1:2::1]",
      "[2001:db8:1:2::1]:443",
      "2001:DB8:1:02:ffff::9",
      "2001:db8:1:2::1%eth0",
    ],
    ["nonsense", "x".repeat(15_000), "203.0.113.300", "010.1.1.1", "203.0.113.7:port", "[::1", "unknown"],
  ])("identifies it however it is written: %s", async (...forms) => {
    const counts = [];
    for (const form of forms) counts.push(await remaining(form));
    const [first = NaN] = counts;
    expect(counts).toEqual(forms.map((_, index) => first - index));
  });

  const withHops = async (hops: number, act: (service: Service) => Promise<void>): Promise<void> => {
    await withService({ retail: SMALL_SHOP, env: { TRUST_PROXY_HOPS: String(hops) } }, act);
  };
  /** What `/health`, staff and the log say after fifty requests with such an X-Forwarded-For. */
  async function reportedAfter(
    { ask, log }: Service,
    forwarded: (n: number) => string | null,
    path = "/problems/internal",
  ): Promise<readonly [string | undefined, string, number]> {
    for (let n = 0; n < 50; n += 1) {
      const value = forwarded(n);
      await ask(path, {
        headers: { ...bearer("read"), ...(value !== null && { "X-Forwarded-For": value }) },
      });
    }
    const status = (await healthCheck({ ask }, "proxy"))?.status;
    const { proxy } = await overviewOf({ ask });
    return [status, proxy, log.filter((line) => line.includes("proxy.misconfigured")).length];
  }
  const visitor = (n: number): string => `192.0.2.${n}`;

  test("can't be chosen when no proxy is trusted; if there is one, health, staff and the log say so, with what to set", () =>
    withHops(0, async (direct) => {
      const first = await remaining("203.0.113.5", direct);
      expect(await remaining("203.0.113.6", direct)).toBe(first - 1);
      expect(await reportedAfter(direct, (n) => (n % 2 > 0 ? visitor(n) : null))).toEqual([
        "pass",
        "fits",
        0,
      ]);
      expect(await reportedAfter(direct, visitor)).toEqual(["warn", "more", 1]);
      expect(direct.log.find((line) => line.includes("proxy.misconfigured"))).toContain(
        "Set TRUST_PROXY_HOPS to the number of proxies",
      );
    }));

  test("is the last one forwarded if one proxy is trusted; if there are more or none, health, staff and the log say so until it is right again", () =>
    withHops(1, async (behindOne) => {
      expect(await reportedAfter(behindOne, visitor)).toEqual(["pass", "fits", 0]);
      expect(await reportedAfter(behindOne, () => null, "/metrics")).toEqual(["pass", "fits", 0]);
      expect(await reportedAfter(behindOne, (n) => `${visitor(n)}, 198.51.100.1`)).toEqual([
        "warn",
        "more",
        1,
      ]);
      const fewer = (n: number): string | null => (n % 4 > 1 ? visitor(n) : n % 4 > 0 ? "unknown" : null);
      expect(await reportedAfter(behindOne, fewer)).toEqual(["warn", "fewer", 2]);
      expect(await reportedAfter(behindOne, visitor)).toEqual(["pass", "fits", 2]);
    }));

  test("is the second to last one forwarded if two proxies are trusted", () =>
    withHops(2, async (behindTwo) => {
      const first = await remaining("6.6.6.6, 198.51.100.1:99, 10.0.0.1", behindTwo);
      expect(await remaining("7.7.7.7, 198.51.100.1:98, 10.0.0.2", behindTwo)).toBe(first - 1);
    }));
});

describe("answers", () => {
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    service.ask(path, { headers: { "X-Forwarded-For": "203.0.113.9", "X-Request-Id": "mine", ...headers } });

  test.each(["/v1/prices", "/v1/prices?tld=.af", "/docs/assets/swagger-ui.css"])(
    "to %s can be stored by shared caches, and reveal nothing about the client",
    async (path) => {
      const answer = await ask(path);
      const etag = answer.headers["etag"] ?? "";
      const again = await ask(path, { "If-None-Match": etag });
      const viaExpress = await ask(path, { Accept: "application/json;q=0.9, */*;q=0.1" });
      expect([answer.status, again.status, viaExpress.status]).toEqual([200, 304, 200]);
      expect((await ask("/v1/prices?tld=.com.af", { "If-None-Match": etag })).status).toBe(200);
      for (const { headers } of [answer, again, viaExpress]) {
        expect(headers["cache-control"]).toMatch(/^public/);
        for (const name of ["x-request-id", "ratelimit", "ratelimit-policy"])
          expect(headers).not.toHaveProperty(name);
      }
    },
  );

  test("that report errors can't be stored, and have the request id and the client's limit", async () => {
    const { headers } = await ask("/v1/prices?tld=x");
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "x-request-id": "mine",
      ratelimit: expect.any(String),
    });
  });

  test("have a partition key for the limit that can't be computed from an address", async () => {
    const { headers } = await ask("/v1/quotes?tld=.af&action=renewal");
    const [, encoded = ""] = /pk=:([^:]+):/.exec(headers["ratelimit-policy"] ?? "") ?? [];
    const key = Buffer.from(encoded, "base64").toString();
    expect(key).toMatch(/^[0-9a-f]{12}$/);
    expect(key).not.toBe(createHash("sha256").update("203.0.113.9").digest("hex").slice(0, 12));
  });
});

describe("If-None-Match", () => {
  const PATHS = [
    "/v1/prices",
    "/v1/quotes?tld=.af&action=renewal",
    "/.well-known/jwks.json",
    "/docs",
    "/staff",
    "/problems/internal",
    "/openapi.json",
  ];

  test("gets a 304 from everything that can repeat, also with no-cache", async () => {
    for (const path of PATHS) {
      const coding = { "Accept-Encoding": "br" };
      const { etag = "" } = (await service.ask(path, { headers: coding })).headers;
      expect(etag).toMatch(/^"[\w-]{27}"$/);
      const headers = { ...coding, "If-None-Match": `W/${etag}`, "Cache-Control": "no-cache" };
      const { status, text, headers: given } = await service.ask(path, { headers });
      expect([path, status, text, given["etag"]]).toEqual([path, 304, "", etag]);
      const other = { ...coding, "If-None-Match": '"other"' };
      expect((await service.ask(path, { headers: other })).status).toBe(200);
    }
  });

  test("doesn't match another content coding, because each has its own ETag", async () => {
    const CODINGS = ["identity", "gzip", "br"];
    const ask = async (coding: string, more: Readonly<Record<string, string>> = {}) => {
      const { status, headers } = await service.ask("/openapi.json", {
        headers: { "Accept-Encoding": coding, ...more },
      });
      return { status, etag: headers["etag"] ?? "" };
    };
    const tags = await Promise.all(CODINGS.map(async (coding) => (await ask(coding)).etag));
    for (const [at, coding] of CODINGS.entries()) {
      const others = tags.filter((_, index) => index !== at);
      expect(await ask(coding, { "If-None-Match": others.join(", ") })).toEqual({
        status: 200,
        etag: tags[at],
      });
      expect(others).not.toContain(tags[at]);
    }
  });

  test.each(["/.well-known/jwks.json", "/v1/prices"])(
    "on %s can be sent by the website's pages, which can read the ETag",
    async (path) => {
      const { headers } = await service.ask(path, {
        headers: { Origin: WEBSITE, "Accept-Encoding": "gzip" },
      });
      expect(headers).toMatchObject({
        "access-control-allow-origin": WEBSITE,
        vary: expect.stringContaining("Origin"),
        "access-control-expose-headers": expect.stringContaining("ETag"),
      });
      const preflight = await service.ask(path, {
        method: "OPTIONS",
        headers: {
          Origin: WEBSITE,
          "Access-Control-Request-Method": "GET",
          "Access-Control-Request-Headers": "if-none-match",
        },
      });
      expect(preflight.headers["access-control-allow-headers"]).toMatch(/\bif-none-match\b/i);
    },
  );
});

describe("the client's limit", () => {
  const statusOf = async (from: string, path: string, fields: Readonly<Record<string, string>> = {}) =>
    (await strict.ask(path, { headers: { "X-Forwarded-For": from, ...fields } })).status;

  test("applies to every route of the API, which the website can read, and not to pages, documents, keys and health", async () => {
    const limited = [
      "/v1/availability?domain=.",
      "/v1/quotes?tld=.af&action=renewal",
      "/v1/nothing",
      "/v1/staff/tier",
      "/metrics",
    ];
    for (const [n, path] of limited.entries()) {
      const from = `198.51.100.${n}`;
      for (let count = 0; count < 2; count += 1) expect(await statusOf(from, path)).not.toBe(429);
      const rejected = await strict.ask(path, { headers: { "X-Forwarded-For": from, Origin: WEBSITE } });
      expect(problemOf(rejected)).toMatchObject({ code: "rate_limited", retryAfter: 60 });
      if (!/staff|metrics/.test(path))
        expect(rejected.headers).toMatchObject({ "access-control-allow-origin": WEBSITE });
    }
    for (const exempt of [
      "/",
      "/staff",
      "/docs",
      "/docs/assets/init.js",
      "/openapi.json",
      "/.well-known/jwks.json",
      "/problems/internal",
      "/livez",
      "/readyz",
      "/health",
    ])
      expect([exempt, await statusOf("198.51.100.0", exempt)]).toEqual([exempt, 200]);
    expect(await statusOf("198.51.100.0", "/nothing")).toBe(404);
  });

  test("counts requests without a Host and with an unknown Expect, too", async () => {
    const from = { "X-Forwarded-For": "198.51.100.20" };
    const statuses = [];
    for (const text of [
      get("/v1/prices", { ...from, ...CLOSE }).replace("Host: a\r\n", ""),
      get("/v1/prices", { ...from, Expect: "x", ...CLOSE }),
    ])
      for (let count = 0; count < 2; count += 1)
        statuses.push(...statusesOf(await exchange(strict.port, text)));
    expect(statuses).toEqual([400, 400, 429, 429]);
  });

  test("doesn't count finished answers that are sent again", async () => {
    await statusOf("198.51.100.30", "/v1/prices");
    for (let count = 0; count < 10; count += 1)
      expect(await statusOf("198.51.100.31", "/v1/prices")).toBe(200);
    const statuses = [];
    for (let count = 0; count < 3; count += 1)
      statuses.push(await statusOf("198.51.100.31", "/v1/availability?domain=."));
    expect(statuses).toEqual([400, 400, 429]);
  });

  test("counts each staff token by its name, and not against its address", async () => {
    const statuses = [];
    // The first address has used up its own limit.
    for (const from of ["198.51.100.0", "198.51.100.41", "198.51.100.42"])
      statuses.push(await statusOf(from, "/v1/staff/tier", bearer("read")));
    expect(statuses).toEqual([200, 200, 429]);
    expect(await statusOf("198.51.100.0", "/metrics", bearer("metrics"))).toBe(200);
  });
});

describe("wrong tokens", () => {
  const guess = (target: Service, path: string, from: string, n: number) =>
    target.ask(path, { headers: { "X-Forwarded-For": from, Authorization: `Bearer guess-${n}` } });

  test("have a limit of their own, and are each logged with the route and a hash of the client", async () => {
    const before = service.log.length;
    const statuses = new Map<number, number>();
    for (let n = 0; n < 40; n += 1) {
      const path = n % 2 === 0 ? "/metrics" : "/v1/staff/domains/kabul.af";
      const { status } = await guess(service, path, "198.51.100.66", n);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 401: 30, 429: 10 });
    const lines = logged("auth.token.wrong", before);
    expect(lines).toHaveLength(30);
    expect(new Set(lines.map(({ route }) => route))).toEqual(
      new Set(["/metrics", "/v1/staff/domains/:domain"]),
    );
    expect(new Set(lines.map(({ client }) => client)).size).toBe(1);
    expect(lines[0]).toMatchObject({ kind: "staff", client: expect.stringMatching(/^[0-9a-f]{12}$/) });
    expect(service.log.join("\n")).not.toMatch(/guess-|198\.51\.100\.66/);
  });

  test("include valid tokens without the required scope, which are logged by name", async () => {
    await service.ask("/metrics", { headers: { "X-Forwarded-For": "198.51.100.69", ...bearer("read") } });
    expect(logged("auth.scope.missing").at(-1)).toMatchObject({ token: "read", scope: "metrics" });
  });

  test("of one client block its right ones, too, but nobody else's", async () => {
    const right = (from: string) =>
      service.ask("/v1/staff/tier", { headers: { "X-Forwarded-For": from, ...bearer("read") } });
    for (let n = 0; n < 30; n += 1) await guess(service, "/metrics", "198.51.100.67", n);
    const rejected = await right("198.51.100.67");
    expect(problemOf(rejected).code).toBe("rate_limited");
    expect((await right("198.51.100.68")).status).toBe(200);
    // Endpoints that need no token remain available to it.
    expect(
      (await service.ask("/v1/prices", { headers: { "X-Forwarded-For": "198.51.100.67" } })).status,
    ).toBe(200);
  });
});

describe("security.txt", () => {
  const path = "/.well-known/security.txt";

  test("says where to report a vulnerability, and expires in about half a year", async () => {
    const { status, headers, text } = await strict.ask(path);
    expect([status, headers["content-type"]]).toEqual([200, "text/plain; charset=utf-8"]);
    expect(text).toMatch(/^Contact: mailto:security@example\.af\nExpires: \S+Z\nPreferred-Languages: en\n$/);
    const expiresAt = Date.parse(/^Expires: (.*)$/m.exec(text)?.[1] ?? "");
    const months = (expiresAt - Date.parse("2026-03-20")) / (30.4 * 24 * 3_600_000);
    expect(months).toBeGreaterThan(4.9);
    expect(months).toBeLessThan(6.1);
  });

  test("doesn't exist without a contact", async () => {
    expect(problemOf(await service.ask(path)).code).toBe("not_found");
  });
});

describe("a hostile string", () => {
  const SOLD = [".af", ".com.af", ".net.af", ".org.af"];
  const NAUGHTY = z
    .array(z.string())
    .parse(JSON.parse(readFileSync(new URL("../corpora/blns.json", import.meta.url), "utf8")));

  /** UTF-8 can't encode a lone surrogate. */
  function isSendable(text: string): boolean {
    return !/\p{Surrogate}/u.test(text);
  }

  const VECTORS = idnaVectors()
    .map(({ source }) => source)
    .filter(isSendable);
  const IDNA = VECTORS.filter((_text, index) => index % 100 === 0);
  const STRINGS = [...NAUGHTY, ...IDNA, ...IDNA.map((source) => `${source}.af`)];

  /** Each place gets a part of the strings, and each string goes to some of the places. */
  const partFor = (place: number, strings: readonly string[], parts: number): string[] =>
    strings.filter((_text, index) => (index + place) % parts === 0);

  const CONCURRENCY = 16;

  beforeAll(async () => {
    // Loads everything that the valid parts of the requests below need, so that a hostile string must have caused any further call.
    for (const years of [1, 2, 3]) await service.ask(`/v1/search?q=kabul&years=${years}`);
    await service.ask("/v1/staff/domains", { headers: bearer("read") });
  });

  function accepted(parse: () => unknown): boolean {
    try {
      parse();
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "invalid_request") return false;
      throw error;
    }
  }
  const isName = (text: string): boolean => accepted(() => parseDomainName(text, SOLD, "domain"));
  const isTerm = (text: string): boolean => accepted(() => parseSearchTerm(text, SOLD, "q"));

  type ToRequest = (text: string) => readonly [string, Question?];

  /** Sends a request with each string. Returns the responses that were neither a success nor a documented 4xx problem. */
  async function faultsOf(strings: readonly string[], toRequest: ToRequest): Promise<string[]> {
    const todo = [...strings];
    const faults: string[] = [];
    const check = (text: string, answer: Answer): void => {
      if (answer.status < 300) return;
      try {
        const { code, status } = problemOf(answer);
        if (status >= 500) faults.push(`${JSON.stringify(text)}: ${code}`);
      } catch (error) {
        faults.push(`${JSON.stringify(text)}: ${String(error)}`);
      }
    };
    const worker = async (): Promise<void> => {
      for (let text = todo.shift(); text !== undefined; text = todo.shift())
        check(text, await service.ask(...toRequest(text)));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return faults;
  }

  const enc = encodeURIComponent;
  const post = (body: unknown): Question => ({ method: "POST", body });
  const cartWith = (domain: unknown, action: unknown = "renewal", years: unknown = 1) => ({
    items: [{ domain, action, years }],
  });

  describe("a hostile string used as a name", () => {
    const places: readonly (readonly [string, (text: string) => boolean, ToRequest])[] = [
      ["domain parameter of availability", isName, (text) => [`/v1/availability?domain=${enc(text)}`]],
      ["q parameter of search", isTerm, (text) => [`/v1/search?q=${enc(text)}`]],
      ["domain of a cart item", isName, (text) => ["/v1/quotes", post(cartWith(text, "registration"))]],
      [
        "path of a staff domain",
        isName,
        (text) => [`/v1/staff/domains/${enc(text)}`, { headers: bearer("read") }],
      ],
    ];

    test.each(places.map((place, at) => [...place, at] as const))(
      "in the %s makes no call if it isn't valid",
      async (place, isValid, toRequest, at) => {
        const strings = partFor(at, STRINGS, 2 * places.length).filter(
          // With an empty path segment, the path is that of the list.
          (text) => !isValid(text) && !(place.startsWith("path") && text === ""),
        );
        expect(strings.length).toBeGreaterThan(50);
        const calls = service.calls();
        expect(await faultsOf(strings, toRequest)).toEqual([]);
        expect(service.calls()).toBe(calls);
      },
    );

    test("is answered with at most one call if it is valid", async () => {
      const names = VECTORS.filter((_text, index) => index % 6 === 0)
        .map((source) => `${source}.af`)
        .filter(isName);
      const different = new Set(names.map((text) => parseDomainName(text, SOLD, "domain").ascii));
      expect(different.size).toBeGreaterThan(20);
      const calls = service.calls();
      expect(await faultsOf(names, (text) => [`/v1/availability?domain=${enc(text)}`])).toEqual([]);
      expect(service.calls() - calls).toBeLessThanOrEqual(different.size);
      const terms = STRINGS.filter(isTerm).slice(0, 15);
      expect(await faultsOf(terms, (text) => [`/v1/search?q=${enc(text)}`])).toEqual([]);
    });
  });

  describe("a hostile string used elsewhere", () => {
    const sendable = (text: string): boolean => {
      try {
        validateHeaderValue("x-any", text);
        return true;
      } catch {
        return false;
      }
    };
    const header =
      (name: string, path = "/v1/prices"): ToRequest =>
      (text) => [path, { headers: { [name]: sendable(text) ? text : enc(text) } }];

    const places: Readonly<Record<string, ToRequest>> = {
      "years of availability": (text) => [`/v1/availability?domain=kabul.af&years=${enc(text)}`],
      "tlds of search": (text) => [`/v1/search?q=kabul&tlds=${enc(text)}`],
      "years of search": (text) => [`/v1/search?q=kabul&years=${enc(text)}`],
      "tld of prices": (text) => [`/v1/prices?tld=${enc(text)}`],
      "action of prices": (text) => [`/v1/prices?action=${enc(text)}`],
      "years of prices": (text) => [`/v1/prices?years=${enc(text)}`],
      "tld of quotes": (text) => [`/v1/quotes?action=renewal&tld=${enc(text)}`],
      "action of quotes": (text) => [`/v1/quotes?tld=.af&action=${enc(text)}`],
      "years of quotes": (text) => [`/v1/quotes?tld=.af&action=renewal&years=${enc(text)}`],
      "a parameter's name": (text) => [`/v1/availability?domain=kabul.af&${enc(text)}=1`],
      "a whole query": (text) => [`/v1/prices?${enc(text)}`],
      "a path": (text) => [`/${enc(text)}`],
      "a problem's code": (text) => [`/problems/${enc(text)}`],
      "action of a cart": (text) => ["/v1/quotes", post(cartWith("kabul.af", text))],
      "years of a cart": (text) => ["/v1/quotes", post(cartWith("kabul.af", "renewal", text))],
      "a field of a cart": (text) => ["/v1/quotes", post({ [text]: text, items: [{ [text]: text }] })],
      "a whole body": (text) => ["/v1/quotes", post(text)],
      "the pool to purge": (text) => [
        "/v1/staff/cache/purge",
        { method: "POST", headers: bearer("operate"), body: { what: text } },
      ],
      "x-request-id": header("x-request-id"),
      Accept: header("accept"),
      Authorization: header("authorization", "/v1/staff/balance"),
      "a bearer token": (text) => ["/metrics", { headers: { Authorization: `Bearer ${enc(text)}` } }],
      Origin: header("origin"),
      "If-None-Match": header("if-none-match"),
      "Content-Type": (text) => [
        "/v1/quotes",
        { method: "POST", headers: { "Content-Type": sendable(text) ? text : enc(text) }, body: "{}" },
      ],
    };

    test.each(Object.entries(places).map(([place, toRequest], at) => [place, toRequest, at] as const))(
      "as %s breaks nothing and makes no call",
      async (_place, toRequest, at) => {
        const calls = service.calls();
        const strings = partFor(at, NAUGHTY.filter(isSendable), 16);
        expect(strings.length).toBeGreaterThan(30);
        expect(await faultsOf(strings, toRequest)).toEqual([]);
        expect(service.calls()).toBe(calls);
      },
    );
  });

  test("none of these requests logged an error", () => {
    expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });
});
