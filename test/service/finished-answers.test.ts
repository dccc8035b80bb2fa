/** An answer is made by Express, or is a finished one that is sent again. Nobody can tell which, but for the fields about the client's limit. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Answer,
  bearer,
  CHECK,
  PRICING,
  type Question,
  type Service,
  startService,
  until,
} from "../support/service.js";

const WEBSITE = "https://www.example.af";
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

function product<T>(...lists: readonly (readonly T[])[]): T[][] {
  return lists.reduce<T[][]>((rows, list) => rows.flatMap((row) => list.map((one) => [...row, one])), [[]]);
}

const PATHS = [
  HERAT,
  "/v1/availability?domain=HERAT.af&years=2",
  "/v1/availability?domain=%20https://www.herat.af/x%20",
  "/v1/availability?domain=kabul-bakery.com.af",
  "/v1/availability?domain=khyber.af",
  "/v1/availability?domain=%D8%A7%D9%81%D8%BA%D8%A7%D9%86.af",
  "/v1/availability?domain=.",
  "/v1/availability?domain=herat.af&domain=kabul.af",
  "/v1/availability?domain=herat.af&years=77",
  "/v1/availability?&domain=herat.af&",
  "/v1/availability?domain=%zz.af",
  "/v1/availability?domain=herat.af&only=known",
  "/v1/availability?domain=never-asked.af&only=known",
  "/v1/availability?__proto__=1&domain=herat.af",
  "/v1/availability",
  "/v1/availability/",
  "/V1/availability?domain=herat.af",
  "/v1//availability?domain=herat.af",
  "/v1/%61vailability?domain=herat.af",
  "/v1/search?q=herat",
  "/v1/search?q=herat&tlds=.af,.com.af",
  "/v1/search?q=herat&only=known",
  "/v1/search?q=never-asked&only=known",
  "/v1/search",
  "/v1/prices",
  "/v1/prices?tld=.af&action=renewal",
  "/v1/prices?years=2",
  "/v1/prices?tld=.com",
  "/v1/quotes?tld=.af&action=renewal",
  "/v1/nothing",
  "/v1/staff/tier",
] as const;
const ACCEPTS = [
  undefined,
  "*/*",
  "application/json",
  "application/json, text/plain, */*",
  "text/html",
  "text/html,*/*;q=0.8",
  "application/json;q=0",
  "",
] as const;
const ORIGINS = [undefined, WEBSITE, "https://elsewhere.example"] as const;
const METHODS = ["GET", "HEAD", "OPTIONS"] as const;
const IDS = [undefined, "mine-1", "not an id"] as const;

describe("an answer", () => {
  let service: Service;
  let sentAgain = 0;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock(), env: { CORS_ORIGINS: WEBSITE } });
    await until(() => service.calls() === 29);
  });
  afterAll(() => service.close());

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
    let combinations = 0;
    for (const path of PATHS) {
      for (const [method = "", Accept, Origin, id] of product<string | undefined>(
        METHODS,
        ACCEPTS,
        ORIGINS,
        IDS,
      )) {
        combinations += 1;
        // Every third of the GETs, and every eleventh of the others.
        if (combinations % (method === "GET" ? 3 : 11) > 0) continue;
        await expectSame(path, {
          method,
          headers: {
            ...(Accept !== undefined && { Accept }),
            ...(Origin !== undefined && { Origin }),
            ...(id !== undefined && { "X-Request-Id": id }),
          },
        });
      }
    }
    expect(sentAgain).toBeGreaterThan(150);
  });

  test("to a conditional request is the same", async () => {
    for (const path of ["/v1/prices", "/v1/prices?tld=.af", HERAT]) {
      const etag = (await service.ask(path)).headers["etag"] ?? "";
      expect(etag).toMatch(/^"[\w-]{27}"$/);
      for (const tag of [etag, `W/${etag}`, `"other"`, `"other", ${etag}`, "*", etag.slice(1), '""', ""])
        for (const cacheControl of ["no-cache", "max-age=0"])
          await expectSame(path, { headers: { "If-None-Match": tag, "Cache-Control": cacheControl } });
    }
  });

  test("isn't sent again to a request that Express has to look at", async () => {
    await service.ask(HERAT);
    expect(isSentAgain(await service.ask(HERAT))).toBe(true);
    for (const headers of [bearer("read"), VIA_EXPRESS])
      expect(isSentAgain(await service.ask(HERAT, { headers }))).toBe(false);
  });

  test("that is sent again is counted in the metrics, and saves a call, but isn't logged", async () => {
    const counted = async (): Promise<readonly number[]> => {
      const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
      return [
        /^http_sent_again_total\{route="\/v1\/availability"\} (\d+)$/m,
        /^upstream_calls_saved_total\{by="cache"\} (\d+)$/m,
      ].map((metric) => Number(metric.exec(text)?.[1]));
    };
    await service.ask(HERAT);
    const lines = service.log.length;
    const [again = NaN, saved = NaN] = await counted();
    for (let count = 0; count < 5; count += 1) await service.ask(HERAT);
    expect(await counted()).toEqual([again + 5, saved + 5]);
    expect(service.log.slice(lines).filter((line) => line.includes("/v1/availability"))).toEqual([]);
  });
});

describe("a finished answer isn't sent again", () => {
  let clock: FakeClock;
  let service: Service;
  beforeEach(() => {
    clock = new FakeClock();
  });

  async function withService(act: () => Promise<void>, retail?: string): Promise<void> {
    service = await startService({ clock, ...(retail !== undefined && { retail }) });
    try {
      await act();
    } finally {
      await service.close();
    }
  }

  test("after its facts have become stale", () =>
    withService(async () => {
      const path = "/v1/availability?domain=kabul-shop.af";
      const first = await service.ask(path);
      const before = service.calls(CHECK);
      expect((await service.ask(path)).body).toEqual(first.body);
      expect(service.calls(CHECK)).toBe(before);
      await clock.advance(31_000);
      await service.ask(path);
      expect(service.calls(CHECK)).toBe(before + 1);
    }));

  test("after a purge", () =>
    withService(async () => {
      await service.ask(HERAT);
      expect(isSentAgain(await service.ask(HERAT))).toBe(false);
      expect(isSentAgain(await service.ask(HERAT))).toBe(true);
      const before = service.calls(CHECK);
      const body = { what: "availability" };
      await service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body });
      await service.ask(HERAT);
      expect(service.calls(CHECK)).toBe(before + 1);
    }));

  test("after a new fact about another name", () =>
    withService(async () => {
      for (let count = 0; count < 3; count += 1) await service.ask(HERAT);
      expect(isSentAgain(await service.ask(HERAT))).toBe(true);
      await service.ask("/v1/availability?domain=another-name.af");
      expect(isSentAgain(await service.ask(HERAT))).toBe(false);
    }));

  test("after a promotion has begun or ended, or the clock has been set across that time", () => {
    const from = clock.now() + 10_000;
    const to = clock.now() + 20_000;
    const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
promotions:
  - { id: nowruz, match: {}, percentOff: "5", from: ${new Date(from).toISOString()}, to: ${new Date(to).toISOString()} }
`;
    return withService(async () => {
      const promoted = async (): Promise<boolean> => {
        await service.ask("/v1/prices");
        return (await service.ask("/v1/prices")).text.includes("nowruz");
      };
      expect(await promoted()).toBe(false);
      await clock.advance(9_999);
      expect(await promoted()).toBe(false);
      await clock.advance(1);
      expect(await promoted()).toBe(true);
      clock.stepWall(10_000);
      expect(await promoted()).toBe(false);
    }, retail);
  });

  test("by a service that refuses new requests", () =>
    withService(async () => {
      await service.ask("/v1/prices");
      service.stop();
      expect((await service.ask("/v1/prices")).status).toBe(503);
    }));
});

test("a price in a cart is asked for again once it is older than a minute", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  await until(() => service.calls() === 29);
  const body = { items: [{ domain: "herat.af", action: "renewal" }] };
  const before = service.calls(PRICING);
  await clock.advance(59_000);
  expect((await service.ask("/v1/quotes", { method: "POST", body })).status).toBe(200);
  expect(service.calls(PRICING)).toBe(before);
  await clock.advance(2_000);
  expect((await service.ask("/v1/quotes", { method: "POST", body })).status).toBe(200);
  expect(service.calls(PRICING)).toBe(before + 1);
  await service.close();
});
