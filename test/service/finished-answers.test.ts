/** An answer is made by Express, or is a finished one that is sent again. Nobody can tell which, but for the fields about the client's limit. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import { answersIn, exchange, get } from "../support/raw.js";
import {
  type Answer,
  bearer,
  CHECK,
  type Question,
  type Service,
  startService,
  until,
} from "../support/service.js";
import { purge } from "../support/staff.js";

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
