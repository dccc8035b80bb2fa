/** Starts an implementation of the upstream's document: the API and the portal, with handles for both. */
import type { Server } from "node:http";
import { fileURLToPath } from "node:url";
import { createApi } from "./api.js";
import { type After, Behaviour, type LatencyChange, realTime } from "./behaviour.js";
import { resellerOf, Timeline } from "./changes.js";
import { type Config, readConfig } from "./config.js";
import { createControlApp } from "./control.js";
import { type Credential, Credentials } from "./credentials.js";
import { Delivery } from "./delivery.js";
import { Failure } from "./facts.js";
import { type FaultRequest, type Target, TARGETS } from "./faults.js";
import { createGate } from "./gate.js";
import { Holds } from "./holds.js";
import { listen } from "./listener.js";
import { Personality } from "./personality.js";
import { type Control, createPortal, type Stats } from "./portal.js";
import type { RateLimit } from "./rolling-window.js";
import type { ShapeChoice } from "./presets.js";
import type { Shapes } from "./shapes.js";
import { World } from "./world.js";

export type { After } from "./behaviour.js";
export type { Change } from "./changes.js";
export type { Credential } from "./credentials.js";
export type { Delivered } from "./delivery.js";
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
  /** Monotonic ms, for the rate limit, the statistics and scheduled changes. Default: real time. */
  readonly now?: (() => number) | undefined;
  /** The wall clock in ms since the epoch, for the dates of ordered names. Default: real time. */
  readonly wall?: (() => number) | undefined;
  /** The timers of the same clock, for latency and timed holds. Slow faults always use real time. Default: real time. */
  readonly after?: After | undefined;
  readonly latency?: LatencyChange | undefined;
  /** Faults that are set from the first call on. */
  readonly faults?: Readonly<Partial<Record<Target, FaultRequest>>> | undefined;
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

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const config = options.config ?? readConfig(options.configFile ?? DEFAULT_CONFIG);
  const host = options.host ?? "127.0.0.1";
  const world = new World(config, new Date());
  const { now = () => performance.now(), wall = Date.now, after = realTime } = options;
  const behaviour = new Behaviour(options.rateLimit ?? config.rateLimit, options.latency ?? {}, after);
  const credentials = new Credentials();
  const first = new Map(
    config.resellers.map(({ id, credentials: given = [undefined] }) => {
      const [issued] = given.map((one) => credentials.create(resellerOf(world, id), one));
      return [id, issued];
    }),
  );
  for (const target of TARGETS) {
    const request = options.faults?.[target];
    if (request !== undefined) behaviour.faults.set(target, request);
  }
  const timeline = new Timeline(world, now, () => new Date(wall()));
  const holds = new Holds(after);
  const delivery = new Delivery(now, timeline, holds);
  const gate = createGate(credentials, behaviour, now);
  const personality = new Personality(options.shapes ?? config.shapes);
  const { unknownKeys } = gate;
  const control = createPortal({
    world,
    timeline,
    holds,
    delivery,
    credentials,
    behaviour,
    personality,
    unknownKeys,
  });

  const unreadable = personality.shapes.failure(
    new Failure("malformed_request", "The request is malformed"),
  ).body;
  const api = await listen(
    createApi(world, gate, () => personality.shapes, delivery),
    options.port ?? 0,
    host,
    unreadable,
  );
  behaviour.faults.guard(api.server);
  const controlPort = options.controlPort ?? null;
  const portal =
    controlPort === null
      ? null
      : await listen(createControlApp(control, config.resellers[0]?.id ?? ""), controlPort, "127.0.0.1", {
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
    credential: (resellerId = config.resellers[0]?.id ?? "") => {
      const credential = first.get(resellerId);
      if (credential === undefined) throw new Error(`there is no reseller ${resellerId}`);
      return credential;
    },
    stats: () => control.stats(),
    close: async () => {
      behaviour.stop();
      await Promise.all([api.close(), portal?.close()]);
    },
  };
}
