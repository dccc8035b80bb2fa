/** What one request carries from its first middleware to its log line: id, client, the wish to go on, and its single cold charge. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import { ipKeyGenerator } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Ask, Lane } from "../quota/quota.js";
import type { VisitorAsk } from "../storefront/availability.js";
import type { ClientWindows } from "./client-windows.js";

export interface RequestContext {
  readonly id: string;
  /** IPv4 address or IPv6 /56, as the limits count clients. */
  readonly client: string;
  /** IPv4 address, or IPv6 /64 in its /48, as the quota counts who had how much. */
  readonly asker: Pick<Ask, "client" | "network">;
  /** Aborted when the client hangs up before its answer is finished. */
  readonly signal: AbortSignal;
  /** The path pattern that answered; never the path itself, which may hold a name. */
  route: string;
  /** What was told to the client instead of a success. */
  code: string | null;
  /** Whether this request has been charged to its client's cold limit. */
  cold: boolean;
}

const contexts = new WeakMap<Request, RequestContext>();

/** The context of a request that has passed `requestContext`. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new Error("the request context is the first middleware");
  return context;
}

/** Each question of a request listens for its hang-up: twenty items of a cart, each with its quote. */
const MOST_QUESTIONS = 100;
const OWN_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Neighbours within a /64 are one household or host; a /48 is what one customer can be given. */
export function askerOf(address: string): RequestContext["asker"] {
  const client = ipKeyGenerator(address, 64);
  const network = ipKeyGenerator(address, 48);
  return network === client ? { client } : { client, network };
}

/** Gives every request its context and every answer its `x-request-id`, log line and metric. */
export function requestContext(log: Log, metrics: Metrics, clock: Clock): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAtMs = clock.monotonic();
    const sent = request.headers["x-request-id"];
    const address = request.ip ?? "0.0.0.0";
    const hangUp = new AbortController();
    setMaxListeners(MOST_QUESTIONS, hangUp.signal);
    const context: RequestContext = {
      id: typeof sent === "string" && OWN_ID.test(sent) ? sent : randomUUID(),
      client: ipKeyGenerator(address, 56),
      asker: askerOf(address),
      signal: hangUp.signal,
      route: "none",
      code: null,
      cold: false,
    };
    contexts.set(request, context);
    response.setHeader("x-request-id", context.id);
    response.once("close", () => {
      const finished = response.writableFinished;
      if (!finished) hangUp.abort();
      const durationMs = Math.round((clock.monotonic() - startedAtMs) * 10) / 10;
      metrics.request(context.route, request.method, finished ? response.statusCode : 499, durationMs);
      log.info("http.request", {
        requestId: context.id,
        method: request.method,
        route: context.route,
        status: finished ? response.statusCode : 499,
        ...(context.code !== null && { code: context.code }),
        durationMs,
      });
    });
    next();
  };
}

/** Makes a visitor's asks: the first that needs the upstream is charged to the client's cold limit, further ones of the request are free. */
export function asks(cold: ClientWindows, coldPerMinute: number, maxWaitMs: number) {
  return (request: Request, lane: Lane): VisitorAsk => {
    const context = contextOf(request);
    return {
      lane,
      ...context.asker,
      maxWaitMs,
      signal: context.signal,
      spend() {
        if (context.cold) return;
        if (cold.hit(context.client) > coldPerMinute) {
          throw new ServiceError(
            "rate_limited",
            "Too many different names from this client within a minute.",
            {
              retryAfterMs: cold.untilResetMs(context.client),
            },
          );
        }
        context.cold = true;
      },
    };
  };
}
