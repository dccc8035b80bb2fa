/** Suites that need a real Redis. */
import { describeWith } from "./tools.js";

export { type RedisServer, startRedis } from "./redis-server.js";

export function describeWithRedis(name: string, suite: () => void): void {
  describeWith("redis-server", name, suite);
}
