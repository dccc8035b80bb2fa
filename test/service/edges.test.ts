/** What holds for every answer, also for those that are sent again from memory, and how edge cases of HTTP are handled. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { openApiDocument } from "../../src/wire/document.js";
import { PROBLEMS } from "../../src/errors.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { answersIn, CLOSE, exchange, get } from "../support/raw.js";
import {
  type Answer,
  bearer,
  CHECK,
  problemOf,
  type Question,
  type Service,
  startService,
  STATUS_OF,
  until,
  withService,
} from "../support/service.js";
import { purge } from "../support/staff.js";

const WEBSITE = "https://www.example.af";
const GETS = ["/v1/availability", "/v1/search", "/v1/prices", "/v1/quotes"];
const STAFF_GETS = ["domains", "domains/khyber.af", "balance", "tier", "prices", "overview"].map(
  (name) => `/v1/staff/${name}`,
);
const SERVICE_GETS = [
  "/livez",
  "/readyz",
  "/health",
  "/.well-known/jwks.json",
  "/problems/internal",
  "/openapi.json",
  "/docs",
  "/",
  "/staff",
];

let service: Service;
beforeAll(async () => {
  service = await startService({
    clock: new FakeClock(),
    env: { CORS_ORIGINS: `${WEBSITE},http://localhost:5173` },
  });
  await until(() => service.calls() === 29);
});
afterAll(() => service.close());

describe("the request id", () => {
  const idFor = async (id: string) =>
    (await service.ask("/livez", { headers: { "x-request-id": id } })).headers["x-request-id"];

  test("of a client is echoed, unless it has other characters, is too long or is sent twice", async () => {
    for (const id of ["a", "0b6f9d7e-0d1c-4c58-9d0a-2f6a3c1e9b11", "A_-9".repeat(16)])
      expect(await idFor(id)).toBe(id);
    for (const id of ["", "a,b", "a".repeat(65), "<script>", "é", "a\tb"])
      expect(await idFor(id)).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const twice = get("/livez", { "x-request-id": "one", "X-Request-Id": "two", ...CLOSE });
    expect(await exchange(service.port, twice)).not.toMatch(/^x-request-id: (?:one|two)/im);
  });

  test("in a problem is the same as in its header and in its log line", async () => {
    const headers = { "x-request-id": "find-me-again" };
    const problem = problemOf(await service.ask("/v1/nothing", { headers }));
    expect(problem.requestId).toBe("find-me-again");
    await until(() => service.log.some((line) => line.includes("find-me-again")));
  });
});

test("every answer has helmet's headers and no X-Powered-By", async () => {
  for (const path of ["/livez", "/v1/quotes", "/v1/nothing", "/v1/availability", "/docs", "/openapi.json"]) {
    const { headers } = await service.ask(path);
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "x-frame-options": "SAMEORIGIN",
      "referrer-policy": "no-referrer",
      "strict-transport-security": expect.stringContaining("max-age="),
      "content-security-policy": expect.stringContaining("default-src 'none'"),
      "x-request-id": expect.any(String),
    });
    expect(headers).not.toHaveProperty("x-powered-by");
  }
});

test("every answer under /v1 that shared caches can't store has the client's limit in its headers", async () => {
  for (const path of [...GETS, ...STAFF_GETS, "/v1/nothing"].filter((path) => path !== "/v1/prices")) {
    const { headers } = await service.ask(path);
    expect(headers).toMatchObject({ ratelimit: expect.any(String), "ratelimit-policy": expect.any(String) });
  }
});

describe("HTTP methods", () => {
  test("that a path doesn't support are rejected with the list of allowed ones", async () => {
    const calls = service.calls();
    for (const path of [...GETS, ...STAFF_GETS, ...SERVICE_GETS, "/metrics"]) {
      const isCart = path === "/v1/quotes";
      for (const method of ["DELETE", isCart ? "PATCH" : "POST"]) {
        const answer = await service.ask(path, { method, headers: bearer("read") });
        expect([path, problemOf(answer).code]).toEqual([path, "method_not_allowed"]);
        expect(answer.headers["allow"]).toBe(isCart ? "GET, HEAD, POST, OPTIONS" : "GET, HEAD, OPTIONS");
      }
    }
    const purge = await service.ask("/v1/staff/cache/purge", { headers: bearer("operate") });
    expect(problemOf(purge).code).toBe("method_not_allowed");
    expect(purge.headers["allow"]).toBe("POST, OPTIONS");
    expect(service.calls()).toBe(calls);
  });

  test("are listed by OPTIONS, which makes no upstream call", async () => {
    const calls = service.calls();
    for (const path of [...GETS, ...STAFF_GETS, ...SERVICE_GETS, "/metrics"]) {
      const { status, headers, text } = await service.ask(path, { method: "OPTIONS" });
      expect([path, status, text]).toEqual([path, 204, ""]);
      expect(headers["allow"]).toMatch(/^GET, HEAD,/);
    }
    expect(service.calls()).toBe(calls);
  });

  test("include HEAD, which is answered like GET without a body and makes no upstream call", async () => {
    const calls = service.calls();
    const paths = [
      "/v1/availability?domain=never-asked.af",
      "/v1/search?q=never-asked",
      "/v1/prices",
      "/v1/quotes?tld=.af&action=renewal",
      "/v1/staff/domains/lapis.af",
      "/v1/staff/balance",
      ...SERVICE_GETS,
    ];
    for (const path of paths) {
      const answer = await service.ask(path, { method: "HEAD", headers: bearer("read") });
      expect([path, answer.status, answer.text]).toEqual([path, 200, ""]);
    }
    const bad = await service.ask("/v1/availability?domain=.", { method: "HEAD" });
    expect([bad.status, bad.text]).toEqual([400, ""]);
    const known = await service.ask("/v1/prices", { method: "HEAD" });
    expect(known.headers["etag"]).toBe((await service.ask("/v1/prices")).headers["etag"]);
    expect(service.calls()).toBe(calls);
  });
});

describe("content negotiation", () => {
  test("fails for an Accept without the answer's type, without an upstream call", async () => {
    const calls = service.calls();
    const codeFor = async (path: string, Accept: string) =>
      problemOf(await service.ask(path, { headers: { Accept, ...bearer("read") } })).code;
    for (const path of [...GETS, ...STAFF_GETS]) {
      expect([path, await codeFor(path, "text/html")]).toEqual([path, "not_acceptable"]);
      if (path !== "/v1/search")
        expect([path, await codeFor(path, "text/event-stream")]).toEqual([path, "not_acceptable"]);
    }
    for (const Accept of ["image/*", "application/xml, text/plain", "application/json;q=0", "garbage"])
      expect([Accept, await codeFor("/v1/prices", Accept)]).toEqual([Accept, "not_acceptable"]);
    expect(service.calls()).toBe(calls);
  });

  test("succeeds for an Accept that allows JSON in any way, or is empty", async () => {
    for (const Accept of ["application/json", "application/*;q=0.1", "text/html, */*;q=0.8", ""]) {
      const { status } = await service.ask("/v1/prices", { headers: { Accept } });
      expect([Accept, status]).toEqual([Accept, 200]);
    }
  });

  test("accepts each answer's own Content-Type, and some of its parameters, but no others", async () => {
    for (const [path, type] of [
      ["/v1/prices", "application/json"],
      ["/v1/search?q=kabul&tlds=.af", "text/event-stream"],
      ["/v1/staff/prices", "application/json"],
      ["/v1/staff/prices", "text/csv"],
    ] as const) {
      const typeFor = async (Accept: string): Promise<string | undefined> =>
        (await service.ask(path, { headers: { Accept, ...bearer("read") } })).headers["content-type"];
      const own = await typeFor(type);
      expect([path, own]).toEqual([path, expect.stringContaining(`${type}; charset=utf-8`)]);
      for (const Accept of [own ?? "", `${type};charset="UTF-8"`, `${type};charset=utf-8, */*;q=0.1`])
        expect([path, Accept, await typeFor(Accept)]).toEqual([path, Accept, own]);
      const problem = expect.stringMatching(/^application\/problem\+json/);
      expect([path, await typeFor(`${type}; charset=utf-16`)]).toEqual([path, problem]);
    }
  });
});

test("a body is read only as JSON in UTF-8 without an unknown coding, and not with a GET", async () => {
  for (const headers of [
    { "Content-Type": "text/plain" },
    { "Content-Type": "application/jsonx" },
    { "Content-Type": "" },
    { "Content-Type": "application/json; charset=latin1" },
    { "Content-Encoding": "zstd-ish" },
  ]) {
    const fields: Readonly<Record<string, string>> = { "Content-Length": "12", ...headers };
    const answer = await service.ask("/v1/quotes", { method: "POST", headers: fields, body: '{"items":[]}' });
    expect([headers, problemOf(answer).code]).toEqual([headers, "unsupported_media_type"]);
  }
  for (const charset of ["utf-7", "utf-7-imap", "utf-32"]) {
    const headers = { "Content-Type": `application/json; charset=${charset}` };
    const { code } = problemOf(await service.ask("/v1/quotes", { method: "POST", headers, body: "{}" }));
    expect(["invalid_request", "unsupported_media_type"]).toContain(code);
  }
  expect((await service.ask("/v1/prices", { body: "{" })).status).toBe(200);
});

describe("the website", () => {
  test("at an allowed origin can read answers, including problems", async () => {
    for (const path of ["/v1/prices", "/v1/availability", "/v1/nothing", "/problems/not_found"]) {
      const { headers } = await service.ask(path, { headers: { Origin: WEBSITE } });
      expect(headers).toMatchObject({
        "access-control-allow-origin": WEBSITE,
        "access-control-expose-headers": expect.stringContaining("Retry-After"),
        vary: expect.stringContaining("Origin"),
      });
      expect(headers).not.toHaveProperty("access-control-allow-credentials");
    }
  });

  test("at another origin can't read answers", async () => {
    for (const Origin of ["null", "http://www.example.af", `${WEBSITE}.evil.example`]) {
      const { headers } = await service.ask("/v1/prices", { headers: { Origin } });
      expect(headers).not.toHaveProperty("access-control-allow-origin");
    }
  });

  test("can send a preflight request before it posts", async () => {
    const preflight = (Origin: string, path: string) =>
      service.ask(path, {
        method: "OPTIONS",
        headers: {
          Origin,
          "Access-Control-Request-Method": "POST",
          "Access-Control-Request-Headers": "content-type",
        },
      });
    const allowed = await preflight(WEBSITE, "/v1/quotes");
    expect(allowed.status).toBe(204);
    expect(allowed.headers).toMatchObject({
      "access-control-allow-origin": WEBSITE,
      "access-control-allow-methods": expect.stringContaining("POST"),
      "access-control-allow-headers": expect.stringMatching(/content-type/i),
    });
    const refused = await preflight("https://evil.example", "/v1/quotes");
    expect(refused.headers).not.toHaveProperty("access-control-allow-origin");
    const staff = await preflight(WEBSITE, "/v1/staff/cache/purge");
    expect(staff.headers).not.toHaveProperty("access-control-allow-origin");
  });
});

describe("the URL", () => {
  test.each([
    "/nothing",
    "/v1/me/domains",
    "/V1/prices",
    "/v1/prices/",
    "/v1//prices",
    "/v1/staff",
    "/problems/nothing",
    "/problems/__proto__",
    "/docs/assets/../../package.json",
    "/docs/assets/..%2f..%2fpackage.json",
    "*",
    "/.env",
  ])("%s isn't found", async (path) => {
    expect(problemOf(await service.ask(path)).code).toBe("not_found");
  });

  test("that can't be decoded is rejected", async () => {
    for (const path of ["/problems/%", "/v1/staff/domains/%E0%A4%A"])
      expect(problemOf(await service.ask(path, { headers: bearer("read") })).code).toBe("invalid_request");
  });

  test("in absolute form, as proxies send it, is understood", async () => {
    const answer = await exchange(service.port, get("http://shop.example/livez", CLOSE));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

test("each problem has a page that explains it", async () => {
  expect(Object.keys(STATUS_OF).sort()).toEqual(Object.keys(PROBLEMS).sort());
  for (const [code, status] of Object.entries(STATUS_OF)) {
    const answer = await service.ask(`/problems/${code}`);
    expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(answer.body).toEqual({
      code,
      status,
      title: expect.stringMatching(/./),
      explanation: expect.stringMatching(/./),
    });
  }
});

test("answers match the OpenAPI document", async () => {
  const document = openApiDocument({ version: "1.2.3" });
  const cart = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
  const requests: readonly (readonly [string, string, object?])[] = [
    ["GET", "/v1/availability?domain=kabul.af"],
    ["GET", "/v1/availability?domain=google.af"],
    ["GET", "/v1/availability"],
    ["GET", "/v1/availability?domain=never-asked.af&only=known"],
    ["GET", "/v1/search?q=kabul"],
    ["GET", "/v1/search?q=never-asked&only=known"],
    ["GET", "/v1/search"],
    ["GET", "/v1/prices"],
    ["GET", "/v1/prices?tld=x"],
    ["GET", "/v1/quotes?tld=.af&action=renewal"],
    ["GET", "/v1/quotes"],
    ["POST", "/v1/quotes", { body: cart }],
    ["POST", "/v1/quotes", { body: {} }],
    ["POST", "/v1/quotes", { body: "{", headers: { "Content-Type": "text/plain" } }],
    ...STAFF_GETS.map((path) => ["GET", path, { headers: bearer("read") }] as const),
    ...STAFF_GETS.map((path) => ["GET", path, { headers: bearer("metrics") }] as const),
    ...STAFF_GETS.map((path) => ["GET", path] as const),
    ["GET", "/v1/staff/domains/google.af", { headers: bearer("read") }],
    ["GET", "/v1/staff/domains/x", { headers: bearer("read") }],
    ["POST", "/v1/staff/cache/purge", { headers: bearer("operate"), body: { what: "account" } }],
    ["POST", "/v1/staff/cache/purge", { headers: bearer("operate"), body: {} }],
    ["GET", "/metrics", { headers: bearer("metrics") }],
    ["GET", "/metrics"],
    ["GET", "/livez"],
    ["GET", "/readyz"],
    ["GET", "/health"],
    ["GET", "/problems/internal"],
    ["GET", "/problems/nothing"],
    ["GET", "/openapi.json"],
    ["GET", "/nothing"],
    ["PUT", "/v1/prices"],
  ];
  for (const [method, path, options] of requests)
    matchesDocument(document, method, path, await service.ask(path, { method, ...options }));
});

test("a visitor who may wait long for a call that may take long isn't cut off before the answer", () =>
  withService(
    { env: { QUOTA_MAX_WAIT_MS: "90000", UPSTREAM_TIMEOUT_MS: "90000" }, warm: false },
    async (patient) => {
      let allowedMs = 0;
      patient.server.on("request", ({ socket }: IncomingMessage) => {
        allowedMs = socket.timeout ?? 0;
      });
      await patient.ask("/health");
      expect(allowedMs).toBeGreaterThan(180_000);
    },
  ));

test("an unfinished request doesn't affect others, and aborting it causes no error", async () => {
  const socket = connect(service.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(
    "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
  );
  expect((await service.ask("/livez")).status).toBe(200);
  socket.destroy();
  const before = service.log.filter((line) => line.includes('"level":"error"')).length;
  await until(() => service.log.some((line) => line.includes('"status":499')));
  expect(service.log.filter((line) => line.includes('"level":"error"')).slice(before)).toEqual([]);
});

const HERAT = "/v1/availability?domain=herat.af";

/** Whether the answer was sent again: Express puts the client's limit on every answer of the API that isn't for shared caches. */
const isSentAgain = ({ headers }: Answer): boolean => !("ratelimit" in headers);

/** The answer without what differs between any two requests. */
function comparable({ status, headers, text }: Answer): unknown {
  const differing = new Set(["date", "connection", "keep-alive", "ratelimit", "ratelimit-policy"]);
  const fields = Object.entries(headers).filter(([name]) => !differing.has(name));
  return {
    status,
    headers: Object.fromEntries(
      fields.map(([name, value]) => [name, name === "x-request-id" && value !== "mine-1" ? "an id" : value]),
    ),
    text: text.replace(/"requestId":"(?!mine-1)[^"]+"/, '"requestId":"an id"'),
  };
}

/** This field has no meaning for JSON, but with it only Express answers. */
const VIA_EXPRESS = { "Last-Event-ID": "none" };

const PATHS = [
  HERAT,
  "/v1/availability?domain=%20https://www.HERAT.af/x%20&years=2",
  "/v1/availability?domain=khyber.af",
  "/v1/availability?domain=%D8%A7%D9%81%D8%BA%D8%A7%D9%86.af",
  "/v1/availability?domain=.",
  "/v1/availability?domain=herat.af&domain=kabul.af",
  "/v1/availability?domain=%zz.af",
  "/v1/availability?domain=herat.af&only=known",
  "/v1/availability?domain=never-asked.af&only=known",
  "/v1/availability?__proto__=1&domain=herat.af",
  "/V1/availability?domain=herat.af",
  "/v1/%61vailability?domain=herat.af",
  "/v1/search?q=herat&tlds=.af,.com.af",
  "/v1/search?q=herat&only=known",
  "/v1/prices",
  "/v1/prices?tld=.af&action=renewal",
  "/v1/quotes?tld=.af&action=renewal",
  "/v1/nothing",
  "/v1/staff/tier",
];
const FIELDS = {
  Accept: ["none", "*/*", "application/json", "text/html,*/*;q=0.8", "text/html", ""],
  Origin: ["none", WEBSITE, "https://elsewhere.example"],
  "X-Request-Id": ["none", "mine-1", "not an id"],
};

describe("an answer that was finished", () => {
  let sentAgain = 0;

  async function expectSame(path: string, question: Question): Promise<void> {
    await service.ask(path, question);
    const again = await service.ask(path, question);
    const headers = { ...question.headers, ...VIA_EXPRESS };
    const made = await service.ask(path, { ...question, headers });
    const sent = { path, ...question };
    expect({ sent, answer: comparable(again) }).toEqual({ sent, answer: comparable(made) });
    if (isSentAgain(again) && !isSentAgain(made)) sentAgain += 1;
  }

  test("is the same in every byte and field, made by Express or sent again", async () => {
    for (const path of PATHS)
      for (const Accept of FIELDS.Accept)
        await expectSame(path, { headers: Accept === "none" ? {} : { Accept } });
    for (const path of PATHS)
      for (const Origin of FIELDS.Origin)
        for (const id of FIELDS["X-Request-Id"]) {
          const sent = Object.entries({ Origin, "X-Request-Id": id }).filter(([, value]) => value !== "none");
          await expectSame(path, { headers: Object.fromEntries(sent) });
        }
    for (const path of PATHS)
      for (const method of ["HEAD", "OPTIONS"])
        await expectSame(path, { method, headers: { Origin: WEBSITE, "X-Request-Id": "mine-1" } });
    expect(sentAgain).toBeGreaterThan(15);
  });

  test("to a conditional request is the same", async () => {
    for (const path of ["/v1/prices", HERAT]) {
      const etag = (await service.ask(path)).headers["etag"] ?? "";
      expect(etag).toMatch(/^"[\w-]{27}"$/);
      for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*", etag.slice(1), ""])
        await expectSame(path, { headers: { "If-None-Match": tag, "Cache-Control": "no-cache" } });
    }
  });

  test("isn't sent again to a request that Express has to look at", async () => {
    for (let count = 0; count < 2; count += 1) await service.ask(HERAT);
    expect(isSentAgain(await service.ask(HERAT))).toBe(true);
    for (const headers of [bearer("read"), VIA_EXPRESS])
      expect(isSentAgain(await service.ask(HERAT, { headers }))).toBe(false);
  });

  test("to a request that ends its connection doesn't end others when it is sent again", async () => {
    const path = "/v1/availability?domain=balkh.af";
    const upgrade = { Connection: "Upgrade, close", Upgrade: "h2c" };
    const of = async (text: string) => answersIn(await exchange(service.port, text));
    await service.ask(path);
    expect(await of(get(path, upgrade))).toMatchObject([{ status: 200, headers: { connection: "close" } }]);
    const later = await of(get(path) + get(path, upgrade));
    expect(later).toMatchObject([
      { status: 200, headers: { connection: "keep-alive" } },
      { status: 200, headers: { connection: "close" } },
    ]);
    expect(later.some(({ headers }) => "ratelimit" in headers)).toBe(false);
  });

  test("that is sent again is counted in the metrics, and saves a call, but isn't logged", async () => {
    const counted = async (): Promise<readonly number[]> => {
      const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
      return [
        /^http_sent_again_total\{route="\/v1\/availability"\} (\d+)$/m,
        /^upstream_calls_saved_total\{by="cache"\} (\d+)$/m,
      ].map((metric) => Number(metric.exec(text)?.[1]));
    };
    for (let count = 0; count < 3; count += 1) await service.ask(HERAT);
    const lines = service.log.length;
    const [again = NaN, saved = NaN] = await counted();
    for (let count = 0; count < 5; count += 1) await service.ask(HERAT);
    expect(await counted()).toEqual([again + 5, saved + 5]);
    expect(service.log.slice(lines).filter((line) => line.includes("/v1/availability"))).toEqual([]);
  });
});

describe("a finished answer isn't sent again", () => {
  const clock = new FakeClock();
  const from = new Date(clock.now() + 60_000).toISOString();
  const to = new Date(clock.now() + 70_000).toISOString();
  const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
promotions: [{ id: nowruz, match: {}, percentOff: "5", from: ${from}, to: ${to} }]
`;
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock, retail });
  });
  afterAll(() => service.close());

  /** Whether the next request for it makes a call. */
  async function isAskedAgain(path: string): Promise<boolean> {
    const before = service.calls(CHECK);
    expect((await service.ask(path)).status).toBe(200);
    return service.calls(CHECK) > before;
  }

  test("after a new fact about another name", async () => {
    for (let count = 0; count < 3; count += 1) await service.ask(HERAT);
    expect(isSentAgain(await service.ask(HERAT))).toBe(true);
    await service.ask("/v1/availability?domain=another-name.af");
    expect(isSentAgain(await service.ask(HERAT))).toBe(false);
    expect(isSentAgain(await service.ask(HERAT))).toBe(true);
  });

  test("after its facts have become stale, or after a purge", async () => {
    await service.ask(HERAT);
    expect(await isAskedAgain(HERAT)).toBe(false);
    await clock.advance(31_000);
    expect(await isAskedAgain(HERAT)).toBe(true);
    expect(await isAskedAgain(HERAT)).toBe(false);
    await purge(service, "availability");
    expect(await isAskedAgain(HERAT)).toBe(true);
  });

  test("after a promotion has begun or ended, or the clock has been set across that time", async () => {
    const promoted = async (): Promise<boolean> => {
      await service.ask("/v1/prices");
      return (await service.ask("/v1/prices")).text.includes("nowruz");
    };
    await clock.advance(Date.parse(from) - clock.now() - 1);
    expect(await promoted()).toBe(false);
    await clock.advance(1);
    expect(await promoted()).toBe(true);
    clock.stepWall(10_000);
    expect(await promoted()).toBe(false);
  });

  test("by a service that refuses new requests", async () => {
    const stopping = await startService({ clock, retail });
    await stopping.ask("/v1/prices");
    stopping.stop();
    expect((await stopping.ask("/v1/prices")).status).toBe(503);
    await stopping.close();
  });
});
