/** The first start at a registry of which nothing is known: who is promised a call is served, price included, though no price has been read yet. */
import { expect, test } from "@jest/globals";
import { z } from "zod";
import { startSandbox } from "../../src/sandbox/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { callsOf, problemOf, type Service, startService } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const WINDOW_MS = 60_000;
/** As set by default, and a step of this test. */
const MAX_WAIT_MS = 8_000 + 250;
const VISITORS = 100;
const EVERY_MS = 600;
const TLDS = [".af", ".com.af", ".net.af", ".org.af"];
/** What the reserve is spent on, which is all that a first start may use. */
const FIRST_QUOTES = ["restore", "transfer", "renewal"].map(
  (action) => `/v1/quotes?tld=.af&action=${action}&years=1`,
);

/** The first of four is a premium name, which takes two checks for two years. */
const nameOf = (n: number): string => `first-${n}${TLDS[n % TLDS.length]}`;
const isPremium = (n: number): boolean => n % TLDS.length === 0;

/** A name that is taken, or available with its price. */
const whole = z.union([
  z.object({ status: z.literal("taken") }),
  z.object({ status: z.literal("available"), price: z.object({ amount: z.string() }) }),
]);

/** Lets time pass in small steps, each with all that it sets off, so that a busy machine changes nothing. */
async function pass(clock: FakeClock, ms: number, service: Service): Promise<void> {
  const ended = (): number => service.log.filter((line) => line.includes('"event":"upstream.call"')).length;
  for (let passed = 0; passed < ms; passed += 250) {
    await clock.advance(250);
    do for (let turn = 0; turn < 30; turn += 1) await new Promise((next) => setImmediate(next));
    while (ended() < callsOf(service.sandbox));
  }
}

interface Return {
  readonly status: number;
  readonly isWhole: boolean;
  readonly waitedMs: number;
}

/** Comes after those before, asks for one new name until it is answered, each time at the second that it is told; what became of its reserved calls. */
async function visit({ ask }: Service, clock: FakeClock, n: number): Promise<Return[]> {
  const path = `/v1/availability?domain=${nameOf(n)}&years=${1 + ((n >> 2) % 2)}`;
  const returns: Return[] = [];
  let isKept = false;
  await pause(clock, n * EVERY_MS);
  for (let round = 0; round < 5; round += 1) {
    const askedMs = clock.monotonic();
    const answer = await ask(path, { headers: { "X-Forwarded-For": `10.${n}.0.1` } });
    const { status } = answer;
    const isWhole = whole.safeParse(answer.body).success;
    if (isKept) returns.push({ status, isWhole, waitedMs: clock.monotonic() - askedMs });
    if (status === 200) break;
    const { kept, retryAfter = 0 } = problemOf(answer);
    isKept = kept === true;
    await pause(clock, retryAfter * 1000);
  }
  return returns;
}

const pause = (clock: FakeClock, ms: number): Promise<void> => new Promise((over) => clock.after(ms, over));

test("a reserved call brings the name with its price, though that has to be read first, or checked by another term", async () => {
  const clock = new FakeClock();
  const sandbox = await startSandbox({
    rateLimit: { limit: 60, windowMs: WINDOW_MS },
    now: () => clock.monotonic(),
  });
  for (let n = 0; n < VISITORS; n += 1)
    if (isPremium(n)) sandbox.control.setPremium(nameOf(n), { USD: 145_000 });
  const env = {
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: "60",
    UPSTREAM_RATE_HEADROOM: "3",
    UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
    QUOTA_COLD_START: "assume-spent",
    TRUST_PROXY_HOPS: "1",
  };
  const service = await startService({ clock, at: sandbox, warm: false, env });
  try {
    for (const path of FIRST_QUOTES) expect((await service.ask(path)).status).toBe(200);
    const visits = Array.from({ length: VISITORS }, (_, n) => visit(service, clock, n));
    await pass(clock, 4 * WINDOW_MS, service);
    const kept = (await Promise.all(visits)).flat();
    expect(kept.length).toBeGreaterThan(10);
    const wrong = kept.filter(
      ({ status, isWhole, waitedMs }) => status !== 200 || !isWhole || waitedMs > MAX_WAIT_MS,
    );
    expect(wrong).toEqual([]);
  } finally {
    await service.close();
    await sandbox.close();
  }
});
