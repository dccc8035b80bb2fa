/** docs/going-live.md leads to a running service, and its Redis user may do what the service needs and no more. */
import { expect, test } from "@jest/globals";
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { freePort } from "../support/free-port.js";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis, startRedis } from "../support/redis.js";
import { bearer, STAFF, temporaryFolder, until } from "../support/service.js";
import { spawnService } from "../support/service-process.js";
import { describeWith } from "../support/tools.js";
import { upstreamAt } from "../support/upstream.js";
import { curlOf, curlsOf } from "./support/curl.js";
import { blocksOf, read, ROOT } from "./support/markdown.js";

const run = promisify(execFile);
const blocks = blocksOf(read("docs/going-live.md"));

describeWith("openssl", "the steps", () => {
  test("lead from an empty folder to a service on a live upstream", async () => {
    const commands = blocks.filter(({ language }) => language === "sh");
    const [health = "", ...staffCommands] = commands.flatMap(curlsOf);
    const scripts = commands.map(({ code }) => code).filter((code) => /secrets|> \.env/.test(code));
    const folder = temporaryFolder();
    const sandbox = await startSandbox({});
    try {
      const script = scripts.join("\n").replaceAll("http://127.0.0.1:4000", sandbox.url);
      const { stdout } = await run("sh", ["-euc", script], { cwd: folder.path });
      const TOKEN = stdout.trim();
      // Without this, the service would wait, because it can't know what was spent before.
      const env = { QUOTA_COLD_START: "assume-free", PORT: "0", HOST: "127.0.0.1" };

      const probe = await run(process.execPath, [`${ROOT}dist/probe/main.js`], {
        cwd: folder.path,
        env: { PATH: process.env["PATH"], ...env },
      });
      expect(probe.stdout).toContain("not seen");

      const { ask, stop } = spawnService(env, { cwd: folder.path });
      expect((await ask(curlOf(health).path)).text).toContain('"description":"Live upstream."');
      expect(staffCommands.length).toBe(2);
      for (const command of staffCommands) {
        const { path, question } = curlOf(command, { TOKEN });
        expect((await ask(path, question)).status).toBe(200);
        expect((await ask(path)).status).toBe(401);
      }
      expect(await stop()).toBe(0);
    } finally {
      await sandbox.close();
      folder.remove();
    }
  });

  describeWithRedis("for Redis", () => {
    test("make a user that has every permission that the service needs, over TLS, and no others", async () => {
      const rules =
        blocks
          .flatMap(({ code }) => code.split("\n"))
          .find((text) => text.startsWith("ACL SETUSER storefront "))
          ?.split(" ") ?? [];
      const password = rules.find((rule) => rule.startsWith(">"))?.slice(1) ?? "";
      const folder = temporaryFolder();
      const [key, cert] = [`${folder.path}/key.pem`, `${folder.path}/cert.pem`];
      execFileSync(
        "openssl",
        `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout ${key} -out ${cert}`.split(
          " ",
        ),
        { stdio: "ignore" },
      );
      const port = await freePort();
      const tls = `--tls-port ${port} --bind 127.0.0.1 --tls-auth-clients no --tls-cert-file ${cert} --tls-key-file ${key} --tls-ca-cert-file ${cert}`;
      const redis = await startRedis(...tls.split(" "));
      expect(await redis.command(...rules)).toBe("+OK\r\n");
      const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
      const tokens = Object.entries(STAFF).map(
        ([scope, token]) => `${scope}:${createHash("sha256").update(token).digest("hex")}:${scope}`,
      );
      const env = {
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_LIMIT: "1000",
        QUOTA_COLD_START: "assume-free",
        PROMISE_PRIVATE_KEY: newPromiseKey(),
        STAFF_TOKENS: tokens.join(","),
        REDIS_URL: `rediss://storefront:${encodeURIComponent(password)}@localhost:${port}`,
        NODE_EXTRA_CA_CERTS: cert,
      };
      const [first, second] = [spawnService(env), spawnService(env)];
      try {
        await Promise.all([first.listening, second.listening]);
        const availability = "/v1/availability?domain=kabul.af";
        await until(async () => (await first.ask(availability)).status === 200, "the first check");
        expect((await second.ask(availability)).status).toBe(200);
        let promise: string | null = null;
        await until(async () => {
          const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
          const cart = await first.ask("/v1/quotes", { method: "POST", body });
          promise = z.object({ promise: z.string() }).safeParse(cart.body).data?.promise ?? null;
          return promise !== null;
        }, "the first promise");
        const path = `/v1/staff/promises/${claimsOf(promise ?? "").jti}`;
        expect((await second.ask(path, { headers: bearer("read") })).status).toBe(200);
        const purge = { method: "POST", headers: bearer("operate"), body: { what: "all" } };
        expect((await first.ask("/v1/staff/cache/purge", purge)).status).toBe(200);
        expect((await second.ask("/health")).body).toMatchObject({ checks: { redis: [{ status: "pass" }] } });
        // `redis.lost` can only mean that the machine was busy for 100 ms.
        for (const { stdout } of [first, second])
          expect(stdout.filter((line) => line.includes("redis.refused"))).toEqual([]);
        expect(await redis.command("ACL", "LOG")).toBe("*0\r\n");
        for (const command of ["FLUSHALL", "GET other"])
          expect(await redis.command("ACL", "DRYRUN", "storefront", ...command.split(" "))).toContain(
            "no permissions",
          );
      } finally {
        await Promise.all([first.stop(), second.stop()]);
        await sandbox.close();
        await redis.close();
        folder.remove();
      }
    });
  });
});
