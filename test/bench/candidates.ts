/** The servers that are measured, each started as its user would start it, and the requests that they answer from memory. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { freePort } from "../support/free-port.js";
import { upstreamAt } from "../support/upstream.js";
import type { Core } from "./cores.js";
import { nginxProgram, startNginx } from "./nginx.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type HttpRequest, Server, temporaryFolder } from "./server.js";

const PEERS = "test/bench/peers";
const ENDLESS = "1000000000";

export const HIT: HttpRequest = { path: "/v1/availability?domain=google.af" };

const SEARCH: HttpRequest = { path: "/v1/search?q=google&tlds=.af,.com.af" };
/** Without the suggestions that are streamed after a taken name. */
const STREAM = `${SEARCH.path}&only=known`;

const HEALTH = z.object({ checks: z.object({ prices: z.tuple([z.object({ status: z.string() })]) }) });

export interface Running {
  readonly server: Server;
  readonly request: HttpRequest;
  readonly status: number;
}

export interface Candidate {
  readonly name: string;
  /** Resolves when the server is warm: it has answered the request once. */
  start(): Promise<Running>;
}

/** Installs the peers' packages next to their files, once. The benchmarks install nothing else. */
export function installPeers(): void {
  if (existsSync(`${PEERS}/node_modules`)) return;
  console.log("installing the peers …");
  const { status, stderr } = spawnSync("npm", ["ci", "--ignore-scripts", "--loglevel=error"], {
    cwd: PEERS,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the peers couldn't be installed: ${stderr}`);
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly core?: Core;
  readonly node?: NodeProgram;
}

export async function startPeer(
  file: string,
  { env = {}, core = "server", node = THIS_NODE }: StartOptions = {},
): Promise<Server> {
  const command = [node.path, `${PEERS}/${file}`];
  return new Server({ command, port: await freePort(), env, core });
}

/** An upstream for live services, in this process, whose rate limit is never reached. */
export function startUpstream(): Promise<Sandbox> {
  return startSandbox({ configFile: "config/sandbox.yaml", rateLimit: { limit: 1e9, windowMs: 60_000 } });
}

/** The settings of a service in another process with this live upstream. */
export function liveAt(upstream: Pick<Sandbox, "url" | "credential">): Readonly<Record<string, string>> {
  return { ...upstreamAt(upstream), QUOTA_COLD_START: "assume-free" };
}

/** The service with its embedded sandbox, and without client limits unless `env` sets them. */
export async function startService({
  env = {},
  core = "server",
  node = THIS_NODE,
}: StartOptions = {}): Promise<Server> {
  return new Server({
    command: [node.path, "dist/main.js"],
    port: await freePort(),
    env: {
      CLIENT_RATE_PER_MINUTE: ENDLESS,
      CLIENT_COLD_PER_MINUTE: ENDLESS,
      STATE_DIR: temporaryFolder(),
      ...env,
    },
    core,
  });
}

/** The candidates on this Node. `upstreamPort` is that of a tiny server that answers immediately, for candidates that proxy. */
export function candidates(node: NodeProgram, upstreamPort: number): readonly Candidate[] {
  const nginx = nginxProgram();
  if (nginx === null) console.log("nginx isn't installed, so its row is missing");
  const env = { UPSTREAM: `http://127.0.0.1:${upstreamPort}` };
  const service = (
    name: string,
    request: HttpRequest,
    status = 200,
    env: Readonly<Record<string, string>> = {},
  ): Candidate => ({
    name: `service: ${name}`,
    start: () => warm(startService({ env, node }), request, status),
  });
  return [
    peer("bare node:http, prebuilt buffer", () => startPeer("bare.mjs", { node })),
    peer("bare Express 5, res.json", () => startPeer("express.mjs", { node })),
    peer("hand-made: Express and its usual middleware", () => startPeer("hand-made.mjs", { env, node })),
    peer("fastify with the same protections, tuned", () => startPeer("fastify.mjs", { node })),
    ...(nginx === null ? [] : [peer("nginx with the same", () => startNginx(nginx, upstreamPort))]),
    service("availability, hit", HIT),
    { name: "service: prices, 200", start: () => prices200(node) },
    {
      name: "service: prices, 304",
      async start() {
        const { server, request, status } = await prices200(node);
        const etag = (await server.firstAnswer(request, status)).etag ?? "";
        return { server, request: { ...request, headers: { "If-None-Match": etag } }, status: 304 };
      },
    },
    service("search of two names, hit", SEARCH),
    { name: "service: a stream of two known names", start: () => stream(node) },
    service("a cart of five known prices", {
      path: "/v1/quotes",
      body: {
        items: ["a", "b", "c", "d", "e"].map((x) => ({
          domain: `cart-${x}.af`,
          action: "renewal",
          years: 1,
        })),
      },
    }),
    service("400, another bad name each time", { path: "/v1/availability?domain=-{n}.af" }, 400),
    service("503, another new name each time", { path: "/v1/availability?domain=new-{n}.af" }, 503, {
      UPSTREAM_RATE_LIMIT: "2",
      UPSTREAM_RATE_HEADROOM: "1",
    }),
    service("429", HIT, 429, { CLIENT_RATE_PER_MINUTE: "1" }),
    service("hit, from a million addresses", { ...HIT, headers: { "X-Forwarded-For": "{address}" } }, 200, {
      TRUST_PROXY_HOPS: "1",
    }),
  ];
}

function peer(name: string, start: () => Promise<Server>): Candidate {
  return { name, start: () => warm(start(), HIT, 200) };
}

/** Each stream has its own client address, because a client may have only a few open streams. */
async function stream(node: NodeProgram): Promise<Running> {
  const server = await startService({ node, env: { TRUST_PROXY_HOPS: "1" } });
  await server.firstAnswer(SEARCH, 200);
  const headers = { Accept: "text/event-stream", "X-Forwarded-For": "{address}" };
  return warm(Promise.resolve(server), { path: STREAM, headers }, 200);
}

async function prices200(node: NodeProgram): Promise<Running> {
  const server = await startService({ node });
  await server.firstAnswer({ path: "/livez" }, 200);
  for (;;) {
    const { checks } = HEALTH.parse(JSON.parse(String((await server.ask({ path: "/health" })).body)));
    if (checks.prices[0].status === "pass") return { server, request: { path: "/v1/prices" }, status: 200 };
    await sleep(50);
  }
}

async function warm(starting: Promise<Server>, request: HttpRequest, status: number): Promise<Running> {
  const server = await starting;
  await server.firstAnswer(request, status);
  return { server, request, status };
}
