/** The six documented routes. Every answer is JSON, and every request is authenticated and counted before it is read. */
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request as ExpressRequest,
  type Response,
} from "express";
import { z } from "zod";
import type { Delivery } from "./delivery.js";
import { ACTIONS, type AnsweredFact, Failure } from "./facts.js";
import { deliver, type Operation } from "./faults.js";
import { type Gate, PREFIX } from "./gate.js";
import type { Asked } from "./holds.js";
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

function parse<Schema extends z.ZodType>(schema: Schema, req: ExpressRequest): z.output<Schema> {
  const body: unknown = req.body;
  if (body === undefined && !/^application\/json\b/i.test(req.get("Content-Type") ?? "")) {
    throw new Failure("unsupported_media_type", "The body must be JSON, with Content-Type: application/json");
  }
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Failure("invalid_field", `${["body", ...(issue?.path ?? [])].join(".")}: ${issue?.message}`);
}

/** Turns anything thrown into a failure. Only the sandbox's own failures keep their text. */
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

/** `sent` is called when the answer is sent unchanged to a caller that is still connected. */
function send(res: Response, answer: Answer, sent = (): void => {}): void {
  const { status, headers, body } = answer;
  deliver(res, answer, () => {
    res.status(status).set(headers);
    if (typeof body === "string") res.send(body);
    else res.json(body);
    if (!res.req.socket.destroyed) sent();
  });
}

/** What one operation reads from a request, and how it answers. */
interface Endpoint<Request extends Asked> {
  read(req: ExpressRequest): Request;
  decide(reseller: Reseller, asked: Request): readonly [AnsweredFact, Answer];
}

export function createApi(world: World, gate: Gate, shapes: () => Shapes, delivery: Delivery): Express {
  const app = express();
  app.disable("x-powered-by");
  // A 304 has no JSON body.
  app.disable("etag");
  app.enable("case sensitive routing");
  app.enable("strict routing");

  const route = <Request extends Asked>(
    operation: Operation,
    method: "GET" | "POST",
    path: string,
    { read, decide }: Endpoint<Request>,
  ): void => {
    const readBody = express.json({ limit: "10kb" });
    app.all(
      PREFIX + path,
      (req, _res, next) => {
        // HEAD is rejected, too: the document only names GET and POST.
        if (req.method !== method) {
          throw new Failure("method_not_allowed", `Only ${method} is offered here`, { allow: method });
        }
        next();
      },
      ...(method === "POST" ? [readBody] : []),
      (req, res) => {
        const reseller = gate.reseller(res);
        const asked = read(req);
        delivery.pass(operation, asked, () => {
          try {
            const [answered, answer] = decide(reseller, asked);
            return { answered, send: (sent) => send(res, answer, sent) };
          } catch (error) {
            return { answered: null, send: () => send(res, shapes().failure(asFailure(error))) };
          }
        });
      },
    );
  };

  app.use(PREFIX, gate.admit);
  route("check", "POST", "/domains/check", {
    read(req) {
      const { domain, years } = parse(checkRequest(shapes().years), req);
      return { domain: parseName(domain), years };
    },
    decide(reseller, { domain, years }) {
      const fact = world.check(reseller, domain, years);
      return [{ operation: "check", fact }, shapes().availability(fact)];
    },
  });
  route("quote", "POST", "/pricing", {
    read(req) {
      const { tld, action, years } = parse(pricingRequest(shapes().years), req);
      return { tld: tld.toLowerCase(), action, years };
    },
    decide(reseller, { tld, action, years }) {
      const fact = world.quote(reseller, tld, action, years);
      return [{ operation: "quote", fact }, shapes().quote(fact)];
    },
  });
  route("domains", "GET", "/domains", {
    read: () => ({}),
    decide(reseller) {
      const fact = world.list(reseller);
      return [{ operation: "domains", fact }, shapes().domains(fact)];
    },
  });
  route("domain", "GET", "/domains/:domain", {
    read: (req) => ({ domain: parseName(z.string().parse(req.params["domain"])) }),
    decide(reseller, { domain }) {
      const fact = world.domain(reseller, domain);
      return [{ operation: "domain", fact }, shapes().domain(fact)];
    },
  });
  route("balance", "GET", "/account/balance", {
    read: () => ({}),
    decide(reseller) {
      const fact = world.balance(reseller);
      return [{ operation: "balance", fact }, shapes().balance(fact)];
    },
  });
  route("tier", "GET", "/account/tier", {
    read: () => ({}),
    decide(reseller) {
      const fact = world.tier(reseller);
      return [{ operation: "tier", fact }, shapes().tier(fact)];
    },
  });

  app.use(() => {
    throw new Failure("route_not_found", "There is nothing at this address");
  });
  // Express recognizes an error handler by its four parameters.
  const fail: ErrorRequestHandler = (error: unknown, _req, res, _next) => {
    send(res, shapes().failure(asFailure(error)));
  };
  app.use(fail);
  return app;
}
