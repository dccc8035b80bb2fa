/** The routes for customers' own domains. Any other name gets the same 404 as one that doesn't exist. */
import { type Request, Router } from "express";
import type { Account } from "../account/account.js";
import type { CustomerTokens } from "../auth/customer-tokens.js";
import { canonicalHost, type DomainName } from "../domain-name.js";
import { invalidField, ServiceError } from "../errors.js";
import type { Lane } from "../quota/lane.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { VisitorAsk } from "../storefront/availability.js";
import { sendJson } from "./edge/rendered.js";
import type { TokenGuesses } from "./edge/token-guesses.js";
import { readQuery } from "./parse.js";
import { presentCustomerDomain } from "./presenters.js";
import { answersJson, endedByHead, route } from "./routes.js";

interface CustomerParts {
  readonly tokens: CustomerTokens;
  readonly guesses: TokenGuesses;
  readonly account: Account;
  /** The policy in effect. */
  readonly policy: () => RetailPolicy;
  readonly prices: PriceList;
  /** Whether the list prices apply to the name, as far as any replica knows. */
  readonly seemsOrdinary: (name: DomainName) => Promise<boolean>;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly now: () => number;
}

export function customerRoutes(parts: CustomerParts): Router {
  const { tokens, guesses, account, policy, prices, ask, now } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  async function namesOf(request: Request): Promise<ReadonlyMap<string, DomainName>> {
    const [, token] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(request.headers.authorization ?? "") ?? [];
    if (token === undefined) {
      throw new ServiceError(
        "unauthenticated",
        "This endpoint requires a customer token: Authorization: Bearer ….",
        {
          headers: { "WWW-Authenticate": 'Bearer realm="customer"' },
        },
      );
    }
    guesses.admit(request);
    try {
      return await tokens.namesOf(token, ask(request, "account"));
    } catch (error) {
      if (error instanceof ServiceError && error.code === "unauthenticated")
        guesses.wrong(request, "customer");
      throw error;
    }
  }

  async function present(request: Request, names: readonly DomainName[]) {
    const asked = ask(request, "account");
    const found = await account.managed(asked, names, asked.spend);
    // The renewal price of a premium name is unknown, because the upstream quotes TLDs and not names.
    const ordinary = await Promise.all(found.map(({ name }) => parts.seemsOrdinary(name)));
    const retail = policy();
    const certain = prices.facts().filter(({ isDoubtful }) => !isDoubtful);
    return found.map((known, at) =>
      presentCustomerDomain(known, ordinary[at] === true ? certain : [], retail, now()),
    );
  }

  route(router, "/v1/me/domains", {
    before: [answersJson],
    GET: async (request, response) => {
      response.set("Cache-Control", "no-store");
      const names = await namesOf(request);
      readQuery(request.query, []);
      if (endedByHead(request, response)) return;
      sendJson(response, { domains: await present(request, [...names.values()]) });
    },
  });

  route(router, "/v1/me/domains/:domain", {
    before: [answersJson],
    GET: async (request, response) => {
      response.set("Cache-Control", "no-store");
      const names = await namesOf(request);
      readQuery(request.query, []);
      const { domain } = request.params;
      const host = typeof domain === "string" ? canonicalHost(domain) : null;
      if (host === null) throw invalidField("domain", "isn't a domain name");
      const name = names.get(host);
      if (name === undefined) throw notOwned();
      if (endedByHead(request, response)) return;
      const [own] = await present(request, [name]);
      if (own === undefined) throw notOwned();
      sendJson(response, own);
    },
  });
  return router;
}

function notOwned(): ServiceError {
  return new ServiceError("not_found", "You have no domain with this name.");
}
