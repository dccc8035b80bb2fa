/**
 * Limits each client's requests per minute (contract: `rate_limited`). Every request counts once, whether the fast path or Express answers
 * it. Express uses express-rate-limit; the fast path reads the same counts and header fields synchronously.
 */
import type { Request, RequestHandler } from "express";
import { rateLimit, type Store } from "express-rate-limit";
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import { CLIENT_WINDOW_MS, type ClientWindow, ClientWindows } from "./client-windows.js";
import { contextOf } from "./context.js";
import { markOf } from "./client.js";
import { createSharedLimit, type Replicas } from "./shared-limit.js";
import { type HeaderList, setHeaders } from "./rendered.js";

/** A client counts as flooding at this multiple of its limit. */
const FLOODING = 2;

export interface ClientLimit {
  windowOf(client: string): ClientWindow;
  /** Whether the client's next request will be refused. */
  isSpent(window: ClientWindow): boolean;
  /** Whether the client keeps sending requests far beyond its limit. */
  isFlooding(window: ClientWindow): boolean;
  /** Whether the count in Redis must be consulted first, which only `handlers` do. */
  mustAsk(window: ClientWindow): boolean;
  /** Counts one request; returns the refusal if it exceeds the limit. */
  take(window: ClientWindow): ServiceError | null;
  /** The number of refusals since startup. */
  refused(): number;
  /** The RateLimit and RateLimit-Policy fields, in the format of express-rate-limit (draft 8). */
  fields(window: ClientWindow): HeaderList;
  /** The Express middleware that counts and refuses requests. */
  readonly handlers: readonly RequestHandler[];
}

/** Counts requests per client, across all replicas if there are others. */
export function createClientLimit(perMinute: number, clock: Clock, replicas: Replicas | null): ClientLimit {
  const windows = new ClientWindows(clock);
  const shared = replicas && createSharedLimit({ ...replicas, limit: perMinute, windows, clock });
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
    // Most clients of a flood come once, so keep nothing for them.
    if (window.count > 1) window.policy = policy;
    return policy;
  }

  function remainingOf(window: ClientWindow): number {
    return shared?.left(window) ?? Math.max(0, perMinute - window.count);
  }

  function fields(window: ClientWindow, remaining = remainingOf(window)): HeaderList {
    const resetSeconds = Math.ceil(windows.untilResetMs(window) / 1000);
    return ["RateLimit", `${name}; r=${remaining}; t=${resetSeconds}`, "RateLimit-Policy", policyOf(window)];
  }

  const isSpent = ({ count }: ClientWindow): boolean => count >= perMinute;
  const mustAsk = (window: ClientWindow): boolean => shared?.mustAsk(window) === true && !isSpent(window);
  const store: Store = {
    localKeys: true,
    async increment(client) {
      const window = windows.of(client);
      const asks = shared !== null && mustAsk(window);
      const isAdmitted = asks ? await shared.take(window) : (window.count += 1) <= perMinute;
      return { totalHits: isAdmitted ? window.count : perMinute + 1, resetTime: undefined };
    },
    // Required by the type; called only with options that aren't set here.
    decrement() {},
    resetKey() {},
  };

  const clientOf = (request: Request): string => contextOf(request).client;
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
        // Clients can send these headers at will; TRUST_PROXY_HOPS decides whether they count. `unsharedStore` would keep every
        // store in memory until the process ends, and with it everything that it references.
        validate: { xForwardedForHeader: false, forwardedHeader: false, unsharedStore: false },
        handler(request, response) {
          const window = windows.of(clientOf(request));
          // Redis may have become reachable since it was consulted, which would change the remaining count.
          setHeaders(response, fields(window, 0));
          throw refusal(window);
        },
      }),
      (request, response, next) => {
        setHeaders(response, fields(windows.of(clientOf(request))));
        next();
      },
    ],
  };
}

/** Keyed, unlike express-rate-limit's own, which anyone could compute from an address; as long as theirs. */
function partitionKey(client: string): string {
  return Buffer.from(markOf(client)).toString("base64");
}
