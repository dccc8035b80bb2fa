/** What one request carries from its first middleware to its log line: id, client, the wish to go on, and its single cold charge. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { IncomingMessage } from "node:http";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Ask, Lane } from "../quota/quota.js";
import type { VisitorAsk } from "../storefront/availability.js";
import type { ColdLimit } from "./cold-limit.js";
import { addressOf, askerOf, clientOf } from "./edge/client.js";

/** Each question of a request listens for its hang-up: twenty items of a cart, each with its quote. */
const MOST_QUESTIONS = 100;
const OWN_ID = /^[A-Za-z0-9_-]{1,64}$/;

export class RequestContext {
  readonly id: string;
  readonly startedAtMs: number;
  /** The path pattern that answered; never the path itself, which may hold a name. */
  route = "none";
  /** What was told to the client instead of a success. */
  code: string | null = null;
  /** Whether this request has been charged to its client's cold limit. */
  cold = false;
  readonly #address: string;
  readonly #hangUp = new AbortController();
  #client: string | null = null;

  constructor(request: Request, clock: Clock) {
    this.startedAtMs = clock.monotonic();
    this.id = requestId(request);
    this.#address = addressOf(request);
    setMaxListeners(MOST_QUESTIONS, this.#hangUp.signal);
  }

  /** IPv4 address or IPv6 /56, as the limits count clients. */
  get client(): string {
    this.#client ??= clientOf(this.#address);
    return this.#client;
  }

  /** IPv4 address, or IPv6 /64 in its /48, as the quota counts who had how much. */
  get asker(): Pick<Ask, "client" | "network"> {
    return askerOf(this.#address);
  }

  /** Aborted when the client hangs up before its answer is finished. */
  get signal(): AbortSignal {
    return this.#hangUp.signal;
  }

  hangUp(): void {
    this.#hangUp.abort();
  }
}

const contexts = new WeakMap<IncomingMessage, RequestContext>();

/** The context of a request that has passed `requestContext`. */
export function contextOf(request: IncomingMessage): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new Error("the request context is the first middleware");
  return context;
}

/** The client's own id where it is one, else a new one. */
export function requestId({ headers }: Pick<Request, "headers">): string {
  const sent = headers["x-request-id"];
  return typeof sent === "string" && OWN_ID.test(sent) ? sent : randomUUID();
}

/** Writes the log line and the metric of a request that has been answered, or left (499). */
export type AccessLog = (
  request: Pick<RequestContext, "id" | "startedAtMs" | "route" | "code"> & { readonly method: string },
  status: number,
) => void;

export function createAccessLog(log: Log, metrics: Metrics, clock: Clock): AccessLog {
  return ({ id, startedAtMs, route, code, method }, status) => {
    const durationMs = Math.round((clock.monotonic() - startedAtMs) * 10) / 10;
    metrics.request(route, method, status, durationMs);
    log.info("http.request", {
      requestId: id,
      method,
      route,
      status,
      code: code ?? undefined,
      durationMs,
    });
  };
}

/** Gives every request its context and every answer its `x-request-id` and its line in the access log. */
export function requestContext(accessLog: AccessLog, clock: Clock): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const context = new RequestContext(request, clock);
    contexts.set(request, context);
    response.setHeader("x-request-id", context.id);
    response.once("close", () => {
      const finished = response.writableFinished;
      if (!finished) context.hangUp();
      const { id, startedAtMs, route, code } = context;
      accessLog(
        { id, startedAtMs, route, code, method: request.method },
        finished ? response.statusCode : 499,
      );
    });
    next();
  };
}

/** Makes a visitor's asks: the first that needs the upstream is charged to the client's cold limit, further ones of the request are free. */
export function asks(cold: ColdLimit, maxWaitMs: number) {
  return (request: Request, lane: Lane): VisitorAsk => {
    const context = contextOf(request);
    return {
      lane,
      ...context.asker,
      maxWaitMs,
      signal: context.signal,
      spend() {
        if (context.cold) return;
        const refusal = cold.refusal(context.client, context.asker.client);
        if (refusal !== null) throw refusal;
        cold.count(context.client);
        context.cold = true;
      },
    };
  };
}
