/** The client package against a scripted server: retries, interrupted streams, and every problem as one kind of error. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import { createClient, type SearchEvent, StorefrontProblem } from "../src/client.js";
import { until } from "../../../test/support/service.js";

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let server: Server;
let baseUrl: string;
let answers: Answer[];
let asked: IncomingMessage[];

beforeEach(async () => {
  answers = [];
  asked = [];
  server = createServer((request, response) => {
    asked.push(request);
    (answers.shift() ?? json({}))(response, request);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = z.object({ port: z.int() }).parse(server.address());
  baseUrl = `http://127.0.0.1:${port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});

function json(body: object, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return (response) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
  };
}

function refusal(retryAfter: string, status = 429): Answer {
  const body = { code: "rate_limited", detail: "Too many.", errors: [{ field: "q", message: "again" }] };
  return json(body, status, { "Retry-After": retryAfter, "x-request-id": "r1" });
}

const cutOff: Answer = (response) => {
  response.destroy();
};
const proxysPage =
  (status: number): Answer =>
  (response) => {
    response.writeHead(status).end("<h1>Bad");
  };

/** A stream of pieces, each in its own chunk. The connection is then ended, cut or left open. */
function stream(pieces: readonly string[], ending: "end" | "cut" | "open" = "end"): Answer {
  return (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    const next = (index: number): void => {
      const piece = pieces[index];
      if (piece !== undefined) {
        response.write(piece, () => setImmediate(next, index + 1));
      } else if (ending === "end") response.end();
      else if (ending === "cut") response.destroy();
    };
    next(0);
  };
}

async function problemOf(promise: Promise<unknown>): Promise<StorefrontProblem> {
  const problem: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (problem instanceof StorefrontProblem) return problem;
  throw new Error("the call did not fail with a problem", { cause: problem });
}

async function all(events: AsyncIterable<SearchEvent>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events)
    seen.push(event.event === "result" ? event.result.domain : `complete ${event.complete}`);
  return seen;
}

describe("a request", () => {
  test("has its parameters in the URL and accepts JSON", async () => {
    await createClient({ baseUrl: `${baseUrl}/shop/` }).search({ q: "کابل & co", tlds: [".af", ".com.af"] });
    const url = new URL(asked[0]?.url ?? "", baseUrl);
    expect(url.pathname).toBe("/shop/v1/search");
    expect(Object.fromEntries(url.searchParams)).toEqual({ q: "کابل & co", tlds: ".af,.com.af" });
    expect(asked[0]?.headers.accept).toBe("application/json");
  });

  test("is repeated when the service says so, and reports how long it waits", async () => {
    answers = [refusal("0"), refusal("0", 503), json({ asOf: "now", prices: [] })];
    const seen: (number | string)[] = [];
    const list = await createClient({ baseUrl }).prices(
      {},
      { onWait: (_problem, ms) => seen.push(ms), onRetry: () => seen.push("again") },
    );
    expect(list).toEqual({ asOf: "now", prices: [] });
    expect(seen).toEqual([0, "again", 0, "again"]);
  });

  test("fails after the maximum number of attempts, with everything that the problem contains", async () => {
    answers = [refusal("0"), refusal("0")];
    const problem = await problemOf(createClient({ baseUrl, attempts: 2 }).availability({ domain: "a.af" }));
    expect(problem).toMatchObject({
      code: "rate_limited",
      message: "Too many.",
      status: 429,
      retryAfter: 0,
      requestId: "r1",
      errors: [{ field: "q", message: "again" }],
    });
    expect(asked).toHaveLength(2);
  });

  test("isn't repeated if the retry time is too far away or missing", async () => {
    answers = [refusal("61"), json({ code: "upstream_failed", detail: "It failed." }, 502)];
    const client = createClient({ baseUrl });
    expect(await problemOf(client.prices())).toMatchObject({ retryAfter: 61 });
    expect(await problemOf(client.prices())).toMatchObject({
      code: "upstream_failed",
      retryAfter: undefined,
    });
    expect(asked).toHaveLength(2);
  });

  test("is aborted by its signal, even while it waits", async () => {
    answers = [refusal("30")];
    const stop = new AbortController();
    const reason = new Error("typed on");
    const asking = createClient({ baseUrl }).prices(
      {},
      { signal: stop.signal, onWait: () => stop.abort(reason) },
    );
    await expect(asking).rejects.toBe(reason);
    await expect(createClient({ baseUrl }).prices({}, { signal: stop.signal })).rejects.toBe(reason);
    expect(asked).toHaveLength(1);
  });

  test.each<[string, Answer, string, number]>([
    ["a proxy's page", proxysPage(500), "unreadable", 500],
    ["a proxy's page in place of the service", proxysPage(502), "unreachable", 502],
    ["text instead of JSON", (response) => response.end("OK"), "unreadable", 0],
    ["a cut connection", cutOff, "unreachable", 0],
  ])("that gets %s fails with a problem, too", async (_what, answer, code, status) => {
    answers = [answer];
    expect(await problemOf(createClient({ baseUrl, attempts: 1 }).prices())).toMatchObject({ code, status });
  });

  test("for a cart is posted as JSON", async () => {
    let body = "";
    answers = [
      (response, request) => {
        request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        request.on("end", () => json({ items: [], total: [] })(response, request));
      },
    ];
    await createClient({ baseUrl }).cart([{ domain: "kabul.af", action: "registration" }]);
    expect(asked[0]).toMatchObject({ method: "POST", url: "/v1/quotes" });
    expect(JSON.parse(body)).toEqual({ items: [{ domain: "kabul.af", action: "registration" }] });
  });
});

describe("the timeout of a call", () => {
  const silent: Answer = () => {};

  test("ends the call, no matter how much of the answer has arrived", async () => {
    answers = [silent, silent, (response) => response.writeHead(200).write("{")];
    const client = createClient({ baseUrl, timeoutMs: 60 });
    const asking = [client.prices(), client.cart([]), client.quote({ tld: ".af", action: "renewal" })];
    for (const one of asking)
      expect(await problemOf(one)).toMatchObject({
        code: "unreachable",
        message: "Too slow.",
      });
  });

  test("covers a stream with all its reconnects", async () => {
    answers = Array.from({ length: 99 }, () =>
      stream(["retry: 20\n\n", 'event: result\ndata: {"domain":"a.af"}\n\n'], "cut"),
    );
    const client = createClient({ baseUrl });
    expect(await problemOf(all(client.searchStream({ q: "a" }, { timeoutMs: 100 })))).toMatchObject({
      code: "unreachable",
    });
    expect(asked.length).toBeLessThan(10);
  });

  test("makes a call fail immediately if the wait would be longer", async () => {
    answers = [refusal("30")];
    const client = createClient({ baseUrl, timeoutMs: 20_000 });
    expect(await problemOf(client.prices())).toMatchObject({ code: "rate_limited", retryAfter: 30 });
  });
});

describe("a cached answer", () => {
  const prices = (asOf: string) => ({ asOf, prices: [] });

  test("is reused for as long as the service allows, once it has been revalidated: the first one may be an old copy of the browser", async () => {
    const headers = { ETag: '"1"', "Cache-Control": "public, max-age=300" };
    answers = [json(prices("1"), 200, headers), (response) => response.writeHead(304, headers).end()];
    const client = createClient({ baseUrl });
    const lists = [await client.prices(), await client.prices(), await client.prices()];
    expect(lists).toEqual([prices("1"), prices("1"), prices("1")]);
    expect(asked.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"1"']);
    // Another one, whose age a shared cache tells.
    const old = { ...headers, Age: "300" };
    answers = [json({}, 200, old), json({}, 304, old), json(prices("2"), 200, old)];
    for (let times = 0; times < 3; times += 1) await client.prices({ tld: ".af" });
    expect(asked.slice(2).map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"1"', '"1"']);
  });

  test("is revalidated by each of several calls that started together", async () => {
    const headers = { ETag: '"1"', "Cache-Control": "public, max-age=300" };
    answers = [json(prices("1"), 200, headers), json(prices("1"), 200, headers), json(prices("2"))];
    const client = createClient({ baseUrl });
    await Promise.all([client.prices(), client.prices()]);
    expect(await client.prices()).toEqual(prices("2"));
  });

  test("is dropped if the service forbids storing it, and if there are too many", async () => {
    const client = createClient({ baseUrl });
    const kept = { ETag: '"1"' };
    answers = [
      json(prices("1"), 200, { ...kept, "Cache-Control": "no-store" }),
      json(prices("1"), 200, kept),
    ];
    await client.prices();
    await client.prices();
    for (let more = 0; more < 30; more += 1) {
      answers = [json({}, 200, kept)];
      await client.availability({ domain: `${more}.af` });
    }
    await client.prices();
    expect(asked.filter(({ headers }) => headers["if-none-match"] !== undefined)).toEqual([]);
  });
});

describe("a streamed search", () => {
  const result = (domain: string, id = ""): string =>
    `${id && `id: ${id}\n`}event: result\ndata: {"domain":"${domain}"}\n\n`;
  const done = 'event: done\ndata: {"complete":true}\n\n';

  test("yields each result and the end, however the stream is split into chunks and lines", async () => {
    const crlf = `\uFEFF: hello\r\n\r\n${result("کابل.af", "1").replaceAll("\n", "\r\n")}`;
    const bytes = Buffer.from(`${crlf}event:result\ndata:{"domain":\ndata:"b.af"}\n\n${done}`);
    answers = [
      (response) => {
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        for (const byte of bytes) response.write(Buffer.of(byte));
        response.end();
      },
    ];
    expect(await all(createClient({ baseUrl }).searchStream({ q: "کابل" }))).toEqual([
      "کابل.af",
      "b.af",
      "complete true",
    ]);
    expect(asked[0]?.headers.accept).toMatch(/^text\/event-stream, application\/json/);
  });

  test.each(["cut", "end"] as const)("continues where it was interrupted: %s", async (ending) => {
    const half = 'id: 2\nevent: result\ndata: {"domain":"half.af"}';
    answers = [stream(["retry: 0\n\n", result("a.af", "1"), half], ending), stream([result("b.af"), done])];
    expect(await all(createClient({ baseUrl }).searchStream({ q: "a" }))).toEqual([
      "a.af",
      "b.af",
      "complete true",
    ]);
    expect(asked.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "1"]);
  });

  test("reconnects if it falls silent", async () => {
    answers = [stream(["retry: 0\n\n", result("a.af")], "open"), stream([done])];
    expect(await all(createClient({ baseUrl, silenceMs: 40 }).searchStream({ q: "a" }))).toEqual([
      "a.af",
      "complete true",
    ]);
  });

  test("fails if it is interrupted repeatedly without a result", async () => {
    answers = Array.from({ length: 9 }, () => stream(["retry: 0\n\n"], "cut"));
    expect(await problemOf(all(createClient({ baseUrl }).searchStream({ q: "a" })))).toMatchObject({
      code: "unreachable",
    });
    expect(asked).toHaveLength(3);
  });

  test("accepts JSON from a service that has no streams", async () => {
    answers = [json({ results: [{ domain: "a.af" }, { domain: "b.af" }], complete: false })];
    expect(await all(createClient({ baseUrl }).searchStream({ q: "a" }))).toEqual([
      "a.af",
      "b.af",
      "complete false",
    ]);
  });

  test("closes its connection when the loop is left or the signal aborts it", async () => {
    let closed = 0;
    const open: Answer = (response, request) => {
      response.on("close", () => (closed += 1));
      stream([result("a.af")], "open")(response, request);
    };
    answers = [open, open];
    const client = createClient({ baseUrl });
    for await (const { event } of client.searchStream({ q: "a" })) {
      expect(event).toBe("result");
      break;
    }
    const stop = new AbortController();
    const reason = new Error("typed on");
    const ended = (async () => {
      for await (const _event of client.searchStream({ q: "a" }, { signal: stop.signal })) stop.abort(reason);
    })();
    await expect(ended).rejects.toBe(reason);
    await until(() => closed === 2, "the end of both connections");
  });
});
