/** Search as you type: keystrokes cost no calls, each search is sent once, and a wait ends by itself or by a manual retry. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Clock, install } from "@sinonjs/fake-timers";
import { z } from "zod";
import { createClient, now, searchAsYouType, type SearchState, type TypedSearch } from "../src/index.js";
import { canBeName } from "../src/search-as-you-type.js";

interface Asked {
  readonly query: Readonly<Record<string, string>>;
  readonly isKnownOnly: boolean;
  readonly signal: AbortSignal | null | undefined;
}

let asked: Asked[];
let answers: ((asked: Asked) => Response | Promise<Response>)[];
let states: SearchState[];
let react: (state: SearchState) => void;
let box: TypedSearch;
let timers: Clock;

beforeEach(() => {
  // Not earlier than the client has seen, perhaps in another suite of this process.
  timers = install({ now: now(), toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  asked = [];
  answers = [];
  states = [];
  react = () => {};
  const client = createClient({
    fetch: async (url, init) => {
      const query = Object.fromEntries(new URL(z.string().parse(url), "http://shop.example").searchParams);
      const one = { query, isKnownOnly: query["only"] === "known", signal: init?.signal };
      asked.push(one);
      if (one.isKnownOnly) return searched([named(".af", "unknown")]);
      return (answers.shift() ?? (() => searched([named(".af"), named(".com.af")])))(one);
    },
  });
  box = searchAsYouType(client, {
    onChange(state) {
      states.push(state);
      react(state);
    },
  });
});
afterEach(() => {
  box.stop();
  timers.uninstall();
});

function named(tld: string, status: "available" | "taken" | "unknown" = "available", retryAfter?: number) {
  return { domain: `kabul${tld}`, tld, status, ...(retryAfter !== undefined && { retryAfter }) };
}

function searched(results: readonly object[]): Response {
  return Response.json({ results, complete: true });
}

function refused(code: string, status: number, retryAfter?: number): () => Response {
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  return () => Response.json({ code, detail: "No." }, { status, headers });
}

/** Types a word key by key, with a pause after each key. */
async function type(word: string, keyMs: number): Promise<void> {
  for (let length = 1; length <= word.length; length += 1) {
    box.type({ q: word.slice(0, length) });
    await pass(keyMs);
  }
}

const pass = (ms: number): Promise<number> => timers.tickAsync(ms);
const searches = (): string[] =>
  asked.flatMap(({ isKnownOnly, query }) => (isKnownOnly ? [] : [query["q"] ?? ""]));
const last = (): SearchState => box.state;

describe("typing", () => {
  test.each([120, 990])(
    "at %i ms a key searches nothing until a pause, and then the whole word once",
    async (keyMs) => {
      await type("saffronmarket", keyMs);
      expect(searches()).toEqual([]);
      expect(last().phase).toBe("typing");
      await pass(1_000 - keyMs);
      expect(searches()).toEqual(["saffronmarket"]);
      await pass(60_000);
      expect(searches()).toEqual(["saffronmarket"]);
      expect(last()).toMatchObject({ phase: "done", results: [{ tld: ".af" }, { tld: ".com.af" }] });
    },
  );

  test("shows known results meanwhile, with at most one request a second", async () => {
    await type("saffronmarket", 250);
    const requests = asked.filter(({ isKnownOnly }) => isKnownOnly).length;
    expect(requests).toBeGreaterThan(0);
    expect(requests).toBeLessThanOrEqual(4);
    expect(last()).toMatchObject({ phase: "typing", results: [{ status: "unknown" }] });
  });

  test.each(["ka", "-kabul", "kab ul"])("never searches for %j by itself, only on request", async (q) => {
    box.type({ q });
    await pass(60_000);
    expect(searches()).toEqual([]);
    box.search({ q });
    await pass(0);
    expect(searches()).toEqual([q]);
  });

  test("something else aborts the previous search, even while it waits, and drops its results", async () => {
    answers = [() => new Promise(() => {})];
    box.search({ q: "herat" });
    await pass(0);
    box.type({ q: "kabul" });
    expect(asked[0]?.signal?.aborted).toBe(true);
    expect(last()).toMatchObject({ phase: "typing", query: { q: "kabul" }, results: [] });
    await pass(1_000);
    expect(searches()).toEqual(["herat", "kabul"]);
    answers = [refused("quota_exhausted", 503, 20)];
    box.search({ q: "balkh" });
    await pass(0);
    expect(last().phase).toBe("waiting");
    box.type({ q: "balkhi" });
    await pass(60_000);
    expect(searches()).toEqual(["herat", "kabul", "balkh", "balkhi"]);
  });

  test("white space around the same words begins the pause again, and after a search, as emptying the box, searches nothing", async () => {
    box.type({ q: "kabul" });
    await pass(900);
    box.type({ q: "kabul " });
    await pass(900);
    expect(searches()).toEqual([]);
    await pass(100);
    expect(searches()).toEqual(["kabul "]);
    box.type({ q: " kabul" });
    await pass(2_000);
    box.type({ q: " " });
    await pass(2_000);
    expect(last()).toMatchObject({ phase: "idle", query: null, results: [] });
    expect(searches()).toEqual(["kabul "]);
  });
});

describe("a search", () => {
  test("starts immediately, only once while it runs, and says how long the service can wait for the registry", async () => {
    answers = [() => new Promise(() => {})];
    box.type({ q: "kabul" });
    box.search({ q: "kabul" });
    box.search({ q: "kabul" });
    const startMs = now();
    await pass(5_000);
    expect(searches()).toEqual(["kabul"]);
    expect(last()).toMatchObject({ phase: "searching", untilMs: startMs + 30_000 });
  });

  test("that is started when a result of another one arrives isn't ended by the other one", async () => {
    answers = [() => searched([named(".af"), named(".com.af")]), () => new Promise(() => {})];
    react = ({ results }) => {
      if (results.length > 0) box.search({ q: "herat" });
    };
    box.search({ q: "kabul" });
    await pass(0);
    expect(searches()).toEqual(["kabul", "herat"]);
    expect(last()).toMatchObject({ phase: "searching", query: { q: "herat" }, results: [] });
  });

  test("for another term is a new search", async () => {
    box.search({ q: "kabul" });
    box.search({ q: "kabul", years: 2 });
    await pass(0);
    expect(asked.map(({ query }) => query["years"])).toEqual([undefined, "2"]);
    expect(asked[0]?.signal?.aborted).toBe(true);
  });

  test("asks for every unknown name at its own time, and for nothing else, however many there are and even if a request is pending", async () => {
    const tlds = [".af", ".com.af", ".net.af", ".org.af", ".edu.af", ".gov.af"];
    let answerSlowly = (): void => {};
    const slowly = new Promise<void>((answer) => {
      answerSlowly = answer;
    });
    answers = [
      () => searched(tlds.map((tld, at) => named(tld, "unknown", 10 * (at + 1)))),
      () => slowly.then(() => searched([named(".af", "taken")])),
      ...tlds.slice(1).map((tld) => () => searched([named(tld)])),
    ];
    box.search({ q: "kabul.af" });
    await pass(9_999);
    expect(last()).toMatchObject({ phase: "waiting", problem: null, untilMs: now() + 1 });
    await pass(50_001);
    // By their label: a full name would be checked again with each of them.
    expect(asked.map(({ query }) => query)).toEqual([
      { q: "kabul.af" },
      ...tlds.map((tld) => ({ q: "kabul", tlds: tld })),
    ]);
    expect(last()).toMatchObject({ phase: "searching" });
    answerSlowly();
    await pass(0);
    expect(last()).toMatchObject({ phase: "done", untilMs: null });
    expect(last().results.map(({ status }) => status)).toEqual(
      tlds.map((tld) => (tld === ".af" ? "taken" : "available")),
    );
  });

  test("says why and until when one name waits, as soon as no other name is checked", async () => {
    const startMs = now();
    answers = [
      () => searched([named(".af"), named(".com.af", "unknown", 2), named(".net.af", "unknown", 6)]),
      refused("rate_limited", 429, 40),
      () => searched([named(".net.af")]),
    ];
    box.search({ q: "kabul" });
    await pass(2_000);
    expect(last()).toMatchObject({ phase: "waiting", problem: null, untilMs: startMs + 6_000 });
    await pass(4_000);
    expect(asked.map(({ query }) => query["tlds"])).toEqual([undefined, ".com.af", ".net.af"]);
    const problem: unknown = expect.objectContaining({ code: "rate_limited" });
    expect(last()).toMatchObject({ phase: "waiting", problem, untilMs: startMs + 42_000 });
    await pass(36_000);
    expect(asked.map(({ query }) => query["tlds"]).at(-1)).toBe(".com.af");
    expect(last()).toMatchObject({ phase: "done" });
  });

  test("that fails for one name ends for all names", async () => {
    answers = [
      () => searched([named(".af", "unknown", 5), named(".com.af", "unknown", 20)]),
      refused("upstream_failed", 502),
    ];
    box.search({ q: "kabul" });
    await pass(60_000);
    expect(searches()).toHaveLength(2);
    expect(last()).toMatchObject({ phase: "failed", problem: { code: "upstream_failed" } });
  });

  test("that is refused says why and until when, continues by itself, and can be retried immediately", async () => {
    answers = [refused("quota_exhausted", 503, 30), refused("quota_exhausted", 503, 20)];
    box.search({ q: "kabul" });
    await pass(10_000);
    expect(last()).toMatchObject({ phase: "waiting", problem: { code: "quota_exhausted" } });
    expect(last().untilMs).toBe(now() + 20_000);
    box.retry();
    await pass(0);
    expect(last()).toMatchObject({ phase: "waiting", untilMs: now() + 20_000 });
    await pass(19_999);
    expect(last().phase).toBe("waiting");
    await pass(1);
    expect(last().phase).toBe("done");
    expect(searches()).toHaveLength(3);
  });

  test("asks again when promised, even if the device's clock is set back while results arrive", async () => {
    let end = (): void => {};
    const body = new ReadableStream<string>({
      start(controller) {
        const unknown = JSON.stringify(named(".com.af", "unknown", 40));
        controller.enqueue(`event: result\ndata: ${unknown}\n\n`);
        end = () => controller.enqueue('event: done\ndata: {"complete":false}\n\n');
      },
    });
    const headers = { "content-type": "text/event-stream" };
    answers = [() => new Response(body.pipeThrough(new TextEncoderStream()), { headers })];
    box.search({ q: "kabul" });
    await pass(10_000);
    timers.setSystemTime(Date.now() - 3_600_000);
    end();
    await pass(29_999);
    expect(last()).toMatchObject({ phase: "waiting", untilMs: now() + 1 });
    expect(searches()).toHaveLength(1);
    await pass(1);
    expect(searches()).toHaveLength(2);
  });

  test("continues as soon as a device wakes up that slept beyond the end of the wait", async () => {
    answers = [refused("quota_exhausted", 503, 30)];
    box.search({ q: "kabul" });
    await pass(5_000);
    // Timers stood still meanwhile.
    timers.setSystemTime(Date.now() + 600_000);
    await pass(1_000);
    expect(last().phase).toBe("done");
  });

  test("that fails says so, and can be retried manually for the missing names", async () => {
    answers = [
      refused("upstream_failed", 502),
      () => searched([named(".af"), named(".com.af", "unknown", 90)]),
    ];
    box.search({ q: "kabul" });
    await pass(0);
    expect(last()).toMatchObject({ phase: "failed", problem: { code: "upstream_failed" }, untilMs: null });
    box.retry();
    await pass(0);
    expect(last()).toMatchObject({ phase: "waiting", problem: null, untilMs: now() + 90_000 });
    box.retry();
    await pass(0);
    expect(asked.at(-1)?.query).toMatchObject({ q: "kabul", tlds: ".com.af" });
    expect(last().phase).toBe("done");
  });

  test("that is cut off before each name has an answer is retried for all names", async () => {
    const cutOff = `event: result\ndata: ${JSON.stringify(named(".com.af", "unknown", 40))}\n\n`;
    const lost = (): Response => new Response("Bad Gateway", { status: 502 });
    answers = [
      () => new Response(cutOff, { headers: { "content-type": "text/event-stream" } }),
      lost,
      lost,
      lost,
      () => searched([named(".af"), named(".com.af", "unknown", 90)]),
    ];
    box.search({ q: "kabul" });
    await pass(5_000);
    expect(last()).toMatchObject({ phase: "failed", results: [{ tld: ".com.af", status: "unknown" }] });
    box.retry();
    await pass(0);
    expect(asked.at(-1)?.query).toEqual({ q: "kabul" });
    expect(last().results.map(({ tld }) => tld)).toEqual([".com.af", ".af"]);
    // Now each name has one.
    box.retry();
    await pass(0);
    expect(asked.at(-1)?.query["tlds"]).toBe(".com.af");
  });

  test("gives up after a few rounds and leaves the decision to the visitor", async () => {
    answers = Array.from({ length: 9 }, () => () => searched([named(".af", "unknown", 10)]));
    box.search({ q: "kabul" });
    await pass(600_000);
    expect(searches()).toHaveLength(4);
    expect(last()).toMatchObject({ phase: "done", results: [{ status: "unknown" }] });
  });

  test("leaves no timers, requests or events behind when it is stopped", async () => {
    answers = [refused("quota_exhausted", 503, 30)];
    box.search({ q: "kabul" });
    await pass(0);
    box.stop();
    const before = states.length;
    await pass(120_000);
    expect([searches().length, states.length, timers.countTimers()]).toEqual([1, before, 0]);
  });
});

test.each([
  ["kabul", true],
  ["https://www.kabul.af/shop?x=1", true],
  ["a.af", false],
  ["www.a.af", false],
  ["کابل", true],
  ["a-b", true],
  ["kabul-.af", false],
  ["@@@@", false],
  [".af", false],
])("%j can be a name: %s", (text, expected) => {
  expect(canBeName(text)).toBe(expected);
});
