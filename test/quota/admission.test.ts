/** Who may wait and who is refused, one rule at a time. */
import { describe, expect, test } from "@jest/globals";
import type { Lane } from "../../src/quota/lane.js";
import type { Ask } from "../../src/quota/quota.js";
import { ask, memoryQuota, outcome, WINDOW_MS } from "./support/asks.js";
import { ServiceError } from "../../src/errors.js";

const BUDGET = 60;

const ONE_ADDRESS = (_n: number): Pick<Ask, "client" | "network"> => ({ client: "carrier" });
const ONE_NETWORK = (n: number): Pick<Ask, "client" | "network"> => ({
  client: `subnet ${n}`,
  network: "carrier",
});

/** How many calls are reserved for one that asks a lot and has just been joined by a request of this lane from elsewhere. */
async function reservedFor(beside: Lane | null, who = ONE_ADDRESS): Promise<number> {
  const { quota } = memoryQuota(BUDGET);
  const visit = (n: number) =>
    outcome(quota.run(ask({ ...who(n), queryKey: `q ${n}`, maxWaitMs: 100 }), async () => {}));
  if (beside !== null)
    await outcome(quota.run(ask({ client: "somebody else", lane: beside }), async () => {}));
  let kept = 0;
  for (let n = 0; n < 3 * BUDGET; n += 1) {
    const got = await visit(n);
    if (got instanceof ServiceError && got.kept === true) kept += 1;
  }
  return kept;
}

describe("a busy address", () => {
  test.each(["refresh", "suggestion"] as const)(
    "has all calls that can be reserved while nobody but the service itself asks beside it (%s)",
    async (lane) => {
      const alone = await reservedFor(null);
      expect(alone).toBeGreaterThan(5);
      expect(await reservedFor(lane)).toBeGreaterThanOrEqual(alone - 1);
    },
  );

  test.each(["exact", "search", "checkout"] as const)(
    "has few of them as soon as somebody else asks too (%s)",
    async (lane) => {
      expect(await reservedFor(lane)).toBeLessThan((await reservedFor(null)) / 2);
    },
  );

  test("is no better off with an address for every request, all of one network", async () => {
    expect(await reservedFor("exact", ONE_NETWORK)).toBeLessThan((await reservedFor(null)) / 2);
  });
});

test("somebody who was refused counts as wanting calls for one window", async () => {
  const { quota, clock } = memoryQuota(3);
  for (let n = 0; n < 3; n += 1) await quota.run(ask({ client: `spender ${n}` }), async () => {});
  await outcome(quota.run(ask({ client: "refused", maxWaitMs: 0 }), async () => {}));
  void quota.run(ask({ client: "waiting", maxWaitMs: Infinity }), async () => {});
  await clock.advance(WINDOW_MS - 1);
  expect(quota.isContested("waiting")).toBe(true);
  await clock.advance(1);
  expect(quota.isContested("waiting")).toBe(false);
});

test("a suggestion that was refused isn't somebody who wants calls", async () => {
  const { quota } = memoryQuota(3);
  for (let n = 0; n < 3; n += 1) await quota.run(ask({ client: `spender ${n}` }), async () => {});
  await outcome(quota.run(ask({ client: "elsewhere", lane: "suggestion", maxWaitMs: 0 }), async () => {}));
  void quota.run(ask({ client: "waiting", maxWaitMs: Infinity }), async () => {});
  expect(quota.isContested("waiting")).toBe(false);
});
