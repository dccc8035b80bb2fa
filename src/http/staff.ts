/** The staff routes, by token scope. No other route shows wholesale amounts. */
import { type Request, type RequestHandler, Router } from "express";
import type { Account } from "../account/account.js";
import type { Audit } from "../audit/audit.js";
import type { Scope, StaffTokens } from "../auth/staff-tokens.js";
import { AF_TLDS, canonicalHost, parseDomainName } from "../domain-name.js";
import type { Engine } from "../engine.js";
import { type ErrorCode, invalidField, ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { Lane } from "../quota/lane.js";
import type { LivePolicy } from "../retail/live-policy.js";
import type { PriceList } from "../retail/price-list.js";
import { RedisGoneError } from "../redis.js";
import type { PricePromise, Promises } from "../retail/promise.js";
import type { VisitorAsk } from "../storefront/availability.js";
import { audited, presentAudit } from "./audit.js";
import { contextOf } from "./edge/context.js";
import { ACT_COLUMNS, DOMAIN_COLUMNS, PRICE_COLUMNS, sendList } from "./csv.js";
import { sendJson } from "./edge/rendered.js";
import type { TokenGuesses } from "./edge/token-guesses.js";
import { readPurge, readQuery } from "./parse.js";
import { presentDomain, presentOrigin } from "./presenters.js";
import { presentBalance, presentPromise, presentStaffPrices, presentTier } from "./staff-presenters.js";
import { presentPreview } from "./price-preview.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape, purgedShape, staffDomainShape, staffDomainsShape } from "../wire/staff.js";
import type { historyShape } from "../wire/operators.js";
import { answersJson, answersJsonOrCsv, endedByHead, route, yamlBody } from "./routes.js";

interface StaffParts {
  readonly tokens: StaffTokens;
  readonly guesses: TokenGuesses;
  readonly account: Account;
  readonly policies: LivePolicy;
  readonly prices: PriceList;
  readonly promises: Promises;
  readonly metrics: Metrics;
  readonly audit: Audit;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly overview: () => AnswerOf<typeof overviewShape>;
  readonly history: () => Promise<AnswerOf<typeof historyShape>>;
  readonly purge: Engine["purge"];
  readonly now: () => number;
}

/** The format of a promise's id; anything else isn't copied into the audit log. */
const PROMISE_ID = /^[\w-]{1,64}$/;

/** Requires a staff token with the scope. */
function requireScope(
  { tokens, guesses, audit }: Pick<StaffParts, "tokens" | "guesses" | "audit">,
  scope: Scope,
): RequestHandler {
  return (request, response, next) => {
    const refused = (who: string | null, outcome: ErrorCode): void => {
      audit.note({ who, what: "token", subject: contextOf(request).route, outcome });
    };
    response.set("Cache-Control", "no-store");
    const [, bearer] = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? "") ?? [];
    if (bearer !== undefined) guesses.admit(request);
    const token = bearer === undefined ? null : tokens.find(bearer);
    if (token === null) {
      if (bearer !== undefined) guesses.wrong(request, "staff");
      refused(null, "unauthenticated");
      throw new ServiceError(
        "unauthenticated",
        "This endpoint requires a staff token: Authorization: Bearer ….",
        {
          headers: { "WWW-Authenticate": 'Bearer realm="staff"' },
        },
      );
    }
    if (!token.scopes.includes(scope)) {
      guesses.lacksScope(request, token.name, scope);
      refused(token.name, "forbidden");
      throw new ServiceError("forbidden", `The token lacks the ${scope} scope.`, {
        headers: { "WWW-Authenticate": `Bearer realm="staff", error="insufficient_scope", scope="${scope}"` },
      });
    }
    contextOf(request).tokenName = token.name;
    next();
  };
}

async function findPromise(promises: Promises, id: string): Promise<PricePromise | null> {
  try {
    return await promises.find(id);
  } catch (error) {
    if (!(error instanceof RedisGoneError)) throw error;
    throw new ServiceError(
      "not_found",
      "This replica doesn't know the promise, and Redis is unreachable, so other replicas can't be asked.",
    );
  }
}

export function staffRoutes(parts: StaffParts): Router {
  const { account, policies, prices, promises, metrics, audit, ask, now } = parts;
  const router = Router({ caseSensitive: true, strict: true });
  const read = [requireScope(parts, "read"), answersJson];
  const list = [requireScope(parts, "read"), answersJsonOrCsv];
  const operate = [requireScope(parts, "operate"), answersJson];

  route(router, "/v1/staff/domains", {
    before: list,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.domains(ask(request, "account"));
      const domains = known.value.map(presentDomain);
      const origin = presentOrigin(known);
      const body: AnswerOf<typeof staffDomainsShape> = {
        domains,
        ...(known.truncated && { truncated: true as const }),
        ...origin,
      };
      const rows = domains.map((domain) => ({ ...domain, ...origin }));
      sendList(request, response, body, { name: "domains", columns: DOMAIN_COLUMNS, rows });
    },
  });

  route(router, "/v1/staff/domains/:domain", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      const { domain } = request.params;
      // Unlike a query parameter, a path must contain the name itself and not a pasted URL.
      const host = typeof domain === "string" ? canonicalHost(domain) : null;
      if (host === null) throw invalidField("domain", "isn't a domain name");
      const name = parseDomainName(host, AF_TLDS, "domain");
      if (endedByHead(request, response)) return;
      const known = await account.domain(ask(request, "account"), name);
      if (known.value === null)
        throw new ServiceError("not_found", "The reseller doesn't manage this domain.");
      const body: AnswerOf<typeof staffDomainShape> = {
        ...presentDomain(known.value),
        ...presentOrigin(known),
      };
      sendJson(response, body);
    },
  });

  route(router, "/v1/staff/balance", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.balance(ask(request, "account"));
      sendJson(response, presentBalance(known));
    },
  });

  route(router, "/v1/staff/tier", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.tier(ask(request, "account"));
      sendJson(response, presentTier(known));
    },
  });

  route(router, "/v1/staff/prices", {
    before: list,
    GET: (request, response) => {
      readQuery(request.query, []);
      const body = presentStaffPrices(prices, policies.current(), policies.state(), now());
      sendList(request, response, body, { name: "prices", columns: PRICE_COLUMNS, rows: body.prices });
    },
  });

  route(router, "/v1/staff/prices/preview", {
    before: [...operate, audited(audit, "preview")],
    body: yamlBody,
    POST: (request, response) => {
      readQuery(request.query, []);
      const text = typeof request.body === "string" ? request.body : "";
      const preview = presentPreview(text, { policies, prices, nowMs: now() });
      const changes = preview.prices.filter(({ change }) => change !== "same").length;
      contextOf(request).subject =
        preview.faults.length > 0 ? `${preview.faults.length} faults` : `${changes} changes`;
      response.json(preview);
    },
  });

  route(router, "/v1/staff/promises/:id", {
    before: [...read, audited(audit, "promise")],
    GET: async (request, response) => {
      readQuery(request.query, []);
      const { id } = request.params;
      if (typeof id === "string" && PROMISE_ID.test(id)) contextOf(request).subject = id;
      const promise = typeof id === "string" ? await findPromise(promises, id) : null;
      if (promise === null) throw new ServiceError("not_found", "No such promise exists, or it has expired.");
      sendJson(response, presentPromise(promise, prices.facts(), policies.current(), now()));
    },
  });

  route(router, "/v1/staff/overview", {
    before: read,
    GET: (request, response) => {
      readQuery(request.query, []);
      sendJson(response, parts.overview());
    },
  });

  route(router, "/v1/staff/history", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      sendJson(response, await parts.history());
    },
  });

  route(router, "/v1/staff/cache/purge", {
    before: [...operate, audited(audit, "purge")],
    POST: async (request, response) => {
      readQuery(request.query, []);
      const what = readPurge(request.body);
      contextOf(request).subject = what;
      const body: AnswerOf<typeof purgedShape> = { purged: await parts.purge(what) };
      response.json(body);
    },
  });

  route(router, "/v1/staff/audit", {
    before: list,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const body = presentAudit(await audit.last());
      sendList(request, response, body, { name: "audit", columns: ACT_COLUMNS, rows: body.acts });
    },
  });

  route(router, "/metrics", {
    before: [requireScope(parts, "metrics")],
    GET: async (_request, response) => {
      response.type(metrics.contentType).send(await metrics.text());
    },
  });
  return router;
}
