/** Starts an implementation of the upstream's document: the API and the portal, with handles for both. */
import type { Server } from "node:http";
import { fileURLToPath } from "node:url";
import { createApi } from "./api.js";
import { type Config, readConfig } from "./config.js";
import { createControlApp } from "./control.js";
import { type Credential, Credentials } from "./credentials.js";
import { Failure } from "./facts.js";
import { Faults } from "./faults.js";
import { type After, type Behaviour, createGate } from "./gate.js";
import { Holds } from "./holds.js";
import { listen } from "./listener.js";
import { type Control, createPortal, type Stats } from "./portal.js";
import type { ShapeChoice } from "./presets.js";
import type { RateLimit } from "./rolling-window.js";
import { Personality, type Shapes } from "./shapes.js";
import { World } from "./world.js";

export type { Credential } from "./credentials.js";
export type { After } from "./gate.js";
export type { Delivered } from "./holds.js";
export { type Operation, OPERATIONS } from "./operations.js";
export type { Control } from "./portal.js";

export interface SandboxOptions {
  /** Default: config/sandbox.yaml of the project. */
  readonly configFile?: string | undefined;
  /** What such a file describes, instead of it. */
  readonly config?: Config | undefined;
  /** Default: 0, a free port. */
  readonly port?: number | undefined;
  /** 0: a free port. Default: null, no control server. It always listens on 127.0.0.1, regardless of `host`. */
  readonly controlPort?: number | null | undefined;
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default: as configured. */
  readonly rateLimit?: RateLimit | undefined;
  /** Monotonic ms, for the rate limit and the statistics. Default: real time. */
  readonly now?: (() => number) | undefined;
  /** The wall clock in ms since the epoch, for the dates of ordered names. Default: real time. */
  readonly wall?: (() => number) | undefined;
  /** The timers of the same clock, for latency and queued orders. Faults always use real time. Default: real time. */
  readonly after?: After | undefined;
  /** A choice for the open points, or custom shapes. Default: as configured. */
  readonly shapes?: ShapeChoice | Shapes | undefined;
}

export interface Sandbox {
  /** Host root of the API, without a trailing slash. */
  readonly url: string;
  readonly controlUrl: string | null;
  /** The server of `url`, for callers in this process that supply their own connections. */
  readonly server: Server;
  readonly control: Control;
  /** The first credential that the reseller had at startup. Without an id: that of the first reseller. */
  credential(resellerId?: string): Credential;
  stats(): Stats;
  close(): Promise<void>;
}

const DEFAULT_CONFIG = fileURLToPath(new URL("../../../config/sandbox.yaml", import.meta.url));

const realTime: After = (delayMs, run) => {
  setTimeout(run, delayMs).unref();
};

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const config = options.config ?? readConfig(options.configFile ?? DEFAULT_CONFIG);
  const { now = () => performance.now(), wall = Date.now, after = realTime } = options;
  const world = new World(config, new Date());
  const behaviour: Behaviour = {
    rateLimit: options.rateLimit ?? config.rateLimit,
    latency: {},
  };
  const credentials = new Credentials();
  const first = new Map(
    config.resellers.map(({ id, credentials: given = [undefined] }) => {
      const [issued] = given.map((one) => credentials.create(world.reseller(id), one));
      return [id, issued];
    }),
  );
  const faults = new Faults();
  const holds = new Holds(now);
  const gate = createGate({ credentials, faults, behaviour, now, after });
  const personality = new Personality(options.shapes ?? config.shapes);
  const { unknownKeys } = gate;
  const today = (): Date => new Date(wall());
  const control = createPortal({
    world,
    holds,
    credentials,
    behaviour,
    faults,
    personality,
    unknownKeys,
    today,
    after,
  });

  const unreadable = personality.shapes.failure(
    new Failure("malformed_request", "The request is malformed"),
  ).body;
  const api = await listen(
    createApi({ world, gate, faults, holds, shapes: () => personality.shapes }),
    options.port ?? 0,
    options.host ?? "127.0.0.1",
    unreadable,
  );
  faults.guard(api.server);
  const [demo] = config.resellers.map(({ id }) => id);
  const portal =
    options.controlPort === undefined || options.controlPort === null
      ? null
      : await listen(createControlApp(control, demo ?? ""), options.controlPort, "127.0.0.1", {
          error: "the request is malformed",
        }).catch(async (error: unknown) => {
          await api.close();
          throw error;
        });

  return {
    url: api.url,
    controlUrl: portal?.url ?? null,
    server: api.server,
    control,
    credential: (resellerId = demo ?? "") => {
      const credential = first.get(resellerId);
      if (credential === undefined) throw new Error(`there is no reseller ${resellerId}`);
      return credential;
    },
    stats: () => control.stats(),
    close: async () => {
      await Promise.all([api.close(), portal?.close()]);
    },
  };
}
