/** The addresses that `REDIS_URL` accepts. */
import { describe, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import { parseRedisAddress } from "../../src/redis/address.js";

const plain = { tls: false, username: null, password: null, db: 0 };
const local = { host: "127.0.0.1", port: 6379 };

describe("the Redis address", () => {
  test.each([
    ["redis://127.0.0.1", { ...plain, at: local }],
    ["valkey://127.0.0.1:6379/", { ...plain, at: local }],
    [
      "rediss://cache.example:6380/3",
      { ...plain, tls: true, db: 3, at: { host: "cache.example", port: 6380 } },
    ],
    ["valkeys://[::1]:7000", { ...plain, tls: true, at: { host: "::1", port: 7000 } }],
    ["redis://:p%40ss@127.0.0.1", { ...plain, password: "p@ss", at: local }],
    ["redis://app:a:b@127.0.0.1", { ...plain, username: "app", password: "a:b", at: local }],
    ["/run/redis.sock", { ...plain, at: { path: "/run/redis.sock" } }],
    ["unix:///run/redis.sock", { ...plain, at: { path: "/run/redis.sock" } }],
    [
      "unix://app:pw@/run/redis.sock",
      { ...plain, username: "app", password: "pw", at: { path: "/run/redis.sock" } },
    ],
    [
      "redis+sentinel://app:pw@a:26379,b/main/2",
      {
        tls: false,
        username: "app",
        password: "pw",
        db: 2,
        at: {
          sentinels: [
            { host: "a", port: 26379 },
            { host: "b", port: 26379 },
          ],
          name: "main",
        },
      },
    ],
    [
      "valkeys+sentinel://a:1/main",
      { ...plain, tls: true, at: { sentinels: [{ host: "a", port: 1 }], name: "main" } },
    ],
  ])("%s is parsed", (text, address) => {
    expect(parseRedisAddress(text)).toEqual({ ok: true, address });
  });

  test.each([
    ["http://secret@127.0.0.1", "must be redis://"],
    ["127.0.0.1:6379", "must be redis://"],
    ["redis://:secret@", "must be redis://"],
    ["redis://secret@127.0.0.1:99999", "port"],
    ["redis://:secret@127.0.0.1/cache", "database number"],
    ["redis://:secret@a:1,b:2", "one host"],
    ["redis+cluster://:secret@a:1,b:2", "is a Redis Cluster"],
    ["redis+sentinel://:secret@a:1,b:2", "name of the Redis"],
    ["redis://:secret%zz@127.0.0.1", "percent-encoded"],
    ["redis://:secret@127.0.0.1?tls=true", "must be redis://"],
  ])("%s is rejected without being quoted", (text, problem) => {
    const result = parseRedisAddress(text);
    expect(result).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
    expect(JSON.stringify(result)).not.toContain("secret");
  });
});

test("an invalid address is listed with all other faults in the settings", () => {
  const result = readConfig({ REDIS_URL: "redis+sentinel://a:1", LOG_LEVEL: "loud" }, systemClock);
  expect(result).toMatchObject({
    ok: false,
    faults: [
      expect.stringContaining("REDIS_URL: must end with the name"),
      expect.stringContaining("LOG_LEVEL"),
    ],
  });
});
