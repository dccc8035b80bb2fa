/**
 * Crowds. The users of a mobile carrier share one address: alone, they get the whole budget; to others, they count as one busy visitor. And
 * the visitors of a first start, when nothing is known about the registry, get what was promised to them.
 */
import { expect, test } from "@jest/globals";
import { SignJWT } from "jose";
import { z } from "zod";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Answer,
  bearer,
  CHECK,
  problemOf,
  type Service,
  startService,
  until,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const BUDGET = 57;
const STEP_MS = 1000;
const MINUTE_MS = 60_000;
const PATIENCE_MS = 8000;
const CARRIER = "192.0.2.1";

const overview = z.object({ quota: z.object({ lanes: z.object({ exact: z.object({ queued: z.int() }) }) }) });
const refusal = z.object({ retryAfter: z.int() });

interface User {
  readonly address: string;
  readonly name: string;
  readonly arrivesAt: number;
  servedAt: number | null;
}

/** Users who arrive at equal intervals over a period. Each requests a different name. */
function users(clock: FakeClock, count: number, address: (n: number) => string, overMs: number): User[] {
  const now = clock.monotonic();
  return Array.from({ length: count }, (_, n) => ({
    address: address(n),
    name: `name-${address(n).replaceAll(".", "-")}-${now}-${n}.af`,
    arrivesAt: now + (n * overMs) / count,
    servedAt: null,
  }));
}

/** Lets all users send their request, and retry it at the given second, for this long. */
async function play(service: Service, clock: FakeClock, all: readonly User[], forMs: number): Promise<void> {
  const due = new Map<User, number>(all.map((user) => [user, user.arrivesAt]));
  const open = new Set<User>();
  const answered = (user: User, { status, body }: Answer): void => {
    open.delete(user);
    if (status === 200) user.servedAt = clock.monotonic();
    else due.set(user, clock.monotonic() + refusal.parse(body).retryAfter * 1000);
  };
  const queued = async (): Promise<number> => {
    const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
    return overview.parse(body).quota.lanes.exact.queued;
  };
  for (let passedMs = 0; passedMs < forMs; passedMs += STEP_MS) {
    for (const [user, at] of due) {
      if (at > clock.monotonic()) continue;
      due.delete(user);
      open.add(user);
      const headers = { "X-Forwarded-For": user.address };
      void service.ask(`/v1/availability?domain=${user.name}`, { headers }).then((answer) => {
        answered(user, answer);
      });
    }
    if (open.size > 0)
      await until(
        async () => (await queued()) === open.size,
        "an answer to each request, or its place in the queue,",
      );
    await clock.advance(STEP_MS);
  }
  // Wait until the last requests are answered.
  for (; open.size > 0; await clock.advance(STEP_MS)) await queued();
}

const promptShare = (all: readonly User[]): number =>
  all.filter(({ servedAt, arrivesAt }) => servedAt !== null && servedAt - arrivesAt <= PATIENCE_MS + STEP_MS)
    .length / all.length;

test("the users of one address get the whole budget while they are alone, and leave others as much as one busy visitor does", async () => {
  const clock = new FakeClock();
  const service = await startService({
    clock,
    retail: `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`,
    env: { TRUST_PROXY_HOPS: "1", UPSTREAM_RATE_LIMIT: "60", CLIENT_COLD_PER_MINUTE: "20" },
  });
  try {
    // Nothing has used the budget for a while.
    await clock.advance(2 * MINUTE_MS);
    const before = service.calls(CHECK);
    const alone = users(clock, 80, () => CARRIER, MINUTE_MS);
    await play(service, clock, alone, MINUTE_MS);
    expect(service.calls(CHECK) - before).toBeGreaterThanOrEqual(0.95 * BUDGET);
    const many = users(clock, 100, () => CARRIER, MINUTE_MS);
    const others = users(clock, 20, (n) => `198.51.100.${n}`, MINUTE_MS);
    await play(service, clock, [...many, ...others], 1.25 * MINUTE_MS);
    // One of them may have to retry once, because the address had the whole budget to itself until they came.
    expect(promptShare(others)).toBeGreaterThanOrEqual(0.95);
    expect(service.sandbox.stats().credentials[0]?.rejected429).toBe(0);
  } finally {
    await service.close();
  }
});

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
