/**
 * A replica in another database than the rest would spend the whole budget once more, so only the database of REDIS_URL is used. Services in
 * different databases of one Redis don't affect each other.
 */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, redisScript } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { freePort } from "../support/free-port.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";

describeWithRedis("the database of REDIS_URL", () => {
  let server: RedisServer;
  let port: number;
  let links: RedisLink[];
  let log: string[];

  beforeEach(async () => {
    port = await freePort();
    server = await startRedis("--port", String(port), "--bind", "127.0.0.1");
    links = [];
    log = [];
  });
  afterEach(async () => {
    for (const link of links) link.close();
    await server.close();
  });

  function connect(user: string, database: number): RedisLink {
    const url = fixedSecret(`redis://${user}127.0.0.1:${port}/${database}`);
    const link = connectRedis({ url, clock: systemClock, log: recordingLog(log) });
    links.push(link);
    return link;
  }

  test("is used by every connection, also after a reconnection", async () => {
    const [link, other, elsewhere] = [connect("", 2), connect("", 2), connect("", 0)];
    await until(() => links.every((one) => one.reachable()), "the connections");
    await server.kill();
    await until(() => links.every((one) => !one.reachable()), "the loss");
    await server.start();
    await until(() => links.every((one) => one.reachable()), "the reconnections");
    await link.set("k", "v", 10_000);
    expect(await other.get("k")).toBe("v");
    expect(await elsewhere.get("k")).toBeNull();
  });

  test("isn't replaced by another one while the user may not select it, and is used once they may", async () => {
    await server.command("ACL", "SETUSER", "shop", "on", ">pw", "~*", "&*", "+@all", "-select");
    const link = connect("shop:pw@", 2);
    await until(() => link.state() === "refusing", "the refusal");
    await expect(link.firstContact(600)).resolves.toBeUndefined();
    expect(link.reachable()).toBe(false);
    await expect(link.set("k", "v", 1000)).rejects.toThrow("Redis is gone");
    expect(log.filter((line) => line.includes('"redis.refused","kind":"NOPERM"'))).toHaveLength(1);

    await server.command("ACL", "SETUSER", "shop", "+select");
    await until(() => link.reachable(), "the connection");
    await link.set("k", "v", 10_000);
    const inDatabase = connect("", 2);
    await until(() => inDatabase.reachable(), "the other connection");
    expect(await inDatabase.get("k")).toBe("v");
  });

  test("isn't replaced by another one if Redis doesn't have it", async () => {
    const link = connect("", 99);
    await until(() => link.state() === "refusing", "the refusal");
    await link.firstContact(600);
    expect(link.reachable()).toBe(false);
    expect(link.state()).toBe("refusing");
  });

  test("has messages of its own, whether they are published directly or by a script", async () => {
    const received: string[] = [];
    let subscriptions = 0;
    for (const database of [0, 1, 1]) {
      connect("", database).subscribe(
        "channel",
        (message) => received.push(`${database} ${message}`),
        () => {
          subscriptions += 1;
        },
      );
    }
    await until(() => subscriptions === 3 && links.every((one) => one.reachable()), "the subscriptions");
    const publish = redisScript("return redis.call('PUBLISH', ARGV[1], ARGV[2])");
    const [first, second] = links;
    await first?.publish("channel", "a");
    await second?.publish("channel", "b");
    expect(await first?.run(publish, "k", [first.channel("channel"), "c"])).toBe(1);
    expect(await second?.run(publish, "k", [second.channel("channel"), "d"])).toBe(2);
    await until(() => received.length >= 6, "the messages");
    expect(received.toSorted()).toEqual(["0 a", "0 c", "1 b", "1 b", "1 d", "1 d"]);
  });
});
