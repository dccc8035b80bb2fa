/** The addresses that `REDIS_URL` accepts. */
import { describe, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import { parseRedisAddress } from "../../src/redis/address.js";

const plain = { tls: false, username: null, password: null, db: 0, at: { host: "127.0.0.1", port: 6379 } };
const socket = { path: "/run/redis.sock" };
const host = (name: string, port: number) => ({ host: name, port });

describe("the Redis address", () => {
  test.each<[string, object]>([
    ["redis://127.0.0.1", {}],
    ["valkey://127.0.0.1:6379/", {}],
    ["rediss://cache.example:6380/3", { tls: true, db: 3, at: host("cache.example", 6380) }],
    ["valkeys://[::1]:7000", { tls: true, at: host("::1", 7000) }],
    ["redis://:p%40ss@127.0.0.1", { password: "p@ss" }],
    ["redis://app:a:b@127.0.0.1", { username: "app", password: "a:b" }],
    ["/run/redis.sock", { at: socket }],
    ["unix:///run/redis.sock", { at: socket }],
    ["unix://app:pw@/run/redis.sock", { username: "app", password: "pw", at: socket }],
    [
      "redis+sentinel://app:pw@a:26379,b/main/2",
      {
        username: "app",
        password: "pw",
        db: 2,
        at: { sentinels: [host("a", 26379), host("b", 26379)], name: "main" },
      },
    ],
    ["valkeys+sentinel://a:1/main", { tls: true, at: { sentinels: [host("a", 1)], name: "main" } }],
  ])("%s is parsed", (text, more) => {
    expect(parseRedisAddress(text)).toEqual({ ok: true, address: { ...plain, ...more } });
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
