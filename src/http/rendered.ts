/** Answers as bytes: made once, sent any number of times, by Express and by the fast path alike. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";

/** Name, value, name, value…, as Node writes them. Not frozen, because V8 joins frozen lists slowly. */
export type HeaderList = readonly string[];

export interface Rendered {
  readonly status: number;
  readonly body: string | Buffer;
  /** How the body is written. Node writes Latin-1 faster than UTF-8, and what is all ASCII is the same in both. */
  readonly encoding: "latin1" | "utf8";
  /** Whether shared caches may keep it, so that it must carry nothing of the client that asked. */
  readonly isShared: boolean;
  /** What belongs to this answer, with or without its body. */
  readonly headers: HeaderList;
  /** What describes the body. */
  readonly entityHeaders: HeaderList;
  /** Strong; null where answers carry their own time and never match. */
  readonly etag: string | null;
}

export interface RenderOptions {
  readonly cacheControl: string;
  readonly status?: number;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the answer is the same for as long as its facts are, so that clients may keep it by its ETag. */
  readonly tagged?: boolean;
}

/** Renders a presented body as JSON. */
export function render(presented: object, options: RenderOptions): Rendered {
  const { type = "application/json", ...rest } = options;
  return renderBody(JSON.stringify(presented), { ...rest, type: `${type}; charset=utf-8` });
}

/** Renders bytes that are complete, of exactly this type. */
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
  const etag = tagged ? `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` : null;
  const bytes = Buffer.byteLength(body);
  return {
    status,
    body,
    encoding: bytes === body.length ? "latin1" : "utf8",
    isShared: cacheControl.startsWith("public"),
    headers: [
      "Cache-Control",
      cacheControl,
      ...(etag === null ? [] : ["ETag", etag]),
      ...Object.entries(headers).flat(),
    ],
    entityHeaders: ["Content-Type", type, "Content-Length", String(bytes)],
    etag,
  };
}

/** Whether If-None-Match names this tag (RFC 9110, section 13.1.2). `Cache-Control: no-cache`, which browsers send along, changes nothing. */
export function isNotModified(ifNoneMatch: string | undefined, { etag }: Rendered): boolean {
  if (ifNoneMatch === undefined || etag === null) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) === true;
}

const PER_CLIENT = ["x-request-id", "RateLimit", "RateLimit-Policy"];

/** Sends it on its way through Express; HEAD and conditional requests are answered without the body. */
export function sendRendered(response: ServerResponse, rendered: Rendered): void {
  const { method, headers } = response.req;
  const isRead = method === "GET" || method === "HEAD";
  const isSame = isRead && isNotModified(headers["if-none-match"], rendered);
  response.statusCode = isSame ? 304 : rendered.status;
  if (rendered.isShared) for (const name of PER_CLIENT) response.removeHeader(name);
  setHeaders(response, rendered.headers);
  if (!isSame) setHeaders(response, rendered.entityHeaders);
  response.end(isSame || method === "HEAD" ? undefined : rendered.body, rendered.encoding);
}

export function setHeaders(response: Pick<ServerResponse, "setHeader">, list: HeaderList): void {
  for (let at = 0; at + 1 < list.length; at += 2) {
    const [name, value] = [list[at], list[at + 1]];
    if (name !== undefined && value !== undefined) response.setHeader(name, value);
  }
}
