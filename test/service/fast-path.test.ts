/** An answer takes one of two paths: prepared bytes in front of Express, or Express itself. Nobody can tell from an answer which one it took. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { rateLimit } from "express-rate-limit";
import { createClientLimit } from "../../src/http/edge/client-limit.js";
import { FakeClock } from "../support/fake-clock.js";
import { withPromisesDecoded } from "../support/promise.js";
import { inTime, type Service, startService, until } from "../support/service.js";

const WEBSITE = "https://www.example.af";
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
afterAll(() => {
  agent.destroy();
});

interface Received {
  readonly status: number;
  /** Names and values in alternation, in their original order and case. */
  readonly headers: readonly string[];
  readonly body: string;
}

interface Sent {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in one packet with the headers. */
  readonly body?: string;
}

async function send(
  service: Service,
  { path, method = "GET", headers = {}, body: payload }: Sent,
): Promise<Received> {
  const response = await new Promise<IncomingMessage>((done, failed) => {
    const outgoing = request({ host: "127.0.0.1", port: service.port, path, method, headers, agent }, done);
    outgoing.on("error", failed);
    outgoing.end(payload);
  });
  let body = "";
  response.setEncoding("utf8");
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.rawHeaders, body };
}

/** The absolute form of the URL means the same but never takes the fast path, so Express answers it. */
function viaExpress(sent: Sent): Sent {
  return { ...sent, path: `http://shop.example${sent.path}` };
}

function from(client: string, sent: Sent): Sent {
  return { ...sent, headers: { "X-Forwarded-For": client, ...sent.headers } };
}

/** The answer without what differs between any two requests or clients. */
function comparable({ status, headers, body }: Received): unknown {
  return {
    status,
    headers: headers.map((value, at) => {
      const name = headers[at - 1]?.toLowerCase();
      if (at % 2 === 1 && name === "x-request-id") return value === "mine-1" ? value : "an id";
      if (at % 2 === 1 && name === "ratelimit-policy") return value.replace(/pk=:[\w=]+:/, "pk");
      return at % 2 === 1 && name === "date" ? "a date" : value;
    }),
    body: withPromisesDecoded(body)
      .replace(/"requestId":"(?!mine-1)[^"]+"/, '"requestId":"an id"')
      .replace(/"jti":"[\w-]{36}"/, '"jti":"an id"'),
  };
}

function product<T>(...lists: readonly (readonly T[])[]): T[][] {
  return lists.reduce<T[][]>((rows, list) => rows.flatMap((row) => list.map((one) => [...row, one])), [[]]);
}

const PATHS = [
  "/v1/availability?domain=herat.af",
  "/v1/availability?domain=HERAT.af&years=2",
  "/v1/availability?domain=%20https://www.herat.af/x%20",
  "/v1/availability?domain=kabul-bakery.com.af",
  "/v1/availability?domain=khyber.af",
  "/v1/availability?domain=%D8%A7%D9%81%D8%BA%D8%A7%D9%86.af",
  "/v1/availability?domain=nobody-asked.af",
  "/v1/availability?domain=.",
  "/v1/availability?domain=bad_name.af",
  "/v1/availability?domain=herat.af&domain=kabul.af",
  "/v1/availability?domain=herat.af&years=77",
  "/v1/availability?domain=herat.af&colour=red",
  "/v1/availability?&domain=herat.af&",
  "/v1/availability?domain=%zz.af",
  "/v1/availability?domain=herat.af&only=known",
  "/v1/availability?domain=never-asked.af&only=known",
  "/v1/availability?domain=herat.af&only=fresh",
  "/v1/availability?__proto__=1&domain=herat.af",
  "/v1/availability",
  "/v1/availability/",
  "/V1/availability?domain=herat.af",
  "/v1//availability?domain=herat.af",
  "/v1/availability;x?domain=herat.af",
  "/v1/%61vailability?domain=herat.af",
  "/v1/search?q=herat",
  "/v1/search?q=herat&tlds=.af,.com.af",
  "/v1/search?q=%3Cscript%3E",
  "/v1/search?q=herat&years=3",
  "/v1/search?q=herat&only=known",
  "/v1/search?q=never-asked&only=known",
  "/v1/search?q=herat&only=",
  "/v1/search",
  "/v1/prices",
  "/v1/prices?tld=.af&action=renewal",
  "/v1/prices?years=2",
  "/v1/prices?years=99",
  "/v1/prices?tld=.com",
  "/v1/prices?tld=.af&tld=.af",
  "/v1/quotes?tld=.af&action=renewal",
  "/v1/nothing",
  "/v1/staff/overview",
  "/livez",
  "/health",
] as const;
const ACCEPTS = [
  undefined,
  "*/*",
  "application/json",
  "application/json; charset=utf-8",
  "application/json, text/plain, */*",
  "text/html",
  "text/html,*/*;q=0.8",
  "application/json;q=0",
  "text/event-stream",
  "text/event-stream, */*",
  "text/event-stream; charset=utf-8, */*;q=0.1",
  "",
] as const;
const ORIGINS = [undefined, WEBSITE, "https://elsewhere.example"] as const;
const METHODS = ["GET", "HEAD", "OPTIONS", "POST"] as const;
const IDS = [undefined, "mine-1", "not an id"] as const;

describe("an answer", () => {
  let service: Service;
  let fastAnswers = 0;
  beforeAll(async () => {
    service = await startService({
      clock: new FakeClock(),
      env: { CORS_ORIGINS: WEBSITE, TRUST_PROXY_HOPS: "1" },
    });
    await until(() => service.calls() === 29);
    // Under /v1, Express never answers in the turn in which the request arrives, because its rate limit awaits a promise.
    service.server.on("request", (_request, response) => {
      if (response.headersSent) fastAnswers += 1;
    });
    for (const path of PATHS) await send(service, from("10.0.0.1", { path }));
  });
  afterAll(() => service.close());

  async function expectSame(sent: Sent, clients: readonly [string, string]): Promise<void> {
    const before = service.log.length;
    const quick = await send(service, from(clients[0], sent));
    const slow = await send(service, from(clients[1], viaExpress(sent)));
    expect({ sent, received: comparable(quick) }).toEqual({ sent, received: comparable(slow) });
    const lines = (): string[] => service.log.slice(before).filter((line) => line.includes("http.request"));
    await until(() => lines().length === 2, "both log lines");
    const [one, two] = lines().map((line): unknown =>
      JSON.parse(
        line
          .replace(/"requestId":"[^"]*"/, '"requestId":""')
          .replace(/"durationMs":[\d.]+/, '"durationMs":0'),
      ),
    );
    expect(one).toEqual(two);
  }

  test("is the same in every byte, header and log line, whichever path it takes", async () => {
    fastAnswers = 0;
    const clients = ["10.1.0.1", "10.2.0.1"] as const;
    let combinations = 0;
    for (const path of PATHS) {
      for (const [method = "GET", accept, origin, id] of product<string | undefined>(
        METHODS,
        ACCEPTS,
        ORIGINS,
        IDS,
      )) {
        combinations += 1;
        // All GETs except those for HTML, and every seventh of the others.
        if (combinations % 7 > 0 && (method !== "GET" || accept === "text/html")) continue;
        const headers = {
          ...(accept !== undefined && { Accept: accept }),
          ...(origin !== undefined && { Origin: origin }),
          ...(id !== undefined && { "X-Request-Id": id }),
        };
        await expectSame({ path, method, headers }, clients);
      }
    }
    expect(fastAnswers).toBeGreaterThan(1_000);
  });

  test("as an event stream is the same, complete or resumed", async () => {
    fastAnswers = 0;
    const clients = ["10.1.0.2", "10.2.0.2"] as const;
    const path = "/v1/search?q=herat&tlds=.af,.com.af";
    const stream = { path, headers: { Accept: "text/event-stream" } };
    const { body } = await send(service, from("10.1.0.3", stream));
    const ids = [...body.matchAll(/^id: (.+)$/gm)].map(([, id = ""]) => id);
    expect(ids).toHaveLength(2);
    for (const id of [...ids, "of.another", "", "x".repeat(300)])
      await expectSame({ path, headers: { ...stream.headers, "Last-Event-ID": id } }, clients);
    expect(fastAnswers).toBe(6);
  });

  test("to a cart is the same, signed or rejected", async () => {
    let fastCarts = 0;
    const count = (_request: IncomingMessage, response: ServerResponse): void => {
      process.nextTick(() => {
        if (response.headersSent) fastCarts += 1;
      });
    };
    service.server.on("request", count);
    const line = (domain: string, action = "renewal"): object => ({ domain, action, years: 1 });
    const cart = (...items: readonly object[]): string => JSON.stringify({ items });
    const known = [
      cart(line("herat.af")),
      cart(line("herat.af"), line("kandahar.af", "transfer"), line("افغان.af", "restore")),
      ` \n${cart({ domain: "HERAT.AF", action: "renewal" })} `,
      cart(...Array.from({ length: 20 }, (_, n) => line(`name-${n}.com.af`))),
    ];
    const others = [
      cart(line("herat.af", "registration")),
      cart(line("herat.af"), line("herat.af")),
      cart(line("khyber.af", "registration")),
      cart(line("bad_name.af"), line("herat.af", "sale")),
      cart(),
      "",
      "{",
      "null",
      "7",
      '"text"',
      "[]",
      "{}",
      `\ufeff${cart(line("herat.af"))}`,
      `{"__proto__":{"items":[]}}`,
      cart({ ...line("herat.af"), note: "x".repeat(40_000) }),
    ];
    const json = { "Content-Type": "application/json" };
    const headerSets: readonly Readonly<Record<string, string>>[] = [
      json,
      { "Content-Type": "application/json; charset=utf-8", Accept: "application/json, text/plain, */*" },
      { "Content-Type": "APPLICATION/JSON;charset=UTF-8", Origin: WEBSITE, "X-Request-Id": "mine-1" },
      { "Content-Type": "application/json; charset=utf-16" },
      { "Content-Type": "application/json; charset=latin1" },
      { "Content-Type": "text/plain" },
      { ...json, "Content-Encoding": "gzip" },
      { ...json, Accept: "text/html" },
      { ...json, Accept: "text/event-stream" },
      { ...json, "Transfer-Encoding": "chunked" },
      { ...json, Expect: "100-continue" },
      { ...json, "If-None-Match": "*" },
      {},
    ];
    const clients = ["10.1.0.4", "10.2.0.4"] as const;
    for (const body of [...known, ...others])
      for (const headers of headerSets)
        await expectSame({ path: "/v1/quotes", method: "POST", headers, body }, clients);
    // Each known cart took the fast path with the first three header sets, and with If-None-Match.
    expect(fastCarts).toBe(known.length * 4);
    await expectSame({ path: "/v1/quotes?x=1", method: "POST", headers: json, body: cart() }, clients);
    service.server.off("request", count);
  });

  test("comes in order when several requests are sent at once on a connection", async () => {
    const paths = ["/v1/availability?domain=herat.af", "/livez", "/v1/availability?domain=.", "/v1/prices"];
    const received = await new Promise<string>((done, failed) => {
      let text = "";
      const socket = connect(service.port, "127.0.0.1", () => {
        const close = (path: string): string => (path === paths.at(-1) ? "Connection: close\r\n" : "");
        socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n${close(path)}\r\n`).join(""));
      });
      socket.setEncoding("utf8").on("data", (more: string) => {
        text += more;
      });
      socket.once("error", failed).once("close", () => {
        done(text);
      });
    });
    expect(received.match(/HTTP\/1\.1 \d+|"domain":"herat.af"|"live"|"invalid_request"|"prices":/g)).toEqual([
      "HTTP/1.1 200",
      '"domain":"herat.af"',
      "HTTP/1.1 200",
      '"live"',
      "HTTP/1.1 400",
      '"invalid_request"',
      "HTTP/1.1 200",
      '"prices":',
    ]);
  });

  test("to a conditional request is the same", async () => {
    const { headers } = await send(service, from("10.3.0.1", { path: "/v1/prices" }));
    const etag = headers[headers.indexOf("ETag") + 1] ?? "";
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    const tags = [etag, `W/${etag}`, `"other"`, `"other", ${etag}`, "*", etag.slice(1), '""', ""];
    const cacheControls = [undefined, "no-cache", "max-age=0"];
    const dates = [undefined, "Sat, 21 Nov 2026 10:00:00 GMT", "yesterday"];
    for (const [tag = "", cacheControl, date] of product<string | undefined>(tags, cacheControls, dates)) {
      for (const path of ["/v1/prices", "/v1/prices?tld=.af", "/v1/availability?domain=herat.af"]) {
        await expectSame(
          {
            path,
            headers: {
              "If-None-Match": tag,
              ...(cacheControl !== undefined && { "Cache-Control": cacheControl }),
              ...(date !== undefined && { "If-Modified-Since": date }),
            },
          },
          ["10.3.0.2", "10.4.0.2"],
        );
      }
    }
  });

  test("counts towards the same limit of the client on both paths", async () => {
    const remaining = ({ headers }: Received): string | undefined =>
      headers[headers.indexOf("RateLimit") + 1]?.replace(/; t=.*/, "");
    const sent = from("10.5.0.1", { path: "/v1/availability?domain=herat.af" });
    const first = await send(service, sent);
    const second = await send(service, viaExpress(sent));
    const third = await send(service, sent);
    expect([first, second, third].map(remaining)).toEqual(
      [1, 2, 3].map((count) => `"1000000-in-1min"; r=${1_000_000 - count}`),
    );
  });
});

describe("a prepared answer", () => {
  let service: Service;
  const clock = new FakeClock();
  beforeAll(async () => {
    service = await startService({ clock });
    await until(() => service.calls() === 29);
  });
  afterAll(() => service.close());

  const bodyOf = async (path: string): Promise<unknown> => JSON.parse((await send(service, { path })).body);
  const checks = (): number => service.calls("POST /api/v1/domains/check");

  test("isn't reused after its facts have become stale", async () => {
    const path = "/v1/availability?domain=herat.af";
    const first = await bodyOf(path);
    const before = checks();
    expect(await bodyOf(path)).toEqual(first);
    expect(checks()).toBe(before);
    await clock.advance(31_000);
    await bodyOf(path);
    expect(checks()).toBe(before + 1);
  });

  test("isn't reused after a purge", async () => {
    const path = "/v1/availability?domain=kandahar.af";
    const first = await bodyOf(path);
    const before = checks();
    await clock.advance(1_000);
    expect(await bodyOf(path)).toEqual(first);
    expect(checks()).toBe(before);
    await service.ask("/v1/staff/cache/purge", {
      method: "POST",
      headers: { Authorization: "Bearer staff-token-that-may-operate" },
      body: { what: "availability" },
    });
    await bodyOf(path);
    expect(checks()).toBe(before + 1);
  });
});

describe("a cart of known prices", () => {
  const body = JSON.stringify({ items: [{ domain: "herat.af", action: "renewal" }] });
  const headers = { "Content-Type": "application/json" };
  const postCart = (service: Service) => send(service, { path: "/v1/quotes", method: "POST", headers, body });

  test("requests the price again once it is older than a minute", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock });
    await until(() => service.calls() === 29);
    const quotes = (): number => service.calls("POST /api/v1/pricing");
    const before = quotes();
    await clock.advance(59_000);
    expect((await postCart(service)).status).toBe(200);
    expect(quotes()).toBe(before);
    await clock.advance(2_000);
    expect((await postCart(service)).status).toBe(200);
    expect(quotes()).toBe(before + 1);
    await service.close();
  });

  test("counts as one request and is logged once, even when its client is over the limit", async () => {
    const service = await startService({ clock: new FakeClock(), env: { CLIENT_RATE_PER_MINUTE: "2" } });
    await until(() => service.calls() === 29);
    const statuses = [];
    for (let n = 0; n < 3; n += 1) statuses.push((await postCart(service)).status);
    expect(statuses).toEqual([200, 200, 429]);
    const lines = service.log.filter((line) => line.includes('"http.request"') && line.includes('"POST"'));
    expect(lines).toHaveLength(3);
    await service.close();
  });

  test("is answered in order with other pipelined requests, however they are split into packets", async () => {
    const service = await startService({ clock: new FakeClock() });
    await until(() => service.calls() === 29);
    const cart = `POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const bytes = `${cart}GET /livez HTTP/1.1\r\nHost: a\r\n\r\n${cart}${cart.replace("herat", "-bad-")}GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    for (const cut of [bytes.length, cart.length - 20, cart.length, 2 * cart.length]) {
      const received = await new Promise<string>((done, failed) => {
        let text = "";
        const socket = connect(service.port, "127.0.0.1", () => {
          socket.write(bytes.slice(0, cut));
          setTimeout(() => socket.write(bytes.slice(cut)), 30);
        });
        socket.setNoDelay().setEncoding("utf8");
        socket.on("data", (more: string) => {
          text += more;
        });
        socket.once("error", failed).once("close", () => {
          done(text);
        });
      });
      expect(received.match(/HTTP\/1\.1 \d+|"promise":"ey|"live"|"invalid_request"/g)).toEqual([
        "HTTP/1.1 200",
        '"promise":"ey',
        "HTTP/1.1 200",
        '"live"',
        "HTTP/1.1 200",
        '"promise":"ey',
        "HTTP/1.1 400",
        '"invalid_request"',
        "HTTP/1.1 200",
        '"live"',
      ]);
    }
    await service.close();
  });
});

describe("a refusal", () => {
  test("of a client over its limit is the same on both paths", async () => {
    const service = await startService({
      clock: new FakeClock(),
      env: { CLIENT_RATE_PER_MINUTE: "3", TRUST_PROXY_HOPS: "1" },
    });
    const paths = ["/v1/prices", "/v1/availability?domain=.", "/v1/prices", "/v1/prices", "/v1/availability"];
    const answers = [];
    for (const path of paths) {
      const quick = await send(service, from("10.1.0.1", { path }));
      expect(comparable(quick)).toEqual(
        comparable(await send(service, from("10.2.0.1", viaExpress({ path })))),
      );
      answers.push(quick.status);
    }
    expect(answers).toEqual([200, 400, 200, 429, 429]);
    await service.close();
  });

  test("of a client over its limit applies to all requests except health, mostly in front of Express", async () => {
    const service = await startService({
      clock: new FakeClock(),
      env: { CLIENT_RATE_PER_MINUTE: "1", CORS_ORIGINS: WEBSITE, TRUST_PROXY_HOPS: "1" },
    });
    const clients = ["10.1.0.1", "10.2.0.1"] as const;
    for (const client of clients) await send(service, from(client, { path: "/v1/prices" }));
    let fastAnswers = 0;
    service.server.on("request", (_request, response) => {
      if (response.headersSent) fastAnswers += 1;
    });
    const pages = [
      "/",
      "/staff",
      "/favicon.ico",
      "/docs",
      "/openapi.json",
      "/.well-known/jwks.json",
      "/problems/internal",
    ];
    const others = ["/v1", "/v1/staff", "/v1x", "/openapi.json/x", "/livez/", "/nothing"];
    const all = product<string | undefined>([...PATHS, ...pages, ...others], METHODS, ORIGINS);
    for (const [path = "", method = "", origin] of all) {
      const sent = { path, method, headers: origin === undefined ? {} : { Origin: origin } };
      const [quick, slow] = [
        await send(service, from(clients[0], sent)),
        await send(service, from(clients[1], viaExpress(sent))),
      ];
      expect({ sent, received: comparable(quick) }).toEqual({ sent, received: comparable(slow) });
      const isExempt = path === "/livez" || path === "/health";
      expect({ sent, isRefused: quick.status === 429 }).toEqual({ sent, isRefused: !isExempt });
    }
    expect(fastAnswers).toBeGreaterThan((all.length * 3) / 5);
    await service.close();
  });

  test("by a draining service also applies to the fast path", async () => {
    const service = await startService({ clock: new FakeClock() });
    await send(service, { path: "/v1/prices" });
    service.drain();
    const answer = await send(service, { path: "/v1/prices" });
    expect(answer.status).toBe(503);
    expect(answer.body).toContain("shutting_down");
    await service.close();
  });
});

test("the rate limit headers are those that express-rate-limit writes", async () => {
  const clock = new FakeClock();
  const limit = createClientLimit(7, clock, null);
  const window = limit.windowOf("10.9.8.7");
  for (let count = 1; count <= 9; count += 1) {
    limit.take(window);
    const written: Record<string, string> = {};
    const middleware = rateLimit({
      windowMs: 60_000,
      limit: 7,
      standardHeaders: "draft-8",
      legacyHeaders: false,
      validate: false,
      keyGenerator: () => "10.9.8.7",
      handler: () => {},
      store: {
        increment: () => ({ totalHits: count, resetTime: new Date(Date.now() + 59_900) }),
        decrement: () => {},
        resetKey: () => {},
      },
    });
    const response = {
      headersSent: false,
      append: (name: string, value: string) => {
        written[name] = value;
      },
    };
    // @ts-expect-error: only the part of a response that the headers need.
    await middleware({}, response, () => {});
    const withoutKey = (fields: readonly string[]): string[] =>
      fields.map((field) => field.replace(/pk=:[\w=]{16}:/, "pk"));
    expect(withoutKey(limit.fields(window))).toEqual(withoutKey(Object.entries(written).flat()));
    // Anyone can compute its partition key from an address.
    expect(limit.fields(window)).not.toEqual(Object.entries(written).flat());
  }
});

describe("an unknown name while the quota is spent", () => {
  const ONE_CALL = { UPSTREAM_RATE_LIMIT: "2", UPSTREAM_RATE_HEADROOM: "1", TRUST_PROXY_HOPS: "1" };
  let clock: FakeClock;
  let service: Service;
  let fastAnswers: number;
  beforeEach(async () => {
    clock = new FakeClock();
    fastAnswers = 0;
    service = await startService({ clock, env: ONE_CALL, warm: false });
    await until(() => service.calls() === 1);
    service.server.on("request", (_request, response) => {
      if (response.headersSent) fastAnswers += 1;
    });
  });
  afterEach(() => service.close());

  const problemIn = ({ body }: Received): unknown => JSON.parse(body) as unknown;

  test("is refused immediately in front of Express, with the answer that Express gives", async () => {
    const quick = await send(service, from("10.0.0.1", { path: "/v1/availability?domain=google.af" }));
    expect([quick.status, fastAnswers]).toEqual([503, 1]);
    // The first refusal has the only reservation. The next ones get the window as their retry time.
    expect(problemIn(quick)).toMatchObject({ code: "quota_exhausted", retryAfter: 60, kept: true });
    const next = await send(service, from("10.0.0.2", { path: "/v1/availability?domain=new-2.af" }));
    const slow = await send(
      service,
      from("10.0.0.3", viaExpress({ path: "/v1/availability?domain=new-3.af" })),
    );
    expect(fastAnswers).toBe(2);
    expect(problemIn(next)).toMatchObject({ retryAfter: 60, kept: false });
    expect(comparable(next)).toEqual(comparable(slow));
  });

  test("goes through Express on a retry with a reserved call, and is answered", async () => {
    const ask = () => send(service, from("10.0.0.1", { path: "/v1/availability?domain=google.af" }));
    expect((await ask()).status).toBe(503);
    await clock.advance(60_000);
    expect((await inTime(clock, ask())).status).toBe(200);
    expect(fastAnswers).toBe(1);
  });
});
