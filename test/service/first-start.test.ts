/** The first start, when nothing is known about the registry: a visitor with a reserved call gets the price, too, although no price is known yet. */
import { expect, test } from "@jest/globals";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { callsOf, problemOf, type Service, startService } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const WINDOW_MS = 60_000;
/** The default setting plus one step of this test. */
const MAX_WAIT_MS = 8_000 + 250;
const VISITORS = 100;
const EVERY_MS = 600;
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
  const ended = (): number => service.log.filter((line) => line.includes('"event":"upstream.call"')).length;
  for (let passed = 0; passed < ms; passed += 250) {
    await clock.advance(250);
    do for (let turn = 0; turn < 30; turn += 1) await new Promise((next) => setImmediate(next));
    while (ended() < callsOf(service.sandbox));
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

test("a reserved call returns the name with its price, even if this needs a quote or a second check", async () => {
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
    await advance(clock, 6 * WINDOW_MS, service);
    const retries = (await Promise.all(visits)).flat();
    expect(retries.length).toBeGreaterThan(50);
    const failed = retries.filter(
      ({ status, isComplete, waitedMs }) => status !== 200 || !isComplete || waitedMs > MAX_WAIT_MS,
    );
    // What is promised of places; completing an answer has priority for half of the calls only.
    expect(failed.length).toBeLessThanOrEqual(0.03 * retries.length);
  } finally {
    await service.close();
    await sandbox.close();
  }
});
