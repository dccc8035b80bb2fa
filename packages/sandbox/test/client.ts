/** A minimal HTTP client for the sandbox's tests, and the sandboxes that a test starts. */
import { afterEach } from "@jest/globals";
import { z } from "zod";
import { type Sandbox, type SandboxOptions, startSandbox } from "../src/sandbox.js";

export interface Credential {
  readonly key: string;
  readonly secret: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}

export interface Call {
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as is, anything else as JSON. */
  readonly body?: unknown;
}

export const credentialShape = z.object({ key: z.string(), secret: z.string() });

export async function call(method: string, url: string, { headers = {}, body }: Call = {}): Promise<Reply> {
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

export function authHeaders({ key, secret }: Credential): Record<string, string> {
  return { "X-Service-Key": key, "X-Service-Secret": secret };
}

/** The data of a documented success. Throws for anything else. */
export function dataOf(reply: Reply): Record<string, unknown> {
  return z.object({ success: z.literal(true), data: z.record(z.string(), z.unknown()) }).parse(reply.json)
    .data;
}

const documentedFailure = z.object({
  success: z.literal(false),
  error: z.object({ code: z.string(), message: z.string() }),
});

/** The status and code of a failure in the sandbox's default shapes. */
export function failureOf(reply: Reply): string {
  return `${reply.status} ${documentedFailure.parse(reply.json).error.code}`;
}

const running = new Set<Sandbox>();

/** Call it once in each suite that starts sandboxes. */
export function closeAfterEach(): void {
  afterEach(async () => {
    await Promise.all([...running].map((sandbox) => sandbox.close()));
    running.clear();
  });
}

/** With a portal. It is closed after the test. */
export async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ controlPort: 0, ...options });
  running.add(sandbox);
  return sandbox;
}

/** With the first credential, unless another is given. */
export function get(sandbox: Sandbox, path: string, as: Credential = sandbox.credential()): Promise<Reply> {
  return call("GET", `${sandbox.url}/api/v1${path}`, { headers: authHeaders(as) });
}

export function post(
  sandbox: Sandbox,
  path: string,
  body: unknown,
  as: Credential = sandbox.credential(),
): Promise<Reply> {
  return call("POST", `${sandbox.url}/api/v1${path}`, { headers: authHeaders(as), body });
}

export const balance = (sandbox: Sandbox, as?: Credential): Promise<Reply> =>
  get(sandbox, "/account/balance", as);

export function portal(sandbox: Sandbox, method: string, path: string, body?: unknown): Promise<Reply> {
  return call(method, `${sandbox.controlUrl}${path}`, { body });
}
