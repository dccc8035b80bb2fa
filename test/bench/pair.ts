/**
 * `npm run bench -- pair`: two replicas and Redis on a machine with two cores, compared with one process. For known names: how many a second,
 * with the load on the same cores, and the CPU time of each. For new names: the CPU time of each, in the service and in Redis.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { HIT, startService } from "./candidates.js";
import { generator, load } from "./load.js";
import { interleaved } from "./rounds.js";
import { type Server, usageOf } from "./server.js";
import { figure, median, table } from "./table.js";
import { upstreamAt } from "../support/upstream.js";

const SECONDS = 3;
const WARM_UP_SECONDS = 5;
const NEW_NAMES = 400;
const AT_ONCE = 4;
/** The upstream's limit, in a window that is short enough for many calls. The cost in Redis grows with the limit, not with the window. */
const LIMIT = 60;
const WINDOW_MS = 1000;

interface Setup {
  readonly name: string;
  readonly servers: readonly Server[];
  readonly redis: RedisServer | null;
  readonly sandbox: Sandbox;
  readonly measures: Measure[];
}

interface Measure {
  readonly hitsPerSecond: number;
  readonly cpuPerHit: number;
  readonly cpuPerNewName: number;
  readonly redisPerNewName: number;
}

export async function benchPair({ rounds = 3 }: { readonly rounds?: number } = {}): Promise<void> {
  const setups = [await setUp("one process", 1), await setUp("two replicas and Redis", 2)];
  for (const { servers } of setups) {
    for (const server of servers) {
      await load(server.port, HIT, WARM_UP_SECONDS, "any");
      server.freeze();
    }
  }
  for (const setup of interleaved(rounds, setups)) setup.measures.push(await measure(setup));
  for (const { servers, redis, sandbox } of setups) {
    for (const server of servers) await server.stop();
    await redis?.close();
    await sandbox.close();
  }
  console.log(
    `\nOne process, and two replicas with Redis, on the same two cores as their load (${generator}); Node ${process.version}, medians of ${rounds} rounds`,
  );
  console.log(
    table(
      ["", "known names a second", "CPU µs each", "new name: CPU µs in the service", "in Redis"],
      setups.map(({ name, measures }) => {
        const of = (what: keyof Measure): string => figure(median(measures.map((one) => one[what])));
        return [name, of("hitsPerSecond"), of("cpuPerHit"), of("cpuPerNewName"), of("redisPerNewName")];
      }),
    ),
  );
}

async function setUp(name: string, replicas: number): Promise<Setup> {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: WINDOW_MS },
  });
  const redis = replicas === 1 ? null : await startRedis();
  const env = {
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: String(LIMIT),
    UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
    QUOTA_COLD_START: "assume-free",
    ...(redis !== null && { REDIS_URL: redis.url, REPLICAS_MAX: String(replicas) }),
  };
  const servers: Server[] = [];
  while (servers.length < replicas) {
    const server = await startService({ env, core: "any" });
    await server.firstAnswer(HIT, 200);
    servers.push(server);
  }
  return { name, servers, redis, sandbox, measures: [] };
}

async function measure({ servers, redis }: Setup): Promise<Measure> {
  for (const server of servers) server.thaw();
  // Frozen replicas have lost their connection to Redis and have to reconnect.
  await sleep(3_000);
  const redisCpu = (): number => (redis === null ? 0 : usageOf(String(redis.pid())).cpuMicroseconds);
  const cpu = (): number => servers.reduce((sum, server) => sum + server.usage().cpuMicroseconds, 0);

  const beforeHits = cpu();
  const reports = await Promise.all(servers.map((server) => load(server.port, HIT, SECONDS, "any")));
  const hits = reports.reduce((sum, { requests }) => sum + requests, 0);
  const cpuPerHit = (cpu() - beforeHits) / hits;

  const [beforeNames, redisBefore] = [cpu(), redisCpu()];
  await Promise.all(Array.from({ length: AT_ONCE }, (_, client) => askNewNames(servers, client)));
  const measured = {
    hitsPerSecond: hits / SECONDS,
    cpuPerHit,
    cpuPerNewName: (cpu() - beforeNames) / NEW_NAMES,
    redisPerNewName: (redisCpu() - redisBefore) / NEW_NAMES,
  };
  for (const server of servers) server.freeze();
  return measured;
}

async function askNewNames(servers: readonly Server[], client: number): Promise<void> {
  for (let asked = 0; asked < NEW_NAMES / AT_ONCE; asked += 1) {
    const server = servers[(asked + client) % servers.length];
    const { status } = (await server?.ask({ path: "/v1/availability?domain=new-{n}.af" })) ?? { status: 0 };
    if (status !== 200) throw new Error(`a new name was answered with ${status}`);
  }
}
