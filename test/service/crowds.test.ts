/**
 * Crowds: people behind one address beside a flood, and the visitors of a first start, when nothing is known about the registry.
 * test/quota/waits tells what the users of one address get of the budget.
 */
import { expect, test } from "@jest/globals";
import { SignJWT } from "jose";
import { z } from "zod";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { type Answer, bearer, problemOf, type Service, startService } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const MINUTE_MS = 60_000;
const PATIENCE_MS = 8000;
const CARRIER = "192.0.2.1";

test("ten people behind one address open the shop and look at known names within a limit of sixty requests, beside staff, a customer, Prometheus and a flood from another address", async () => {
  const clock = new FakeClock();
  const secret = "a secret of the login with 32 bytes or more";
  const service = await startService({
    clock,
    env: { TRUST_PROXY_HOPS: "1", CLIENT_RATE_PER_MINUTE: "60", CUSTOMER_JWT_SECRET: secret },
  });
  const token = await new SignJWT({ sub: "customer-1", domains: [] })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime(new Date(clock.now() + 3_600_000))
    .sign(new TextEncoder().encode(secret));
  const from = { "X-Forwarded-For": CARRIER };
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

const VISITORS = 50;
const EVERY_MS = 1200;
const SHORT_STEP_MS = 500;
const TLDS = [".af", ".com.af", ".net.af", ".org.af"];
/** Requests that use up the headroom, which is all that a first start may use. */
const FIRST_QUOTES = ["restore", "transfer", "renewal"].map(
  (action) => `/v1/quotes?tld=.af&action=${action}&years=1`,
);

/** Every fourth name is premium, and needs two checks for two years. */
const nameOf = (n: number): string => `first-${n}${TLDS[n % TLDS.length]}`;
const isPremium = (n: number): boolean => n % TLDS.length === 0;

/** A name that is taken, or available with its price. */
const completeAnswer = z.union([
  z.object({ status: z.literal("taken") }),
  z.object({ status: z.literal("available"), price: z.object({ amount: z.string() }) }),
]);

/** Advances the clock in small steps and awaits everything that each one triggers, so that a busy machine makes no difference. */
async function advance(clock: FakeClock, ms: number, service: Service): Promise<void> {
  let [seen, calls] = [0, 0];
  const ended = (): number => {
    for (const line of service.log.slice(seen)) if (line.includes('"event":"upstream.call"')) calls += 1;
    seen = service.log.length;
    return calls;
  };
  for (let passed = 0; passed < ms; passed += SHORT_STEP_MS) {
    await clock.advance(SHORT_STEP_MS);
    do for (let turn = 0; turn < 30; turn += 1) await new Promise((next) => setImmediate(next));
    while (ended() < service.calls());
  }
}

interface Retry {
  readonly status: number;
  readonly isComplete: boolean;
  readonly waitedMs: number;
}

/** Arrives after the earlier visitors and requests a new name, retrying at the given second until it is answered. Returns the retries with a reserved call. */
async function visit({ ask }: Service, clock: FakeClock, n: number): Promise<Retry[]> {
  const path = `/v1/availability?domain=${nameOf(n)}&years=${1 + ((n >> 2) % 2)}`;
  const retries: Retry[] = [];
  let isReserved = false;
  await pause(clock, n * EVERY_MS);
  for (let round = 0; round < 5; round += 1) {
    const askedMs = clock.monotonic();
    const answer = await ask(path, { headers: { "X-Forwarded-For": `10.${n}.0.1` } });
    const { status } = answer;
    const isComplete = completeAnswer.safeParse(answer.body).success;
    if (isReserved) retries.push({ status, isComplete, waitedMs: clock.monotonic() - askedMs });
    if (status === 200) break;
    const { kept, retryAfter = 0 } = problemOf(answer);
    isReserved = kept === true;
    await pause(clock, retryAfter * 1000);
  }
  return retries;
}

const pause = (clock: FakeClock, ms: number): Promise<void> => new Promise((over) => clock.after(ms, over));

test("at a first start, a reserved call returns the name with its price, even if this needs a quote or a second check", async () => {
  const clock = new FakeClock();
  const env = (sandbox: Sandbox) => ({
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: "30",
    UPSTREAM_RATE_HEADROOM: "3",
    QUOTA_COLD_START: "assume-spent",
    TRUST_PROXY_HOPS: "1",
  });
  const sandbox = { rateLimit: { limit: 30, windowMs: MINUTE_MS } };
  const service = await startService({ clock, warm: false, env, sandbox });
  try {
    for (let n = 0; n < VISITORS; n += 1)
      if (isPremium(n)) service.sandbox.control.setPremium(nameOf(n), { USD: 145_000 });
    for (const path of FIRST_QUOTES) expect((await service.ask(path)).status).toBe(200);
    const visits = Array.from({ length: VISITORS }, (_, n) => visit(service, clock, n));
    await advance(clock, 6 * MINUTE_MS, service);
    const retries = (await Promise.all(visits)).flat();
    expect(retries.length).toBeGreaterThan(20);
    const failed = retries.filter(
      ({ status, isComplete, waitedMs }) =>
        status !== 200 || !isComplete || waitedMs > PATIENCE_MS + SHORT_STEP_MS,
    );
    // What is promised of places; completing an answer has priority for half of the calls only.
    expect(failed.length).toBeLessThanOrEqual(0.03 * retries.length);
  } finally {
    await service.close();
  }
});
