/** The Redis of a fleet, and the faults of Redis and of its network. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type LinkProxy, startLinkProxy } from "../support/link-proxy.js";
import { freePort } from "../support/free-port.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { startSentinel } from "../support/sentinel.js";

/** Waits for a random time between `from` and `to`, in windows. */
export type RandomPause = (from: number, to: number) => Promise<void>;

export type Faults = Readonly<Record<string, () => Promise<void>>>;

export interface SharedRedis {
  /** Gives another replica access: its REDIS_URL, and `close` for when the replica is gone for good. */
  connect(): Promise<{ readonly url: string; close(): Promise<void> }>;
  faults(pause: RandomPause, random: () => number): Faults;
  /** Describes the shared slot table in one line; empty if it can't be read. Each slot rests for `occupiedMs`. */
  slots(occupiedMs: number): Promise<string>;
  close(): Promise<void>;
}

const SLOTS = `
local key = redis.call('KEYS', 'af-storefront:quota:*')[1]
local s = cmsgpack.unpack(redis.call('GET', key))
local rested, inFlight, assumed, of = 0, 0, 0, { ['the pool'] = { 0, 0 } }
for name in pairs(s.members) do of[name] = { 0, 0 } end
for _, slot in ipairs(s.slots) do
  local count = of[slot.holder] or of['the pool']
  count[2] = count[2] + 1
  if slot.at + ARGV[1] <= s.now then rested = rested + 1; count[1] = count[1] + 1 end
  if slot.grant ~= '' then inFlight = inFlight + 1 end
  if slot.assumed then assumed = assumed + 1 end
end
local parts = {}
for name, count in pairs(of) do parts[#parts + 1] = string.sub(name, 1, 8) .. ' ' .. count[1] .. ' of ' .. count[2] end
return rested .. ' rested (' .. table.concat(parts, ', ') .. '), ' .. inFlight .. ' in flight, ' .. assumed .. ' assumed'
`;

async function slotsIn(redis: RedisServer, occupiedMs: number): Promise<string> {
  return (await redis.command("EVAL", SLOTS, "0", String(occupiedMs)).catch(() => "")).trim();
}

/** One server. Each replica reaches it over its own network. */
export async function oneRedis(): Promise<SharedRedis> {
  const redis = await startRedis();
  const links = new Set<LinkProxy>();
  return {
    async connect() {
      const link = await startLinkProxy(redis);
      links.add(link);
      return {
        url: link.url,
        async close() {
          links.delete(link);
          await link.close();
        },
      };
    },
    faults: (pause, random) => ({
      "a replica is cut off from Redis": async () => {
        const link = [...links][Math.floor(random() * links.size)];
        link?.cut();
        await pause(0.3, 2.5);
        link?.heal();
      },
      "connections are reset every 150 ms": async () => {
        for (const link of links) link.resetAfter(150);
        await pause(1, 2);
        for (const link of links) link.resetAfter(null);
      },
      "100 ms to Redis and back": async () => {
        for (const link of links) link.roundTrip(100);
        await pause(2, 4);
        for (const link of links) link.roundTrip(0);
      },
      "Redis is read-only": async () => {
        await redis.command("REPLICAOF", "127.0.0.1", "1");
        await pause(0.5, 2);
        await redis.command("REPLICAOF", "NO", "ONE");
      },
      "Redis is out of memory": async () => {
        await redis.command("CONFIG", "SET", "maxmemory", "1");
        await pause(0.5, 2);
        await redis.command("CONFIG", "SET", "maxmemory", "0");
      },
      "Redis hangs": async () => {
        redis.hang();
        await pause(0.3, 2);
        redis.wake();
      },
      "Redis is killed and started empty": async () => {
        await redis.kill();
        rmSync(join(redis.folder, "dump.rdb"), { force: true });
        await pause(0, 1.5);
        await redis.start();
      },
      "Redis is started with an old snapshot": async () => {
        await redis.command("SAVE");
        await pause(0.2, 1.5);
        await redis.kill();
        await redis.start();
      },
    }),
    slots: (occupiedMs) => slotsIn(redis, occupiedMs),
    async close() {
      await Promise.all([...links].map((link) => link.close()));
      await redis.close();
    },
  };
}

/** A master and two replicas behind Sentinel, as docs/going-live.md recommends: a master without a replica refuses writes. */
export async function redisBehindSentinel(): Promise<SharedRedis> {
  const ports = [await freePort(), await freePort(), await freePort()] as const;
  const requireReplica = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"];
  const serverOn = async (port: number, ...more: readonly string[]): Promise<[number, RedisServer]> => [
    port,
    await startRedis("--port", String(port), "--bind", "127.0.0.1", ...requireReplica, ...more),
  ];
  const replica = ["--replicaof", "127.0.0.1", String(ports[0])];
  const servers = new Map([
    await serverOn(ports[0]),
    await serverOn(ports[1], ...replica),
    await serverOn(ports[2], ...replica),
  ]);
  const sentinel = await startSentinel(ports[0]);
  const master = (): RedisServer => {
    const server = servers.get(sentinel.master());
    if (server === undefined) throw new Error("Sentinel names an unknown master");
    return server;
  };
  async function until(what: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await what())) await new Promise((done) => setTimeout(done, 50));
  }
  // Sentinel closes the connections of a server whose role it changes.
  const follows = async (server: RedisServer): Promise<boolean> =>
    /slave[^]*connected/.test(await server.command("ROLE").catch(() => ""));
  /** Whether the others follow the current master. On a busy machine there may have been another failover in the meantime. */
  const allFollow = async (): Promise<boolean> => {
    const others = [...servers.values()].filter((server) => server !== master());
    return (await Promise.all(others.map(follows))).every(Boolean);
  };
  await until(allFollow);
  await until(() => sentinel.hasReplica());
  return {
    connect: () =>
      Promise.resolve({
        url: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
        close: () => Promise.resolve(),
      }),
    faults: (pause) => ({
      "the master is killed, and comes back after the failover": async () => {
        const old = master();
        await old.kill();
        await until(() => master() !== old);
        await pause(0.2, 1.5);
        await old.start();
        await until(allFollow);
      },
      "the master hangs, and wakes after the failover": async () => {
        const old = master();
        old.hang();
        await until(() => master() !== old);
        await pause(0.2, 1.5);
        old.wake();
        await until(allFollow);
      },
    }),
    slots: (occupiedMs) => slotsIn(master(), occupiedMs),
    async close() {
      await sentinel.close();
      await Promise.all([...servers.values()].map((server) => server.close()));
    },
  };
}
