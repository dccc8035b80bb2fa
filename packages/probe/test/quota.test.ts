/** The probe and the service share one budget: through the ledger file, which has one owner at a time, or through Redis. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/clock.js";
import { type Config, readConfig } from "../../../src/config/env.js";
import { probe } from "../../../src/probe/probe.js";
import type { Result } from "../src/result.js";
import type { Home } from "../../../src/quota/note.js";
import { createQuotas, type Quotas } from "../../../src/quota/quotas.js";
import { createRecords } from "../../../src/quota/record.js";
import { createFleet } from "../../../src/fleet/lease.js";
import { connectRedis } from "../../../src/fleet/redis-link.js";
import { type Sandbox, startSandbox } from "../../sandbox/src/sandbox.js";
import { createCredentials } from "../../../src/upstream/credentials.js";
import { fixedSecret } from "../../../src/secret.js";
import { authHeaders, call } from "../../sandbox/test/client.js";
import { describeWithRedis, type RedisServer, startRedis } from "../../../test/support/redis.js";
import { recordingLog, temporaryFolder } from "../../../test/support/service.js";

let sandbox: Sandbox;
let folder: ReturnType<typeof temporaryFolder>;

const LIMIT = 8;
const WINDOW_MS = 1000;

beforeEach(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ rateLimit: { limit: LIMIT, windowMs: WINDOW_MS } });
});
afterEach(async () => {
  await sandbox.close();
  folder.remove();
});

function source() {
  const { key, secret } = sandbox.credential();
  return { key: fixedSecret(key), secret: fixedSecret(secret) };
}

function configOf(env: Readonly<Record<string, string>>): Config {
  const read = readConfig(
    {
      STATE_DIR: join(folder.path, "state"),
      UPSTREAM_RATE_LIMIT: String(LIMIT),
      UPSTREAM_RATE_HEADROOM: "2",
      UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
      ...env,
    },
    systemClock,
  );
  if (!read.ok) throw new Error(read.faults.join("\n"));
  return read.config;
}

function probeLive(config: Config): Promise<Result> {
  return probe(config, { baseUrl: sandbox.url, active: source() });
}

/** The quotas of a running service. */
function service(config: Config, home: Home): Quotas {
  return createQuotas({
    ...config.quota,
    home,
    clock: systemClock,
    log: recordingLog([]),
  });
}

const fingerprint = (): string =>
  createCredentials(source(), null, systemClock).states()[0]?.fingerprint ?? "";

/** Makes this many calls as a running service. */
async function spend(quotas: Quotas, calls: number): Promise<void> {
  const { signal } = new AbortController();
  const quota = await quotas.of(fingerprint());
  await Promise.all(
    Array.from({ length: calls }, () =>
      quota.run(
        { lane: "exact", client: "a", queryKey: "", operation: "check", maxWaitMs: WINDOW_MS, signal },
        async ({ answered }) => {
          await call("GET", `${sandbox.url}/api/v1/account/balance`, {
            headers: authHeaders(sandbox.credential()),
          });
          answered();
        },
      ),
    ),
  );
}

const usage = () => sandbox.stats().credentials.find(({ key }) => key === sandbox.credential().key);

describe("the probe with a ledger file", () => {
  test("waits without a record until a window that others may have spent is over", async () => {
    await Promise.all(
      Array.from({ length: LIMIT - 2 }, () =>
        call("GET", `${sandbox.url}/api/v1/account/balance`, { headers: authHeaders(sandbox.credential()) }),
      ),
    );
    const result = await probeLive(configOf({}));
    expect(result.verdict).toBe("copes");
    expect(usage()).toMatchObject({ accepted: LIMIT - 2 + 6, rejected429: 0 });
  });

  test("records its calls for a service that starts afterwards", async () => {
    const config = configOf({ QUOTA_COLD_START: "assume-free" });
    await probeLive(config);
    const files = readdirSync(config.stateDir).filter((name) => name.endsWith(".ledger"));
    expect(files).toHaveLength(1);
    const record = readFileSync(join(config.stateDir, files[0] ?? ""), "latin1");
    expect(
      /"slots":\[([\d,]+)\]/
        .exec(record)?.[1]
        ?.split(",")
        .filter((ms) => ms !== "0"),
    ).toHaveLength(6);
    const quotas = service(config, createRecords(config.stateDir, config.quota, systemClock));
    await quotas.openAll([fingerprint()]);
    expect(quotas.opened(fingerprint())?.snapshot()).toMatchObject({ used: 6, budget: 6 });
    await quotas.close();
  });

  test("makes no call while a running service holds the ledger, and says why", async () => {
    const config = configOf({ QUOTA_COLD_START: "assume-free" });
    const quotas = service(config, createRecords(config.stateDir, config.quota, systemClock));
    await quotas.openAll([fingerprint()]);
    await expect(probeLive(config)).rejects.toThrow(/running service uses the quota/);
    await quotas.close();
    expect(usage()?.accepted).toBe(0);
    expect((await probeLive(config)).verdict).toBe("copes");
  });
});

describeWithRedis("the probe with Redis", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  test("makes no call while a running service is the owner", async () => {
    const config = configOf({ REDIS_URL: server.url, QUOTA_COLD_START: "assume-free" });
    const redis = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    const fleet = createFleet({
      ...config.quota,
      link: redis,
      url: () => "http://127.0.0.1:9",
      upstreamId: sandbox.url,
      credentialInUse: fingerprint,
      clock: systemClock,
      factClock: systemClock,
      log: recordingLog([]),
    });
    await redis.firstContact(1_000);
    await fleet.start();
    const quotas = service(config, fleet);
    try {
      await quotas.openAll([fingerprint()]);
      await expect(probeLive(config)).rejects.toThrow("Stop it first");
      await spend(quotas, 4);
    } finally {
      await quotas.close();
      fleet.stop();
      redis.close();
    }
    // The service has left a note, so the probe goes on at once, within the budget.
    expect((await probeLive(config)).verdict).toBe("copes");
    expect(usage()).toMatchObject({ accepted: 4 + 6, rejected429: 0 });
  });

  test("makes no call while Redis doesn't answer", async () => {
    const config = configOf({ REDIS_URL: server.url });
    await server.kill();
    await expect(probeLive(config)).rejects.toThrow(/^REDIS_URL is set, but Redis can.t be reached/);
    expect(usage()?.accepted).toBe(0);
  });
});
