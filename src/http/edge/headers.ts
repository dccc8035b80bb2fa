/** Checks the Host and Expect fields of every request, and sets the security and CORS fields of every answer. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import cors from "cors";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { ServiceError } from "../../errors.js";
import { type HeaderList, setHeaders } from "./rendered.js";

/** API answers load no resources, so the policy allows none; pages set their own. */
const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  crossOriginResourcePolicy: { policy: "cross-origin" },
});

/** The headers that a middleware sets on the answer to a GET, computed once instead of per request. */
function headersBy(middleware: Middleware, origin?: string): HeaderList {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  if (origin !== undefined) request.headers.origin = origin;
  const response = new ServerResponse(request);
  middleware(request, response, () => {});
  return response.getHeaderNames().flatMap((name) => [name, String(response.getHeader(name))]);
}

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

export const SECURITY_HEADERS = headersBy(security);

export const securityHeaders: RequestHandler = (_request, response, next) => {
  setHeaders(response, SECURITY_HEADERS);
  next();
};

/** Requires exactly one Host field in HTTP/1.1 (RFC 9112, section 3.2). Node hides a second one, which a proxy may have used. */
export function hasRightHost({
  rawHeaders,
  httpVersion,
}: Pick<IncomingMessage, "rawHeaders" | "httpVersion">): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}

export const rightHost: RequestHandler = (request, _response, next) => {
  if (!hasRightHost(request))
    throw new ServiceError("invalid_request", "The request must have exactly one Host header.");
  next();
};

/** Rejects every expectation but 100-continue, the only one defined (RFC 9110, section 10.1.1); HTTP/1.0 has none. */
export const knownExpectation: RequestHandler = ({ headers: { expect }, httpVersion }, _response, next) => {
  if (expect !== undefined && httpVersion !== "1.0" && expect.toLowerCase() !== "100-continue")
    throw new ServiceError("expectation_failed", "The only supported expectation is 100-continue.");
  next();
};

export type HeadersFor = (origin: string | undefined) => HeaderList;

/** The CORS headers of an answer after `first`, by the request's origin. */
function websiteHeaders(origins: readonly string[], first: HeaderList = []): HeadersFor {
  const listed = (origin?: string): HeaderList => [...first, ...headersBy(preflight(origins), origin)];
  const others = listed();
  const known = new Map(origins.map((origin) => [origin, listed(origin)]));
  return (origin) => (origin === undefined ? others : (known.get(origin) ?? others));
}

/** Whether pages of the website may read this path: visitor and customer routes, the promise keys, the OpenAPI document and the error codes. */
export function isForWebsite(path: string): boolean {
  return /^\/(?:v1(?!\/staff\/)|\.well-known\/jwks\.json|openapi\.json|problems)(?:\/|$)/.test(path);
}

/** The security and CORS headers of an answer for the website. */
export function headersOfAnswers(origins: readonly string[]): HeadersFor {
  return websiteHeaders(origins, SECURITY_HEADERS);
}

/** Allows the website's pages to read answers, and answers their preflight requests. */
export function websiteOrigins(origins: readonly string[]): RequestHandler {
  const headersFor = websiteHeaders(origins);
  const answerPreflight = preflight(origins);
  return (request, response, next) => {
    if (!isForWebsite(request.path)) return next();
    if (request.method === "OPTIONS") return answerPreflight(request, response, next);
    setHeaders(response, headersFor(request.headers.origin));
    next();
  };
}

function preflight(origins: readonly string[]) {
  return cors({
    origin: [...origins],
    methods: ["GET", "HEAD", "POST"],
    allowedHeaders: [
      "Authorization",
      "Content-Type",
      "If-None-Match",
      "Last-Event-ID",
      "Traceparent",
      "X-Request-Id",
    ],
    exposedHeaders: ["ETag", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"],
    maxAge: 600,
    // The routes answer OPTIONS themselves, with Allow.
    preflightContinue: true,
  });
}
