/** The routes for customers' own domains. Any other name gets the same 404 as one that doesn't exist. */
import type { IRouter, Request, Response } from "express";
import type { CustomerDomain } from "../customers/customer-domains.js";
import type { DomainName } from "../domain-name.js";
import type { Engine } from "../engine.js";
import { challenge, ServiceError } from "../errors.js";
import type { AnswerOf } from "../wire/answer.js";
import { noQuery } from "../wire/queries.js";
import type { customerDomainsShape } from "../wire/customers.js";
import type { Callers } from "./callers.js";
import type { AskFor } from "./edge/context.js";
import { sendJson } from "./edge/answers.js";
import { hostInPath, readQuery } from "./parse.js";
import { presentCustomerDomain, presentUnknownDomain } from "./presenters.js";
import { answersJson, endedByHead, route } from "./routes.js";

interface CustomerParts extends Pick<Engine, "customerDomains" | "prices" | "shop"> {
  readonly callers: Callers;
  readonly ask: AskFor;
  readonly now: () => number;
}

export function addCustomerRoutes(router: IRouter, parts: CustomerParts): void {
  const { callers, customerDomains, prices, shop, ask, now } = parts;

  async function namesOf(request: Request, response: Response): Promise<ReadonlyMap<string, DomainName>> {
    const caller = await callers.of(request);
    if (caller.kind === "customer") return caller.names;
    if (caller.kind === "blocked") throw caller.refusal;
    // An expired one isn't a guess, and many customers behind one address may have such tokens.
    if (caller.kind === "wrong") await callers.noteWrong(request, response, "customer");
    if (caller.kind === "anyone") {
      const detail = "This endpoint requires a customer token: Authorization: Bearer ….";
      throw challenge("unauthenticated", detail, 'realm="customer"');
    }
    const parameters = 'realm="customer", error="invalid_token"';
    throw challenge("unauthenticated", "The customer token is invalid or has expired.", parameters);
  }

  function present(known: CustomerDomain) {
    // Whether the list says what the renewal costs depends on the name, because the upstream quotes TLDs and not names.
    const { policy, namePrices } = shop();
    const current = prices.all().filter(({ isCurrent }) => isCurrent);
    const isOrdinary = namePrices.isOrdinary(known.name) === true;
    return presentCustomerDomain(known, isOrdinary ? current : [], policy, now());
  }

  route(router, "/v1/me/domains", {
    before: [answersJson],
    GET: async (request, response) => {
      response.set("Cache-Control", "no-store");
      const names = await namesOf(request, response);
      readQuery(request.query, noQuery);
      if (endedByHead(request, response)) return;
      const asked = ask(request, "account");
      const found = await customerDomains.all(asked, [...names.values()], asked.spend);
      const domains = found.map((one) => ("value" in one ? present(one) : presentUnknownDomain(one)));
      const body: AnswerOf<typeof customerDomainsShape> = { domains };
      sendJson(response, body);
    },
  });

  route(router, "/v1/me/domains/:domain", {
    before: [answersJson],
    GET: async (request, response) => {
      response.set("Cache-Control", "no-store");
      const names = await namesOf(request, response);
      readQuery(request.query, noQuery);
      const name = names.get(hostInPath(request));
      if (name === undefined) throw notOwned();
      if (endedByHead(request, response)) return;
      const asked = ask(request, "account");
      const own = await customerDomains.one(asked, name, asked.spend);
      if (own === null) throw notOwned();
      sendJson(response, present(own));
    },
  });
}

function notOwned(): ServiceError {
  return new ServiceError("not_found", "You have no domain with this name.");
}
