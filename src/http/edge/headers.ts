/** What stands before every route: security headers, one Host, the website's origins, and a server that nobody can hold. */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import cors from "cors";
import type { Express, Request, RequestHandler } from "express";
import helmet from "helmet";
import { ServiceError } from "../../errors.js";
import { unreadableRequest } from "../problems.js";
import { type HeaderList, setHeaders } from "../rendered.js";

/** An API needs no resources of its own, so its policy allows none; pages bring their own. */
const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  crossOriginResourcePolicy: { policy: "cross-origin" },
});

/** What a middleware sets on the answer to a GET, read off once instead of being worked out for every request. */
function headersBy(middleware: Middleware, origin?: string): HeaderList {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  if (origin !== undefined) request.headers.origin = origin;
  const response = new ServerResponse(request);
  middleware(request, response, () => {});
  return response.getHeaderNames().flatMap((name) => [name, String(response.getHeader(name))]);
}

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

const SECURITY_HEADERS = headersBy(security);

export const securityHeaders: RequestHandler = (_request, response, next) => {
  setHeaders(response, SECURITY_HEADERS);
  next();
};

/** Node takes two Host headers; a proxy may have believed the other one. */
export function hasOneHost({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts <= 1;
}

export const oneHost: RequestHandler = (request, _response, next) => {
  if (!hasOneHost(request))
    throw new ServiceError("invalid_request", "The request has more than one Host header.");
  next();
};

export type HeadersFor = (origin: string | undefined) => HeaderList;

/** What lets the website's pages read an answer, by the origin that asks. */
export function websiteHeaders(origins: readonly string[]): HeadersFor {
  const listed = (origin?: string): HeaderList => headersBy(preflight(origins), origin);
  const others = listed();
  const known = new Map(origins.map((origin) => [origin, listed(origin)]));
  return (origin) => (origin === undefined ? others : (known.get(origin) ?? others));
}

/** All that stands on a visitor's answer before its own headers. */
export function visitorHeaders(origins: readonly string[]): HeadersFor {
  const website = websiteHeaders(origins);
  const whole = new Map<HeaderList, HeaderList>();
  return (origin) => {
    const list = website(origin);
    const known = whole.get(list) ?? [...SECURITY_HEADERS, ...list];
    whole.set(list, known);
    return known;
  };
}

/** Lets the website's pages read answers, and ask for what needs a preflight. */
export function websiteOrigins(origins: readonly string[]): RequestHandler {
  const headersFor = websiteHeaders(origins);
  const answerPreflight = preflight(origins);
  return (request, response, next) => {
    if (request.method === "OPTIONS") return answerPreflight(request, response, next);
    setHeaders(response, headersFor(request.headers.origin));
    next();
  };
}

function preflight(origins: readonly string[]) {
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
  class Incoming extends IncomingMessage {
    declare readonly ip: string | undefined;
  }
  class Outgoing extends ServerResponse<Incoming> {}
  Object.setPrototypeOf(Incoming.prototype, app.request);
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  Object.assign(app, { request: Incoming.prototype, response: Outgoing.prototype });
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
}

/** A request that has not passed Express, of which it has the address behind the proxies that are trusted. */
export type Arrived = IncomingMessage & Pick<Request, "ip">;

/**
 * Serves what `isAnswered` answers in front of Express, and everything else by Express. Slow headers, bodies and readers must not hold
 * sockets for minutes, as Node's own limits let them.
 */
export function serve(
  app: Express,
  isAnswered: (request: Arrived, response: ServerResponse) => boolean,
): Server {
  const server = createServer(
    {
      ...bornAsExpress(app),
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
    },
    (request, response) => {
      if (!isAnswered(request, response)) app(request, response);
    },
  );
  server.setTimeout(90_000);
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else socket.end(unreadableRequest());
  });
  return server;
}
