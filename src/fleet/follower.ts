/**
 * What a replica does with requests that only the owner can answer: hands them on over HTTP, whole and once, with the visitor's address, streams and
 * aborts included. While the owner can't be reached, an earlier answer is repeated for as long as the owner allowed.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { Agent, type IncomingMessage, request as send } from "node:http";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import { PROBLEMS, ServiceError, unavailable } from "../errors.js";
import { wasHandedOn } from "../http/edge/client.js";
import { CLIENT_FIELDS, FRESH_FOR, isNotModified, isPublic } from "../http/edge/answers.js";
import type { Fleet, Member } from "./lease.js";

/** The token of the replica that a request is handed on to, and the visitor's address. */
const TOKEN = "x-storefront-handed-on";
const ADDRESS = "x-storefront-client";

/** While the owner lives, an answer is repeated for this long at most. */
const REPEATED_MS = 1_000;
const MAX_REPEATED = 5_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** By then there is usually another owner, or the same one again. */
const RETRY_MS = 3_000;

/** Fields that concern one connection (RFC 9110, section 7.6.1). */
const OF_CONNECTION = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

interface Finished {
  readonly status: number;
  readonly headers: readonly (readonly [string, string | string[]])[];
  readonly body: Buffer;
  /** Monotonic. */
  readonly atMs: number;
  readonly freshUntilAt: number;
}

export interface Follower {
  /** Call for every request first: takes the internal fields out of it. */
  accept(request: IncomingMessage): void;
  /** Whether this replica answers the request itself: as the owner, or because it is none of the owner's. */
  isOwn(request: Pick<IncomingMessage, "url">): boolean;
  /** Hands on what this replica doesn't answer itself. `addressOf` is the visitor's address. */
  handOn(addressOf: (request: Request) => string): RequestHandler;
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
  const finished = new LRUCache<string, Finished>({ max: MAX_REPEATED });
  const outstanding = new Set<() => void>();
  let hasReached: boolean | null = null;
  let ownerId = fleet.owner()?.id;

  // A former owner that hangs would never answer.
  fleet.onChange(() => {
    const id = fleet.owner()?.id;
    if (id === ownerId) return;
    ownerId = id;
    hasReached = null;
    for (const abort of outstanding) abort();
  });

  const isOwn = ({ url = "" }: Pick<IncomingMessage, "url">): boolean =>
    (fleet.role() === "owner" && takingOver() === null) || !/^\/v1(?:[/?]|$)/.test(url);

  function answerFor(request: Request, maxAgeMs: number): Finished | null {
    const known = request.method === "GET" ? finished.get(keyOf(request)) : undefined;
    const now = clock.monotonic();
    return known !== undefined && now < known.freshUntilAt && now - known.atMs < maxAgeMs ? known : null;
  }

  function forward(
    owner: Member,
    address: string,
    request: Request,
    response: Response,
    fail: (error: Error) => void,
  ): void {
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(request.headers))
      if (value !== undefined && !OF_CONNECTION.has(name) && name !== "expect") headers[name] = value;
    const outgoing = send(new URL(request.originalUrl, owner.url), {
      method: request.method,
      agent,
      headers: {
        ...headers,
        "x-request-id": String(response.getHeader("x-request-id")),
        [TOKEN]: owner.token,
        [ADDRESS]: address,
      },
      timeout: CONNECT_TIMEOUT_MS,
    });
    const abort = (): void => void outgoing.destroy(new Error("the owner has changed"));
    outstanding.add(abort);
    const end = (): void => void outstanding.delete(abort);
    outgoing.on("socket", (socket) => {
      // Only for connecting: the owner may take as long as it needs.
      if (socket.connecting) socket.once("connect", () => socket.setTimeout(0));
      else socket.setTimeout(0);
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error("the owner doesn't accept connections")));
    outgoing.on("error", (error) => {
      end();
      if (response.headersSent) response.destroy();
      else fail(error);
    });
    outgoing.on("response", (answer) => {
      hasReached = true;
      if (isOfNoOwner(answer)) {
        answer.resume();
        end();
        fail(new Error("the owner has changed"));
        return;
      }
      relay(request, response, answer);
      answer.on("close", end);
    });
    response.on("close", () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    request.pipe(outgoing);
  }

  /** Sends the answer on, and keeps it if the owner allows. */
  function relay(request: Request, response: Response, answer: IncomingMessage): void {
    const { [FRESH_FOR]: freshFor, ...fields } = answer.headers;
    const headers = Object.entries(fields).flatMap(([name, value]) =>
      value === undefined || OF_CONNECTION.has(name) ? [] : [[name, value] as const],
    );
    const status = answer.statusCode ?? 502;
    const kept = status === 503 ? answerFor(request, Infinity) : null;
    if (kept !== null) {
      answer.resume();
      repeat(kept, request, response);
      return;
    }
    response.statusCode = status;
    if (isPublic(answer.headers["cache-control"] ?? ""))
      for (const name of CLIENT_FIELDS) response.removeHeader(name);
    for (const [name, value] of headers) response.setHeader(name, value);
    response.flushHeaders();
    const freshForMs = Number(freshFor);
    const chunks: Buffer[] | null = status === 200 && request.method === "GET" && freshForMs > 0 ? [] : null;
    answer.on("data", (chunk: Buffer) => chunks?.push(chunk));
    answer.on("end", () => {
      if (chunks === null) return;
      const atMs = clock.monotonic();
      const kept = headers.filter(([name]) => name !== "x-request-id" && name !== "date");
      finished.set(keyOf(request), {
        status,
        headers: kept,
        body: Buffer.concat(chunks),
        atMs,
        freshUntilAt: atMs + freshForMs,
      });
    });
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
    handOn: (addressOf) => (request, response, next) => {
      if (isOwn(request)) return next();
      const taken = fleet.role() === "owner" ? takingOver() : null;
      if (taken !== null)
        return void taken.then(() => {
          next();
        });
      // A forwarded request is never forwarded again, or two replicas could send it back and forth.
      if (handed.has(request)) {
        response.setHeader(TOKEN, "not the owner");
        return next(unavailable(RETRY_MS));
      }
      const recent = answerFor(request, REPEATED_MS);
      if (recent !== null) return repeat(recent, request, response);
      const owner = fleet.owner();
      const fail = (): void => {
        hasReached = false;
        next(unavailable(RETRY_MS));
      };
      if (owner === null) fail();
      else forward(owner, addressOf(request), request, response, fail);
    },
    insteadOfFailing: (error: unknown, request, response, next) => {
      const isUnavailable = error instanceof ServiceError && PROBLEMS[error.code].status === 503;
      const known = isUnavailable ? answerFor(request, Infinity) : null;
      if (known === null) next(error);
      else repeat(known, request, response);
    },
    reachesOwner: () => hasReached,
    close() {
      agent.destroy();
    },
  };
}

function repeat({ status, headers, body }: Finished, request: Request, response: Response): void {
  for (const [name, value] of headers) response.setHeader(name, value);
  const etag = response.getHeader("etag");
  const isKnown = typeof etag === "string" && isNotModified(request.headers["if-none-match"], etag);
  response.statusCode = isKnown ? 304 : status;
  response.end(isKnown ? undefined : body);
}

/** Another Accept or Origin may get another answer. */
function keyOf({ originalUrl, headers }: Request): string {
  return `${headers.accept ?? ""} ${headers.origin ?? ""} ${originalUrl}`;
}

function isOfNoOwner({ headers }: IncomingMessage): boolean {
  return headers[TOKEN] !== undefined;
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
