/** Processes of the service, and sandboxes, of one test: after it they are killed and closed. */
import { afterEach, beforeEach } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { SMALL_SHOP } from "./retail.js";
import { temporaryFolder } from "./service.js";
import { type ServiceProcess, spawnService } from "./service-process.js";
import { upstreamAt } from "./upstream.js";

export interface Processes {
  /** A folder of this test, in which the processes have their STATE_DIR. */
  readonly folder: string;
  start(env?: Readonly<Record<string, string>>, options?: Parameters<typeof spawnService>[1]): ServiceProcess;
  /** A sandbox, and the environment for a small shop that uses it as its upstream. */
  upstream(
    options?: SandboxOptions,
  ): Promise<{ readonly sandbox: Sandbox; readonly env: Readonly<Record<string, string>> }>;
}

export function processes(): Processes {
  let folder: ReturnType<typeof temporaryFolder>;
  let running: ServiceProcess[];
  let sandboxes: Sandbox[];
  beforeEach(() => {
    folder = temporaryFolder();
    running = [];
    sandboxes = [];
  });
  afterEach(async () => {
    for (const { child, exited } of running) {
      child.kill("SIGKILL");
      await exited;
    }
    for (const sandbox of sandboxes) await sandbox.close();
    folder.remove();
  });
  return {
    get folder() {
      return folder.path;
    },
    start(env = {}, options) {
      const service = spawnService({ STATE_DIR: join(folder.path, "state"), ...env }, options);
      running.push(service);
      return service;
    },
    async upstream(options) {
      const sandbox = await startSandbox(options);
      sandboxes.push(sandbox);
      const RETAIL_CONFIG = join(folder.path, "retail.yaml");
      writeFileSync(RETAIL_CONFIG, SMALL_SHOP);
      return { sandbox, env: { ...upstreamAt(sandbox), QUOTA_COLD_START: "assume-free", RETAIL_CONFIG } };
    },
  };
}
