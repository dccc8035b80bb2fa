/** `npm run probe [-- --json]`: reads the service's settings, prints the result on stdout and errors on stderr, and sets the exit code. */
import { existsSync } from "node:fs";
import { loadEnvFile } from "node:process";
import { parseArgs } from "node:util";
import { systemClock } from "../clock.js";
import { type Config, readConfig } from "../config/env.js";
import { type Config as World, parseWorld } from "af-storefront-sandbox/config.js";
import { startSandbox } from "af-storefront-sandbox/sandbox.js";
import { fixedSecret } from "../secret.js";
import { probe } from "./probe.js";
import type { Result } from "af-storefront-probe/result.js";
import { tableOf } from "af-storefront-probe/table.js";

const EXIT_CODES: Readonly<Record<Result["verdict"], number>> = { copes: 0, fails: 1, incomplete: 2 };
const NOT_PROBED = 2;
const NOTICE_EVERY_MS = 5000;

if (existsSync(".env")) loadEnvFile(".env");
try {
  const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } });
  const settings = readConfig(process.env, systemClock, parseWorld);
  if (settings.ok) {
    const result = await run(settings.config, settings.world);
    console.log(values.json ? JSON.stringify(result, null, 2) : tableOf(result));
    process.exitCode = EXIT_CODES[result.verdict];
  } else {
    for (const fault of settings.faults) console.error(fault);
    process.exitCode = NOT_PROBED;
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : "The probe couldn't start.");
  process.exitCode = NOT_PROBED;
}

async function run(config: Config, world: World | undefined): Promise<Result> {
  const { upstream } = config;
  if (upstream === null) return probeEmbedded(config, world);
  // Also keeps the process alive while a call waits for quota.
  const notice = setInterval(() => {
    console.error(
      "Still waiting. Without a record of the last window, the first call waits until it is certainly within the quota.",
    );
  }, NOTICE_EVERY_MS);
  try {
    return await probe({ config, upstream, live: upstream.baseUrl, clock: systemClock });
  } finally {
    clearInterval(notice);
  }
}

async function probeEmbedded(config: Config, world: World | undefined): Promise<Result> {
  const { limit, windowMs } = config.quota;
  const sandbox = await startSandbox({
    config: world,
    rateLimit: { limit, windowMs },
  });
  const { key, secret } = sandbox.credential();
  const upstream = { baseUrl: sandbox.url, active: { key: fixedSecret(key), secret: fixedSecret(secret) } };
  try {
    return await probe({ config, upstream, live: null, clock: systemClock });
  } finally {
    await sandbox.close();
  }
}
