/** Replicas of the service in this process, on one clock of the test, which share a sandbox and a real Redis. */
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { FakeClock } from "./fake-clock.js";
import { type RedisServer, startRedis } from "./redis.js";
import { SMALL_SHOP } from "./retail.js";
import { type Service, startService, until } from "./service.js";
import { upstreamAt } from "./upstream.js";

export interface Replica extends Service {
  /** Cuts it off from Redis, or connects it again. */
  cutOff(): Promise<void>;
  reconnect(): Promise<void>;
}

export interface Fleet {
  readonly clock: FakeClock;
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  readonly replicas: readonly Replica[];
  /** Lets time pass for all of them, and everything happen that it triggers. */
  pass(ms: number): Promise<void>;
  /** Waits, while time passes, until something holds. */
  passUntil(what: () => boolean | Promise<boolean>, name?: string): Promise<void>;
  /** The only owner among those that haven't been cut off, once there is one. */
  owner(among?: readonly Replica[]): Promise<Replica>;
  /** An orderly end of the ownership, as when its process is about to stop. */
  stepDown(owner: Replica): Promise<void>;
  /** The lease ends in Redis, as it does six seconds after its last renewal. */
  endLease(): Promise<void>;
  /** Redis was killed and comes back empty. */
  restartRedis(): Promise<void>;
  close(): Promise<void>;
}

const STEP_MS = 500;
const realMs = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Starts `size` replicas with these additional settings and price file, and waits for the first owner and its prices. */
export async function startFleet(
  size: number,
  env: Readonly<Record<string, string>> = {},
  retail = SMALL_SHOP,
): Promise<Fleet> {
  const clock = new FakeClock();
  const redis = await startRedis();
  const limit = Number(env["UPSTREAM_RATE_LIMIT"] ?? 1000);
  const sandbox = await startSandbox({
    rateLimit: { limit, windowMs: 60_000 },
    now: () => clock.monotonic(),
    wall: () => clock.now(),
  });
  const settings = {
    ...upstreamAt(sandbox),
    QUOTA_COLD_START: "assume-free",
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    ...env,
  };
  const replicas: Replica[] = [];

  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= STEP_MS) {
      await clock.advance(Math.min(STEP_MS, left));
      // Redis, the sandbox and the replicas answer in real time; on a busy machine, Redis later than the others.
      await Promise.all([realMs(6), Promise.race([redis.command("PING").catch(() => ""), realMs(60)])]);
    }
  };
  const passUntil = (what: () => boolean | Promise<boolean>, name?: string): Promise<void> =>
    until(async () => {
      if (await what()) return true;
      await pass(STEP_MS);
      return false;
    }, name);
  const roleOf = async (replica: Replica): Promise<string> => {
    const { body } = await replica.ask("/health");
    const text = JSON.stringify(body);
    return text.includes("This replica is the owner")
      ? "owner"
      : text.includes("Another")
        ? "follower"
        : "none";
  };

  async function owner(among: readonly Replica[] = replicas): Promise<Replica> {
    let found: Replica | undefined;
    await passUntil(async () => {
      const roles = await Promise.all(among.map(roleOf));
      const others = roles.filter((role) => role === "follower").length;
      found = others === among.length - 1 ? among[roles.indexOf("owner")] : undefined;
      return found !== undefined;
    }, "an owner");
    if (found === undefined) throw new Error("there is no owner");
    return found;
  }

  const users = Array.from({ length: size }, (_, count) => `replica-${count}`);
  const admitUsers = async (): Promise<void> => {
    for (const user of users)
      await redis.command("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all");
  };
  await admitUsers();
  for (const user of users) {
    const url = redis.url.replace("unix://", `unix://${user}:secret@`);
    const service = await startService({
      clock,
      at: sandbox,
      retail,
      env: { ...settings, REDIS_URL: url },
      warm: false,
    });
    replicas.push({
      ...service,
      async cutOff() {
        await redis.command("ACL", "SETUSER", user, "off");
        await redis.command("CLIENT", "KILL", "USER", user);
      },
      async reconnect() {
        await redis.command("ACL", "SETUSER", user, "on");
      },
    });
  }
  const first = await owner();
  await passUntil(() => first.log.some((line) => line.includes("prices.refreshed")), "the first prices");
  return {
    clock,
    redis,
    sandbox,
    replicas,
    pass,
    passUntil,
    owner,
    async stepDown(last) {
      let hasStepped = false;
      void last.stepDown().finally(() => {
        hasStepped = true;
      });
      await passUntil(() => hasStepped, "the end of the former owner's calls");
    },
    async endLease() {
      const keys = await redis.command("KEYS", "af-storefront:owner:*");
      const names = keys.split("\r\n").filter((line) => /^af-storefront:owner:.* [0-9a-f]{12}$/.test(line));
      for (const name of names) await redis.command("DEL", name);
    },
    async restartRedis() {
      await redis.start();
      await admitUsers();
    },
    async close() {
      redis.wake();
      const closing = Promise.all(replicas.map((replica) => replica.close()));
      let isClosed = false;
      void closing.finally(() => {
        isClosed = true;
      });
      await passUntil(() => isClosed, "the end of the replicas");
      await closing;
      await sandbox.close();
      await redis.close();
    },
  };
}
