/** Suites that need a real Redis. */
import { spawnSync } from "node:child_process";
import { describe, test } from "@jest/globals";

export { type RedisServer, startRedis } from "./redis-server.js";

export const REDIS_INSTALLED = spawnSync("redis-server", ["--version"]).error === undefined;

/** A suite that needs Redis. If redis-server isn't installed, it is skipped with a message, or fails with REQUIRE_REDIS=1. */
export function describeWithRedis(name: string, suite: () => void): void {
  if (REDIS_INSTALLED) describe(name, suite);
  else if (process.env["REQUIRE_REDIS"] === "1")
    test(`${name}: needs redis-server`, () => {
      throw new Error("redis-server is not installed, and REQUIRE_REDIS=1 is set");
    });
  else
    describe(name, () => {
      test.skip("skipped: redis-server is not installed (apt-get install redis-server)", () => {});
    });
}
