/**
 * How much a client may ask in a minute (contract: `rate_limited`), counted once for a request whichever way it is answered. Express's way is
 * guarded by express-rate-limit; its count and its fields are kept where they can be had without a promise.
 */
import type { Request, RequestHandler, Response } from "express";
import { rateLimit, type Store } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { CLIENT_WINDOW_MS, type ClientWindow, ClientWindows } from "./client-windows.js";
import { contextOf } from "./context.js";
import { markOf } from "./edge/client.js";
import type { SharedLimit } from "./edge/shared-limit.js";
import { type HeaderList, setHeaders } from "./rendered.js";

/** Far past its limit is a client that has asked this many times as much as it may. */
const FLOODING = 2;

export interface ClientLimit {
  windowOf(client: string): ClientWindow;
  /** Whether the client's next request will be refused. */
  isSpent(window: ClientWindow): boolean;
  /** Whether the client goes on asking long after it has been refused. */
  isFlooding(window: ClientWindow): boolean;
  /** Whether other replicas have to be asked first, which only `handlers` do. */
  mustAsk(window: ClientWindow): boolean;
  /** Counts one request; the refusal when that is one too many. */
  take(window: ClientWindow): ServiceError | null;
  /** Refusals since the start. */
  refused(): number;
  /** RateLimit and RateLimit-Policy as express-rate-limit writes them (draft 8). */
  fields(window: ClientWindow): HeaderList;
  /** Counts and refuses requests on their way through Express. */
  readonly handlers: readonly RequestHandler[];
}

/** Counts requests per client; with `share`, for all replicas together. */
export function createClientLimit(
  perMinute: number,
  clock: Clock,
  share: (windows: ClientWindows) => SharedLimit | null = () => null,
): ClientLimit {
  const windows = new ClientWindows(clock);
  const shared = share(windows);
  const name = `"${perMinute}-in-1min"`;

  let refused = 0;

  function refusal(window: ClientWindow): ServiceError {
    refused += 1;
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
    const remaining = shared?.left(window) ?? Math.max(0, perMinute - window.count);
    const resetSeconds = Math.ceil(windows.untilResetMs(window) / 1000);
    return ["RateLimit", `${name}; r=${remaining}; t=${resetSeconds}`, "RateLimit-Policy", policyOf(window)];
  }

  const isSpent = ({ count }: ClientWindow): boolean => count >= perMinute;
  const mustAsk = (window: ClientWindow): boolean => shared?.mustAsk(window) === true && !isSpent(window);
  const store: Store = {
    localKeys: true,
    async increment(client) {
      const window = windows.of(client);
      if (shared === null || !mustAsk(window)) return windows.increment(client);
      const isAdmitted = await shared.take(window);
      return { totalHits: isAdmitted ? window.count : perMinute + 1, resetTime: undefined };
    },
    decrement: (client) => {
      windows.decrement(client);
    },
    resetKey: (client) => {
      windows.resetKey(client);
    },
  };

  const clientOf = (request: Request): string => contextOf(request).client;
  const tell = (request: Request, response: Response): void => {
    setHeaders(response, fields(windows.of(clientOf(request))));
  };
  return {
    windowOf: (client) => windows.of(client),
    isSpent,
    isFlooding: ({ count }) => count >= FLOODING * perMinute,
    mustAsk,
    take(window) {
      window.count += 1;
      return window.count > perMinute ? refusal(window) : null;
    },
    refused: () => refused,
    fields,
    handlers: [
      rateLimit({
        windowMs: CLIENT_WINDOW_MS,
        limit: perMinute,
        standardHeaders: false,
        legacyHeaders: false,
        keyGenerator: clientOf,
        store,
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
