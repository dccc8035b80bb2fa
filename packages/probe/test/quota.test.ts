/** The probe and the service share one budget: through the ledger file, which has one owner at a time, or through Redis. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { join } from "node:path";
import { systemClock } from "../../../src/clock.js";
import { readConfig } from "../../../src/config/env.js";
import { probe } from "../../../src/probe/probe.js";
import { describeWithRedis, type RedisServer, startRedis } from "../../../test/support/redis.js";
import { startService, temporaryFolder, until } from "../../../test/support/service.js";
import { upstreamAt } from "../../../test/support/upstream.js";
import { type Sandbox, startSandbox } from "../../sandbox/src/sandbox.js";
import { authHeaders, call } from "../../sandbox/test/client.js";
import type { Result } from "../src/result.js";

type Environment = Readonly<Record<string, string>>;

let sandbox: Sandbox;
let folder: ReturnType<typeof temporaryFolder>;

const LIMIT = 8;
/** The probe calls it, and the service without visitors doesn't. */
const PROBED = "GET /api/v1/domains/{domain}";

beforeEach(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ rateLimit: { limit: LIMIT, windowMs: 1000 } });
});
afterEach(async () => {
  await sandbox.close();
  folder.remove();
});

const envWith = (more: Environment): Environment => ({
  ...upstreamAt(sandbox),
  STATE_DIR: join(folder.path, "state"),
  UPSTREAM_RATE_LIMIT: String(LIMIT),
  UPSTREAM_RATE_HEADROOM: "2",
  UPSTREAM_RATE_WINDOW_MS: "1000",
  ...more,
});

async function probeLive(more: Environment = {}): Promise<Result> {
  const read = readConfig(envWith(more), systemClock);
  if (!read.ok || read.config.upstream === null) throw new Error("the settings are invalid");
  return probe(read.config, read.config.upstream);
}

const serve = (env: Environment) =>
  startService({ clock: systemClock, at: sandbox, warm: false, env: envWith(env) });

const usage = () => sandbox.stats().credentials[0];

/** The probe is refused while a service runs, and goes on within what the service has left once it has stopped. */
async function expectOneAtATime(env: Environment): Promise<void> {
  const service = await serve(env);
  try {
    await until(() => (usage()?.accepted ?? 0) > 0, "a call of the service");
    await expect(probeLive(env)).rejects.toThrow(/^A running service .* Stop it first\.$/);
    expect(usage()?.byRoute).not.toHaveProperty([PROBED]);
  } finally {
    await service.close();
  }
  expect((await probeLive(env)).verdict).toBe("copes");
  expect(usage()).toMatchObject({ byRoute: { [PROBED]: 1 }, rejected429: 0 });
}

test("without a record the probe waits until a window that others may have spent is over", async () => {
  const headers = authHeaders(sandbox.credential());
  const others = Array.from({ length: LIMIT - 2 }, () =>
    call("GET", `${sandbox.url}/api/v1/account/balance`, { headers }),
  );
  await Promise.all(others);
  expect((await probeLive()).verdict).toBe("copes");
  expect(usage()).toMatchObject({ accepted: LIMIT - 2 + 6, rejected429: 0 });
});

test("the probe records its calls for a service that starts afterwards", async () => {
  const env = { QUOTA_COLD_START: "assume-free" };
  await probeLive(env);
  const service = await serve(env);
  await until(() => (usage()?.accepted ?? 0) > LIMIT, "a call of the service");
  await service.close();
  expect(usage()?.rejected429).toBe(0);
});

test("the probe makes no call while a running service holds the ledger, and says why", async () => {
  await expectOneAtATime({ QUOTA_COLD_START: "assume-free" });
});

describeWithRedis("with Redis the probe makes no call", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  test("while a running service is the owner", async () => {
    await expectOneAtATime({ REDIS_URL: server.url, QUOTA_COLD_START: "assume-free" });
  });

  test("while Redis doesn't answer", async () => {
    await server.kill();
    const refused = probeLive({ REDIS_URL: server.url });
    await expect(refused).rejects.toThrow(/^REDIS_URL is set, but Redis can.t be reached/);
    expect(usage()?.accepted).toBe(0);
  });
});
