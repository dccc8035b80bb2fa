/** Sends complete answers: with a length, without the body for HEAD, and as a 304 to a conditional request that has the same body. */
import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Request, Response } from "express";
import { csvOf, type Table } from "../../wire/csv.js";
import { isHandedOn } from "./client.js";

/** Types are offered with the parameters that are sent, so that an Accept header may name them. */
export const JSON_TYPE = "application/json; charset=utf-8";
export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
export const CSV = "text/csv; charset=utf-8; header=present";

export interface Answer {
  readonly body: Buffer;
  readonly type: string;
  readonly cacheControl: string;
  /** Whether it gets a strong ETag. */
  readonly tagged?: boolean;
}

/** A presented body that caches may not store, with an ETag for clients that remember it. */
export function jsonAnswer(presented: object, options: Partial<Answer> = {}): Answer {
  return {
    body: Buffer.from(JSON.stringify(presented)),
    type: JSON_TYPE,
    cacheControl: "no-store",
    tagged: true,
    ...options,
  };
}

export function sendJson(response: ServerResponse, presented: object, options: Partial<Answer> = {}): void {
  send(response, jsonAnswer(presented, options));
}

/** Sends the list as JSON, or as CSV to a client that prefers it. */
export function sendList(request: Request, response: Response, body: object, table: Table): void {
  response.vary("Accept");
  if (request.accepts([JSON_TYPE, CSV]) !== CSV) return sendJson(response, body);
  response.attachment(`${table.name}.csv`);
  send(response, { body: Buffer.from(csvOf(table)), type: CSV, cacheControl: "no-store", tagged: true });
}

/** Sends the answer with the status of the response, 200 by default. */
export function send(response: ServerResponse, answer: Answer): void {
  setFields(response, answer);
  const etag = response.getHeader("ETag");
  const { method, headers } = response.req;
  const isRead = method === "GET" || method === "HEAD";
  if (isRead && typeof etag === "string" && isNotModified(headers["if-none-match"], etag)) {
    response.statusCode = 304;
    for (const name of ENTITY_FIELDS) response.removeHeader(name);
    response.end();
  } else {
    response.end(method === "HEAD" ? undefined : answer.body);
  }
}

/** The names, in lower case, of the fields about one client, which an answer that shared caches may store must not have. */
export const CLIENT_FIELDS = ["x-request-id", "ratelimit", "ratelimit-policy"];
/** The fields that a 304 doesn't have. */
export const ENTITY_FIELDS = ["content-type", "content-length"];

/** In answers to requests that another replica has handed on: for how many ms it may repeat the answer. Never sent to anybody else. */
export const FRESH_FOR = "x-storefront-fresh-for";

/** Allows the replica that has handed on the request, if one has, to repeat the answer for this long while this one can't be reached. */
export function mayBeRepeated(response: ServerResponse, forMs: number): void {
  if (forMs > 0 && isHandedOn(response.req)) response.setHeader(FRESH_FOR, Math.floor(forMs));
}

export function isPublic(cacheControl: string): boolean {
  return cacheControl.startsWith("public");
}

export function setFields(
  response: ServerResponse,
  { body, type, cacheControl, tagged = false }: Answer,
): void {
  if (isPublic(cacheControl)) for (const name of CLIENT_FIELDS) response.removeHeader(name);
  response.setHeader("Cache-Control", cacheControl);
  if (tagged) response.setHeader("ETag", `"${hash("sha256", body, "base64url").slice(0, 27)}"`);
  response.setHeader("Content-Type", type);
  response.setHeader("Content-Length", body.length);
}

/** Whether If-None-Match contains this tag (RFC 9110, section 13.1.2). Ignores `Cache-Control: no-cache`, which browsers add. */
export function isNotModified(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) === true;
}
