/** Turns every error into an RFC 9457 problem in our own words. An internal error is logged in full, and answered with one sentence. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorRequestHandler, Request, Response } from "express";
import { detailsOf, ERROR_CODES, type ErrorCode, isExpected, PROBLEMS, ServiceError } from "../../errors.js";
import type { Log } from "../../logger.js";
import type { AnswerOf } from "../../wire/answer.js";
import type { problemShape } from "../../wire/service.js";
import { contextOf } from "./context.js";
import { problemKind } from "./problem-kinds.js";
import { JSON_TYPE, PROBLEM_TYPE, render, type Rendered, sendJson, sendRendered } from "./rendered.js";
import type { StaticFile } from "./static-files.js";

/** Whole seconds, rounded up so that a retry at that second isn't too early. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}

/** The last middleware: turns every error into a problem, or into the page `missing` if a browser opens a page that doesn't exist. */
export function problemHandler(
  log: Log,
  onProblem: (code: ErrorCode) => void,
  missing: StaticFile | null,
): ErrorRequestHandler {
  return async (error: unknown, request: Request, response: Response, next) => {
    const problem = serviceErrorOf(error);
    const context = contextOf(request);
    context.code = problem.code;
    onProblem(problem.code);
    if (problem.code === "internal" && !context.signal.aborted) {
      log.error("internal", { requestId: context.id, route: context.route, ...detailsOf(error) });
    }
    if (response.headersSent) {
      // If the request was aborted, Express would close the connection, on which other answers may be pending.
      if (!context.signal.aborted) next(error);
      return;
    }
    response.removeHeader("ETag");
    if (problem.code === "not_found" && missing !== null && isForPeople(request)) {
      await missing.send(request, response);
      return;
    }
    sendRendered(response, renderProblem(problem, context.id));
  };
}

/** Browsers open pages with an Accept header that puts HTML first. API paths answer everyone alike. */
function isForPeople(request: Request): boolean {
  if (/^\/(?:v1|problems|\.well-known)\//.test(request.path)) return false;
  return request.accepts([PROBLEM_TYPE, JSON_TYPE, "text/html"]) === "text/html";
}

/** Renders an error as an answer. */
export function renderProblem(error: ServiceError, requestId: string): Rendered {
  const { status, title } = PROBLEMS[error.code];
  const retryAfter = error.retryAfterMs === undefined ? undefined : retryAfterSeconds(error.retryAfterMs);
  const kept = error.code === "quota_exhausted" ? (error.kept ?? false) : undefined;
  const problem: AnswerOf<typeof problemShape> = {
    type: `/problems/${error.code}`,
    title,
    status,
    detail: error.detail,
    code: error.code,
    requestId,
    ...(error.errors.length > 0 && { errors: error.errors }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(kept !== undefined && { kept }),
  };
  return render(problem, {
    status,
    type: PROBLEM_TYPE,
    cacheControl: "no-store",
    headers: { ...error.headers, ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }) },
  });
}

/** Answers a request that its handler can't or won't answer in time, aborts the handler, and lets the connection end. */
export function refuseAndAbort(
  request: IncomingMessage,
  response: ServerResponse,
  problem: ServiceError,
): void {
  const context = contextOf(request);
  context.code = problem.code;
  context.hangUp();
  response.shouldKeepAlive = false;
  sendRendered(response, renderProblem(problem, context.id));
}

/** Its answer closes the connection, because the client may still be sending. */
export function tooLarge(limitBytes: number): ServiceError {
  const detail = `The body can be at most ${limitBytes / 1024} kB.`;
  return new ServiceError("payload_too_large", detail, { headers: { Connection: "close" } });
}

/** Recognizes errors of body-parser and Express by their documented `type` or status. Everything else is internal. */
function serviceErrorOf(error: unknown): ServiceError {
  if (isExpected(error)) return error;
  const type = property(error, "type");
  const status = property(error, "status");
  if (type === "entity.too.large") return tooLarge(Number(property(error, "limit")));
  if (type === "encoding.unsupported" || type === "charset.unsupported") {
    return new ServiceError(
      "unsupported_media_type",
      "The body must be in UTF-8, uncompressed or in a common encoding.",
    );
  }
  if (error instanceof URIError || (typeof status === "number" && status >= 400 && status < 500)) {
    return new ServiceError("invalid_request", "The path or the JSON body is malformed.");
  }
  return new ServiceError("internal", "Something went wrong on our side.");
}

function property(error: unknown, name: "type" | "status" | "limit"): unknown {
  return typeof error === "object" && error !== null
    ? Object.getOwnPropertyDescriptor(error, name)?.value
    : undefined;
}

/** `GET /problems/{code}`: explains an error code. */
export function explainProblem(request: Request, response: Response): void {
  const code = ERROR_CODES.find((known) => known === request.params.code);
  if (code === undefined) throw new ServiceError("not_found", "There is no such error code.");
  sendJson(response, problemKind(code));
}
