/** Many visitors request the same names: the upstream gets one call for each, whether visitors join or leave. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Agent, request } from "node:http";
import { z } from "zod";
import { FakeClock, settle } from "../support/fake-clock.js";
import {
  type Answer,
  asker,
  bearer,
  CHECK,
  PRICING,
  problemOf,
  type Service,
  startService,
  until,
  withService,
} from "../support/service.js";
import { SMALL_SHOP } from "../support/retail.js";
import { overviewOf, purge } from "../support/staff.js";
import { SignJWT } from "jose";
import { type Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { upstreamAt } from "../support/upstream.js";

const MANY = 100;
const ONE_TERM = SMALL_SHOP.replace(", renewal: [1]", "");

describe("simultaneous visitors", () => {
  const clock = new FakeClock();
  const agent = new Agent({ keepAlive: true, maxSockets: MANY });
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
    await until(() => service.calls(PRICING) === 28, "the price list");
  });
  afterAll(async () => {
    agent.destroy();
    await service.close();
  });

  /** The number of checks and quotes that `act` makes at the upstream. */
  async function costsOf(act: () => Promise<Answer>): Promise<[number, number]> {
    const [checks, quotes] = [service.calls(CHECK), service.calls(PRICING)];
    expect((await act()).status).toBe(200);
    return [service.calls(CHECK) - checks, service.calls(PRICING) - quotes];
  }

  /** The number of open sockets of the service. While no request is answered, each has one waiting. */
  function openSockets(): Promise<number> {
    return new Promise((done, failed) => {
      service.server.getConnections((error, count) => {
        if (error) failed(error);
        else done(count);
      });
    });
  }

  test("who ask for one new name cost one call and get the same answer, even if the first disconnects during it", async () => {
    const path = "/v1/availability?domain=kabul.af";
    const before = service.calls(CHECK);
    const hold = service.sandbox.control.hold({ operation: "check" });
    const first = request({ host: "127.0.0.1", port: service.port, path, agent: false });
    first.on("error", () => undefined);
    first.end();
    await hold.caught();
    const ask = asker(service.port, agent);
    const others = Promise.all(Array.from({ length: MANY }, () => ask(path)));
    await until(async () => (await openSockets()) > MANY, "the arrival of the others");
    first.destroy();
    await until(() => service.log.some((line) => line.includes('"status":499')), "the hang-up");
    hold.release();
    const answers = await others;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(service.calls(CHECK) - before).toBe(1);
    expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });

  test("who search under every TLD cost one call for each TLD", async () => {
    const before = service.calls(CHECK);
    service.sandbox.control.setBehaviour({ beforeMs: 100 });
    const ask = asker(service.port, agent);
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask("/v1/search?q=mazar")));
    service.sandbox.control.setBehaviour({ beforeMs: 0 });
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(service.calls(CHECK) - before).toBe(4);
  });

  test("are counted once for each name: as a hit if it was known, as a miss if it wasn't", async () => {
    const counts = async () => (await overviewOf(service)).caches.availability.counts;
    const before = await counts();
    const expectMore = async (hit: number, miss: number): Promise<void> =>
      expect(await counts()).toMatchObject({ hit: before.hit + hit, miss: before.miss + miss });
    for (const domain of ["balkh.af", "balkh.com.af", "balkh.net.af"])
      expect((await service.ask(`/v1/availability?domain=${domain}`)).status).toBe(200);
    await expectMore(0, 3);
    await service.ask("/v1/search?q=balkh");
    await expectMore(3, 4);
    await service.ask("/v1/search?q=balkh&only=known");
    await service.ask("/v1/availability?domain=balkh.af");
    await expectMore(8, 4);
  });

  test("aside, a search of four new names costs four checks, and a cart of them within a minute one check a line; prices that were purged cost one quote for each TLD more", async () => {
    const { ask } = service;
    const search = (label: string) => () => ask(`/v1/search?q=${label}`);
    expect(await costsOf(search("kandahar"))).toEqual([4, 0]);
    await clock.advance(20_000);
    const items = [".af", ".com.af", ".net.af", ".org.af"].map((tld) => ({
      domain: `kandahar${tld}`,
      action: "registration",
      years: 1,
    }));
    const [again, none] = await costsOf(() => ask("/v1/quotes", { method: "POST", body: { items } }));
    expect([again <= 4, none]).toEqual([true, 0]);
    const quoted = service.calls(PRICING);
    await purge(service, "prices");
    expect((await costsOf(search("ghazni")))[0]).toBe(4);
    expect((await costsOf(search("jalalabad")))[0]).toBe(4);
    await until(
      async () => (await ask("/v1/prices")).headers["cache-control"] !== "no-store",
      "the whole list",
    );
    // The whole list was asked again, as after each purge.
    expect(service.calls(PRICING) - quoted).toBeLessThanOrEqual(28 + 4);
  });
});

const exactLane = async (service: Service) => (await overviewOf(service)).quota.lanes.exact;

/** A shop with one term behind a proxy, with this limit of the upstream, and how a client of it asks for a name. */
function behindProxy(
  limit: string,
  act: (
    service: Service,
    clock: FakeClock,
    look: (client: string, name: string) => Promise<Answer>,
  ) => Promise<void>,
): Promise<void> {
  const env = { TRUST_PROXY_HOPS: "1", UPSTREAM_RATE_LIMIT: limit };
  return withService({ retail: ONE_TERM, env }, (service, clock) =>
    act(service, clock, (client, name) =>
      service.ask(`/v1/availability?domain=${name}.af`, { headers: { "X-Forwarded-For": client } }),
    ),
  );
}

test("a client that joins another's request isn't refused with it, but waits for its own turn", () =>
  behindProxy("9", async (service, clock, look) => {
    const cold = (client: string, name: string) => look(`203.0.113.${client}`, name);
    const exact = () => exactLane(service);
    for (const name of ["one", "two", "three"]) expect((await cold("1", name)).status).toBe(200);
    expect((await cold("2", "four")).status).toBe(200);
    // The budget of six is used up. All of it becomes available at the same time, while everyone is still waiting.
    await clock.advance(55_000);
    const busy = cold("1", "wanted");
    await until(async () => (await exact()).queued === 1, "the first client's wait");
    const joined = cold("3", "wanted");
    // These are answered after the previous request has arrived.
    for (let times = 0; times < 3; times += 1) await service.ask("/livez");
    const others = ["4", "5", "6", "7", "8"].map((client) => cold(client, `other-${client}`));
    await until(async () => (await exact()).queued === 6, "the wait of the others");
    const last = cold("2", "five");
    await until(async () => (await exact()).refused > 0, "a refusal");
    await clock.advance(8000);
    expect((await busy).status).toBe(503);
    expect((await joined).status).toBe(200);
    for (const other of others) expect((await other).status).toBe(200);
    expect((await last).status).toBe(503);
  }));

test("a visitor who returns at a reserved second is served then, although a busy client already waits for the same name", () =>
  behindProxy("60", async (service, clock, look) => {
    const queued = async () => (await exactLane(service)).queued;
    const others: Promise<unknown>[] = [];
    /** Requests of new visitors, who go before the busy client. */
    let newcomers = 0;
    const crowd = async (visitors: number): Promise<void> => {
      for (let n = 0; n < visitors; n += 1) {
        newcomers += 1;
        others.push(look(`198.51.${newcomers}.7`, `newcomer-${newcomers}`));
      }
      // These are answered after the previous requests have arrived.
      for (let times = 0; times < 4; times += 1) await service.ask("/livez");
    };
    await clock.advance(120_000);
    for (let n = 0; n < 37; n += 1) others.push(look("192.0.2.1", `busy-${n}`));
    await until(async () => (await queued()) > 0, "the burst");
    await crowd(6);
    const refused = problemOf(await look("192.0.2.2", "wanted"));
    expect(refused.kept).toBe(true);
    for (let second = 1; second < (refused.retryAfter ?? 0); second += 1) {
      await crowd(second % 2);
      await clock.advance(1000);
    }
    const before = await queued();
    const busy = look("192.0.2.1", "wanted");
    await until(async () => (await queued()) > before, "the busy client's wait");
    await clock.advance(1000);
    const returned = look("192.0.2.2", "wanted");
    for (let second = 0; second < 8; second += 1) {
      await crowd(second < 2 ? 0 : 3);
      await clock.advance(1000);
    }
    expect([(await returned).status, (await busy).status]).toEqual([200, 200]);
    for (const other of others) other.catch(() => undefined);
  }));

test("ten people behind one address open the shop and look at known names within a limit of sixty requests, beside staff, a customer, Prometheus and a flood from another address", async () => {
  const clock = new FakeClock();
  const secret = "a secret of the login with 32 bytes or more";
  const service = await startService({
    clock,
    retail: SMALL_SHOP,
    env: { TRUST_PROXY_HOPS: "1", CLIENT_RATE_PER_MINUTE: "60", CUSTOMER_JWT_SECRET: secret },
  });
  const token = await new SignJWT({ sub: "customer-1", domains: [] })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime(new Date(clock.now() + 3_600_000))
    .sign(new TextEncoder().encode(secret));
  const from = { "X-Forwarded-For": "192.0.2.1" };
  const statuses = new Map<string, Set<number>>();
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const answer = await service.ask(path, { headers: { ...from, ...headers } });
    statuses.set(path, (statuses.get(path) ?? new Set()).add(answer.status));
    return answer;
  };
  const { text } = await ask("/");
  const assets = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(assets.length).toBeGreaterThan(1);
  const events = { Accept: "text/event-stream" };
  await ask("/v1/search?q=kabul", events);
  let [floods, refused] = [0, 0];
  const flood = async (): Promise<void> => {
    const headers = { "X-Forwarded-For": "198.51.100.66" };
    const path = `/v1/availability?domain=flood-${(floods += 1)}.af&only=known`;
    const { status } = await service.ask(path, { headers });
    if (status === 429) refused += 1;
  };
  await Promise.all([
    ...Array.from({ length: 90 }, flood),
    ...Array.from({ length: 10 }, async () => {
      await Promise.all(["/", ...assets, "/v1/prices"].map((path) => ask(path)));
      await ask("/v1/search?q=kabul", events);
      await ask("/v1/availability?domain=kabul.af");
    }),
  ]);
  // How many depends on how long this takes: the limit's minute is a real one.
  expect(refused).toBeGreaterThan(0);
  await ask("/v1/staff/overview", bearer("read"));
  await ask("/metrics", bearer("metrics"));
  await ask("/v1/me/domains", { Authorization: `Bearer ${token}` });
  expect([...statuses].map(([path, seen]) => [path, ...seen])).toEqual(
    [...statuses.keys()].map((path) => [path, 200]),
  );
  await service.close();
});

test("at a first start, a reserved call returns the name with its price, even if this needs a quote or a second check", () => {
  const MINUTE_MS = 60_000;
  const STEP_MS = 500;
  const PATIENCE_MS = 8000;
  const TLDS = [".af", ".com.af", ".net.af", ".org.af"];
  /** A name that is taken, or available with its price. */
  const complete = z.union([
    z.object({ status: z.literal("taken") }),
    z.object({ status: z.literal("available"), price: z.object({ amount: z.string() }) }),
  ]);
  const env = (sandbox: Sandbox) => ({
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: "30",
    UPSTREAM_RATE_HEADROOM: "3",
    TRUST_PROXY_HOPS: "1",
  });
  const sandbox = { rateLimit: { limit: 30, windowMs: MINUTE_MS } };
  return withService({ warm: false, env, sandbox }, async (service, clock) => {
    const pause = (ms: number): Promise<void> => new Promise((over) => clock.after(ms, over));
    const returns: boolean[] = [];
    /** A visitor arrives after the earlier ones and requests a new name, retrying at the given second until it is answered. */
    const visit = async (n: number): Promise<void> => {
      const domain = `first-${n}${TLDS[n % TLDS.length]}`;
      // Every fourth name is premium, and needs two checks for two years.
      if (n % TLDS.length === 0) service.sandbox.control.setPremium(domain, { USD: 145_000 });
      const path = `/v1/availability?domain=${domain}&years=${1 + ((n >> 2) % 2)}`;
      let isReserved = false;
      await pause(n * 1200);
      for (let round = 0; round < 5; round += 1) {
        const askedAt = clock.monotonic();
        const answer = await service.ask(path, { headers: { "X-Forwarded-For": `10.${n}.0.1` } });
        const isInTime = clock.monotonic() - askedAt <= PATIENCE_MS + STEP_MS;
        if (isReserved)
          returns.push(answer.status === 200 && complete.safeParse(answer.body).success && isInTime);
        if (answer.status === 200) break;
        const { kept, retryAfter = 0 } = problemOf(answer);
        isReserved = kept === true;
        await pause(retryAfter * 1000);
      }
    };
    // They use up the headroom, which is all that a first start may use.
    for (const action of ["restore", "transfer", "renewal"])
      expect((await service.ask(`/v1/quotes?tld=.af&action=${action}&years=1`)).status).toBe(200);
    const visits = Array.from({ length: 50 }, (_, n) => visit(n));
    for (let passedMs = 0; passedMs < 6 * MINUTE_MS; passedMs += STEP_MS) {
      await clock.advance(STEP_MS);
      for (let turns = 0; turns < 60; turns += 1) await settle();
    }
    await Promise.all(visits);
    expect(returns.length).toBeGreaterThan(20);
    // What is promised of places; completing an answer has priority for half of the calls only.
    expect(returns.filter((isGood) => !isGood).length).toBeLessThanOrEqual(0.03 * returns.length);
  });
});
