/** What stands before every route: security headers, one Host, the client limit, the website's origins, and a server that nobody can hold. */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import cors from "cors";
import type { Express, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import helmet from "helmet";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { ClientWindows, CLIENT_WINDOW_MS } from "./client-windows.js";
import { contextOf } from "./context.js";
import { unreadableRequest } from "./problems.js";

/** An API needs no resources of its own, so its policy allows none; pages bring their own. */
export function securityHeaders(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    crossOriginResourcePolicy: { policy: "cross-origin" },
  });
}

/** Node takes two Host headers; a proxy may have believed the other one. */
export const oneHost: RequestHandler = (request, _response, next) => {
  const hosts = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  if (hosts.length > 1)
    throw new ServiceError("invalid_request", "The request has more than one Host header.");
  next();
};

export function clientLimit(perMinute: number, clock: Clock): RequestHandler {
  const windows = new ClientWindows(clock);
  return rateLimit({
    windowMs: CLIENT_WINDOW_MS,
    limit: perMinute,
    standardHeaders: "draft-8",
    legacyHeaders: false,
    keyGenerator: (request) => contextOf(request).client,
    store: windows,
    // Clients send what they like; whether a proxy is trusted is TRUST_PROXY_HOPS' matter.
    validate: { xForwardedForHeader: false, forwardedHeader: false },
    handler: (request) => {
      throw new ServiceError("rate_limited", "Too many requests from this client within a minute.", {
        retryAfterMs: windows.untilResetMs(contextOf(request).client),
      });
    },
  });
}

export function websiteOrigins(origins: readonly string[]): RequestHandler {
  return cors({
    origin: [...origins],
    methods: ["GET", "HEAD", "POST"],
    allowedHeaders: ["Authorization", "Content-Type", "Last-Event-ID", "X-Request-Id"],
    exposedHeaders: ["ETag", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"],
    maxAge: 600,
    // The routes answer OPTIONS themselves, with Allow.
    preflightContinue: true,
  });
}

/**
 * Express changes the prototype of every request and response, after which V8 (Node 18 to 22) finds none of their properties fast
 * (nodejs/node#37457). Made by these classes they have Express's prototypes from birth, and Express changes nothing.
 */
function bornAsExpress(app: Express) {
  class Incoming extends IncomingMessage {}
  class Outgoing extends ServerResponse {}
  Object.setPrototypeOf(Incoming.prototype, app.request);
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  Object.assign(app, { request: Incoming.prototype, response: Outgoing.prototype });
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
}

/** Slow headers, bodies and readers must not hold sockets for minutes, as Node's own limits let them. */
export function serve(app: Express): Server {
  const server = createServer(
    {
      ...bornAsExpress(app),
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
    },
    app,
  );
  server.setTimeout(90_000);
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else socket.end(unreadableRequest());
  });
  return server;
}
