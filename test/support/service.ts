/**
 * Starts the service for tests: the real app with the real sandbox, in this process with a test's clock; as a separate process, see
 * service-process.ts. Requests are sent over real sockets, and answers are read completely.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Response } from "supertest";
import { z } from "zod";
import type { Clock } from "../../src/clock.js";
import type { Scope } from "../../src/wire/scopes.js";
import type { Log, LogFields } from "../../src/logger.js";
import type { Config as World } from "../../packages/sandbox/src/config.js";
import type { Sandbox, SandboxOptions } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "./fake-clock.js";
import { RETAIL } from "./retail.js";
import { answersIn, CLOSE, exchange, get } from "./raw.js";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Parsed if the content type is JSON; otherwise the text. */
  readonly body: unknown;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as is, anything else as JSON. */
  readonly body?: unknown;
}

export type Ask = (path: string, question?: Question) => Promise<Answer>;

/** The staff tokens in plain text; only their hashes are configured. */
export const STAFF = {
  read: "staff-token-that-may-read",
  operate: "staff-token-that-may-operate",
  order: "staff-token-that-may-order",
  metrics: "staff-token-that-may-scrape",
} as const satisfies Record<Scope, string>;

export function bearer(scope: Scope): { readonly Authorization: string } {
  return { Authorization: `Bearer ${STAFF[scope]}` };
}

export interface Service {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  readonly sandbox: Sandbox;
  /** The log lines of all levels, as they would be written. */
  readonly log: readonly string[];
  readonly ask: Ask;
  /** The number of calls that the sandbox has counted, in total or for one route such as `POST /api/v1/pricing`. */
  calls(route?: string): number;
  /** With other replicas: gives up the ownership, as a process that is about to stop does. */
  stepDown(): Promise<void>;
  drain(): void;
  stop(): void;
  close(): Promise<void>;
}

export interface ServiceOptions<C extends Clock = FakeClock> {
  readonly clock: C;
  /** Overrides the harness's settings. It can be a function of the sandbox. `UPSTREAM_BASE_URL` makes the sandbox a live upstream. */
  readonly env?: Readonly<Record<string, string>> | ((sandbox: Sandbox) => Readonly<Record<string, string>>);
  /** YAML; by default what the shop of most tests sells, small memories, and the shipped file. */
  readonly retail?: string;
  readonly cache?: string;
  readonly world?: string;
  /** The reseller whose credential is used. Default: the first. */
  readonly reseller?: string;
  readonly sandbox?: Partial<SandboxOptions>;
  /** A sandbox that is already running. It isn't closed with the service. */
  readonly at?: Sandbox;
  /** Whether to wait until the price list is known. Default: true. */
  readonly warm?: boolean;
}

export const CHECK = "POST /api/v1/domains/check";
export const PRICING = "POST /api/v1/pricing";

export function callsOf(sandbox: Sandbox, route?: string): number {
  return sandbox
    .stats()
    .credentials.map(({ byRoute, accepted }) => (route === undefined ? accepted : (byRoute[route] ?? 0)))
    .reduce((sum, count) => sum + count, 0);
}

/** Checks every few ms until `what` holds. */
export async function until(what: () => boolean | Promise<boolean>, name = "it"): Promise<void> {
  for (let attempts = 0; attempts < 4000; attempts += 1) {
    if (await what()) return;
    await new Promise((done) => setTimeout(done, 5));
  }
  throw new Error(`${name} has not happened`);
}

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "service-"));
  return {
    path,
    remove: () => {
      rmSync(path, { recursive: true, force: true });
    },
  };
}

export function recordingLog(lines: string[]): Log {
  const write =
    (level: string) =>
    (event: string, fields: LogFields = {}): void => {
      lines.push(JSON.stringify({ level, event, ...fields }));
    };
  return {
    error: write("error"),
    warn: write("warn"),
    info: write("info"),
    debug: write("debug"),
    flush: () => Promise.resolve(),
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The shipped file with small memories: no test fills large ones, and every start would allocate them. */
function smallCache(): string {
  return readFileSync("config/cache.yaml", "utf8").replaceAll(/entries: \d{3,}/g, "entries: 200");
}

const worlds = new Map<string, World>();

/** What a sandbox starts with: the shipped world, or this one. Parsing one takes most of a sandbox's start, and few tests have one of their own. */
export async function worldOf(text = readFileSync("config/sandbox.yaml", "utf8")): Promise<World> {
  const known = worlds.get(text);
  if (known !== undefined) return known;
  const { parseWorld } = await import("../../packages/sandbox/src/config.js");
  const parsed = parseWorld(text);
  if (!parsed.ok) throw new Error(parsed.faults.join("\n"));
  worlds.set(text, parsed.world);
  return parsed.world;
}

/** Starts the service in this process. Only its clock and the destination of its log are replaced. */
export async function startService<C extends Clock>(options: ServiceOptions<C>): Promise<Service> {
  // Only now: half a second would be too long for suites that only want a log or a folder.
  const [
    { createApp },
    { readConfig },
    { connectRedis },
    { fixedSecret },
    { PRESET_NAMES },
    { startSandbox },
  ] = await Promise.all([
    import("../../src/app.js"),
    import("../../src/config/env.js"),
    import("../../src/redis/link.js"),
    import("../../src/secret.js"),
    import("../../packages/sandbox/src/presets.js"),
    import("../../packages/sandbox/src/sandbox.js"),
  ]);
  // `SANDBOX_PRESET=rails` runs every suite against a sandbox with the shapes of that preset.
  const preset = z.enum(PRESET_NAMES).optional().parse(process.env["SANDBOX_PRESET"]);
  const { clock } = options;
  const folder = temporaryFolder();
  const fileWith = (name: string, text: string | undefined): Readonly<Record<string, string>> => {
    if (text === undefined) return {};
    const path = join(folder.path, `${name}.yaml`);
    writeFileSync(path, text);
    return { [name]: path };
  };
  const files = {
    ...fileWith("RETAIL_CONFIG", options.retail ?? RETAIL),
    ...fileWith("CACHE_CONFIG", options.cache ?? smallCache()),
  };
  const tokens = Object.entries(STAFF).map(([scope, token]) => `${scope}:${sha256(token)}:${scope}`);
  const env = typeof options.env === "object" ? options.env : {};
  const limit = Number(env["UPSTREAM_RATE_LIMIT"] ?? 1000);
  const windowMs = Number(env["UPSTREAM_RATE_WINDOW_MS"] ?? 60_000);
  const sandbox =
    options.at ??
    (await startSandbox({
      config: await worldOf(options.world),
      rateLimit: { limit, windowMs },
      now: () => clock.monotonic(),
      wall: () => clock.now(),
      ...(preset && { shapes: { preset } }),
      ...options.sandbox,
    }));
  const result = readConfig(
    {
      // Several services can run in this process, so none uses a fixed port or folder.
      PORT: "0",
      STATE_DIR: join(folder.path, "state"),
      STAFF_TOKENS: tokens.join(","),
      UPSTREAM_RATE_LIMIT: "1000",
      CLIENT_RATE_PER_MINUTE: "1000000",
      CLIENT_COLD_PER_MINUTE: "1000000",
      ...files,
      ...(typeof options.env === "function" ? options.env(sandbox) : env),
    },
    clock,
  );
  if (!result.ok) throw new Error(result.faults.join("\n"));
  const { config } = result;
  const { key, secret } = sandbox.credential(options.reseller);
  const log: string[] = [];
  const recorded = recordingLog(log);
  const app = createApp({
    config,
    version: "1.2.3",
    mode: config.upstream === null ? "sandbox" : "upstream",
    upstream: config.upstream ?? {
      baseUrl: sandbox.url,
      active: { key: fixedSecret(key), secret: fixedSecret(secret) },
      standby: null,
    },
    staffTokens: config.staffTokens,
    redis: config.redisUrl && connectRedis({ url: config.redisUrl, clock, log: recorded }),
    clock,
    log: recorded,
  });
  await app.start();
  const port = await new Promise<number>((done) => {
    app.server.listen(0, "127.0.0.1", () => {
      done(portOf(app.server.address()));
    });
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  if (options.warm !== false)
    await until(() => log.some((line) => line.includes("prices.refreshed")), "the first price refresh");
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server: app.server,
    sandbox,
    log,
    ask: asker(port, agent),
    calls: (route) => callsOf(sandbox, route),
    stepDown: app.stepDown,
    drain: app.drain,
    stop: app.stop,
    async close() {
      app.stop();
      agent.destroy();
      const closed = new Promise((done) => app.server.close(done));
      app.server.closeAllConnections();
      await closed;
      // The test may have closed it already.
      if (options.at === undefined) await sandbox.close().catch(() => undefined);
      await app.close();
      folder.remove();
    },
  };
}

/** Starts the service on a clock of its own, and closes it after `act`. */
export async function withService(
  options: Partial<ServiceOptions>,
  act: (service: Service, clock: FakeClock) => Promise<void>,
): Promise<void> {
  const clock = options.clock ?? new FakeClock();
  const service = await startService({ ...options, clock });
  try {
    await act(service, clock);
  } finally {
    await service.close();
  }
}

function portOf(address: string | AddressInfo | null): number {
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return address.port;
}

/** The wire itself is tested with raw.ts. */
const verbOf = z.enum(["get", "head", "post", "put", "patch", "delete", "options"]);

/** Sends requests to a port with supertest, over connections of this agent, and reads each answer as it is. */
export function asker(port: number, agent: Agent): Ask {
  const loading = import("supertest").then(({ default: supertest }) => supertest(`http://127.0.0.1:${port}`));
  return async (path, { method = "GET", headers = {}, body } = {}) => {
    const { pathname, search } = new URL(path, "http://localhost");
    // supertest would normalize it.
    if (pathname + search !== path && method === "GET") return askAsItIs(port, path, headers);
    const verb = verbOf.parse(method.toLowerCase());
    const verbs = await loading;
    const question = verbs[verb](path)
      .agent(agent)
      .redirects(0)
      .ok(() => true)
      .buffer(true)
      .parse(readText)
      .set({
        "Accept-Encoding": "identity",
        ...(body !== undefined && { "Content-Type": "application/json" }),
      })
      .set({ ...headers });
    const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
    const answer = await (text === undefined ? question : question.send(text));
    return answerOf(answer.status, z.record(z.string(), z.unknown()).parse(answer.headers), answer.body);
  };
}

async function askAsItIs(
  port: number,
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const [answer] = answersIn(await exchange(port, get(path, { ...fields, ...CLOSE })));
  if (answer === undefined) throw new Error(`no answer to ${path}`);
  return answerOf(answer.status, answer.headers, Buffer.from(answer.body, "latin1").toString("utf8"));
}

function readText(response: Response, done: (error: Error | null, body: unknown) => void): void {
  const chunks: Buffer[] = [];
  response.on("data", (chunk: Buffer) => chunks.push(chunk));
  response.on("end", () => {
    done(null, Buffer.concat(chunks).toString("utf8"));
  });
}

function answerOf(status: number, fields: Readonly<Record<string, unknown>>, content: unknown): Answer {
  const text = typeof content === "string" ? content : "";
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields))
    headers[name] = Array.isArray(value) ? value.join(", ") : String(value);
  const isText = headers["content-encoding"] === undefined;
  const isJson = isText && /[/+]json\b/.test(headers["content-type"] ?? "") && text !== "";
  const body: unknown = isJson ? JSON.parse(text) : text;
  return { status, headers, text, body };
}

const problemShape = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  requestId: z.string(),
  errors: z.array(z.strictObject({ field: z.string(), reason: z.string(), message: z.string() })).optional(),
  retryAfter: z.int().positive().optional(),
  kept: z.boolean().optional(),
});
export type Problem = z.infer<typeof problemShape>;

/** The status of each public error code. */
export const STATUS_OF: Readonly<Record<string, number>> = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  payload_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  rate_limited: 429,
  headers_too_large: 431,
  internal: 500,
  upstream_failed: 502,
  upstream_contract: 502,
  quota_exhausted: 503,
  shutting_down: 503,
  unavailable: 503,
  upstream_timeout: 504,
};

/** Parses an answer as a problem and checks everything that applies to all problems. */
export function problemOf(answer: Answer): Problem {
  const problem = problemShape.parse(answer.body);
  const { headers } = answer;
  const faults = [
    !/^application\/problem\+json\b/.test(headers["content-type"] ?? "") && "content type",
    problem.status !== answer.status && "status",
    STATUS_OF[problem.code] !== answer.status && "code and status",
    (problem.kept === undefined) === (problem.code === "quota_exhausted") && "kept",
    problem.type !== `/problems/${problem.code}` && "type",
    problem.requestId !== headers["x-request-id"] && "request id",
    headers["cache-control"] !== "no-store" && "cache control",
    headers["retry-after"] !== (problem.retryAfter === undefined ? undefined : String(problem.retryAfter)) &&
      "retry-after",
    "etag" in headers && "etag",
  ].filter((fault) => fault !== false);
  if (faults.length > 0) throw new Error(`${faults.join(", ")} in ${answer.text} ${JSON.stringify(headers)}`);
  return problem;
}

/** Resolves with the answer, advancing the clock as far as it takes: a slot becomes free a thousandth of a window after the announced second. */
export async function inTime<T>(clock: FakeClock, answering: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  answering.then(settle, settle);
  await until(async () => {
    if (!isSettled) await clock.advance(100);
    return isSettled;
  }, "the end of the request");
  return answering;
}
