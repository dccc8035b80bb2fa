/** The routes for customers' own domains. Any other name gets the same 404 as one that doesn't exist. */
import type { IRouter, Request } from "express";
import type { CustomerTokens } from "../auth/customer-tokens.js";
import type { DomainName } from "../domain-name.js";
import type { Engine } from "../engine.js";
import { challenge, ServiceError } from "../errors.js";
import type { AskFor } from "./edge/context.js";
import { sendJson } from "./edge/rendered.js";
import type { TokenGuesses } from "./edge/token-guesses.js";
import { hostInPath, readQuery } from "./parse.js";
import { presentCustomerDomain } from "./presenters.js";
import { answersJson, endedByHead, route } from "./routes.js";

interface CustomerParts extends Pick<Engine, "account" | "prices" | "shop"> {
  readonly tokens: CustomerTokens;
  readonly guesses: TokenGuesses;
  readonly ask: AskFor;
  readonly now: () => number;
}

export function addCustomerRoutes(router: IRouter, parts: CustomerParts): void {
  const { tokens, guesses, account, prices, shop, ask, now } = parts;

  async function namesOf(request: Request): Promise<ReadonlyMap<string, DomainName>> {
    const [, token] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(request.headers.authorization ?? "") ?? [];
    if (token === undefined) {
      const detail = "This endpoint requires a customer token: Authorization: Bearer ….";
      throw challenge("unauthenticated", detail, 'realm="customer"');
    }
    guesses.admit(request);
    const names = await tokens.namesOf(token, ask(request, "account"));
    if (typeof names !== "string") return names;
    // An expired one isn't a guess, and many customers behind one address may have such tokens.
    if (names === "wrong") guesses.wrong(request, "customer");
    const parameters = 'realm="customer", error="invalid_token"';
    throw challenge("unauthenticated", "The customer token is invalid or has expired.", parameters);
  }

  async function present(request: Request, names: readonly DomainName[]) {
    const asked = ask(request, "account");
    const found = await account.managed(asked, names, asked.spend);
    // The renewal price of a premium name is unknown, because the upstream quotes TLDs and not names.
    await Promise.all(found.map(({ name }) => shop().premiumNames.consult(name)));
    const { policy, premiumNames } = shop();
    const certain = prices.facts().filter(({ isDoubtful }) => !isDoubtful);
    return found.map((known) =>
      presentCustomerDomain(known, premiumNames.seemsOrdinary(known.name) ? certain : [], policy, now()),
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
      const name = names.get(hostInPath(request));
      if (name === undefined) throw notOwned();
      if (endedByHead(request, response)) return;
      const [own] = await present(request, [name]);
      if (own === undefined) throw notOwned();
      sendJson(response, own);
    },
  });
}

function notOwned(): ServiceError {
  return new ServiceError("not_found", "You have no domain with this name.");
}
