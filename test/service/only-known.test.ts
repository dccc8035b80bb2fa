/** `only=known` answers from memory, for people who are still typing. It makes no call, doesn't wait, and counts towards no limit. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/wire/document.js";
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

describe("only=known", () => {
  let service: Service;
  let before: number;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
    await until(() => service.calls() === 29, "the last startup call");
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/search?q=herat");
    before = service.calls();
  });
  afterEach(() => {
    expect(service.calls()).toBe(before);
  });
  afterAll(() => service.close());

  test("answers a name in memory as a normal request does", async () => {
    const plain = await service.ask("/v1/availability?domain=kabul.af");
    const known = await service.ask("/v1/availability?domain=kabul.af&only=known");
    expect([known.status, known.text]).toEqual([200, plain.text]);
  });

  test("returns a name that isn't in memory as unknown, without retryAfter or kept", async () => {
    const { status, body } = await service.ask("/v1/availability?domain=nobody-asked.af&only=known");
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...unknown("nobody-asked.af"), years: 1, premium: false });
    expect(body).not.toHaveProperty("retryAfter");
    expect(body).not.toHaveProperty("kept");
    expectShape("Availability", body);
  });

  test("returns what is known of each name of a search, and whether that is complete", async () => {
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

  test("includes what has been learned since the last request", async () => {
    const path = "/v1/search?q=later&tlds=.af,.com.af&only=known";
    expect((await service.ask(path)).body).toMatchObject({ results: [unknown("later.af"), {}] });
    await service.ask("/v1/availability?domain=later.af");
    before += 1;
    expect((await service.ask(path)).body).toMatchObject({
      results: [{ domain: "later.af", status: "available" }, unknown("later.com.af", ".com.af")],
      complete: false,
    });
  });

  test("sends the same headers whether or not a name is in memory", async () => {
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

  test("streams the results in memory and ends the stream", async () => {
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

  test.each(["only=", "only=fresh", "only=KNOWN", "only=known&only=known"])(
    "is the only accepted form: %s is rejected",
    async (only) => {
      for (const path of ["/v1/availability?domain=kabul.af", "/v1/search?q=kabul"]) {
        const problem = problemOf(await service.ask(`${path}&${only}`));
        expect(problem).toMatchObject({ code: "invalid_request", errors: [{ field: "only" }] });
      }
    },
  );

  test("still rejects invalid names, and isn't accepted for prices", async () => {
    for (const path of ["/v1/availability?domain=-.af&only=known", "/v1/search?q=-&only=known"])
      expect(problemOf(await service.ask(path)).code).toBe("invalid_request");
    expect(problemOf(await service.ask("/v1/prices?only=known")).code).toBe("invalid_request");
  });
});

test("with only=known, requests neither count towards the limit for new names nor are refused by it", async () => {
  const service = await startService({ clock: new FakeClock(), env: { CLIENT_COLD_PER_MINUTE: "1" } });
  await until(() => service.calls() === 29, "the last startup call");
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

test("with only=known, nobody waits even if the quota is used up and the upstream is down", async () => {
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
