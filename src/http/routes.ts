/** Adds a path with its methods: HEAD goes with GET, OPTIONS and every other method are answered here, with `Allow`. */
import express, { type IRouter, type Request, type RequestHandler, type Response } from "express";
import { ServiceError } from "../errors.js";
import { contextOf } from "./context.js";

export type Handler = (request: Request, response: Response) => unknown;

export interface Methods {
  readonly GET?: Handler;
  /** Receives its body as parsed JSON. */
  readonly POST?: Handler;
  /** A POST that an HTML form sends, with its fields as the body; in place of `POST`. */
  readonly FORM?: Handler;
  /** Runs before any of them, OPTIONS left aside. */
  readonly before?: readonly RequestHandler[];
}

export function route(router: IRouter, path: string, { before = [], ...methods }: Methods): void {
  const allowed = [
    ...(methods.GET ? ["GET", "HEAD"] : []),
    ...(methods.POST || methods.FORM ? ["POST"] : []),
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
  if (methods.POST) at.post(...before, jsonBody, methods.POST);
  if (methods.FORM) at.post(...before, formBody, methods.FORM);
  at.all(() => {
    throw new ServiceError("method_not_allowed", `Allowed here: ${allowed}.`, {
      headers: { Allow: allowed },
    });
  });
}

/** Refuses requests whose Accept header leaves no room for any of these types, nor for JSON problems. */
function answers(...types: readonly string[]): RequestHandler {
  return (request, _response, next) => {
    if (request.accepts([...types, "application/problem+json"]) === false) {
      throw new ServiceError("not_acceptable", `The answer is ${types.join(" or ")}.`);
    }
    next();
  };
}

export const EVENT_STREAM = "text/event-stream";
export const answersJson = answers("application/json");
export const answersJsonOrEvents = answers("application/json", EVENT_STREAM);

/** Whether the client would rather have events than JSON. */
export function prefersEvents(request: Request): boolean {
  return request.accepts(["application/json", EVENT_STREAM]) === EVENT_STREAM;
}

const parseJson = express.json({ limit: "32kb", type: "application/json" });

/** Reads a JSON body of up to 32 kB and refuses every other kind. */
const jsonBody: RequestHandler = (request, response, next) => {
  // Null: there is no body to be of any kind, which its reader tells better.
  if (request.is("application/json") === false) {
    throw new ServiceError("unsupported_media_type", "The body must be sent as application/json.");
  }
  parseJson(request, response, next);
};

const parseForm = express.urlencoded({ limit: "32kb", extended: false });

const formBody: RequestHandler = (request, response, next) => {
  if (request.is("application/x-www-form-urlencoded") === false)
    throw new ServiceError("unsupported_media_type", "The body must be the fields of a form.");
  parseForm(request, response, next);
};

/** A HEAD request is told that its question is a good one; answering it would spend quota on headers. */
export function endedByHead(request: Request, response: Response, type = "application/json"): boolean {
  if (request.method !== "HEAD") return false;
  response.type(type).status(200).end();
  return true;
}
