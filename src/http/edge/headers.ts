/** Checks the Host and Expect fields of every request, and sets the security and CORS fields of every answer. */
import type { IncomingMessage } from "node:http";
import cors from "cors";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { ServiceError } from "../../errors.js";

/** API answers load no resources, so the policy allows none; pages set their own. */
export const securityHeaders: RequestHandler = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  crossOriginResourcePolicy: { policy: "cross-origin" },
});

/** Whether there is exactly one Host field, as HTTP/1.1 requires (RFC 9112, section 3.2). Node hides a second one, which a proxy may have used. */
export function hasRightHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
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

/** What pages of the website may read: visitor and customer routes, the promise keys, the OpenAPI document and the error codes. */
const FOR_WEBSITE = /^\/(?:v1(?!\/staff\/)|\.well-known\/jwks\.json|openapi\.json|problems)(?:\/|$)/;

/** Allows the website's pages to read answers, and answers their preflight requests. */
export function websiteOrigins(origins: readonly string[]): RequestHandler {
  const allow = cors({
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
  return (request, response, next) => {
    if (FOR_WEBSITE.test(request.path)) allow(request, response, next);
    else next();
  };
}
