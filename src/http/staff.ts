/** What the reseller's staff may ask, by scope (contract section 6). The only routes that show wholesale. */
import { createHash, timingSafeEqual } from "node:crypto";
import { type Request, type RequestHandler, Router } from "express";
import type { Account } from "../account/account.js";
import { parseStaffTokens, type Scope, type StaffToken } from "../config/env.js";
import { AF_TLDS, canonicalHost, parseDomainName } from "../domain-name.js";
import { invalidField, ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { Lane } from "../quota/quota.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { Promises } from "../retail/promise.js";
import type { Secret } from "../secret.js";
import type { VisitorAsk } from "../storefront/availability.js";
import type { TokenGuesses } from "./edge/token-guesses.js";
import { type PurgeWish, readPurge, readQuery } from "./parse.js";
import {
  presentBalance,
  presentDomain,
  presentOrigin,
  presentPromise,
  presentStaffPrices,
  presentTier,
} from "./presenters.js";
import { answersJson, endedByHead, route } from "./routes.js";

export interface StaffParts {
  readonly tokens: Secret | null;
  readonly guesses: TokenGuesses;
  readonly account: Account;
  readonly policy: RetailPolicy;
  readonly prices: PriceList;
  readonly promises: Promises;
  readonly metrics: Metrics;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly overview: () => object;
  /** Resolves once the other replicas have been told too. */
  readonly purge: (what: PurgeWish) => Promise<Readonly<Record<string, number>>>;
  readonly now: () => number;
}

/** Lets through who carries a staff token with the scope. Tokens are compared by their SHA-256, in constant time. */
export function requireScope(
  { tokens, guesses }: Pick<StaffParts, "tokens" | "guesses">,
  scope: Scope,
): RequestHandler {
  return (request, response, next) => {
    response.set("Cache-Control", "no-store");
    const [, bearer] = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? "") ?? [];
    if (bearer !== undefined) guesses.admit(request);
    const token =
      bearer === undefined || tokens === null
        ? null
        : holderOf(bearer, parseStaffTokens(tokens.current()).tokens);
    if (token === null) {
      if (bearer !== undefined) guesses.wrong(request, "staff");
      throw new ServiceError("unauthenticated", "A staff token is needed: Authorization: Bearer ….", {
        headers: { "WWW-Authenticate": 'Bearer realm="staff"' },
      });
    }
    if (!token.scopes.includes(scope)) {
      throw new ServiceError("forbidden", `The token has no ${scope} scope.`, {
        headers: { "WWW-Authenticate": `Bearer realm="staff", error="insufficient_scope", scope="${scope}"` },
      });
    }
    next();
  };
}

function holderOf(bearer: string, tokens: readonly StaffToken[]): StaffToken | null {
  const digest = createHash("sha256").update(bearer).digest();
  return tokens.find(({ sha256 }) => timingSafeEqual(Buffer.from(sha256, "hex"), digest)) ?? null;
}

export function staffRoutes(parts: StaffParts): Router {
  const { account, policy, prices, promises, metrics, ask, now } = parts;
  const router = Router({ caseSensitive: true, strict: true });
  const read = [requireScope(parts, "read"), answersJson];
  const operate = [requireScope(parts, "operate"), answersJson];

  route(router, "/v1/staff/domains", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.domains(ask(request, "account"));
      response.json({
        domains: known.value.map(presentDomain),
        ...(known.truncated && { truncated: true }),
        ...presentOrigin(known),
      });
    },
  });

  route(router, "/v1/staff/domains/:domain", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      const { domain } = request.params;
      // A path holds the name itself, none of the forms that people paste.
      const host = typeof domain === "string" ? canonicalHost(domain) : null;
      if (host === null) throw invalidField("domain", "is not a domain name");
      const name = parseDomainName(host, AF_TLDS, "domain");
      if (endedByHead(request, response)) return;
      const known = await account.domain(ask(request, "account"), name);
      if (known.value === null)
        throw new ServiceError("not_found", "The reseller does not manage this domain.");
      response.json({ ...presentDomain(known.value), ...presentOrigin(known) });
    },
  });

  route(router, "/v1/staff/balance", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.balance(ask(request, "account"));
      response.json({ ...presentBalance(known.value), ...presentOrigin(known) });
    },
  });

  route(router, "/v1/staff/tier", {
    before: read,
    GET: async (request, response) => {
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      const known = await account.tier(ask(request, "account"));
      response.json({ ...presentTier(known.value), ...presentOrigin(known) });
    },
  });

  route(router, "/v1/staff/prices", {
    before: read,
    GET: (request, response) => {
      readQuery(request.query, []);
      response.json(presentStaffPrices(prices, policy, now()));
    },
  });

  route(router, "/v1/staff/promises/:id", {
    before: read,
    GET: (request, response) => {
      readQuery(request.query, []);
      const { id } = request.params;
      const promise = typeof id === "string" ? promises.find(id) : null;
      if (promise === null)
        throw new ServiceError("not_found", "This process knows no such promise, or it is over.");
      response.json(presentPromise(promise, prices.facts(), policy, now()));
    },
  });

  route(router, "/v1/staff/overview", {
    before: read,
    GET: (request, response) => {
      readQuery(request.query, []);
      response.json(parts.overview());
    },
  });

  route(router, "/v1/staff/cache/purge", {
    before: operate,
    POST: async (request, response) => {
      readQuery(request.query, []);
      response.json({ purged: await parts.purge(readPurge(request.body)) });
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
