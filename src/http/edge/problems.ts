/** Turns every error into an RFC 9457 problem in our own words. An internal error is logged in full, and answered with one sentence. */
import { randomUUID } from "node:crypto";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { ErrorRequestHandler, Request, Response } from "express";
import { detailsOf, ERROR_CODES, type ErrorCode, isExpected, PROBLEMS, ServiceError } from "../../errors.js";
import type { Log } from "../../logger.js";
import type { AnswerOf } from "../../wire/answer.js";
import type { problemShape } from "../../wire/service.js";
import { contextOf } from "./context.js";
import { problemKind } from "../../wire/problem-kinds.js";
import { JSON_TYPE, PROBLEM_TYPE, sendJson } from "./answers.js";
import type { StaticFile } from "./static-files.js";

/** Whole seconds, rounded up so that a retry at that second isn't too early. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}

/** The last middleware: turns every error into a problem, or into the page `missing` if a browser opens a page that doesn't exist. */
export function problemHandler(
  log: Log,
  onProblem: (code: ErrorCode) => void,
  missing: StaticFile,
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
    if (problem.code === "not_found" && isForPeople(request)) await missing(request, response);
    else sendProblem(response, problem, context.id);
  };
}

/** Browsers open pages with an Accept header that puts HTML first. API paths answer everyone alike. */
function isForPeople(request: Request): boolean {
  if (/^\/(?:v1|problems|\.well-known)\//.test(request.path)) return false;
  return request.accepts([PROBLEM_TYPE, JSON_TYPE, "text/html"]) === "text/html";
}

function sendProblem(response: ServerResponse, problem: ServiceError, requestId: string): void {
  const { status, fields, body } = problemAnswer(problem, requestId);
  response.statusCode = status;
  for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
  sendJson(response, body, { type: PROBLEM_TYPE, tagged: false });
}

function problemAnswer(error: ServiceError, requestId: string) {
  const { status, title } = PROBLEMS[error.code];
  const retryAfter = error.retryAfterMs === undefined ? undefined : retryAfterSeconds(error.retryAfterMs);
  const kept = error.code === "quota_exhausted" ? (error.kept ?? false) : undefined;
  const body: AnswerOf<typeof problemShape> = {
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
  const fields = { ...error.headers, ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }) };
  return { status, fields, body };
}

/** Answers a request that its handler can't or won't answer in time, aborts the handler, and lets the connection end. */
export function refuseAndAbort(response: ServerResponse, problem: ServiceError): void {
  const context = contextOf(response.req);
  context.code = problem.code;
  context.hangUp();
  response.setHeader("Connection", "close");
  sendProblem(response, problem, context.id);
}

/** The whole answer to bytes that aren't a request, for a connection that then ends. */
export interface UnreadableAnswer {
  readonly id: string;
  readonly code: ErrorCode;
  readonly status: number;
  readonly text: string;
}

export function unreadableAnswer(problem: ServiceError): UnreadableAnswer {
  const { status, fields, body } = problemAnswer(problem, randomUUID());
  const json = JSON.stringify(body);
  const head = {
    "x-request-id": body.requestId,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Type": PROBLEM_TYPE,
    "Content-Length": Buffer.byteLength(json),
    Connection: "close",
    ...fields,
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}`);
  const text = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", json].join("\r\n");
  return { id: body.requestId, code: problem.code, status, text };
}

export function tooLarge(limitBytes: number): ServiceError {
  return new ServiceError("payload_too_large", `The body can be at most ${limitBytes / 1024} kB.`);
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
  return typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined;
}

/** `GET /problems/{code}`: explains an error code. */
export function explainProblem(request: Request, response: Response): void {
  const code = ERROR_CODES.find((known) => known === request.params.code);
  if (code === undefined) throw new ServiceError("not_found", "There is no such error code.");
  sendJson(response, problemKind(code));
}
