/** A sandbox on the test's clock, and a service in front of it that can be restarted with its saved state. */
import { writeFileSync } from "node:fs";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type After, type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Answer,
  bearer,
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
} from "../support/service.js";
import { RETAIL, WORLD } from "./shop.js";
import { upstreamAt } from "../support/upstream.js";

export const MINUTE_MS = 60_000;
const PROMISE_KEY = newPromiseKey();

export interface OpenedShop {
  readonly clock: FakeClock;
  readonly sandbox: Sandbox;
  start(options?: Partial<ServiceOptions>): Promise<Service>;
  close(): Promise<void>;
}

export async function openShop(): Promise<OpenedShop> {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const configFile = `${folder.path}/world.yaml`;
  writeFileSync(configFile, WORLD);
  const after: After = (delayMs, run) => clock.after(delayMs, run);
  const rateLimit = { limit: 1000, windowMs: MINUTE_MS };
  const sandbox = await startSandbox({ configFile, rateLimit, now: () => clock.monotonic(), after });
  const env = {
    ...upstreamAt(sandbox),
    PROMISE_PRIVATE_KEY: PROMISE_KEY,
    QUOTA_COLD_START: "assume-free",
    STATE_DIR: folder.path,
  };
  return {
    clock,
    sandbox,
    start: (options = {}) => startService({ clock, at: sandbox, retail: RETAIL, env, ...options }),
    async close() {
      await sandbox.close();
      folder.remove();
    },
  };
}

export function staffPurge({ ask }: Service, what: string): Promise<Answer> {
  return ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });
}
