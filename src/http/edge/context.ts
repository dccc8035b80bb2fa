/**
 * The state of one request from the first middleware to its access log line: id, client, abort signal, and whether it counts against the cold
 * limit.
 */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { IncomingMessage } from "node:http";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Clock } from "../../clock.js";
import type { ServiceError } from "../../errors.js";
import type { Log } from "../../logger.js";
import type { Metrics } from "../../metrics.js";
import type { Lane } from "../../quota/lane.js";
import type { Ask } from "../../quota/quota.js";
import { type RequestIds, serving, traceIn } from "../../request-ids.js";
import type { VisitorAsk } from "../../shop/names.js";
import type { ColdLimit } from "./cold-limit.js";
import { addressOf, askerOf, clientOf } from "./client.js";

/** Each lookup of a request adds a listener: twenty items of a cart, each with its quotes. */
const MAX_LISTENERS = 100;
const OWN_ID = /^[A-Za-z0-9_-]{1,64}$/;

class RequestContext {
  readonly ids: RequestIds;
  readonly method: string;
  readonly startedAt: number;
  /** The pattern of the matching route; never the path itself, which may contain a name. */
  route = "none";
  /** The error code of the answer, or null. */
  code: string | null = null;
  /** Who it is and what it acts on, for the audit log of staff. */
  tokenName: string | null = null;
  subject: string | null = null;
  /** Whether this request has been charged to its client's cold limit, or why it was refused. */
  cold: "charged" | ServiceError | null = null;
  readonly #address: string;
  #hangUp: AbortController | null = null;
  #client: string | null = null;

  constructor(request: Request, clock: Clock) {
    this.startedAt = clock.monotonic();
    this.ids = { requestId: requestId(request), trace: traceIn(request.headers.traceparent) };
    this.method = request.method;
    this.#address = addressOf(request);
  }

  get id(): string {
    return this.ids.requestId;
  }

  /** The client as counted by the limits: an IPv4 address or IPv6 /56. */
  get client(): string {
    this.#client ??= clientOf(this.#address);
    return this.#client;
  }

  /** The client as counted by the quota: an IPv4 address, or an IPv6 /64 in its /48. */
  get asker(): Pick<Ask, "client" | "network"> {
    return askerOf(this.#address);
  }

  /** Aborted when the client disconnects before its answer is complete. */
  get signal(): AbortSignal {
    return this.#controller().signal;
  }

  hangUp(): void {
    this.#controller().abort();
  }

  /** Created when first asked for, because most requests never wait. */
  #controller(): AbortController {
    if (this.#hangUp === null) {
      this.#hangUp = new AbortController();
      setMaxListeners(MAX_LISTENERS, this.#hangUp.signal);
    }
    return this.#hangUp;
  }
}

const contexts = new WeakMap<IncomingMessage, RequestContext>();

/** The context that `requestContext` gave the request. */
export function contextOf(request: IncomingMessage): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new Error("requestContext must be the first middleware");
  return context;
}

/** The client's own `x-request-id` if it is valid, or a new one. */
export function requestId({ headers }: Pick<Request, "headers">): string {
  const sent = headers["x-request-id"];
  return typeof sent === "string" && OWN_ID.test(sent) ? sent : randomUUID();
}

/** Writes the log line and the metric of a request that was answered, or abandoned by its client (499). */
export type AccessLog = (
  request: Pick<RequestContext, "id" | "startedAt" | "route" | "code" | "method">,
  status: number,
) => void;

export function createAccessLog(log: Log, metrics: Metrics, clock: Clock): AccessLog {
  return ({ id, startedAt, route, code, method }, status) => {
    const durationMs = Math.round((clock.monotonic() - startedAt) * 10) / 10;
    metrics.request(route, method, status, durationMs);
    log.info("http.request", { requestId: id, method, route, status, code: code ?? undefined, durationMs });
  };
}

/** Gives every request a context, its log lines its ids, and every answer an `x-request-id` and a line in the access log. */
export function requestContext(accessLog: AccessLog, clock: Clock): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const context = new RequestContext(request, clock);
    contexts.set(request, context);
    response.setHeader("x-request-id", context.id);
    request.once("close", () => {
      // When a connection breaks, Node closes the answer that is being sent, but not those that wait for their turn behind it.
      if (request.errored === null || response.destroyed) return;
      response.destroy();
      response.emit("close");
    });
    response.once("close", () => {
      const finished = response.writableFinished;
      if (!finished) context.hangUp();
      serving(context.ids, () => {
        accessLog(context, finished ? response.statusCode : 499);
      });
    });
    serving(context.ids, next);
  };
}

export type AskFor = (request: Request, lane: Lane) => VisitorAsk;

/**
 * Creates the asks of a request, which from then on waits for calls for at most `maxWaitMs` in all. The first one that needs the upstream counts
 * against the client's cold limit; the others are free, or refused with it.
 */
export function asks(cold: ColdLimit, maxWaitMs: number, clock: Clock): AskFor {
  return (request, lane) => {
    const context = contextOf(request);
    return {
      lane,
      ...context.asker,
      waitUntilAt: clock.monotonic() + maxWaitMs,
      signal: context.signal,
      spend() {
        if (context.cold === "charged") return;
        context.cold ??= cold.refusal(context.client, context.asker.client);
        if (context.cold !== null) throw context.cold;
        cold.count(context.client);
        context.cold = "charged";
      },
    };
  };
}
