/** The visitor routes: availability, search, prices and quotes. HEAD never makes an upstream call. */
import type { IRouter } from "express";
import { inOneShop, type Shop } from "../storefront/shop.js";
import { CART_PATH, cartOf, signedCart } from "./carts.js";
import type { AskFor } from "./edge/context.js";
import { readAction, readQuery, readTld, readYears, required, termOf } from "./parse.js";
import { presentTermQuote } from "./presenters.js";
import { type QuestionKind, questionOf } from "./questions.js";
import { sendJson, sendRendered } from "./edge/rendered.js";
import { EVENT_STREAM } from "./event-stream.js";
import { answersJson, answersJsonOrEvents, endedByHead, prefersEvents, route } from "./routes.js";

interface VisitorParts {
  readonly shop: () => Shop;
  readonly questions: ReadonlyMap<string, QuestionKind>;
  readonly ask: AskFor;
}

export function addVisitorRoutes(router: IRouter, { shop, questions, ask }: VisitorParts): void {
  for (const [path, { cacheControl, hasEvents, confidential, read }] of questions) {
    route(router, path, {
      before: [hasEvents ? answersJsonOrEvents : answersJson],
      GET: async (request, response) => {
        const first = questionOf(request, read, shop());
        response.set("Cache-Control", cacheControl);
        const events = prefersEvents(request) ? first.events : undefined;
        // The length of the body would reveal whether somebody just searched for the name.
        if (confidential && endedByHead(request, response, events && EVENT_STREAM)) return;
        if (events !== undefined) {
          const known = events.known(request.get("Last-Event-ID") ?? "");
          return known === undefined ? events.stream?.(request, response) : sendRendered(response, known);
        }
        const answer = await inOneShop(shop, async (now) => {
          const { known, find } = first.shop === now ? first : read(request.query);
          return known() ?? find?.(request);
        });
        if (answer !== undefined) sendRendered(response, answer);
      },
    });
  }

  route(router, CART_PATH, {
    before: [answersJson],
    GET: async (request, response) => {
      const query = readQuery(request.query, ["tld", "action", "years"]);
      const { policy } = shop();
      const tld = readTld(required(query.tld, "tld"), policy, "tld");
      const action = readAction(required(query.action, "action"));
      const years = termOf(readYears(query.years), { tld, action }, policy, "action");
      response.set("Cache-Control", "no-store");
      if (endedByHead(request, response)) return;
      const quote = await inOneShop(shop, ({ quotes }) =>
        quotes.term(ask(request, "exact"), { tld, action, years }),
      );
      sendJson(response, presentTermQuote({ tld, action, years }, quote));
    },
    POST: async (request, response) => {
      readQuery(request.query, []);
      const items = cartOf(request, shop());
      response.set("Cache-Control", "no-store");
      const cart = await inOneShop(shop, ({ quotes }) => quotes.cart(ask(request, "checkout"), items));
      const { answer, shared } = signedCart(cart);
      await shared;
      sendRendered(response, answer);
    },
  });
}
