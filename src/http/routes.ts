/** Adds a path with its methods. HEAD is handled by GET; OPTIONS and other methods are answered with `Allow`. */
import express, { type IRouter, type Request, type RequestHandler, type Response } from "express";
import { ServiceError } from "../errors.js";
import { MAX_CONFIG_BYTES } from "../retail/price-file/yaml.js";
import { CALENDAR } from "../staff/calendar.js";
import { contextOf } from "./edge/context.js";
import { tooLarge } from "./edge/problems.js";
import { CSV, JSON_TYPE, PROBLEM_TYPE } from "./edge/answers.js";
import { EVENT_STREAM } from "./event-stream.js";

export type Handler = (request: Request, response: Response) => unknown;

interface Methods {
  readonly GET?: Handler;
  readonly POST?: Handler;
  /** Parses the body of a POST. Default: as JSON. */
  readonly body?: RequestHandler;
  /** Middleware that runs before each method except OPTIONS. */
  readonly before?: readonly RequestHandler[];
}

export function route(
  router: IRouter,
  path: string,
  { before = [], body = jsonBody, ...methods }: Methods,
): void {
  const allowed = [
    ...(methods.GET ? ["GET", "HEAD"] : []),
    ...(methods.POST ? ["POST"] : []),
    "OPTIONS",
  ].join(", ");
  const at = router.route(path);
  at.all((request, _response, next) => {
    contextOf(request).route = path;
    next();
  });
  at.options((_request, response) => {
    response.set({ Allow: allowed, "Cache-Control": "no-store" }).status(204).end();
  });
  if (methods.GET) at.get(...before, methods.GET);
  if (methods.POST) at.post(...before, body, methods.POST);
  at.all(() => {
    throw new ServiceError("method_not_allowed", `Allowed here: ${allowed}.`, {
      headers: { Allow: allowed },
    });
  });
}

/** Rejects requests whose Accept header excludes all of these types and JSON problems. */
function answers(...types: readonly string[]): RequestHandler {
  return (request, _response, next) => {
    if (request.accepts([...types, PROBLEM_TYPE]) === false) {
      const names = types.map((type) => type.replace(/;.*/, ""));
      throw new ServiceError("not_acceptable", `This endpoint answers with ${names.join(" or ")}.`);
    }
    next();
  };
}

export const answersJson = answers(JSON_TYPE);
export const answersCalendar = answers(CALENDAR);
export const answersJsonOrCsv = answers(JSON_TYPE, CSV);
export const answersJsonOrEvents = answers(JSON_TYPE, EVENT_STREAM);

/** Whether the client prefers events to JSON. */
export function prefersEvents(request: Request): boolean {
  return request.accepts([JSON_TYPE, EVENT_STREAM]) === EVENT_STREAM;
}

type Parser = (options: { readonly type: string; readonly limit: number }) => RequestHandler;

/**
 * Parses a body of this type and size and rejects others; without any, the handler has a better message, unless the body is required. A body
 * that is too large is rejected as soon as that is known; Express's parsers would wait until all of it has arrived.
 */
function bodyOf(type: string, limit: number, parser: Parser, required?: "required"): RequestHandler {
  const parse = parser({ type, limit });
  return (request, response, next) => {
    const matches = request.is(type);
    if (matches === false || (matches === null && required !== undefined))
      throw new ServiceError("unsupported_media_type", `The body must be sent as ${type}.`);
    if (Number(request.headers["content-length"]) > limit) throw tooLarge(limit);
    let isSettled = false;
    const settle = (error?: unknown): void => {
      if (!isSettled) next(error);
      isSettled = true;
    };
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limit) settle(tooLarge(limit));
    });
    parse(request, response, settle);
  };
}

/** The largest JSON body or form. */
const MAX_BODY_BYTES = 32 * 1024;
const jsonBody = bodyOf("application/json", MAX_BODY_BYTES, express.json);
/** Reads the fields of an HTML form. */
export const formBody = bodyOf("application/x-www-form-urlencoded", MAX_BODY_BYTES, (options) =>
  express.urlencoded({ ...options, extended: false }),
);
/** Reads the body as text. */
export const yamlBody = bodyOf("application/yaml", MAX_CONFIG_BYTES, express.text, "required");

/** Answers a valid HEAD request without a lookup, because its headers aren't worth quota. Returns whether it did. */
export function endedByHead(request: Request, response: Response, type = JSON_TYPE): boolean {
  if (request.method !== "HEAD") return false;
  response.type(type).status(200).end();
  return true;
}
