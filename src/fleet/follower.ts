/**
 * What a replica does with requests that only the owner can answer: hands them on over HTTP, whole and once, with the visitor's address, streams and
 * aborts included. While the owner can't be reached, an earlier answer is repeated for as long as the owner allowed.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { setMaxListeners } from "node:events";
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request as send } from "node:http";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import { PROBLEMS, ServiceError, unavailable } from "../errors.js";
import { addressOf, wasHandedOn } from "../http/edge/client.js";
import { CLIENT_FIELDS, FRESH_FOR, isNotModified, isPublic } from "../http/edge/answers.js";
import { type Fleet, type Member, NEXT_OWNER_WITHIN_MS } from "./lease.js";

/** The token of the replica that a request is handed on to, and the visitor's address. */
const TOKEN = "x-storefront-handed-on";
const ADDRESS = "x-storefront-client";

/** While the owner lives, an answer is repeated for this long at most. */
const REPEATED_MS = 1_000;
const MAX_REPEATED = 5_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** By then the owner is usually known, after an orderly change or an outage of Redis. */
const RETRY_MS = 3_000;

/** Fields that concern one connection (RFC 9110, section 7.6.1), or this replica alone. */
const OF_CONNECTION = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  FRESH_FOR,
]);

interface Kept {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  /** Monotonic. */
  readonly at: number;
  readonly freshUntilAt: number;
}

export interface Follower {
  /** Call for every request first: takes the internal fields out of it. */
  accept(request: IncomingMessage): void;
  /** Whether this replica answers the request itself: as the owner, or because it is none of the owner's. */
  isOwn(request: Pick<IncomingMessage, "url">): boolean;
  /** Hands on what this replica doesn't answer itself. */
  readonly handOn: RequestHandler;
  /** Sends a kept answer that is still fresh in place of a 503: the owner may have changed, and not know yet what the former one knew. */
  readonly insteadOfFailing: ErrorRequestHandler;
  /** Whether the owner was reached when a request was last handed on; null: none was. */
  reachesOwner(): boolean | null;
  close(): void;
}

/** `takingOver`: until it has become the owner in full, a new owner answers nothing itself. */
export function createFollower(
  fleet: Pick<Fleet, "role" | "owner" | "me" | "onChange">,
  takingOver: () => Promise<void> | null,
  clock: Clock,
): Follower {
  const agent = new Agent({ keepAlive: true, maxSockets: 1024 });
  const handed = new WeakSet<IncomingMessage>();
  const answers = new LRUCache<string, Kept>({ max: MAX_REPEATED });
  let hasReached: boolean | null = null;
  let ownerId = fleet.owner()?.id;
  /** What it knows stays true for as long as it said, but only the owner signs. */
  let isFormerOwner = false;
  let untilChange = manyListeners();

  // A former owner that hangs would never answer.
  fleet.onChange(() => {
    isFormerOwner = fleet.role() === "owner" || (isFormerOwner && fleet.role() === "none");
    const id = fleet.owner()?.id;
    if (id === ownerId) return;
    ownerId = id;
    hasReached = null;
    untilChange.abort();
    untilChange = manyListeners();
  });

  const isOwn = ({ url = "" }: Pick<IncomingMessage, "url">): boolean =>
    (fleet.role() === "owner" && takingOver() === null) || !/^\/v1(?:[/?]|$)/.test(url);

  /** Sends a kept answer that is fresh and at most this old; returns whether there is one. */
  function repeat(request: Request, response: Response, maxAgeMs = Infinity): boolean {
    const known = request.method === "GET" ? answers.get(keyOf(request)) : undefined;
    const now = clock.monotonic();
    if (known === undefined || now >= known.freshUntilAt || now - known.at >= maxAgeMs) return false;
    setHeaders(response, known.headers);
    const isSame = isNotModified(request.headers["if-none-match"], String(response.getHeader("etag")));
    response.statusCode = isSame ? 304 : known.status;
    response.end(isSame ? undefined : known.body);
    return true;
  }

  function forward({ url, token }: Member, address: string, request: Request, response: Response) {
    const outgoing = send(new URL(request.originalUrl, url), {
      method: request.method,
      agent,
      signal: untilChange.signal,
      headers: {
        ...withoutConnection(request.headers),
        "x-request-id": String(response.getHeader("x-request-id")),
        [TOKEN]: token,
        [ADDRESS]: address,
      },
    });
    // Only for connecting: the owner may take as long as it needs.
    outgoing.setTimeout(CONNECT_TIMEOUT_MS, () => outgoing.destroy(new Error("the owner isn't reached")));
    outgoing.on("socket", (socket) => {
      if (!socket.connecting) outgoing.setTimeout(0);
      else socket.once("connect", () => outgoing.setTimeout(0));
    });
    response.on("close", () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    request.pipe(outgoing);
    return outgoing;
  }

  /** Sends the owner's answer on, and keeps it if the owner allows. */
  function relay(request: Request, response: Response, answer: IncomingMessage): void {
    const { statusCode: status = 502, headers } = answer;
    const fields = withoutConnection(headers);
    if (status === 503 && repeat(request, response)) return void answer.resume();
    response.statusCode = status;
    if (isPublic(headers["cache-control"] ?? ""))
      for (const name of CLIENT_FIELDS) response.removeHeader(name);
    setHeaders(response, fields);
    response.flushHeaders();
    const freshForMs = Number(headers[FRESH_FOR] ?? 0);
    const chunks: Buffer[] = [];
    if (status === 200 && request.method === "GET" && freshForMs > 0) {
      const { "x-request-id": _id, date: _date, ...kept } = fields;
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        const at = clock.monotonic();
        const body = Buffer.concat(chunks);
        answers.set(keyOf(request), { status, headers: kept, body, at, freshUntilAt: at + freshForMs });
      });
    }
    answer.on("error", () => response.destroy());
    answer.pipe(response);
  }

  return {
    accept(request) {
      const { [TOKEN]: token, [ADDRESS]: address } = request.headers;
      delete request.headers[TOKEN];
      delete request.headers[ADDRESS];
      if (typeof token !== "string" || typeof address !== "string" || !isSame(token, fleet.me.token)) return;
      handed.add(request);
      wasHandedOn(request, address);
    },
    isOwn,
    handOn(request, response, next) {
      if (isOwn(request)) return next();
      const taken = fleet.role() === "owner" ? takingOver() : null;
      if (taken !== null) return void taken.then(() => next());
      // A forwarded request is never forwarded again, or two replicas could send it back and forth.
      if (handed.has(request)) {
        response.setHeader(TOKEN, "not the owner");
        return next(unavailable(RETRY_MS));
      }
      if (repeat(request, response, REPEATED_MS)) return;
      const fail = (retryAfterMs: number): void => {
        hasReached = false;
        if (response.headersSent) response.destroy();
        else next(unavailable(retryAfterMs));
      };
      const owner = fleet.owner();
      if (owner === null) return isFormerOwner && request.method === "GET" ? next() : fail(RETRY_MS);
      const outgoing = forward(owner, addressOf(request), request, response);
      outgoing.on("error", () => {
        fail(fleet.owner()?.id === owner.id ? NEXT_OWNER_WITHIN_MS : RETRY_MS);
      });
      outgoing.on("response", (answer) => {
        if (answer.headers[TOKEN] !== undefined) {
          answer.resume();
          return fail(RETRY_MS);
        }
        hasReached = true;
        relay(request, response, answer);
      });
    },
    insteadOfFailing: (error: unknown, request, response, next) => {
      const isUnavailable = error instanceof ServiceError && PROBLEMS[error.code].status === 503;
      if (!isUnavailable || !repeat(request, response)) next(error);
    },
    reachesOwner: () => hasReached,
    close() {
      agent.destroy();
    },
  };
}

/** One request more is no leak. */
function manyListeners(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

function withoutConnection(headers: IncomingMessage["headers"]): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.has(name)));
}

function setHeaders(response: Response, headers: OutgoingHttpHeaders): void {
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) response.setHeader(name, value);
}

/** Another Accept or Origin may get another answer. */
function keyOf({ originalUrl, headers }: Request): string {
  return `${headers.accept ?? ""} ${headers.origin ?? ""} ${originalUrl}`;
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => hash("sha256", text, "buffer");
  return timingSafeEqual(digest(given), digest(expected));
}
