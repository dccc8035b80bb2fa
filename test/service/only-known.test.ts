/** `only=known`: what memory holds, for people who are still typing. It costs nothing, waits for nothing and counts as nothing. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/http/openapi.js";
import { openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { faultsOf, objectAt, schemaValidator } from "../support/openapi.js";
import { problemOf, type Service, startService, until } from "../support/service.js";

const document = openApiDocument({ version: "1.2.3" });
const schemas = objectAt(objectAt(document, "components"), "schemas");

function expectShape(schema: "Availability" | "Search", body: unknown): void {
  expect(schemas).toHaveProperty(schema);
  const validator = schemaValidator(document, { $ref: `#/components/schemas/${schema}` });
  expect(faultsOf(validator, body)).toEqual([]);
}

function unknown(domain: string, tld = ".af") {
  return {
    domain,
    tld,
    status: "unknown",
    available: false,
    price: null,
    renewal: null,
    asOf: null,
    stale: false,
  };
}

describe("with only=known", () => {
  let service: Service;
  let before: number;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
    await until(() => service.calls() === 29, "the start's own calls");
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/search?q=herat");
    before = service.calls();
  });
  afterEach(() => {
    expect(service.calls()).toBe(before);
  });
  afterAll(() => service.close());

  test("a name in memory is answered as without it", async () => {
    const plain = await service.ask("/v1/availability?domain=kabul.af");
    const known = await service.ask("/v1/availability?domain=kabul.af&only=known");
    expect([known.status, known.text]).toEqual([200, plain.text]);
  });

  test("a name not in memory is unknown, with nothing to come back for", async () => {
    const { status, body } = await service.ask("/v1/availability?domain=nobody-asked.af&only=known");
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...unknown("nobody-asked.af"), years: 1, premium: false });
    expect(body).not.toHaveProperty("retryAfter");
    expect(body).not.toHaveProperty("kept");
    expectShape("Availability", body);
  });

  test("a search tells what memory holds, name by name, and whether that is all", async () => {
    const { body } = await service.ask("/v1/search?q=kabul&tlds=.af,.com.af&only=known");
    expect(body).toMatchObject({
      label: "kabul",
      results: [{ domain: "kabul.af", status: "available" }, unknown("kabul.com.af", ".com.af")],
      complete: false,
    });
    expect(JSON.stringify(body)).not.toMatch(/retryAfter|kept/);
    expectShape("Search", body);

    const plain = await service.ask("/v1/search?q=herat");
    const known = await service.ask("/v1/search?q=herat&only=known");
    expect(known.text).toBe(plain.text);
    expect(known.body).toMatchObject({ complete: true });
  });

  test("the answer follows what is learned in the meantime", async () => {
    const path = "/v1/search?q=later&tlds=.af,.com.af&only=known";
    expect((await service.ask(path)).body).toMatchObject({ results: [unknown("later.af"), {}] });
    await service.ask("/v1/availability?domain=later.af");
    before += 1;
    expect((await service.ask(path)).body).toMatchObject({
      results: [{ domain: "later.af", status: "available" }, unknown("later.com.af", ".com.af")],
      complete: false,
    });
  });

  test("headers are the same for a name in memory and one that is not", async () => {
    for (const [known, other] of [
      ["/v1/availability?domain=kabul.af", "/v1/availability?domain=other-one.af"],
      ["/v1/search?q=herat", "/v1/search?q=other-one"],
    ] as const) {
      for (const method of ["GET", "HEAD"]) {
        const [one, two, plain] = await Promise.all(
          [`${known}&only=known`, `${other}&only=known`, known].map((path) =>
            service.ask(path, { method, headers: { Accept: "application/json" } }),
          ),
        );
        expect(one?.headers["cache-control"]).toBe(plain?.headers["cache-control"]);
        expect(two?.headers["cache-control"]).toBe(plain?.headers["cache-control"]);
        expect(Object.keys(two?.headers ?? {})).toEqual(Object.keys(one?.headers ?? {}));
        if (method === "HEAD") expect(two?.headers).not.toHaveProperty("content-length");
      }
    }
    const { headers } = await service.ask("/v1/availability?domain=other-one.af&only=known");
    expect(headers["cache-control"]).toBe("private, max-age=5");
  });

  test("a stream tells the results in memory and ends", async () => {
    const { port } = service;
    const stream = await openStream({ port }, "/v1/search?q=kabul&tlds=.af,.com.af&only=known");
    const events = await stream.whole();
    expect(events).toMatchObject([
      { event: "result", id: expect.any(String), data: { domain: "kabul.af", status: "available" } },
      { event: "done", data: { complete: false } },
    ]);
    const id = events[0]?.id ?? "";
    const resumed = await openStream({ port }, "/v1/search?q=kabul&tlds=.af,.com.af&only=known", {
      "Last-Event-ID": id,
    });
    expect(await resumed.whole()).toMatchObject([{ event: "done", data: { complete: false } }]);
    const whole = await (await openStream({ port }, "/v1/search?q=herat&only=known")).whole();
    expect(whole.map(({ event }) => event)).toEqual(["result", "result", "result", "result", "done"]);
    expect(whole.at(-1)?.data).toEqual({ complete: true });
  });

  test.each(["only=", "only=fresh", "only=KNOWN", "only=known&only=known"])("%s is refused", async (only) => {
    for (const path of ["/v1/availability?domain=kabul.af", "/v1/search?q=kabul"]) {
      const problem = problemOf(await service.ask(`${path}&${only}`));
      expect(problem).toMatchObject({ code: "invalid_request", errors: [{ field: "only" }] });
    }
  });

  test("what cannot be a name is refused as ever", async () => {
    for (const path of ["/v1/availability?domain=-.af&only=known", "/v1/search?q=-&only=known"])
      expect(problemOf(await service.ask(path)).code).toBe("invalid_request");
    expect(problemOf(await service.ask("/v1/prices?only=known")).code).toBe("invalid_request");
  });
});

test("with only=known no request counts towards the cold limit, and none is refused by it", async () => {
  const service = await startService({ clock: new FakeClock(), env: { CLIENT_COLD_PER_MINUTE: "1" } });
  await until(() => service.calls() === 29, "the start's own calls");
  for (let typed = 1; typed <= 5; typed += 1) {
    await service.ask(`/v1/availability?domain=typed-${typed}.af&only=known`);
    await service.ask(`/v1/search?q=typed-${typed}&only=known`);
  }
  expect(service.calls()).toBe(29);
  expect((await service.ask("/v1/availability?domain=meant.af")).status).toBe(200);
  for (const path of ["/v1/availability?domain=typed-6.af", "/v1/search?q=typed-6"])
    expect((await service.ask(`${path}&only=known`)).status).toBe(200);
  await service.close();
});

test("with only=known nobody waits while the quota is spent and the upstream is down", async () => {
  const service = await startService({
    clock: new FakeClock(),
    retail: `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`,
    env: { UPSTREAM_RATE_LIMIT: "7", UPSTREAM_RATE_HEADROOM: "3" },
  });
  try {
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/availability?domain=google.af");
    expect(problemOf(await service.ask("/v1/availability?domain=herat.af")).code).toBe("quota_exhausted");
    await service.sandbox.close();
    for (const [domain, status] of [
      ["kabul.af", "available"],
      ["google.af", "taken"],
      ["herat.af", "unknown"],
    ] as const) {
      const known = await service.ask(`/v1/availability?domain=${domain}&only=known`);
      expect([known.status, known.body]).toMatchObject([200, { status }]);
    }
    const { body } = await service.ask("/v1/search?q=herat&only=known");
    expect(body).toMatchObject({ results: [unknown("herat.af")], complete: false });
  } finally {
    await service.close();
  }
});
