/** Who is measured, each as its user would start it, and the question that each is asked; all of them answer from memory. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Core } from "./cores.js";
import { nginxProgram, startNginx } from "./nginx.js";
import { freePort, type Question, Server, temporaryFolder } from "./server.js";

const PEERS = "test/bench/peers";
const ENDLESS = "1000000000";

export const HIT: Question = { path: "/v1/availability?domain=google.af" };

const HEALTH = z.object({ checks: z.object({ prices: z.tuple([z.object({ status: z.string() })]) }) });

export interface Running {
  readonly server: Server;
  readonly question: Question;
  readonly status: number;
}

export interface Candidate {
  readonly name: string;
  /** Warm when it resolves: the question has been answered once. */
  start(): Promise<Running>;
}

/** The only place where the benchmark installs anything: the packages beside the peers' files, once. */
export function installPeers(): void {
  if (existsSync(`${PEERS}/node_modules`)) return;
  console.log("installing the peers …");
  const { status, stderr } = spawnSync("npm", ["ci", "--ignore-scripts", "--loglevel=error"], {
    cwd: PEERS,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the peers could not be installed: ${stderr}`);
}

export async function startPeer(
  file: string,
  { env = {}, core = "server" }: { env?: Readonly<Record<string, string>>; core?: Core } = {},
): Promise<Server> {
  const command = [process.execPath, `${PEERS}/${file}`];
  return new Server({ command, port: await freePort(), env, core });
}

/** The service with its embedded sandbox, no client limited unless `env` says so. */
export async function startService(
  env: Readonly<Record<string, string>> = {},
  core: Core = "server",
): Promise<Server> {
  return new Server({
    command: [process.execPath, "dist/main.js"],
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

/** `upstreamPort`: a tiny server that gives every answer at once, for those that proxy. */
export function candidates(upstreamPort: number): readonly Candidate[] {
  const nginx = nginxProgram();
  if (nginx === null) console.log("nginx is not installed: its row is left out");
  const upstream = { UPSTREAM: `http://127.0.0.1:${upstreamPort}` };
  return [
    peer("bare node:http, prebuilt buffer", () => startPeer("bare.mjs")),
    peer("bare Express 5, res.json", () => startPeer("express.mjs")),
    peer("hand-made: Express and its usual middleware", () => startPeer("hand-made.mjs", { env: upstream })),
    peer("fastify with the same protections, tuned", () => startPeer("fastify.mjs")),
    ...(nginx === null ? [] : [peer("nginx with the same", () => startNginx(nginx, upstreamPort))]),
    service("availability, hit", HIT),
    { name: "service: prices, 200", start: prices200 },
    {
      name: "service: prices, 304",
      async start() {
        const { server, question, status } = await prices200();
        const etag = (await server.firstAnswer(question, status)).etag ?? "";
        return { server, question: { ...question, headers: { "If-None-Match": etag } }, status: 304 };
      },
    },
    service("search of two names, hit", { path: "/v1/search?q=google&tlds=.af,.com.af" }),
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

function service(
  name: string,
  question: Question,
  status = 200,
  env: Readonly<Record<string, string>> = {},
): Candidate {
  return { name: `service: ${name}`, start: () => warm(startService(env), question, status) };
}

async function prices200(): Promise<Running> {
  const server = await startService();
  await server.firstAnswer({ path: "/livez" }, 200);
  for (;;) {
    const { checks } = HEALTH.parse(JSON.parse(String((await server.ask({ path: "/health" })).body)));
    if (checks.prices[0].status === "pass") return { server, question: { path: "/v1/prices" }, status: 200 };
    await sleep(50);
  }
}

async function warm(starting: Promise<Server>, question: Question, status: number): Promise<Running> {
  const server = await starting;
  await server.firstAnswer(question, status);
  return { server, question, status };
}
