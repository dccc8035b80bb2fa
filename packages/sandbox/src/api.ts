/** The six documented routes. Every answer is JSON, and every request is authenticated and counted before it is read. */
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request as ExpressRequest,
  type RequestHandler,
  type Response,
} from "express";
import { z } from "zod";
import { ACTIONS, type AnsweredFact, Failure } from "./facts.js";
import type { Answer } from "./failures.js";
import type { Faults } from "./faults.js";
import { type Gate, PREFIX } from "./gate.js";
import type { Asked, Holds } from "./holds.js";
import { parseName } from "./names.js";
import { type Operation, ROUTES } from "./operations.js";
import type { Shapes, Successes } from "./shapes.js";
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
const text = z.string().max(300);
/** What Express and, with a type, its body parser throw. */
const httpError = z.object({ status: z.number(), type: z.string().optional() });

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
  const { status, type } = httpError.safeParse(error).data ?? {};
  switch (type) {
    case undefined:
      if (status === 400) return new Failure("malformed_request", "The request is malformed");
      return new Failure("internal", "Something went wrong");
    case "entity.too.large":
      return new Failure("payload_too_large", "The body is too large");
    case "charset.unsupported":
    case "encoding.unsupported":
      return new Failure("unsupported_media_type", "The body's encoding is not supported");
    default:
      return new Failure("malformed_json", "The body is not valid JSON");
  }
}

/** Rejects every other method, HEAD too: the document only names GET and POST. */
function only(method: string): RequestHandler {
  return (req, _res, next) => {
    if (req.method === method) next();
    else throw new Failure("method_not_allowed", `Only ${method} is offered here`, { allow: method });
  };
}

function successOf<Name extends Operation>(
  successes: Successes,
  { operation, fact }: AnsweredFact<Name>,
): Answer {
  return successes[operation](fact);
}

interface ApiParts {
  readonly world: World;
  readonly gate: Gate;
  readonly faults: Faults;
  readonly holds: Holds;
  readonly shapes: () => Shapes;
}

export function createApi({ world, gate, faults, holds, shapes }: ApiParts): Express {
  /** `sent` is called when the answer is sent unchanged to a caller that is still connected. */
  const send = (res: Response, answer: Answer, sent = (): void => {}): void => {
    const { status, headers, body } = answer;
    faults.deliver(res, answer, () => {
      res.status(status).set(headers);
      if (typeof body === "string") res.send(body);
      else res.json(body);
      if (!res.req.socket.destroyed) sent();
    });
  };
  const app = express();
  app.disable("x-powered-by");
  // A 304 has no JSON body.
  app.disable("etag");
  app.enable("case sensitive routing");
  app.enable("strict routing");

  const route = <Request extends Asked>(
    operation: Operation,
    read: (req: ExpressRequest) => Request,
    decide: (reseller: Reseller, asked: Request) => AnsweredFact,
  ): void => {
    const { method, path } = ROUTES[operation];
    app.all(
      path.replace("{domain}", ":domain"),
      only(method),
      ...(method === "POST" ? [express.json({ limit: "10kb" })] : []),
      (req, res) => {
        const reseller = gate.reseller(res);
        const asked = read(req);
        holds.pass(operation, asked, () => {
          try {
            const answered = decide(reseller, asked);
            const answer = successOf(shapes(), answered);
            return { answered, send: (sent) => send(res, answer, sent) };
          } catch (error) {
            return { answered: null, send: () => send(res, shapes().failure(asFailure(error))) };
          }
        });
      },
    );
  };

  app.use(PREFIX, gate.admit);
  route(
    "check",
    (req) => {
      const fields = z.object({ domain: text, years: YEARS[shapes().years.check] });
      const { domain, years } = parse(fields, req);
      return { domain: parseName(domain), years };
    },
    (reseller, { domain, years }) => ({ operation: "check", fact: world.check(reseller, domain, years) }),
  );
  route(
    "quote",
    (req) => {
      const years = YEARS[shapes().years.quote];
      const fields = parse(z.object({ tld: text.startsWith("."), action: z.enum(ACTIONS), years }), req);
      return { ...fields, tld: fields.tld.toLowerCase() };
    },
    (reseller, term) => ({ operation: "quote", fact: world.quote(reseller, term) }),
  );
  route(
    "domain",
    (req) => ({ domain: parseName(z.string().parse(req.params["domain"])) }),
    (reseller, { domain }) => ({ operation: "domain", fact: world.domain(reseller, domain) }),
  );
  const nothing = () => ({});
  route("domains", nothing, (reseller) => ({ operation: "domains", fact: world.list(reseller) }));
  route("balance", nothing, (reseller) => ({ operation: "balance", fact: world.balance(reseller) }));
  route("tier", nothing, (reseller) => ({ operation: "tier", fact: world.tier(reseller) }));

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
