/** A search as an event stream: known results are sent at once, others when quota allows, and nothing is kept for clients that have gone. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/wire/document.js";
import { availabilityShape, searchShape } from "../../src/wire/visitors.js";
import { type OpenStream, openStream, type ReadEvent } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { faultsOf, objectAt, schemaValidator } from "../support/openapi.js";
import {
  CHECK,
  inTime,
  problemOf,
  type Service,
  startService,
  until,
  withService,
} from "../support/service.js";
import { overviewOf, purge } from "../support/staff.js";

/** The domain and status of each result, in the order of the stream. */
function resultsIn(events: readonly ReadEvent[]): [string, string][] {
  return events
    .filter(({ event }) => event === "result")
    .map(({ data }) => availabilityShape.parse(data))
    .map(({ domain, status, suggested }) => [domain, suggested ? `suggested ${status}` : status]);
}

const sorted = (results: readonly [string, string][]): [string, string][] =>
  results.toSorted(([one], [other]) => one.localeCompare(other));
const sortedResultsIn = (events: readonly ReadEvent[]): [string, string][] => sorted(resultsIn(events));

const domainsOf = (events: readonly ReadEvent[]): string[] =>
  sortedResultsIn(events).map(([domain]) => domain);
const lastIdOf = (events: readonly ReadEvent[]): string =>
  events.findLast(({ id }) => id !== undefined)?.id ?? "";

const done = (complete: boolean): ReadEvent => ({ id: undefined, event: "done", data: { complete } });

const openTo = ({ port }: Service, query: string, headers?: Readonly<Record<string, string>>) =>
  openStream({ port }, `/v1/search?${query}`, headers);

describe("with quota to spare", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock, env: { TRUST_PROXY_HOPS: "1" } });
  });
  afterAll(() => service.close());

  async function checksOf(act: () => Promise<unknown>): Promise<number> {
    const before = service.calls(CHECK);
    await act();
    return service.calls(CHECK) - before;
  }

  test("every TLD is sent as in JSON, each with an id, followed by `done`", async () => {
    // No other test requests this name, because known names are sent at once, without a comment.
    service.sandbox.control.setTaken("first-of-all.af", false);
    const stream = await openTo(service, "q=first-of-all");
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    });
    const events = await stream.whole();
    expect(stream.comments()).toBe(1);
    const { body } = await service.ask("/v1/search?q=first-of-all");
    const { results } = searchShape.parse(body);
    expect(events.slice(0, -1).map(({ data }) => data)).toEqual(expect.arrayContaining(results));
    expect(events).toHaveLength(results.length + 1);
    expect(events.at(-1)).toEqual(done(true));
    const ids = events.slice(0, -1).map(({ id }) => id);
    expect(new Set(ids).size).toBe(results.length);
    expect(ids).not.toContain(undefined);
  });

  test("a name known before the exact name is sent before it", async () => {
    await service.ask("/v1/search?q=order&tlds=.net.af,.org.af");
    service.sandbox.control.setBehaviour({ beforeMs: 200 });
    const events = await (await openTo(service, "q=order&tlds=.af,.net.af,.org.af")).whole();
    service.sandbox.control.setBehaviour({ beforeMs: 0 });
    const domains = resultsIn(
      events.filter(({ data }) => !availabilityShape.safeParse(data).data?.suggested),
    );
    expect(domains.map(([domain]) => domain)).toEqual(["order.net.af", "order.org.af", "order.af"]);
  });

  test("among names in memory the exact name comes first", async () => {
    await service.ask("/v1/search?q=post");
    const events = await (await openTo(service, "q=post.com.af")).whole();
    expect(resultsIn(events).slice(0, 2)).toEqual([
      ["post.com.af", "available"],
      ["post.af", "taken"],
    ]);
  });

  test("everything that is already known arrives in one packet", async () => {
    await service.ask("/v1/search?q=packet&tlds=.af,.net.af");
    const packets = await new Promise<string[]>((ended, failed) => {
      const received: string[] = [];
      const socket = connect(service.port, "127.0.0.1", () => {
        socket.write(
          "GET /v1/search?q=packet&tlds=.af,.net.af&only=known HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n",
        );
      });
      socket.setEncoding("utf8").on("data", (packet: string) => received.push(packet));
      socket.once("error", failed).once("close", () => {
        ended(received);
      });
    });
    expect(packets.map((packet) => packet.match(/^event: .*$/gm))).toEqual([
      ["event: result", "event: result", "event: done"],
    ]);
  });

  test("a client that reconnects gets only the missing names, and only these are looked up", async () => {
    const events = await (await openTo(service, "q=kabul")).whole();
    const all = resultsIn(events);
    expect(all).toHaveLength(4);
    for (const [index, { id = "" }] of events.slice(0, -1).entries()) {
      const missing = all.slice(index + 1);
      for (const lookups of [0, missing.length]) {
        if (lookups > 0) await purge(service, "availability");
        const checks = await checksOf(async () => {
          const again = await (await openTo(service, "q=kabul", { "Last-Event-ID": id })).whole();
          expect(sortedResultsIn(again)).toEqual(sorted(missing));
          expect(again.at(-1)).toEqual(done(true));
        });
        expect(checks).toBe(lookups);
      }
    }
  });

  test("an id that isn't from this search is ignored", async () => {
    const id = lastIdOf(await (await openTo(service, "q=kabul")).whole());
    for (const [query, wrong] of [
      ["q=kabul", "x"],
      ["q=kabul", `${id}${"1".repeat(4000)}`],
      ["q=kabul", id.replaceAll("1", "2")],
      ["q=kabul", `${id}.1`],
      ["q=khyber", id],
      ["q=kabul&years=2", id],
      ["q=kabul&tlds=.com.af,.af", id],
    ] as const) {
      const fresh = await (await openTo(service, query)).whole();
      const again = await (await openTo(service, query, { "Last-Event-ID": wrong })).whole();
      expect([query, wrong, sortedResultsIn(again)]).toEqual([query, wrong, sortedResultsIn(fresh)]);
    }
  });

  test("HEAD returns the content type and makes no call", async () => {
    const answer = await service.ask("/v1/search?q=head-only", {
      method: "HEAD",
      headers: { Accept: "text/event-stream" },
    });
    expect([answer.status, answer.headers["content-type"]]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    expect(answer.headers["cache-control"]).toBe("no-store");
    const { body } = await service.ask("/v1/search?q=head-only&only=known");
    const { results } = searchShape.parse(body);
    expect(results.map(({ status }) => status)).toEqual(Array(4).fill("unknown"));
  });

  test("the Accept field decides between events and JSON", async () => {
    // Somebody else has made the names known.
    await service.ask("/v1/search?q=kabul", { headers: { "X-Forwarded-For": "192.0.2.77" } });
    for (const [Accept, type] of [
      ["text/event-stream, application/json", "text/event-stream"],
      ["text/*", "text/event-stream"],
      ["text/event-stream;q=0.5, application/json", "application/json"],
      ["text/event-stream;q=0, */*", "application/json"],
      ["*/*", "application/json"],
    ] as const) {
      const { headers, status } = await service.ask("/v1/search?q=kabul", { headers: { Accept } });
      expect([Accept, status, headers["content-type"]?.split(";")[0]]).toEqual([Accept, 200, type]);
    }
    for (const Accept of ["text/html", "text/event-stream;q=0"]) {
      const answer = await service.ask("/v1/search?q=kabul", { headers: { Accept } });
      expect(problemOf(answer).code).toBe("not_acceptable");
    }
  });

  test("the log contains neither the searched nor the suggested names", async () => {
    await (await openTo(service, "q=google", { "Last-Event-ID": "zanzibar" })).whole();
    await until(() => service.log.some((line) => line.includes("/v1/search")));
    expect(service.log.filter((line) => /google|kabul|zanzibar/.test(line))).toEqual([]);
  });

  test("a client with ten open searches gets the time when the first of them will end, although the wall clock was set", async () => {
    const hold = service.sandbox.control.hold({ operation: "check" });
    const streams = await Promise.all(Array.from({ length: 10 }, (_, n) => openTo(service, `q=open-${n}`)));
    await clock.advance(1_000);
    clock.stepWall(10 * 60_000);
    await clock.advance(1_000);
    const headers = { Accept: "text/event-stream" };
    const refused = await service.ask("/v1/search?q=herat", { headers });
    expect(problemOf(refused)).toMatchObject({ code: "rate_limited", retryAfter: 33 });
    streams.push(await openTo(service, "q=herat", { "X-Forwarded-For": "203.0.113.9" }));
    expect(streams.at(-1)?.status).toBe(200);
    streams[0]?.hangUp();
    await until(() => service.log.some((line) => line.includes('"status":499')));
    streams.push(await openTo(service, "q=herat"));
    expect(streams.at(-1)?.status).toBe(200);
    for (const stream of streams) stream.hangUp();
    hold.release();
  });

  describe("suggestions", () => {
    test("follow the exact name if it is taken, before `done`, and match the OpenAPI document like the others", async () => {
      const events = await (await openTo(service, "q=bank")).whole();
      const results = resultsIn(events);
      const suggested = results.filter(([, status]) => status.startsWith("suggested"));
      expect(suggested.length).toBeGreaterThan(0);
      expect(new Set(suggested.map(([, status]) => status))).toEqual(new Set(["suggested available"]));
      const first = results.findIndex(([, status]) => status.startsWith("suggested"));
      expect(results.findIndex(([domain]) => domain === "bank.af")).toBeLessThan(first);
      expect(events.at(-1)).toEqual(done(true));
      const document = openApiDocument({ version: "1" });
      const schemas = objectAt(document.components, "schemas");
      const validate = schemaValidator(document, objectAt(schemas, "Availability"));
      for (const { data } of events.slice(0, -1)) expect(faultsOf(validate, data)).toEqual([]);
    });

    test("aren't sent if it is available, and aren't part of the JSON answer", async () => {
      expect(resultsIn(await (await openTo(service, "q=kabul")).whole())).toHaveLength(4);
      const { body } = await service.ask("/v1/search?q=bank");
      expect(searchShape.parse(body).results).toHaveLength(4);
    });

    test("aren't repeated to a client that reconnects, and the missing ones still follow", async () => {
      const events = await (await openTo(service, "q=news")).whole();
      const isSuggested = ({ data }: ReadEvent) => availabilityShape.safeParse(data).data?.suggested === true;
      const first = events.findIndex(isSuggested);
      const before = resultsIn(events.slice(0, first + 1)).map(([domain]) => domain);
      const again = await (
        await openTo(service, "q=news", { "Last-Event-ID": events[first]?.id ?? "" })
      ).whole();
      const after = resultsIn(again).map(([domain]) => domain);
      expect(after.filter((domain) => before.includes(domain))).toEqual([]);
      expect([...before, ...after].toSorted()).toEqual(domainsOf(events));
    });
  });
});

const FOUR_TLDS = `
currency: USD
catalog:
  - { tld: .af, years: { registration: [1] } }
  - { tld: .com.af, years: { registration: [1] } }
  - { tld: .net.af, years: { registration: [1] } }
  - { tld: .org.af, years: { registration: [1] } }
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;

/** Ten calls: four prices and a list at startup, four names in a search, and one that is left. */
const ONE_LEFT = { UPSTREAM_RATE_LIMIT: "13", UPSTREAM_RATE_HEADROOM: "3" };

interface LowQuota {
  readonly service: Service;
  readonly clock: FakeClock;
  queued(): Promise<number>;
  open(query?: string, headers?: Readonly<Record<string, string>>): Promise<OpenStream>;
}

/** Runs `act` with a service that has one call left of its budget, and gets the others back after `inMs`. */
function withLowQuota(
  inMs: number,
  act: (context: LowQuota) => Promise<void>,
  { retail = FOUR_TLDS, env = {} }: { readonly retail?: string; readonly env?: Record<string, string> } = {},
): Promise<void> {
  return withService({ retail, env: { ...ONE_LEFT, ...env } }, async (service, clock) => {
    const streams: OpenStream[] = [];
    await service.ask("/v1/search?q=kabul");
    expect(service.calls()).toBe(9);
    await clock.advance(60_000 - inMs);
    await act({
      service,
      clock,
      async queued() {
        const { lanes } = (await overviewOf(service)).quota;
        return Object.values(lanes).reduce((sum, { queued }) => sum + queued, 0);
      },
      async open(query = "q=bank", headers) {
        const stream = await openTo(service, query, headers);
        streams.push(stream);
        return stream;
      },
    }).finally(() => {
      for (const stream of streams) stream.hangUp();
    });
  });
}

const UNCHECKED = ["bank.com.af", "bank.net.af", "bank.org.af"];

describe("with little quota", () => {
  test("the exact name is sent first, comments keep the stream open, and the others follow once quota is available", () =>
    withLowQuota(20_000, async ({ clock, open }) => {
      const stream = await open();
      await stream.atLeast(1);
      expect(resultsIn(stream.events)).toEqual([["bank.af", "taken"]]);
      expect(stream.comments()).toBe(1);
      await clock.advance(15_000);
      await until(() => stream.comments() === 2, "the second comment");
      await clock.advance(4_000);
      expect([stream.events.length, stream.ended()]).toEqual([1, false]);
      // Reservations are for whole seconds.
      for (let second = 0; second < 3; second += 1) await clock.advance(1_000);
      const events = await stream.whole();
      expect(sortedResultsIn(events.slice(1))).toEqual([
        ["bank.com.af", "taken"],
        ["bank.net.af", expect.stringMatching(/available|taken/)],
        ["bank.org.af", expect.stringMatching(/available|taken/)],
      ]);
      expect(events.at(-1)).toEqual(done(true));
    }));

  test("names that quota can't serve in time are sent as unknown, with an accurate retryAfter", () =>
    withLowQuota(60_000, async ({ service, clock, open }) => {
      const events = await (await open()).whole();
      expect(sortedResultsIn(events)).toEqual([
        ["bank.af", "taken"],
        ...UNCHECKED.map((domain) => [domain, "unknown"]),
      ]);
      expect(events.at(-1)).toEqual(done(false));
      const waits = events.slice(0, -1).map(({ data }) => availabilityShape.parse(data).retryAfter ?? 0);
      await clock.advance(Math.max(...waits) * 1000);
      const before = service.calls(CHECK);
      const stream = await open("q=bank", { "Last-Event-ID": lastIdOf(events) });
      const again = await inTime(clock, stream.whole());
      expect(domainsOf(again)).toEqual(UNCHECKED);
      expect(again.at(-1)).toEqual(done(true));
      expect(service.calls(CHECK) - before).toBe(3);
    }));

  test.each([
    ["in the queue", 5_000, 3],
    ["for a reserved second", 20_000, 0],
  ])("no call is made for a client that disconnects while its names wait %s", (_where, inMs, waiting) =>
    withLowQuota(inMs, async ({ service, clock, open, queued }) => {
      const stream = await open();
      await stream.atLeast(1);
      await until(async () => (await queued()) === waiting, "the wait of its names");
      stream.hangUp();
      await until(() => service.log.some((line) => line.includes('"status":499')));
      expect(await queued()).toBe(0);
      const before = service.calls(CHECK);
      await clock.advance(60_000);
      expect(service.calls(CHECK)).toBe(before);
    }),
  );

  test("a stopping service ends its streams immediately, and another one resumes them", () =>
    withLowQuota(5_000, async ({ service, open, queued }) => {
      const stream = await open();
      await stream.atLeast(1);
      await until(async () => (await queued()) === 3, "the wait of three names");
      service.stop();
      const events = await stream.whole();
      expect(sortedResultsIn(events.slice(1))).toEqual(UNCHECKED.map((domain) => [domain, "unknown"]));
      expect(events.at(-1)).toEqual(done(false));
      await until(() => service.log.some((line) => line.includes('"status":200') && line.includes("search")));

      await withService({ retail: FOUR_TLDS }, async (other) => {
        const more = await openTo(other, "q=bank", { "Last-Event-ID": lastIdOf(events) });
        expect(domainsOf(await more.whole())).toEqual(UNCHECKED);
      });
    }));

  test("suggestions that need a call aren't made until there are calls to spare", () =>
    withLowQuota(
      20_000,
      async ({ service, clock, open }) => {
        const names = async () => domainsOf(await (await open("q=bank&tlds=.af")).whole());
        expect([await names(), service.calls(CHECK)]).toEqual([["bank.af"], 5]);
        await clock.advance(30_000);
        expect([await names(), service.calls(CHECK)]).toEqual([["bank.af", "mybank.af"], 6]);
      },
      // One call is left once the exact name is known, which isn't enough to spare.
      { retail: `${FOUR_TLDS}suggestions: { prefixes: [my] }`, env: { UPSTREAM_RATE_LIMIT: "14" } },
    ));

  test("a client that searches too many new names while others wait gets them as unknown in its stream", () =>
    withLowQuota(
      5_000,
      async ({ service, clock, queued, open }) => {
        const other = (name: string) =>
          service.ask(`/v1/availability?domain=${name}.af`, {
            headers: { "X-Forwarded-For": "203.0.113.9" },
          });
        await other("google");
        const waiting = other("herat");
        await until(async () => (await queued()) === 1);
        const events = await (await open("q=bank&tlds=.af")).whole();
        expect(events.map(({ data }) => data)).toEqual([
          expect.objectContaining({ domain: "bank.af", status: "unknown", retryAfter: 5, kept: false }),
          { complete: false },
        ]);
        expect((await inTime(clock, waiting)).status).toBe(200);
      },
      { env: { CLIENT_COLD_PER_MINUTE: "1", TRUST_PROXY_HOPS: "1" } },
    ));
});
