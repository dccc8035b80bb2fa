/**
 * The visitor queries that are mostly answered from memory: availability, search and prices. Each query is parsed once, into a
 * `Question` that returns the answer from memory, rendered and cached with its facts, or looks it up.
 */
import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import { parseDomainName, parseSearchTerm } from "../domain-name.js";
import { invalidField, ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceFact, PriceList } from "../retail/price-list.js";
import type { Availability } from "../storefront/availability.js";
import { namesFor, search, type SearchedName } from "../storefront/search.js";
import type { Shop } from "../storefront/shop.js";
import type { AnswerOf } from "../wire/answer.js";
import type { searchShape } from "../wire/visitors.js";
import type { AskFor } from "./edge/context.js";
import {
  type ParsedQuery,
  readAction,
  readOnlyKnown,
  readQuery,
  readTld,
  readTermSold,
  readYears,
  required,
  termOf,
} from "./parse.js";
import { presentAvailability, presentPrices, presentUnknown } from "./presenters.js";
import { render, type Rendered } from "./edge/rendered.js";
import type { QuickRefusal } from "./quick-refusals.js";
import { knownEvents, type SearchStream } from "./search-stream.js";

interface QuestionParts {
  readonly shop: () => Shop;
  readonly prices: PriceList;
  readonly searchStream: SearchStream;
  readonly ask: AskFor;
  readonly refuse: QuickRefusal;
  readonly clock: Clock;
}

type SearchAnswer = AnswerOf<typeof searchShape>;

const AVAILABILITY_CACHE = "private, max-age=5";
const PRICES_CACHE = "public, max-age=300, stale-while-revalidate=3600";

/** A valid query. */
export interface Question {
  /** The shop that answers. If the policy changes, the query must be parsed again. */
  readonly shop: Shop;
  /** The answer from memory, if there is one. */
  known(): Rendered | undefined;
  /** The refusal for a client at this address if it is already certain that no answer can come in time. */
  refusal?(address: string): ServiceError | null;
  /** Looks up the answer, with upstream calls if needed; absent if only memory may be used. */
  readonly find?: (request: Request) => Promise<Rendered>;
  /** For a query that can be answered with events. */
  readonly events?: {
    /** All events after `lastEventId`, if no call is needed. */
    known(lastEventId: string): Rendered | undefined;
    /** Sends events as names become known, with upstream calls if needed; absent if only memory may be used. */
    readonly stream?: (request: Request, response: Response) => Promise<void>;
  };
}

/** Parses the query of a GET; throws `invalid_request`. */
export type ReadQuestion = (query: ParsedQuery) => Question;

export interface QuestionKind {
  readonly cacheControl: string;
  /** Whether the answer can also be events. */
  readonly hasEvents: boolean;
  /** Whether HEAD must not reveal that the answer is known, because searches are confidential. */
  readonly confidential: boolean;
  readonly read: ReadQuestion;
}

/** Questions that the fast path has parsed but couldn't answer. */
const alreadyRead = new WeakMap<IncomingMessage, Question>();

/** Keeps a question for the route that answers the request, so that it isn't parsed twice. */
export function handOn(request: IncomingMessage, question: Question): void {
  alreadyRead.set(request, question);
}

/** The request's question: from the fast path if it belongs to the current shop, otherwise parsed now. */
export function questionOf(request: Request, read: ReadQuestion, shop: Shop): Question {
  const handed = alreadyRead.get(request);
  return handed?.shop === shop ? handed : read(request.query);
}

/** The visitor queries by path. */
export function visitorQuestions(parts: QuestionParts): ReadonlyMap<string, QuestionKind> {
  return new Map([
    ["/v1/availability", availabilityQuestions(parts)],
    ["/v1/search", searchQuestions(parts)],
    ["/v1/prices", priceQuestions(parts)],
  ]);
}

function availabilityQuestions({ shop: open, ask, refuse }: QuestionParts): QuestionKind {
  const rendered = new WeakMap<Availability, Rendered>();
  const made = (found: Availability): Rendered =>
    render(presentAvailability(found), { cacheControl: AVAILABILITY_CACHE, tagged: true });
  function read(given: ParsedQuery): Question {
    const shop = open();
    const { policy, availability } = shop;
    const query = readQuery(given, ["domain", "years", "only"]);
    const name = parseDomainName(required(query.domain, "domain"), policy.registrableTlds, "domain");
    const what = { tld: name.tld, action: "registration" } as const;
    const years = termOf(readYears(query.years), what, policy, "domain");
    const unknown = readOnlyKnown(query.only)
      ? render(presentUnknown({ name, years }), { cacheControl: AVAILABILITY_CACHE, tagged: true })
      : undefined;
    const known = (): Rendered | undefined => {
      const found = availability.known(name, years);
      if (found === undefined) return unknown;
      availability.countHits(1);
      return remembered(rendered, found, made);
    };
    if (unknown !== undefined) return { shop, known };
    return {
      shop,
      known,
      refusal: (address) => refuse(address, name, years),
      find: async (request) => made(await availability.lookUp(ask(request, "exact"), name, years)),
    };
  }

  return { cacheControl: AVAILABILITY_CACHE, hasEvents: false, confidential: true, read };
}

function searchQuestions({ shop: open, searchStream, ask, clock }: QuestionParts): QuestionKind {
  function read(given: ParsedQuery): Question {
    const shop = open();
    const { policy, availability } = shop;
    const query = readQuery(given, ["q", "tlds", "years", "only"]);
    const text = required(query.q, "q");
    const term = parseSearchTerm(text, policy.registrableTlds, "q");
    const years = readYears(query.years);
    // Other TLDs that don't sell the term are left out, but not the name that was asked for.
    if (term.exact !== null) termOf(years, { tld: term.exact.tld, action: "registration" }, policy, "q");
    const names = namesFor({ term, tlds: readTlds(query.tlds, policy), years }, policy);
    const [exact] = names;
    if (exact === undefined)
      throw invalidField(years === undefined ? "q" : "years", "no name of this label is sold for this term");
    const onlyKnown = readOnlyKnown(query.only);
    const made = (results: SearchAnswer["results"], complete: boolean): Rendered => {
      const answer: SearchAnswer = { query: text, label: term.label, results, complete };
      return render(answer, { cacheControl: "no-store", tagged: true });
    };
    let last: { readonly facts: readonly unknown[]; readonly rendered: Rendered } | null = null;
    const known = (): Rendered | undefined => {
      const facts = names.map(({ name, years }) => availability.known(name, years));
      const complete = !facts.includes(undefined);
      if (!complete && !onlyKnown) return undefined;
      availability.countHits(facts.filter((fact) => fact !== undefined).length);
      if (last === null || facts.some((fact, at) => fact !== last?.facts[at])) {
        const results = names.map((asked, at) => {
          const fact = facts[at];
          return fact === undefined ? presentUnknown(asked) : presentAvailability(fact);
        });
        last = { facts, rendered: made(results, complete) };
      }
      return last.rendered;
    };
    const searched = { shop, exact, names };
    const events = {
      known: (lastEventId: string) => knownEvents(searched, { onlyKnown, lastEventId }),
      stream: (request: Request, response: Response) => searchStream(request, response, searched),
    };
    if (onlyKnown) return { shop, known, events: { known: events.known } };
    return {
      shop,
      known,
      events,
      async find(request) {
        const askFor = (asked: SearchedName) => ask(request, asked === exact ? "exact" : "search");
        const { results, complete } = await search(names, availability, askFor, clock);
        return made(results.map(presentAvailability), complete);
      },
    };
  }

  return { cacheControl: "no-store", hasEvents: true, confidential: true, read };
}

function priceQuestions({ shop: open, prices, clock }: QuestionParts): QuestionKind {
  const rendered = new WeakMap<readonly PriceFact[], Map<string, Rendered>>();
  function read(given: ParsedQuery): Question {
    const shop = open();
    const { policy } = shop;
    const query = readQuery(given, ["tld", "action", "years"]);
    const wanted = {
      tld: query.tld === undefined ? undefined : readTld(query.tld, policy, "tld"),
      action: query.action === undefined ? undefined : readAction(query.action),
      years: readTermSold(query.years, policy),
    };
    const made = (facts: readonly PriceFact[]): Rendered => {
      // An incomplete list must not be cached, because it will be longer in a moment.
      const isWhole = facts.length === policy.combinations().length;
      const matching = facts.filter(
        ({ tld, action, years }) =>
          (wanted.tld ?? tld) === tld &&
          (wanted.action ?? action) === action &&
          (wanted.years ?? years) === years,
      );
      const cacheControl = isWhole ? PRICES_CACHE : "no-store";
      return render(presentPrices(matching, policy, clock.now()), { cacheControl, tagged: true });
    };
    return {
      shop,
      known() {
        const facts = prices.facts();
        if (facts.length === 0) throw prices.unknown();
        const lists = remembered(rendered, facts, () => new Map<string, Rendered>());
        const key = `${policy.promotionEpoch(clock.now())} ${wanted.tld} ${wanted.action} ${wanted.years}`;
        return remembered(lists, key, () => made(facts));
      },
    };
  }

  return { cacheControl: PRICES_CACHE, hasEvents: false, confidential: false, read };
}

interface Memory<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

function remembered<K, V>(memory: Memory<K, V>, key: K, make: (key: K) => V): V {
  const known = memory.get(key);
  if (known !== undefined) return known;
  const made = make(key);
  memory.set(key, made);
  return made;
}

function readTlds(text: string | undefined, policy: RetailPolicy): readonly string[] {
  if (text === undefined) return policy.soldTlds;
  return [...new Set(text.split(",").map((tld) => readTld(tld.trim(), policy, "tlds")))];
}
