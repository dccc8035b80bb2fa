/** Answers as bytes: rendered once and sent any number of times, by Express and by the fast path. */
import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";

/** Alternating names and values, as Node accepts them. Not frozen, because V8 concatenates frozen arrays slowly. */
export type HeaderList = readonly string[];

/** Types are offered with the parameters that are sent, so that an Accept header may name them. */
export const JSON_TYPE = "application/json; charset=utf-8";
export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

export interface Rendered {
  readonly status: number;
  /**
   * The bytes. A string holds one byte per character, to be sent as Latin-1: Node then writes it together with the headers and without conversion.
   */
  readonly body: string | Buffer;
  /** Whether shared caches may store the answer; it then carries no header about the client. */
  readonly isShared: boolean;
  /** Sent with or without the body. */
  readonly headers: HeaderList;
  /** Sent only with the body. */
  readonly entityHeaders: HeaderList;
  /** Strong; null if the body never repeats. */
  readonly etag: string | null;
}

export interface RenderOptions {
  readonly cacheControl: string;
  readonly status?: number;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the answer gets an ETag. */
  readonly tagged?: boolean;
}

/** Renders a presented body as JSON. */
export function render(presented: object, options: RenderOptions): Rendered {
  return renderBody(JSON.stringify(presented), { type: JSON_TYPE, ...options });
}

/** Renders a complete body with exactly this content type; a string is encoded as UTF-8. */
export function renderBody(
  body: string | Buffer,
  {
    cacheControl,
    type,
    status = 200,
    headers = {},
    tagged = false,
  }: RenderOptions & { readonly type: string },
): Rendered {
  const length = Buffer.byteLength(body);
  const etag = tagged ? `"${hash("sha256", body, "base64url").slice(0, 27)}"` : null;
  // A text of single-byte characters is its own bytes. One that is sent often is converted all the same: from JSON.stringify it consists of parts, which
  // Node 20 would join again for each answer.
  const isConverted = typeof body === "string" && (tagged || length !== body.length);
  return {
    status,
    body: isConverted ? Buffer.from(body).toString("latin1") : body,
    isShared: cacheControl.startsWith("public"),
    headers: [
      "Cache-Control",
      cacheControl,
      ...(etag === null ? [] : ["ETag", etag]),
      ...Object.entries(headers).flat(),
    ],
    entityHeaders: ["Content-Type", type, "Content-Length", String(length)],
    etag,
  };
}

/** Whether If-None-Match contains this tag (RFC 9110, section 13.1.2). Ignores `Cache-Control: no-cache`, which browsers add. */
export function isNotModified(ifNoneMatch: string | undefined, { etag }: Rendered): boolean {
  if (ifNoneMatch === undefined || etag === null) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) === true;
}

const PER_CLIENT = ["x-request-id", "RateLimit", "RateLimit-Policy"];

/** Sends the answer through Express, without the body for HEAD and matching conditional requests. */
export function sendRendered(response: ServerResponse, rendered: Rendered): void {
  const { method, headers } = response.req;
  const isRead = method === "GET" || method === "HEAD";
  const isSame = isRead && isNotModified(headers["if-none-match"], rendered);
  response.statusCode = isSame ? 304 : rendered.status;
  if (rendered.isShared) for (const name of PER_CLIENT) response.removeHeader(name);
  setHeaders(response, rendered.headers);
  if (!isSame) setHeaders(response, rendered.entityHeaders);
  response.end(isSame || method === "HEAD" ? undefined : rendered.body, "latin1");
}

/** Sends a presented body that caches may not store, with an ETag for clients that remember it. */
export function sendJson(response: ServerResponse, presented: object): void {
  sendRendered(response, render(presented, { cacheControl: "no-store", tagged: true }));
}

export function setHeaders(response: Pick<ServerResponse, "setHeader">, list: HeaderList): void {
  for (let at = 0; at + 1 < list.length; at += 2) {
    const [name, value] = [list[at], list[at + 1]];
    if (name !== undefined && value !== undefined) response.setHeader(name, value);
  }
}
