/** The entry point: start, signals, exit code. Settings come from the environment, and from `.env` in the working folder for what it doesn't set. */
import { hash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { loadEnvFile } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createApp } from "./app.js";
import { systemClock } from "./clock.js";
import { type Config, readConfig, usesSandbox } from "./config/env.js";
import { detailsOf } from "./errors.js";
import { createLog, type ProcessLog } from "./logger.js";
import type { RedisLink } from "./redis/redis.js";
import { ROOT } from "./root.js";
import type { Config as World } from "af-storefront-sandbox/config.js";
import { fixedSecret, type Secret } from "./secret.js";
import { startFailure } from "./start-failure.js";

/** The part of the grace period in which requests that still wait are refused. */
const REFUSING_MS = 200;
const MAX_FLUSH_MS = 2_000;
/**
 * Connections that the kernel accepts while the service is busy; it caps this at `net.core.somaxconn`. With Node's 511, a flood of 1,500
 * connections makes the kernel drop those of others, whose clients try again after a second.
 */
const LISTEN_BACKLOG = 4096;

/** Starts the service, which runs until a signal stops it. If it can't start, prints the faults and exits with 1. */
async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  // Loaded only here and below: a live service has no use for the sandbox.
  const sandbox = usesSandbox(environment) ? await import("af-storefront-sandbox/config.js") : undefined;
  const result = readConfig(environment, systemClock, sandbox?.parseWorld);
  if (!result.ok) {
    for (const fault of result.faults) console.error(fault);
    process.exit(1);
  }
  const log = createLog(result.config.logLevel);
  // Node would also print the error's properties.
  process.on("uncaughtException", (error: unknown) => {
    log.error("server.crashed", detailsOf(error));
    process.exit(1);
  });
  try {
    await run(result.config, result.world, log);
  } catch (error) {
    console.error(startFailure(error, result.config));
    process.exit(1);
  }
}

async function run(config: Config, world: World | undefined, log: ProcessLog): Promise<void> {
  // First, because a start may wait seconds for Redis, and a process that is killed while it joins the other replicas doesn't leave them again.
  const stopRequested = firstStopSignal();
  const packageJson: unknown = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  const { version } = z.object({ version: z.string() }).parse(packageJson);
  const { upstream, sandbox } =
    config.upstream === null
      ? await startEmbeddedSandbox(config, world, log)
      : { upstream: config.upstream, sandbox: null };
  const mode = sandbox === null ? "upstream" : "sandbox";
  const staffTokens = config.staffTokens ?? (sandbox === null ? null : randomStaffToken(log));
  const redis = config.redisUrl === null ? null : await connectTo(config.redisUrl, log);
  const app = createApp({ config, version, mode, upstream, staffTokens, redis, clock: systemClock, log });
  await app.start();
  const { port, address } = await listen(app.server, config.listen);
  log.announce("server.listening", {
    note: `listening on port ${port}`,
    port,
    address,
    version,
    mode,
    upstream: sandbox === null ? "live" : "embedded sandbox, no real registry data",
  });
  void stopRequested.then(shutDown);

  /** The whole order of a stop. Requests that come in later than their step are refused, never lost. */
  async function shutDown(signal: string): Promise<void> {
    const { drainMs, shutdownGraceMs: graceMs, upstreamTimeoutMs } = config;
    // 1. Not ready, but everything is still served, until balancers have noticed.
    log.info("server.stopping", { signal });
    app.drain();
    // Meanwhile another replica, if there is one, becomes the owner, and gets what this one can't answer any more.
    const handedOver = Promise.race([app.stepDown(), sleep(upstreamTimeoutMs)]);
    await Promise.all([handedOver, sleep(drainMs)]);
    // 2. The port is closed. What is being answered may end; what comes in on open connections is refused.
    app.stop();
    const graceIsOver = sleep(Math.max(0, graceMs - REFUSING_MS));
    const allServed = new Promise((closed) => app.server.close(closed));
    // 3. A call that began later might not end in time, so those who still wait for one are refused, and calls in flight end.
    await Promise.race([allServed, sleep(Math.max(0, graceMs - upstreamTimeoutMs))]);
    await Promise.race([Promise.all([app.close(), allServed]), graceIsOver]);
    // 4. The rest is refused, and its connections end.
    app.giveUp();
    await Promise.race([allServed, sleep(REFUSING_MS)]);
    app.server.closeAllConnections();
    await sandbox?.close();
    // 5. The log, which may have no reader.
    log.info("server.stopped");
    await Promise.race([log.flush(), sleep(MAX_FLUSH_MS)]);
    process.exit(0);
  }
}

/** Resolves with the name of the first signal that asks the process to stop. */
function firstStopSignal(): Promise<string> {
  return new Promise((received) => {
    process.on("SIGTERM", received);
    process.on("SIGINT", received);
  });
}

function listen(server: Server, { port, host }: { port: number; host: string }): Promise<AddressInfo> {
  return new Promise((done, failed) => {
    server.once("error", failed);
    server.listen({ port, host, backlog: LISTEN_BACKLOG }, () => {
      const address = server.address();
      if (typeof address === "object" && address !== null) done(address);
      else failed(new Error("The server has no port."));
    });
  });
}

/** Loaded only here: a service without REDIS_URL has no use for the client. */
async function connectTo(url: Secret, log: ProcessLog): Promise<RedisLink> {
  const { connectRedis } = await import("./redis/link.js");
  return connectRedis({ url, clock: systemClock, log });
}

/** With its portal, in which orders are placed; if the portal's port is taken, at a free one. */
async function startEmbeddedSandbox(
  { quota: { limit, windowMs }, sandboxPortalPort }: Config,
  config: World | undefined,
  log: ProcessLog,
) {
  const { startSandbox } = await import("af-storefront-sandbox/sandbox.js");
  const start = (controlPort: number) =>
    startSandbox({ config, rateLimit: { limit, windowMs }, controlPort });
  const sandbox = await start(sandboxPortalPort).catch(() => start(0));
  log.info("sandbox.portal", {
    note: `sandbox mode: order at ${sandbox.controlUrl} what the staff page shows as signed`,
    url: sandbox.controlUrl,
  });
  const { key, secret } = sandbox.credential();
  const active = { key: fixedSecret(key), secret: fixedSecret(secret) };
  return { sandbox, upstream: { baseUrl: sandbox.url, active, standby: null } };
}

/** In sandbox mode without STAFF_TOKENS, creates one token with every scope and logs it. */
function randomStaffToken(log: ProcessLog): Secret {
  const token = randomBytes(24).toString("base64url");
  log.announce("staff.token.created", {
    note: "sandbox mode: this token is valid until the process ends",
    token,
  });
  return fixedSecret(`sandbox:${hash("sha256", token, "hex")}:read+operate+order+metrics`);
}

if (existsSync(".env")) loadEnvFile(".env");
await serve(process.env);
