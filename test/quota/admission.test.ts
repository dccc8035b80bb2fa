/** The rules that decide which requests may wait and which are refused. */
import { describe, expect, test } from "@jest/globals";
import type { Lane } from "../../src/quota/lane.js";
import type { Ask, Quota, QuotaRequest } from "../../src/quota/quota.js";
import { ask, memoryQuota, outcome, refusalOf, retryTimeMs, spend, WINDOW_MS } from "./support/asks.js";
import { ServiceError } from "../../src/errors.js";

const BUDGET = 60;

const ONE_ADDRESS = (_n: number): Pick<Ask, "client" | "network"> => ({ client: "carrier" });
const ONE_NETWORK = (n: number): Pick<Ask, "client" | "network"> => ({
  client: `subnet ${n}`,
  network: "carrier",
});

/** How many calls are reserved for a client with many requests, right after another client has made one in this lane. */
async function reservedFor(otherLane: Lane | null, who = ONE_ADDRESS): Promise<number> {
  const { quota } = memoryQuota(BUDGET);
  const visit = (n: number) =>
    outcome(quota.run(ask({ ...who(n), queryKey: `q ${n}`, maxWaitMs: 100 }), async () => {}));
  if (otherLane !== null)
    await outcome(quota.run(ask({ client: "another client", lane: otherLane }), async () => {}));
  let reserved = 0;
  for (let n = 0; n < 3 * BUDGET; n += 1) {
    const got = await visit(n);
    if (got instanceof ServiceError && got.kept === true) reserved += 1;
  }
  return reserved;
}

describe("a busy address", () => {
  test.each(["refresh", "suggestion"] as const)(
    "gets all reservable calls while only the service's own work competes with it (%s)",
    async (lane) => {
      const alone = await reservedFor(null);
      expect(alone).toBeGreaterThan(5);
      expect(await reservedFor(lane)).toBeGreaterThanOrEqual(alone - 1);
    },
  );

  test.each(["exact", "search", "checkout"] as const)(
    "gets less than half of the reservable calls once another client makes a request (%s)",
    async (lane) => {
      expect(await reservedFor(lane)).toBeLessThan((await reservedFor(null)) / 2);
    },
  );

  test("gains nothing by using a new address of the same network for each request", async () => {
    expect(await reservedFor("exact", ONE_NETWORK)).toBeLessThan((await reservedFor(null)) / 2);
  });
});

test("a refused client counts as wanting calls for one window", async () => {
  const { quota, clock } = memoryQuota(3);
  for (let n = 0; n < 3; n += 1) await quota.run(ask({ client: `spender ${n}` }), async () => {});
  await outcome(quota.run(ask({ client: "refused", maxWaitMs: 0 }), async () => {}));
  void quota.run(ask({ client: "waiting", maxWaitMs: Infinity }), async () => {});
  await clock.advance(WINDOW_MS - 1);
  expect(quota.isContested("waiting")).toBe(true);
  await clock.advance(1);
  expect(quota.isContested("waiting")).toBe(false);
});

test("a refused suggestion doesn't count as a client that wants calls", async () => {
  const { quota } = memoryQuota(3);
  for (let n = 0; n < 3; n += 1) await quota.run(ask({ client: `spender ${n}` }), async () => {});
  await outcome(quota.run(ask({ client: "elsewhere", lane: "suggestion", maxWaitMs: 0 }), async () => {}));
  void quota.run(ask({ client: "waiting", maxWaitMs: Infinity }), async () => {});
  expect(quota.isContested("waiting")).toBe(false);
});

describe("a reservation whose call the upstream rejects, asking for a pause,", () => {
  const PAUSE_MS = 30_000;

  /** Makes a call that the upstream rejects, while another client has reserved what may be reserved. */
  async function rejected(quota: Quota, request: QuotaRequest): Promise<ServiceError> {
    return refusalOf(
      quota.run(request, async (permit) => {
        await outcome(quota.run(ask({ client: "another" }), async () => {}));
        permit.answered();
        await quota.pause(PAUSE_MS);
        throw permit.refusal();
      }),
    );
  }

  test.each([
    ["at its second", 0],
    ["a little earlier, and waits until then", 5_000],
  ])("is put off until after the pause if its holder returns %s", async (_when, earlyMs) => {
    const { quota, clock } = memoryQuota(3);
    await spend(quota, 3);
    const inMs = retryTimeMs(await refusalOf(quota.run(ask(), async () => {})));
    await clock.advance(inMs - earlyMs);
    const refused = rejected(quota, ask());
    await clock.advance(earlyMs + 100);
    expect(await refused).toMatchObject({ kept: true, retryAfterMs: PAUSE_MS });
    expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 1 });
  });

  test("can still be claimed by a holder who shared the call of somebody else", async () => {
    const { quota, clock } = memoryQuota(3);
    await spend(quota, 3);
    const inMs = retryTimeMs(await refusalOf(quota.run(ask({ client: "holder" }), async () => {})));
    await clock.advance(inMs - 1_000);
    const sharedBy = new Set([{ client: "first" }, { client: "holder" }]);
    const refused = rejected(quota, ask({ client: "first", sharedBy }));
    await clock.advance(1_100);
    await refused;
    expect(quota.refusal(ask({ client: "holder" }))).toMatchObject({ kept: true, retryAfterMs: PAUSE_MS });
  });
});
