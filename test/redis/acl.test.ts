/** Runs the service as the Redis user of docs/going-live.md, over TLS and through every part that uses Redis. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { execFileSync } from "node:child_process";
import { z } from "zod";
import { blocksOf, read } from "../docs/support/markdown.js";
import { claimsOf } from "../support/promise.js";
import { freePort } from "../support/free-port.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { createHash } from "node:crypto";
import {
  type ServiceProcess,
  spawnService,
  STAFF,
  bearer,
  temporaryFolder,
  until,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const TOKENS = Object.entries(STAFF)
  .map(([scope, token]) => `${scope}:${createHash("sha256").update(token).digest("hex")}:${scope}`)
  .join(",");
const cartShape = z.object({ promise: z.string().nullable() });

/** The words of `ACL SETUSER storefront …` in the document. */
function documentedRules(): string[] {
  const line = blocksOf(read("docs/going-live.md"))
    .flatMap(({ code }) => code.split("\n"))
    .find((text) => text.startsWith("ACL SETUSER storefront "));
  if (line === undefined) throw new Error("docs/going-live.md has no ACL SETUSER storefront");
  return line.split(" ");
}

describeWithRedis("the Redis user of docs/going-live.md", () => {
  const folder = temporaryFolder();
  let redis: RedisServer;
  let sandbox: Sandbox;
  let replicas: ServiceProcess[];

  beforeEach(async () => {
    const at = (name: string): string => `${folder.path}/${name}`;
    execFileSync(
      "openssl",
      "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        .split(" ")
        .concat("-keyout", at("key.pem"), "-out", at("cert.pem")),
      { stdio: "ignore" },
    );
    const port = await freePort();
    const tls = `--tls-port ${port} --bind 127.0.0.1 --tls-auth-clients no`.split(" ");
    const files = ["--tls-cert-file", at("cert.pem"), "--tls-key-file", at("key.pem")];
    redis = await startRedis(...tls, ...files, "--tls-ca-cert-file", at("cert.pem"));
    expect(await redis.command(...documentedRules())).toBe("+OK\r\n");
    sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
    const password =
      documentedRules()
        .find((rule) => rule.startsWith(">"))
        ?.slice(1) ?? "";
    const env = {
      ...upstreamAt(sandbox),
      UPSTREAM_RATE_LIMIT: "1000",
      QUOTA_COLD_START: "assume-free",
      PROMISE_PRIVATE_KEY: newPromiseKey(),
      STAFF_TOKENS: TOKENS,
      REDIS_URL: `rediss://storefront:${encodeURIComponent(password)}@localhost:${port}`,
      NODE_EXTRA_CA_CERTS: at("cert.pem"),
    };
    replicas = [spawnService(env), spawnService(env)];
    await Promise.all(replicas.map(({ listening }) => listening));
  });
  afterEach(async () => {
    for (const replica of replicas) await replica.stop();
    await sandbox.close();
    await redis.close();
    folder.remove();
  });

  test("has every permission that the service needs, and no others", async () => {
    const [first, second] = replicas;
    if (first === undefined || second === undefined) throw new Error("a replica is missing");
    await until(
      async () => (await first.ask("/v1/availability?domain=kabul.af")).status === 200,
      "the first availability check",
    );
    expect((await second.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    let promise: string | null = null;
    await until(async () => {
      const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
      const cart = await first.ask("/v1/quotes", { method: "POST", body });
      promise = cartShape.safeParse(cart.body).data?.promise ?? null;
      return promise !== null;
    }, "the first promise");
    const path = `/v1/staff/promises/${claimsOf(promise ?? "").jti}`;
    expect((await second.ask(path, { headers: bearer("read") })).status).toBe(200);
    const purge = { method: "POST", headers: bearer("operate"), body: { what: "all" } };
    expect((await first.ask("/v1/staff/cache/purge", purge)).status).toBe(200);
    expect((await second.ask("/health")).body).toMatchObject({ checks: { redis: [{ status: "pass" }] } });
    // `redis.lost` can only mean that the machine was busy for 100 ms.
    for (const { stdout } of replicas)
      expect(stdout.filter((line) => line.includes("redis.refused"))).toEqual([]);
    expect(await redis.command("ACL", "LOG")).toBe("*0\r\n");
    expect(await redis.command("ACL", "DRYRUN", "storefront", "FLUSHALL")).toContain("no permissions");
    expect(await redis.command("ACL", "DRYRUN", "storefront", "GET", "other")).toContain("no permissions");
  });
});
