/** The portal over HTTP, for developers and tests: a separate server on the loopback address, not part of the API. */
import express, { type ErrorRequestHandler, type Express, type Request } from "express";
import { z } from "zod";
import { amountInCents } from "./config.js";
import { ACTIONS, PortalError } from "./facts.js";
import { TARGETS } from "./faults.js";
import { asName } from "./names.js";
import { openPoints } from "./open-points.js";
import type { Control } from "./portal.js";
import { PRESET_NAMES } from "./presets.js";

const text = z.string().min(1).max(300);
const delay = z.number().min(0).max(600_000);
const newCredential = z.strictObject({ reseller: text });
const rotation = z.strictObject({ revokeOld: z.boolean().optional() }).default({});
const addressRule = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
  "must be an IP address or a CIDR block",
);
const allowlist = z.strictObject({ addresses: z.array(addressRule).max(1000) });
const security = z.strictObject({ emailVerified: z.boolean(), twoFactor: z.boolean() }).partial();
const access = z.strictObject({ enabled: z.boolean() });
const tier = z.strictObject({ tier: text });
const amount = amountInCents("must be a decimal string with two fraction digits");
const term = { action: z.enum(ACTIONS), years: z.int().min(1).max(10) };
const price = z.strictObject({ tld: text, ...term, amount: amount.nullable() });
const domain = z.string().transform((typed, context) => {
  const name = asName(typed);
  if (name !== undefined) return name;
  context.addIssue({ code: "custom", message: "this isn't a domain name" });
  return z.NEVER;
});
const order = z.strictObject({ domain, ...term });
/** `afterMs`: later, as the registry's queue does. */
const jsonOrder = order.extend({ reseller: text.optional(), afterMs: delay.optional() });
/** As the staff page copies it. */
const orderLine = z
  .string()
  .trim()
  .regex(/^(?:registration|renewal|transfer|restore) \S+ \d{1,2}$/, "must be like: registration kabul.af 1")
  .transform((text) => {
    const [action, domain, years] = text.split(" ");
    return { action, domain, years: Number(years) };
  })
  .pipe(order);
const orderForm = z.strictObject({ line: orderLine });
const firstYear = z.record(z.string().regex(/^[A-Z]{3}$/, "must be a currency code"), amount).nullable();
const name = z.strictObject({ taken: z.boolean(), premium: firstYear }).partial();
/** Validated by the portal itself, against the table of open points. */
const shapeChoice = z.record(z.string(), z.unknown());
const fault = z.strictObject({
  fault: text,
  calls: z.int().min(1).optional(),
  ms: delay.optional(),
  elsewhere: z.url({ protocol: /^https?$/ }).optional(),
  patch: z.unknown().optional(),
});
const target = z.enum(TARGETS);
const parserFault = z.object({ status: z.int().min(400).max(499) });

function pathPart(req: Request, part: string): string {
  return z.string().parse(req.params[part]);
}

function targetOf(req: Request): z.output<typeof target> {
  const result = target.safeParse(req.params["operation"]);
  if (!result.success) throw new PortalError(404, `there is no such operation: ${target.options.join(", ")}`);
  return result.data;
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new PortalError(422, `${["body", ...(issue?.path ?? [])].join(".")}: ${issue?.message}`);
}

// Express recognizes an error handler by its four parameters.
const fail: ErrorRequestHandler = (error: unknown, _req, res, _next) => {
  if (error instanceof PortalError) {
    res.status(error.status).json({ error: error.message });
    return;
  }
  const { status = 500 } = parserFault.safeParse(error).data ?? {};
  res.status(status).json({ error: status === 500 ? "internal error" : "the request is malformed" });
};

/** Where a person orders what the staff page shows. */
function orderPage(said: string): string {
  const escaped = said.replace(/[<>&"]/g, "");
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sandbox portal</title>
<h1>Sandbox portal</h1><p role="status">${escaped}</p>
<form method="post" action="/orders"><label>Order, as the staff page copies it:
<input name="line" size="40" required autofocus placeholder="registration kabul.af 1"></label> <button>Order</button></form></html>`;
}

/** Orders that name no reseller are those of `demo`. */
export function createControlApp(control: Control, demo: string): Express {
  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  // A page of another site must not be able to post here.
  app.use((req, _res, next) => {
    if (!["same-origin", "none", undefined].includes(req.get("Sec-Fetch-Site")))
      throw new PortalError(409, "open the portal itself");
    next();
  });
  app.use(express.json({ limit: "100kb" }));

  app.get("/", (_req, res) => {
    res.send(orderPage(""));
  });
  app.post("/orders", express.urlencoded({ extended: false }), (req, res) => {
    if (req.is("application/json") === false) {
      const { line } = parse(orderForm, req.body);
      control.order(demo, line);
      res.status(201).send(orderPage(`Ordered: ${line.action} of ${line.domain}.`));
      return;
    }
    const { reseller = demo, afterMs, ...ordered } = parse(jsonOrder, req.body);
    control.order(reseller, ordered, afterMs);
    res.status(201).json(req.body);
  });

  app.post("/credentials", (req, res) => {
    res.status(201).json(control.createCredential(parse(newCredential, req.body).reseller));
  });
  app.post("/credentials/:key/rotate", (req, res) => {
    res.status(201).json(control.rotate(pathPart(req, "key"), parse(rotation, req.body)));
  });
  app.delete("/credentials/:key", (req, res) => {
    control.revoke(pathPart(req, "key"));
    res.json({ revoked: true });
  });
  /** Applies the body to what the path names, and answers with the body. */
  const put = <Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    apply: (id: string, body: z.output<Schema>) => void,
  ): void => {
    app.put(path, (req, res) => {
      apply(pathPart(req, "id"), parse(schema, req.body));
      res.json(req.body);
    });
  };
  put("/credentials/:id/allowlist", allowlist, (key, body) => control.setAllowlist(key, body.addresses));
  put("/resellers/:id/security", security, control.setSecurity);
  put("/resellers/:id/api-access", access, (id, { enabled }) => control.setApiAccess(id, enabled));
  put("/resellers/:id/tier", tier, (id, body) => control.setTier(id, body.tier));
  put("/resellers/:id/prices", price, (id, { amount: amountCents, ...key }) =>
    control.setPrice(id, { ...key, amountCents }),
  );
  put("/names/:id", name, (id, { taken, premium }) => {
    const named = parse(domain, id);
    if (taken !== undefined) control.setTaken(named, taken);
    if (premium !== undefined) control.setPremium(named, premium);
  });

  app.get("/shapes", (_req, res) => {
    res.json({ shapes: control.shapes(), presets: PRESET_NAMES, switches: openPoints() });
  });
  app.put("/shapes", (req, res) => {
    res.json(control.setShapes(parse(shapeChoice, req.body)));
  });
  app.get("/faults", (_req, res) => {
    res.json(control.faults());
  });
  app.put("/faults/:operation", (req, res) => {
    const operation = targetOf(req);
    const request = parse(fault, req.body);
    control.setFault(operation, request);
    res.json({ operation, ...request });
  });
  app.delete("/faults", (_req, res) => {
    control.clearFaults();
    res.json({ cleared: true });
  });
  app.delete("/faults/:operation", (req, res) => {
    control.clearFaults(targetOf(req));
    res.json({ cleared: true });
  });
  app.get("/stats", (_req, res) => {
    res.json(control.stats());
  });

  app.use(() => {
    throw new PortalError(404, "there is nothing at this address");
  });
  app.use(fail);
  return app;
}
