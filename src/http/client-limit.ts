/**
 * How much a client may ask in a minute (contract: `rate_limited`), counted once for a request whichever way it is answered. Express's way is
 * guarded by express-rate-limit; its count and its fields are kept where they can be had without a promise.
 */
import type { Request, RequestHandler, Response } from "express";
import { rateLimit } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { CLIENT_WINDOW_MS, type ClientWindow, ClientWindows } from "./client-windows.js";
import { contextOf } from "./context.js";
import { markOf } from "./edge/client.js";
import { type HeaderList, setHeaders } from "./rendered.js";

/** Far past its limit is a client that has asked this many times as much as it may. */
const FLOODING = 2;

export interface ClientLimit {
  windowOf(client: string): ClientWindow;
  /** Whether the client's next request will be refused. */
  isSpent(window: ClientWindow): boolean;
  /** Whether the client goes on asking long after it has been refused. */
  isFlooding(window: ClientWindow): boolean;
  /** Counts one request; the refusal when that is one too many. */
  take(window: ClientWindow): ServiceError | null;
  /** RateLimit and RateLimit-Policy as express-rate-limit writes them (draft 8). */
  fields(window: ClientWindow): HeaderList;
  /** Counts and refuses requests on their way through Express. */
  readonly handlers: readonly RequestHandler[];
}

export function createClientLimit(perMinute: number, clock: Clock): ClientLimit {
  const windows = new ClientWindows(clock);
  const name = `"${perMinute}-in-1min"`;

  function refusal(window: ClientWindow): ServiceError {
    return new ServiceError("rate_limited", "Too many requests from this client within a minute.", {
      retryAfterMs: windows.untilResetMs(window),
    });
  }

  function policyOf(window: ClientWindow): string {
    if (window.policy !== null) return window.policy;
    const policy = `${name}; q=${perMinute}; w=${CLIENT_WINDOW_MS / 1000}; pk=:${partitionKey(window.client)}:`;
    // Most of a flood come once: nothing is kept for them.
    if (window.count > 1) window.policy = policy;
    return policy;
  }

  function fields(window: ClientWindow): HeaderList {
    const remaining = Math.max(0, perMinute - window.count);
    const resetSeconds = Math.ceil(windows.untilResetMs(window) / 1000);
    return ["RateLimit", `${name}; r=${remaining}; t=${resetSeconds}`, "RateLimit-Policy", policyOf(window)];
  }

  const clientOf = (request: Request): string => contextOf(request).client;
  const tell = (request: Request, response: Response): void => {
    setHeaders(response, fields(windows.of(clientOf(request))));
  };
  return {
    windowOf: (client) => windows.of(client),
    isSpent: ({ count }) => count >= perMinute,
    isFlooding: ({ count }) => count >= FLOODING * perMinute,
    take(window) {
      window.count += 1;
      return window.count > perMinute ? refusal(window) : null;
    },
    fields,
    handlers: [
      rateLimit({
        windowMs: CLIENT_WINDOW_MS,
        limit: perMinute,
        standardHeaders: false,
        legacyHeaders: false,
        keyGenerator: clientOf,
        store: windows,
        // Clients send what they like; whether a proxy is trusted is TRUST_PROXY_HOPS' matter.
        validate: { xForwardedForHeader: false, forwardedHeader: false },
        handler(request, response) {
          tell(request, response);
          throw refusal(windows.of(clientOf(request)));
        },
      }),
      (request, response, next) => {
        tell(request, response);
        next();
      },
    ],
  };
}

/** As long as express-rate-limit's, which anyone could compute from an address. */
function partitionKey(client: string): string {
  return Buffer.from(markOf(client)).toString("base64");
}
