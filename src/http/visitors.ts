/** The visitor routes: availability, search, prices and quotes. HEAD never makes an upstream call. */
import type { IRouter, Response } from "express";
import type { Clock } from "../clock.js";
import { domainNameUnder, parseSearchTerm } from "../domain-name.js";
import { invalidField, type ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { Availability } from "../shop/availability.js";
import { namesFor, search, type SearchedName } from "../shop/search.js";
import { inOneShop, type Shop } from "../shop/shop.js";
import type { AnswerOf } from "../wire/answer.js";
import { availabilityQuery, noQuery, pricesQuery, quoteQuery, searchQuery } from "../wire/queries.js";
import type { searchShape } from "../wire/visitors.js";
import { jsonAnswer, mayBeRepeated, send, sendJson } from "./edge/answers.js";
import { type AskFor, contextOf } from "./edge/context.js";
import { EVENT_STREAM } from "./event-stream.js";
import type { FinishedAnswers, Lasting } from "./finished-answers.js";
import {
  otherScript,
  type ParsedQuery,
  readCart,
  readName,
  readQuery,
  readTld,
  readTlds,
  refuseUnsoldTerm,
  termOf,
} from "./parse.js";
import {
  presentAvailability,
  presentCart,
  presentPrices,
  presentTermQuote,
  presentUnknown,
} from "./presenters.js";
import {
  answersJson,
  answersJsonOrEvents,
  endedByHead,
  type Handler,
  prefersEvents,
  route,
} from "./routes.js";
import type { Searched, SearchStream } from "./search-stream.js";

interface VisitorParts {
  readonly shop: () => Shop;
  readonly prices: Pick<PriceList, "all" | "unknown">;
  readonly finished: FinishedAnswers;
  readonly searchStream: SearchStream;
  readonly ask: AskFor;
  /** Called each time a finished answer of a route is sent again. */
  readonly onSentAgain: (route: string) => void;
  readonly clock: Clock;
  /** For the ages of facts. */
  readonly factClock: Clock;
}

const AVAILABILITY_CACHED_MS = 5_000;
const PRICES_CACHE = "public, max-age=300, stale-while-revalidate=3600";
/** How long a cache may keep that, at most. */
const PRICES_CACHED_MS = 3_900_000;

/** No cache keeps a price beyond the moment at which a promotion changes it. */
function availabilityCache(untilChangeMs: number): string {
  return `private, max-age=${Math.floor(Math.min(AVAILABILITY_CACHED_MS, untilChangeMs) / 1000)}`;
}

/** No cache keeps prices beyond the moment at which a promotion changes them. */
function pricesCache(untilChangeMs: number): string {
  if (untilChangeMs >= PRICES_CACHED_MS) return PRICES_CACHE;
  const seconds = Math.floor(untilChangeMs / 1000);
  const maxAge = Math.min(300, seconds);
  return `public, max-age=${maxAge}, stale-while-revalidate=${seconds - maxAge}`;
}

export function addVisitorRoutes(router: IRouter, parts: VisitorParts): void {
  route(router, "/v1/availability", { before: [answersJson], GET: availability(parts) });
  route(router, "/v1/search", { before: [answersJsonOrEvents], GET: searching(parts) });
  route(router, "/v1/prices", { before: [answersJson], GET: priceList(parts) });
  route(router, "/v1/quotes", { before: [answersJson], GET: quote(parts), POST: cart(parts) });
}

/** How long an answer with these facts lasts; one with a fact missing doesn't. */
function lasting(
  { shop, onSentAgain }: VisitorParts,
  response: Response,
  found: readonly (Availability | undefined)[],
): Lasting {
  const { route: of } = contextOf(response.req);
  const { availability: counted } = shop();
  return {
    untilAt: Math.min(...found.map((one) => one?.sameUntilAt ?? -Infinity)),
    onSentAgain() {
      counted.countHits(found.length);
      onSentAgain(of);
    },
  };
}

function availability(parts: VisitorParts): Handler {
  const { shop, finished, ask, clock, factClock } = parts;
  return async (request, response) => {
    const { name, years, onlyKnown } = readAvailability(request.query, shop().policy);
    const changeAt = shop().policy.nextTurnAt(clock.now());
    const cached = { cacheControl: availabilityCache(changeAt - clock.now()) };
    response.set("Cache-Control", cached.cacheControl);
    // The length of the body would reveal whether somebody just searched for the name.
    if (endedByHead(request, response)) return;
    const service = shop().availability;
    const known = service.fromMemory(name, years);
    if (known !== undefined || onlyKnown) {
      if (known !== undefined) service.countHits(1);
      const body = known === undefined ? presentUnknown({ name, years }) : presentAvailability(known);
      finished.send(response, jsonAnswer(body, cached), {
        ...lasting(parts, response, [known]),
        fieldsUntilAt: changeAt - AVAILABILITY_CACHED_MS,
      });
      return;
    }
    const found = await inOneShop(shop, (now) => now.availability.lookUp(ask(request, "exact"), name, years));
    mayBeRepeated(response, found.sameUntilAt - factClock.monotonic());
    sendJson(response, presentAvailability(found), cached);
  };
}

function searching(parts: VisitorParts): Handler {
  const { shop, finished, searchStream, ask, clock } = parts;
  return async (request, response) => {
    const searched = readSearch(request.query, shop());
    const { text, label, names, exact, onlyKnown } = searched;
    const asEvents = prefersEvents(request);
    response.set("Cache-Control", "no-store");
    if (endedByHead(request, response, asEvents ? EVENT_STREAM : undefined)) return;
    if (asEvents) return searchStream(request, response, searched);
    const answer = (results: SearchAnswer["results"], complete: boolean) =>
      jsonAnswer({ query: text, label, results, complete } satisfies SearchAnswer);
    const service = searched.shop.availability;
    const known = names.map(({ name, years }) => service.fromMemory(name, years));
    const complete = !known.includes(undefined);
    if (complete || onlyKnown) {
      service.countHits(known.filter((one) => one !== undefined).length);
      const results = names.map((asked, at) => {
        const found = known[at];
        return found === undefined ? presentUnknown(asked) : presentAvailability(found);
      });
      finished.send(response, answer(results, complete), lasting(parts, response, known));
      return;
    }
    const askFor = (asked: SearchedName) => ask(request, asked === exact ? "exact" : "search");
    const found = await inOneShop(shop, (now) => search(names, now.availability, askFor, clock));
    send(response, answer(found.results.map(presentAvailability), found.complete));
  };
}

function priceList({ shop, prices, finished, onSentAgain, clock }: VisitorParts): Handler {
  return (request, response) => {
    const { policy } = shop();
    const wanted = readPrices(request.query, policy);
    const known = prices.all();
    if (known.length === 0) throw prices.unknown();
    // A list that is incomplete or not current must not be cached, because it will be another one in a moment.
    const isWhole =
      known.length === policy.combinations().length && known.every(({ isCurrent }) => isCurrent);
    const matching = known.filter(
      ({ tld, action, years }) =>
        (wanted.tld ?? tld) === tld &&
        (wanted.action ?? action) === action &&
        (wanted.years ?? years) === years,
    );
    const now = clock.now();
    const changeAt = policy.nextTurnAt(now);
    const answer = jsonAnswer(presentPrices(matching, policy, now), {
      cacheControl: isWhole ? pricesCache(changeAt - now) : "no-store",
    });
    finished.send(response, answer, {
      // Without any price, its age is the time of the answer.
      untilAt: matching.length === 0 ? -Infinity : Math.min(...known.map(({ untilAt }) => untilAt)),
      fieldsUntilAt: changeAt - PRICES_CACHED_MS,
      onSentAgain: () => {
        onSentAgain("/v1/prices");
      },
    });
  };
}

function quote({ shop, ask }: VisitorParts): Handler {
  return async (request, response) => {
    const query = readQuery(request.query, quoteQuery);
    const { policy } = shop();
    const { action } = query;
    const tld = readTld(query.tld, policy, "tld");
    const years = termOf(query.years, { tld, action }, policy, "action");
    response.set("Cache-Control", "no-store");
    if (endedByHead(request, response)) return;
    const found = await inOneShop(shop, ({ quotes }) =>
      quotes.term(ask(request, "exact"), { tld, action, years }),
    );
    sendJson(response, presentTermQuote({ tld, action, years }, found));
  };
}

function cart({ shop, ask }: VisitorParts): Handler {
  return async (request, response) => {
    readQuery(request.query, noQuery);
    const items = readCart(request.body, shop().policy);
    const priced = await inOneShop(shop, ({ quotes }) => quotes.cart(ask(request, "checkout"), items));
    const signed = priced.sign();
    await signed.promise?.kept;
    sendJson(response, presentCart(signed), { tagged: false });
  };
}

type SearchAnswer = AnswerOf<typeof searchShape>;

function readAvailability(given: ParsedQuery, policy: RetailPolicy) {
  const { domain, years, only } = readQuery(given, availabilityQuery);
  const name = readName(domain, policy.registrableTlds, policy, "domain");
  const what = { tld: name.tld, action: "registration" } as const;
  return { name, years: termOf(years, what, policy, "domain"), onlyKnown: only === "known" };
}

function readSearch(
  given: ParsedQuery,
  shop: Shop,
): Searched & { readonly text: string; readonly label: string } {
  const { policy } = shop;
  const { q: text, tlds, years, only } = readQuery(given, searchQuery);
  const term = parseSearchTerm(text, policy.registrableTlds, "q");
  // Other TLDs that don't sell the term are left out, but not the name that was asked for.
  if (term.exact !== null && !policy.takes(term.exact)) throw otherScript("q");
  if (term.exact !== null) termOf(years, { tld: term.exact.tld, action: "registration" }, policy, "q");
  const names = namesFor({ term, tlds: readTlds(tlds, policy), years }, policy);
  const [exact] = names;
  if (exact === undefined) throw nothingSold(term.label, years, policy);
  return { shop, text, label: term.label, exact, names, onlyKnown: only === "known" };
}

/** Why a search has no names: the script, a label that only forms endings, or the term. */
function nothingSold(label: string, years: number | undefined, policy: RetailPolicy): ServiceError {
  const names = policy.registrableTlds.flatMap((tld) => domainNameUnder(label, tld) ?? []);
  if (names.length > 0 && !names.some(policy.takes)) return otherScript("q");
  const message = "no name of this label is sold for this term";
  return years === undefined
    ? invalidField("q", "not_a_name", message)
    : invalidField("years", "not_sold", message);
}

function readPrices(given: ParsedQuery, policy: RetailPolicy) {
  const { tld, action, years } = readQuery(given, pricesQuery);
  refuseUnsoldTerm(years, policy);
  return { tld: tld === undefined ? undefined : readTld(tld, policy, "tld"), action, years };
}
