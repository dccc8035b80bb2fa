/** The users of a mobile carrier share one address. Alone, they get the whole budget. To others, they count as one busy visitor. */
import { afterEach, describe, expect, test } from "@jest/globals";
import { SignJWT } from "jose";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Answer,
  bearer,
  CHECK,
  callsOf,
  type Service,
  startService,
  until,
} from "../support/service.js";

const BUDGET = 57;
const STEP_MS = 1000;
const MINUTE_MS = 60_000;
const MINUTES = 2;
const PATIENCE_MS = 8000;
const CARRIER = "192.0.2.1";
/** More than five times what the budget allows in a minute. */
const MANY = 300;
const RETAIL = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

const overview = z.object({ quota: z.object({ lanes: z.object({ exact: z.object({ queued: z.int() }) }) }) });
const refusal = z.object({ retryAfter: z.int() });

interface User {
  readonly address: string;
  readonly name: string;
  readonly arrivesAt: number;
  servedAt: number | null;
}

let service: Service;
let clock: FakeClock;
afterEach(async () => {
  await service.close();
});

async function start(): Promise<void> {
  clock = new FakeClock();
  service = await startService({
    clock,
    retail: RETAIL,
    env: { TRUST_PROXY_HOPS: "1", UPSTREAM_RATE_LIMIT: "60", CLIENT_COLD_PER_MINUTE: "20" },
  });
  // Nothing has used the budget for a while.
  await clock.advance(2 * MINUTE_MS);
}

/** Users who arrive at equal intervals over a period. Each requests a different name. */
function users(count: number, address: (n: number) => string, overMs: number): User[] {
  const now = clock.monotonic();
  return Array.from({ length: count }, (_, n) => ({
    address: address(n),
    name: `name-${address(n).replaceAll(".", "-")}-${n}.af`,
    arrivesAt: now + (n * overMs) / count,
    servedAt: null,
  }));
}

/** Lets all users send their request, and retry it at the given second, for this long. */
async function play(all: readonly User[], forMs: number): Promise<void> {
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

describe("hundreds of users behind one address", () => {
  test("get the whole budget while they are alone, minute after minute", async () => {
    await start();
    const all = users(200, () => CARRIER, MINUTE_MS);
    const began = clock.monotonic();
    const before = callsOf(service.sandbox, CHECK);
    await play(all, MINUTES * MINUTE_MS);
    const served = all.filter(({ servedAt }) => servedAt !== null && servedAt - began <= MINUTES * MINUTE_MS);
    expect(callsOf(service.sandbox, CHECK) - before).toBeGreaterThanOrEqual(0.95 * MINUTES * BUDGET);
    expect(served.length).toBeGreaterThanOrEqual(0.95 * MINUTES * BUDGET);
    expect(service.sandbox.stats().credentials[0]?.rejected429).toBe(0);
  });

  test("leave as much to 50 other users as one busy visitor does", async () => {
    const promptShareBeside = async (crowd: number): Promise<number> => {
      await start();
      // A busy visitor sends as many requests as one client may while others want calls.
      const busy = users(crowd, () => CARRIER, crowd === MANY ? MINUTE_MS : 3 * MINUTE_MS);
      const others = users(50, (n) => `198.51.100.${n}`, 3 * MINUTE_MS);
      await play([...busy, ...others], 3.25 * MINUTE_MS);
      return promptShare(others);
    };
    const besideOne = await promptShareBeside(60);
    await service.close();
    const besideMany = await promptShareBeside(MANY);
    expect(besideOne).toBeGreaterThanOrEqual(0.98);
    // At the end of the first minute, whose burst the address had to itself, one or two others have to retry once.
    expect(besideMany).toBeGreaterThanOrEqual(besideOne - 0.05);
  });
});

test("a hundred people behind one address open the shop and look at known names in a minute, beside staff, a customer, Prometheus and a flood from another address", async () => {
  clock = new FakeClock();
  const secret = "a secret of the login with 32 bytes or more";
  service = await startService({
    clock,
    env: { TRUST_PROXY_HOPS: "1", CLIENT_RATE_PER_MINUTE: "600", CUSTOMER_JWT_SECRET: secret },
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
  for (let people = 0; people < 100; people += 10)
    await Promise.all([
      ...Array.from({ length: 70 }, flood),
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
});
