/** All middleware and routes in order: what applies to every request, then visitors, customers, staff, documents and pages. */
import express, { type Express, type RequestHandler } from "express";
import { createCustomerTokens } from "../auth/customer-tokens.js";
import { createStaffTokens } from "../auth/staff-tokens.js";
import type { Engine, EngineSettings } from "../engine.js";
import { type ErrorCode, ServiceError, shuttingDown } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { Secret } from "../secret.js";
import { CHECKOUT_PATH, createDemoCheckout } from "./checkout.js";
import type { ClientLimit } from "./edge/client-limit.js";
import { type AccessLog, type AskFor, requestContext } from "./edge/context.js";
import { addCustomerRoutes } from "./customers.js";
import { addDocs } from "./docs.js";
import { knownExpectation, rightHost, securityHeaders, websiteOrigins } from "./edge/headers.js";
import type { TokenGuesses } from "./edge/token-guesses.js";
import { addHealthRoutes, HEALTH_PATHS, type Phase } from "./health.js";
import type { Monitoring } from "./monitoring.js";
import { addPages } from "./pages.js";
import { parseQuery } from "./parse.js";
import { explainProblem, problemHandler } from "./edge/problems.js";
import type { QuestionKind } from "./questions.js";
import { sendJson } from "./edge/rendered.js";
import { route } from "./routes.js";
import { securityTxt } from "./security-txt.js";
import { addStaffRoutes } from "./staff.js";
import { addVisitorRoutes } from "./visitors.js";

interface RouterParts extends Pick<EngineSettings, "config" | "mode" | "clock" | "factClock" | "log"> {
  readonly version: string;
  readonly staffTokens: Secret | null;
  readonly engine: Engine;
  readonly monitoring: Monitoring;
  readonly metrics: Metrics;
  readonly limit: ClientLimit;
  readonly guesses: TokenGuesses;
  readonly questions: ReadonlyMap<string, QuestionKind>;
  readonly ask: AskFor;
  readonly phase: () => Phase;
  readonly accessLog: AccessLog;
  readonly onProblem: (code: ErrorCode) => void;
}

export function createRouter(parts: RouterParts): Express {
  const { config, version, mode, engine, monitoring, metrics, limit, guesses, questions, ask, clock, log } =
    parts;
  const { shop, policies, promises } = engine;
  const now = (): number => clock.now();
  const checks = [rightHost, knownExpectation];

  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.disable("etag");
  app.set("query parser", parseQuery);
  app.set("trust proxy", config.trustProxyHops);

  app.use(requestContext(parts.accessLog, clock));
  app.use(securityHeaders);
  app.use([...HEALTH_PATHS], ...checks);
  const description = mode === "sandbox" ? "Embedded sandbox: no real registry data." : "Live upstream.";
  addHealthRoutes(app, { version, description, phase: parts.phase, checks: monitoring.checks });
  app.use(websiteOrigins(config.corsOrigins));
  app.use(...limit.handlers);
  app.use(...checks);
  app.use(refusedWhileDraining(parts.phase));

  addVisitorRoutes(app, { shop, questions, ask });
  if (config.customers !== null) {
    const tokens = createCustomerTokens({ ...config.customers, clock: parts.factClock, log });
    addCustomerRoutes(app, { ...engine, tokens, guesses, ask, now });
  }
  addStaffRoutes(app, {
    ...engine,
    ...monitoring,
    tokens: createStaffTokens(parts.staffTokens),
    guesses,
    metrics,
    ask,
    now,
  });

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
    checkoutUrl: config.checkoutUrl,
    demoCheckout: config.checkoutUrl === CHECKOUT_PATH ? createDemoCheckout(promises, now) : null,
    retail: policies.config,
  });
  addDocs(app, async () => (await import("./openapi.js")).openApiDocument({ version }));
  app.use(() => {
    throw new ServiceError("not_found", "There is nothing at this address.");
  });
  app.use(problemHandler(log, parts.onProblem, missing));
  return app;
}

function refusedWhileDraining(phase: () => Phase): RequestHandler {
  return (_request, _response, next) => {
    if (phase() !== "draining") return next();
    throw shuttingDown();
  };
}
