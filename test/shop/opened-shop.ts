/** A sandbox on the test's clock, and a service in front of it that can be restarted with its saved state. */
import { newPromiseKey } from "../../src/retail/promise.js";
import { type After, type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
  worldOf,
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

interface ShopOptions {
  readonly clock?: FakeClock;
  /** Null: the sandbox's own. */
  readonly world?: string | null;
  readonly retail?: string;
  readonly limit?: number;
  /** Replaces the sandbox's credential, and adds settings. */
  readonly env?: (sandbox: Sandbox) => Readonly<Record<string, string>>;
}

export async function openShop({
  clock = new FakeClock(),
  world = WORLD,
  retail = RETAIL,
  limit = 1000,
  env = upstreamAt,
}: ShopOptions = {}): Promise<OpenedShop> {
  const folder = temporaryFolder();
  const after: After = (delayMs, run) => clock.after(delayMs, run);
  const sandbox = await startSandbox({
    config: await worldOf(world ?? undefined),
    rateLimit: { limit, windowMs: MINUTE_MS },
    now: () => clock.monotonic(),
    wall: () => clock.now(),
    after,
  });
  const settings = {
    PROMISE_PRIVATE_KEY: PROMISE_KEY,
    QUOTA_COLD_START: "assume-free",
    STATE_DIR: folder.path,
    ...env(sandbox),
  };
  return {
    clock,
    sandbox,
    start: (options = {}) => startService({ clock, at: sandbox, retail, env: settings, ...options }),
    async close() {
      await sandbox.close();
      folder.remove();
    },
  };
}
