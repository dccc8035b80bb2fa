/** All middleware and routes in order: what applies to every request, then visitors, customers, staff, documents and pages. */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import { createCustomerTokens } from "../customers/customer-tokens.js";
import { createStaffTokens } from "../staff/staff-tokens.js";
import type { Engine, EngineSettings } from "../engine.js";
import { type ErrorCode, ServiceError, shuttingDown } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { Secret } from "../secret.js";
import { createCallers } from "./callers.js";
import { CHECKOUT_PATH, createDemoCheckout } from "./checkout.js";
import { addCustomerRoutes } from "./customers.js";
import { addDocs } from "./docs.js";
import { sendJson } from "./edge/answers.js";
import { type AccessLog, type AskFor, requestContext } from "./edge/context.js";
import { knownExpectation, rightHost, securityHeaders, websiteOrigins } from "./edge/headers.js";
import { createLimit } from "./edge/limits.js";
import { explainProblem, problemHandler } from "./edge/problems.js";
import type { FinishedAnswers } from "./finished-answers.js";
import { addHealthRoutes, type Phase } from "./health.js";
import type { Monitoring } from "../staff/monitoring.js";
import { addPages } from "./pages.js";
import { parseQuery } from "./parse.js";
import { route } from "./routes.js";
import type { SearchStream } from "./search-stream.js";
import { securityTxt } from "./security-txt.js";
import { addStaffRoutes } from "./staff.js";
import { addVisitorRoutes } from "./visitors.js";

interface RouterParts extends Pick<EngineSettings, "config" | "mode" | "clock" | "factClock" | "log"> {
  readonly version: string;
  readonly staffTokens: Secret | null;
  readonly engine: Engine;
  readonly monitoring: Monitoring;
  readonly metrics: Metrics;
  readonly finished: FinishedAnswers;
  readonly searchStream: SearchStream;
  readonly ask: AskFor;
  readonly phase: () => Phase;
  readonly accessLog: AccessLog;
  readonly proxyWatch: RequestHandler;
  readonly onProblem: (code: ErrorCode) => void;
  /** With several replicas: hands on what only the owner can answer. */
  readonly handOn: RequestHandler | null;
  /** With several replicas: sends a kept answer in place of a 503. */
  readonly insteadOfFailing: ErrorRequestHandler | null;
}

interface Router {
  readonly app: Express;
  /** Requests beyond a client's limit since startup. */
  refused(): number;
}

/** The requests that count against a client's limit. */
const API_PATH = /^\/(?:v1(?:\/|$)|metrics$)/;

export function createRouter(parts: RouterParts): Router {
  const { config, version, mode, engine, monitoring, clock, log } = parts;
  const { policies, promises } = engine;
  const now = (): number => clock.now();
  const callers = createCallers({
    staff: createStaffTokens(parts.staffTokens),
    customers: config.customers && createCustomerTokens({ ...config.customers, clock: parts.factClock, log }),
    log,
  });
  const limit = createLimit({
    perMinute: config.clientPerMinute,
    isCounted: ({ path }) => API_PATH.test(path),
    keyOf: callers.keyOf,
    detail: "Too many requests from this client within a minute.",
    isShown: true,
  });

  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.disable("etag");
  app.set("query parser", parseQuery);
  app.set("trust proxy", config.trustProxyHops);

  app.use(requestContext(parts.accessLog, clock));
  app.use(securityHeaders);
  app.use(websiteOrigins(config.corsOrigins));
  app.use(limit.count);
  app.use(rightHost);
  app.use(knownExpectation);
  const description = mode === "sandbox" ? "Embedded sandbox: no real registry data." : "Live upstream.";
  addHealthRoutes(app, { version, description, phase: parts.phase, checks: monitoring.checks });
  app.use(parts.proxyWatch);
  app.use(refusedWhileStopping(parts.phase));
  if (parts.handOn !== null) app.use(parts.handOn);

  addVisitorRoutes(app, { ...engine, ...parts, onSentAgain: parts.metrics.sentAgain });
  if (config.customers !== null) addCustomerRoutes(app, { ...engine, ...parts, callers, now });
  addStaffRoutes(app, { ...engine, ...monitoring, ...parts, callers, now });

  route(app, "/.well-known/jwks.json", {
    GET: (_request, response) => {
      sendJson(response, promises.publicKeys());
    },
  });
  if (config.securityContact !== null)
    route(app, "/.well-known/security.txt", { GET: securityTxt(config.securityContact, now) });
  route(app, "/problems/:code", { GET: explainProblem });
  const missing = addPages(app, {
    storefront: config.demoStorefront,
    embed: config.embed,
    checkoutUrl: config.checkoutUrl,
    demoCheckout: config.checkoutUrl === CHECKOUT_PATH ? createDemoCheckout(promises, now) : null,
    retail: policies.config,
  });
  addDocs(app, async () => (await import("../wire/document.js")).openApiDocument({ version }));
  app.use(() => {
    throw new ServiceError("not_found", "There is nothing at this address.");
  });
  if (parts.insteadOfFailing !== null) app.use(parts.insteadOfFailing);
  app.use(problemHandler(log, parts.onProblem, missing));
  return { app, refused: limit.refused };
}

function refusedWhileStopping(phase: () => Phase): RequestHandler {
  return (_request, _response, next) => {
    if (phase() !== "stopping") return next();
    throw shuttingDown();
  };
}
