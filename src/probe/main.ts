/** `npm run probe [-- --json]`: reads the service's settings, prints the result on stdout and errors on stderr, and sets the exit code. */
import { existsSync } from "node:fs";
import { loadEnvFile } from "node:process";
import { parseArgs } from "node:util";
import { type Result, tableOf } from "af-storefront-probe/result.js";
import { type Config as World, parseWorld } from "af-storefront-sandbox/config.js";
import { startSandbox } from "af-storefront-sandbox/sandbox.js";
import { systemClock } from "../clock.js";
import { type Config, readConfig } from "../config/env.js";
import { fixedSecret } from "../secret.js";
import { probe } from "./probe.js";

const EXIT_CODES: Readonly<Record<Result["verdict"], number>> = { copes: 0, fails: 1, incomplete: 2 };
const NOT_PROBED = 2;
const NOTICE_EVERY_MS = 5000;

if (existsSync(".env")) loadEnvFile(".env");
try {
  const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } });
  const settings = readConfig(process.env, systemClock, parseWorld);
  if (!settings.ok) throw new Error(settings.faults.join("\n"));
  const { config, world } = settings;
  const result = await (config.upstream ? probeLive(config, config.upstream) : probeSandbox(config, world));
  console.log(values.json ? JSON.stringify(result, null, 2) : tableOf(result));
  process.exitCode = EXIT_CODES[result.verdict];
} catch (error) {
  console.error(error instanceof Error ? error.message : "The probe couldn't start.");
  process.exitCode = NOT_PROBED;
}

async function probeLive(config: Config, upstream: NonNullable<Config["upstream"]>): Promise<Result> {
  // Also keeps the process alive while a call waits for quota.
  const notice = setInterval(() => {
    console.error(
      "Still waiting. Without a record of the last window, the first call waits until it is certainly within the quota.",
    );
  }, NOTICE_EVERY_MS);
  try {
    return await probe(config, upstream);
  } finally {
    clearInterval(notice);
  }
}

async function probeSandbox(config: Config, world: World | undefined): Promise<Result> {
  const { limit, windowMs } = config.quota;
  const sandbox = await startSandbox({ config: world, rateLimit: { limit, windowMs } });
  const { key, secret } = sandbox.credential();
  try {
    const active = { key: fixedSecret(key), secret: fixedSecret(secret) };
    return await probe(config, { baseUrl: sandbox.url, active }, true);
  } finally {
    await sandbox.close();
  }
}
