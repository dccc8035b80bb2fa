/** What visitors may ask: availability, search, prices and quotes (contract section 4). HEAD is answered without asking anybody. */
import { createHash } from "node:crypto";
import { type Request, Router } from "express";
import { parseDomainName, parseSearchTerm } from "../domain-name.js";
import { invalidField, ServiceError } from "../errors.js";
import type { Lane } from "../quota/quota.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { AvailabilityDesk, VisitorAsk } from "../storefront/availability.js";
import type { QuoteDesk } from "../storefront/quotes.js";
import { namesFor, search } from "../storefront/search.js";
import { readAction, readCart, readQuery, readTld, readYears, required, termOf } from "./parse.js";
import { presentAvailability, presentCart, presentPrices, presentTermQuote } from "./presenters.js";
import {
  answersJson,
  answersJsonOrEvents,
  endedByHead,
  EVENT_STREAM,
  prefersEvents,
  route,
} from "./routes.js";
import type { SearchStream } from "./search-stream.js";

export interface VisitorParts {
  readonly policy: RetailPolicy;
  readonly prices: PriceList;
  readonly availability: AvailabilityDesk;
  readonly quotes: QuoteDesk;
  readonly searchStream: SearchStream;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly now: () => number;
}

const AVAILABILITY_CACHE = "private, max-age=5";
const PRICES_CACHE = "public, max-age=300, stale-while-revalidate=3600";

export function visitorRoutes(parts: VisitorParts): Router {
  const { policy, prices, availability, quotes, searchStream, ask, now } = parts;
  const router = Router({ caseSensitive: true, strict: true });

  route(router, "/v1/availability", {
    before: [answersJson],
    GET: async (request, response) => {
      const query = readQuery(request, ["domain", "years"]);
      const name = parseDomainName(required(query.domain, "domain"), policy.soldTlds, "domain");
      const fields = { subject: "domain", years: "years" };
      const years = termOf(readYears(query.years), { tld: name.tld, action: "registration" }, policy, fields);
      response.set("Cache-Control", AVAILABILITY_CACHE);
      if (endedByHead(request, response)) return;
      const found = await availability.lookUp(ask(request, "exact"), name, years);
      response.json(presentAvailability(found));
    },
  });

  route(router, "/v1/search", {
    before: [answersJsonOrEvents],
    GET: async (request, response) => {
      const query = readQuery(request, ["q", "tlds", "years"]);
      const text = required(query.q, "q");
      const term = parseSearchTerm(text, policy.soldTlds, "q");
      const years = readYears(query.years);
      const names = namesFor({ term, tlds: readTlds(query.tlds, policy), years }, policy);
      const [exact, ...others] = names;
      if (exact === undefined)
        throw invalidField(
          years === undefined ? "q" : "years",
          "no name of this label is sold for this term",
        );
      response.set("Cache-Control", "no-store");
      const asEvents = prefersEvents(request);
      if (endedByHead(request, response, asEvents ? EVENT_STREAM : undefined)) return;
      if (asEvents) return searchStream(request, response, exact, others);
      const { results, complete } = await search(names, availability, (position) =>
        ask(request, position === 0 ? "exact" : "search"),
      );
      response.json({ query: text, label: term.label, results: results.map(presentAvailability), complete });
    },
  });

  route(router, "/v1/prices", {
    before: [answersJson],
    GET: (request, response) => {
      const query = readQuery(request, ["tld", "action", "years"]);
      const wanted = {
        tld: query.tld === undefined ? undefined : readTld(query.tld, policy, "tld"),
        action: query.action === undefined ? undefined : readAction(query.action),
        years: readYears(query.years),
      };
      const facts = prices.facts();
      if (facts.length === 0) {
        throw new ServiceError("quota_exhausted", "The price list has not been read yet.", {
          retryAfterMs: prices.expectedInMs(),
        });
      }
      const matching = facts.filter(
        ({ tld, action, years }) =>
          (wanted.tld ?? tld) === tld &&
          (wanted.action ?? action) === action &&
          (wanted.years ?? years) === years,
      );
      const body = JSON.stringify(presentPrices(matching, policy, now()));
      const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
      response.set({ "Cache-Control": PRICES_CACHE, ETag: etag }).type("application/json").send(body);
    },
  });

  route(router, "/v1/quotes", {
    before: [answersJson],
    GET: async (request, response) => {
      const query = readQuery(request, ["tld", "action", "years"]);
      const tld = readTld(required(query.tld, "tld"), policy, "tld");
      const action = readAction(required(query.action, "action"));
      const years = termOf(readYears(query.years), { tld, action }, policy, {
        subject: "action",
        years: "years",
      });
      response.set("Cache-Control", "no-store");
      if (endedByHead(request, response)) return;
      response.json(
        presentTermQuote(
          tld,
          action,
          years,
          await quotes.term(ask(request, "exact"), { tld, action, years }),
        ),
      );
    },
    POST: async (request, response) => {
      readQuery(request, []);
      const items = readCart(request.body, policy);
      response.set("Cache-Control", "no-store");
      response.json(presentCart(await quotes.cart(ask(request, "checkout"), items)));
    },
  });
  return router;
}

function readTlds(text: string | undefined, policy: RetailPolicy): readonly string[] {
  if (text === undefined) return policy.soldTlds;
  return [...new Set(text.split(",").map((tld) => readTld(tld.trim(), policy, "tlds")))];
}
