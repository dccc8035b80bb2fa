/** Replicas of the service in this process, which share a sandbox and a real Redis. */
import { systemClock } from "../../src/clock.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { type RedisServer, startRedis } from "./redis.js";
import { type Service, startService } from "./service.js";
import { upstreamAt } from "./upstream.js";

export interface Fleet {
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  readonly replicas: readonly Service[];
  /** Starts another replica with these additional settings. */
  join(env?: Readonly<Record<string, string>>): Promise<Service>;
  close(): Promise<void>;
}

/** Starts `size` replicas with these additional settings. REPLICAS_MAX is `size`. */
export async function startFleet(size: number, env: Readonly<Record<string, string>> = {}): Promise<Fleet> {
  const redis = await startRedis();
  const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
  const replicas: Service[] = [];
  const settings = {
    ...upstreamAt(sandbox),
    QUOTA_COLD_START: "assume-free",
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    REDIS_URL: redis.url,
    REPLICAS_MAX: String(size),
    ...env,
  };

  async function join(more: Readonly<Record<string, string>> = {}): Promise<Service> {
    const all = { ...settings, ...more };
    const replica = await startService({ clock: systemClock, at: sandbox, env: all, warm: false });
    replicas.push(replica);
    return replica;
  }

  for (let count = 0; count < size; count += 1) await join();
  return {
    redis,
    sandbox,
    replicas,
    join,
    async close() {
      redis.wake();
      await Promise.all(replicas.map((replica) => replica.close()));
      await sandbox.close();
      await redis.close();
    },
  };
}
