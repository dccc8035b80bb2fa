/** Replicas beyond `replicasMax` or with other settings get no share, and all replicas together never exceed the budget. */
import { expect } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import type { RedisLedgerSettings } from "../../src/quota/ledger/redis.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { concurrentTest } from "../support/stories.js";
import { openSharedLedger } from "./support/shared-ledger.js";

const BUDGET = 12;
const WINDOW_MS = 3000;
const ALONE_AFTER_MS = 1000;
const LONGEST_CALL_MS = 100;
/** How long after a cut a replica has got back everything that it had lent. */
const SHARE_BACK_AFTER_MS = ALONE_AFTER_MS + LONGEST_CALL_MS + WINDOW_MS / 6 + WINDOW_MS + 1500;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

async function open() {
  const { replica, ...shared } = await openSharedLedger({
    limit: BUDGET + 2,
    headroom: 2,
    windowMs: WINDOW_MS,
    replicasMax: 3,
    longestCallMs: LONGEST_CALL_MS,
  });
  return {
    ...shared,
    replica: async (more: Partial<RedisLedgerSettings> = {}): Promise<Ledger> => (await replica(more)).ledger,
  };
}

async function drain(ledgers: readonly Ledger[]): Promise<number> {
  let taken = 0;
  for (const ledger of ledgers) {
    for (;;) {
      const one = await ledger.take();
      if ("retryInMs" in one) break;
      taken += 1;
      await ledger.settle(one.slot, "answered");
    }
  }
  return taken;
}

describeWithRedis("the members of a fleet", () => {
  const test = concurrentTest(open);

  test("never exceed the budget without Redis, however many there are", async ({ server, replica }) => {
    const ledgers: Ledger[] = [];
    for (let count = 0; count < 9; count += 1) ledgers.push(await replica());
    await sleep(ALONE_AFTER_MS);
    await server.kill();
    await sleep(SHARE_BACK_AFTER_MS);
    // All at once, within one window.
    const taken = await drain(ledgers);
    expect(taken).toBeLessThanOrEqual(BUDGET);
    expect(taken).toBeGreaterThan(0);
  });

  test("that came too late get a share once there is room", async ({ replica }) => {
    const first = [await replica(), await replica(), await replica()];
    const late = await replica();
    await sleep(ALONE_AFTER_MS);
    await first[0]?.close();
    await until(async () => (await drain([late])) > 0, "the first slot of the late replica");
  });

  test("with another limit or window get nothing, with or without Redis, and don't disturb the others", async ({
    server,
    replica,
  }) => {
    const ledgers = [await replica(), await replica()];
    const others = [await replica({ limit: BUDGET + 10 }), await replica({ windowMs: WINDOW_MS / 2 })];
    await sleep(ALONE_AFTER_MS);
    expect(await drain(others)).toBe(0);
    expect(await drain(ledgers)).toBe(BUDGET);
    await server.kill();
    await sleep(SHARE_BACK_AFTER_MS);
    expect(await drain(others)).toBe(0);
    expect(await drain(ledgers)).toBeGreaterThan(0);
  });

  test("with another limit take over when all with the former one have left", async ({ replica }) => {
    const former = await replica();
    await until(async () => (await drain([former])) > 0, "the first slot of the former replica");
    const later = await replica({ limit: BUDGET + 10 });
    await sleep(ALONE_AFTER_MS);
    expect(await drain([later])).toBe(0);
    await former.close();
    await until(async () => (await drain([later])) > 0, "the first slot of the later replica");
  });
});
