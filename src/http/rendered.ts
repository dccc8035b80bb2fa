/** Answers as bytes: made once, sent any number of times, by Express and by the fast path alike. */
import { createHash } from "node:crypto";
import type { Response } from "express";

/** Name, value, name, value…, as Node writes them. Not frozen, because V8 joins frozen lists slowly. */
export type HeaderList = readonly string[];

export interface Rendered {
  readonly status: number;
  readonly body: string;
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
  const { cacheControl, status = 200, type = "application/json", headers = {}, tagged = false } = options;
  const body = JSON.stringify(presented);
  const etag = tagged ? `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` : null;
  return {
    status,
    body,
    headers: [
      "Cache-Control",
      cacheControl,
      ...(etag === null ? [] : ["ETag", etag]),
      ...Object.entries(headers).flat(),
    ],
    entityHeaders: [
      "Content-Type",
      `${type}; charset=utf-8`,
      "Content-Length",
      String(Buffer.byteLength(body)),
    ],
    etag,
  };
}

/** Sends it through Express, which knows HEAD and conditional requests. */
export function sendRendered(response: Response, rendered: Rendered): void {
  response.status(rendered.status);
  setHeaders(response, rendered.headers);
  setHeaders(response, rendered.entityHeaders);
  response.send(rendered.body);
}

export function setHeaders(response: Pick<Response, "setHeader">, list: HeaderList): void {
  for (let at = 0; at + 1 < list.length; at += 2) {
    const [name, value] = [list[at], list[at + 1]];
    if (name !== undefined && value !== undefined) response.setHeader(name, value);
  }
}
