/** A bare HTTP caller for the sandbox's tests: it knows header names and JSON, and nothing of the sandbox's code. */
import { z } from "zod";

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
  /** Sent as JSON; a string is sent as it stands. */
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

/** The data of a documented success; anything else fails the test that asked. */
export function dataOf(reply: Reply): Record<string, unknown> {
  return z.object({ success: z.literal(true), data: z.record(z.string(), z.unknown()) }).parse(reply.json)
    .data;
}

const documentedFailure = z.object({
  success: z.literal(false),
  error: z.object({ code: z.string(), message: z.string() }),
});

/** "status code" of a failure of the sandbox's own shapes. */
export function failureOf(reply: Reply): string {
  return `${reply.status} ${documentedFailure.parse(reply.json).error.code}`;
}
