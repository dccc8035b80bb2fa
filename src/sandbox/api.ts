/** The six documented routes and nothing else: every answer is JSON, every request is authenticated and counted before it is read. */
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from "express";
import { z } from "zod";
import { ACTIONS, Failure } from "./facts.js";
import { deliver } from "./faults.js";
import { type Gate, PREFIX } from "./gate.js";
import { parseName } from "./names.js";
import type { Answer, Shapes } from "./shapes.js";
import type { Reseller, World } from "./world.js";

const term = z.int().min(1).max(10);
const YEARS: Readonly<Record<Shapes["years"]["check" | "quote"], z.ZodType<number>>> = {
  optional: term.default(1),
  required: term,
  bounded: term.max(5).default(1),
  ignored: z
    .int()
    .optional()
    .transform(() => 1),
};
const checkRequest = ({ check }: Shapes["years"]) =>
  z.object({ domain: z.string().max(300), years: YEARS[check] });
const pricingRequest = ({ quote }: Shapes["years"]) =>
  z.object({ tld: z.string().max(300).startsWith("."), action: z.enum(ACTIONS), years: YEARS[quote] });
const parserFault = z.object({ type: z.string() });
const statusFault = z.object({ status: z.literal(400) });

function parse<Schema extends z.ZodType>(schema: Schema, req: Request): z.output<Schema> {
  const body: unknown = req.body;
  if (body === undefined && !/^application\/json\b/i.test(req.get("Content-Type") ?? "")) {
    throw new Failure("unsupported_media_type", "The body must be JSON, with Content-Type: application/json");
  }
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Failure("invalid_field", `${["body", ...(issue?.path ?? [])].join(".")}: ${issue?.message}`);
}

/** Whatever was thrown on the way, told without its text unless the text is ours. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const fault = parserFault.safeParse(error);
  if (fault.success) {
    if (fault.data.type === "entity.too.large")
      return new Failure("payload_too_large", "The body is too large");
    if (/^(?:charset|encoding)\.unsupported$/.test(fault.data.type)) {
      return new Failure("unsupported_media_type", "The body's encoding is not supported");
    }
    return new Failure("malformed_json", "The body is not valid JSON");
  }
  if (statusFault.safeParse(error).success)
    return new Failure("malformed_request", "The request is malformed");
  return new Failure("internal", "Something went wrong");
}

function send(res: Response, answer: Answer): void {
  const { status, headers, body } = answer;
  deliver(res, answer, () => {
    res.status(status).set(headers);
    if (typeof body === "string") res.send(body);
    else res.json(body);
  });
}

export function createApi(world: World, gate: Gate, shapes: () => Shapes): Express {
  const app = express();
  app.disable("x-powered-by");
  // A 304 would be an answer without JSON.
  app.disable("etag");
  app.enable("case sensitive routing");
  app.enable("strict routing");

  const route = (
    path: string,
    method: "GET" | "POST",
    answer: (reseller: Reseller, req: Request) => Answer,
  ): void => {
    const readBody = express.json({ limit: "10kb" });
    app.all(
      path,
      (req, _res, next) => {
        // HEAD is refused as well: the document knows GET and POST only.
        if (req.method !== method) {
          throw new Failure("method_not_allowed", `Only ${method} is offered here`, { allow: method });
        }
        next();
      },
      ...(method === "POST" ? [readBody] : []),
      (req, res) => {
        send(res, answer(gate.reseller(res), req));
      },
    );
  };

  app.use(PREFIX, gate.admit);
  route(`${PREFIX}/domains/check`, "POST", (reseller, req) => {
    const { domain, years } = parse(checkRequest(shapes().years), req);
    return shapes().availability(world.check(reseller, parseName(domain), years));
  });
  route(`${PREFIX}/pricing`, "POST", (reseller, req) => {
    const { tld, action, years } = parse(pricingRequest(shapes().years), req);
    return shapes().quote(world.quote(reseller, tld.toLowerCase(), action, years));
  });
  route(`${PREFIX}/domains`, "GET", (reseller) => shapes().domains(world.list(reseller)));
  route(`${PREFIX}/domains/:domain`, "GET", (reseller, req) => {
    const domain = z.string().parse(req.params["domain"]);
    return shapes().domain(world.domain(reseller, parseName(domain)));
  });
  route(`${PREFIX}/account/balance`, "GET", (reseller) => shapes().balance(world.balance(reseller)));
  route(`${PREFIX}/account/tier`, "GET", (reseller) => shapes().tier(world.tier(reseller)));

  app.use(() => {
    throw new Failure("route_not_found", "There is nothing at this address");
  });
  // Express knows an error handler by its four parameters.
  const fail: ErrorRequestHandler = (error: unknown, _req, res, _next) => {
    send(res, shapes().failure(asFailure(error)));
  };
  app.use(fail);
  return app;
}
