/** The servers that are measured, each started as its user would start it, and the requests that they answer from memory. */
import { fileURLToPath } from "node:url";
import { freePort } from "../support/free-port.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type HttpRequest, Server, temporaryFolder } from "./server.js";

const ENDLESS = "1000000000";

export const HIT: HttpRequest = { path: "/v1/availability?domain=google.af" };

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

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly node?: NodeProgram;
}

export async function startBare(node: NodeProgram): Promise<Server> {
  const command = [node.path, fileURLToPath(new URL("bare.js", import.meta.url))];
  return new Server({ command, port: await freePort() });
}

/** The service with its embedded sandbox, and without client limits unless `env` sets them. */
export async function startService({ env = {}, node = THIS_NODE }: StartOptions = {}): Promise<Server> {
  return new Server({
    command: [node.path, "dist/main.js"],
    port: await freePort(),
    env: {
      CLIENT_RATE_PER_MINUTE: ENDLESS,
      CLIENT_COLD_PER_MINUTE: ENDLESS,
      STATE_DIR: temporaryFolder(),
      ...env,
    },
  });
}

/** Bare `node:http` first. */
export function candidates(node: NodeProgram): readonly Candidate[] {
  const service = (
    name: string,
    request: HttpRequest,
    status = 200,
    env: Readonly<Record<string, string>> = {},
  ): Candidate => ({ name, start: () => warm(startService({ env, node }), request, status) });
  return [
    { name: "bare node:http", start: () => warm(startBare(node), HIT, 200) },
    service("a known answer", HIT),
    // Finished answers take no requests with this field.
    service("a known answer by Express", { ...HIT, headers: { "Last-Event-ID": "0" } }),
    service("a refused new name", { path: "/v1/availability?domain=new-{n}.af" }, 503, {
      UPSTREAM_RATE_LIMIT: "2",
      UPSTREAM_RATE_HEADROOM: "1",
    }),
    service("a bad name", { path: "/v1/availability?domain=-{n}.af" }, 400),
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
  ];
}

async function warm(starting: Promise<Server>, request: HttpRequest, status: number): Promise<Running> {
  const server = await starting;
  await server.firstAnswer(request, status);
  return { server, request, status };
}
