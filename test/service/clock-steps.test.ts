/** The wall clock may be set forward, as after a suspension of the machine: the waits that visitors were given before are still true. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";
import { openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { problemOf, type Service, startService } from "../support/service.js";
import { registration, shopAt } from "../shop/shop.js";

const STEP_MS = 10 * 60_000;

let clock: FakeClock;
let service: Service;
beforeEach(async () => {
  clock = new FakeClock();
  service = await startService({ clock, env: { UPSTREAM_RATE_LIMIT: "60" } });
  await clock.advance(120_000);
});
afterEach(() => service.close());

/** Holds the answer about kabul.af while visitors ask for more than the quota allows. */
async function kabulAskedByCrowd() {
  const hold = service.sandbox.control.hold({ operation: "check", asked: { domain: "kabul.af" }, calls: 1 });
  const first = service.ask("/v1/availability?domain=kabul.af");
  const held = await hold.caught();
  const crowd = Array.from({ length: 60 }, (_, n) => service.ask(`/v1/availability?domain=name-${n}.af`));
  await clock.advance(1_000);
  return {
    async answer(): Promise<void> {
      held.release();
      await clock.advance(8_000);
      await Promise.all([first, ...crowd]);
    },
  };
}

/** Two seconds, in the middle of which the wall clock is set. */
async function passWithStep(): Promise<void> {
  await clock.advance(1_000);
  await service.ask("/livez");
  clock.stepWall(STEP_MS);
  await clock.advance(1_000);
  await service.ask("/livez");
}

test("a search gives the wait that is left of a refusal, while another name was waited for", async () => {
  const kabul = await kabulAskedByCrowd();
  const search = service.ask("/v1/search?q=kabul&tlds=.af,.com.af");
  await passWithStep();
  await kabul.answer();
  const { results } = z
    .object({ results: z.array(z.object({ domain: z.string(), retryAfter: z.int().optional() })) })
    .parse((await search).body);
  const { retryAfter } = results.find(({ domain }) => domain === "kabul.com.af") ?? {};
  expect(retryAfter).toBeGreaterThan(50);
});

test("a cart gives the wait that is left of a refused line, while another line was waited for", async () => {
  const kabul = await kabulAskedByCrowd();
  const lines = ["kabul.af", ...Array.from({ length: 19 }, (_, n) => `cart-${n}.af`)];
  const cart = shopAt(service).post(lines.map((name) => registration(name)));
  await passWithStep();
  await kabul.answer();
  const { items } = z
    .object({
      items: z.array(
        z.object({ domain: z.string(), problem: z.object({ retryAfter: z.int().optional() }).optional() }),
      ),
    })
    .parse((await cart).body);
  expect(items.at(-1)).toMatchObject({ domain: "cart-18.af", problem: { retryAfter: expect.any(Number) } });
  expect(items.at(-1)?.problem?.retryAfter).toBeGreaterThan(40);
});

test("a client with too many open searches gets the time when the first of them will end", async () => {
  service.sandbox.control.hold({ operation: "check" });
  const streams = await Promise.all(
    Array.from({ length: 10 }, (_, n) => openStream(service, `/v1/search?q=name-${n}`)),
  );
  await passWithStep();
  const headers = { Accept: "text/event-stream" };
  const { retryAfter = 0 } = problemOf(await service.ask("/v1/search?q=herat", { headers }));
  expect(retryAfter).toBe(33);
  for (const stream of streams) stream.hangUp();
});
