/** The visitor paths: availability, search, prices and quotes. */
import { availabilityQuery, pricesQuery, quoteQuery, searchQuery } from "../queries.js";
import { cacheControlLike, ETAG, optional, STORED_NOWHERE, UNBUFFERED } from "./headers.js";
import { operation, queryOf } from "./operation.js";
import { ASKING, LOCAL } from "./problems.js";
import { exampleOf, type JsonObject } from "./schemas.js";

const availability = operation({
  id: "getAvailability",
  tag: "visitors",
  summary: "Whether a name can be registered, and for how much.",
  description:
    "A taken name isn't an error. The name can be written as people paste it: in any case, in Unicode, as a URL.",
  parameters: queryOf(availabilityQuery),
  answer: {
    description: "The availability and price of the name.",
    content: { schema: "Availability" },
    cache: cacheControlLike("^private, max-age=[0-5]$", "private, max-age=5"),
  },
  problems: ASKING,
});

const PRICE = { amount: "24.99", currency: "USD" };
const AS_OF = "2026-03-01T09:30:00.000Z";
/** The name under another TLD, still waiting for the registry. */
const UNKNOWN = {
  ...exampleOf("Availability"),
  domain: "kabul.com.af",
  unicodeName: "kabul.com.af",
  tld: ".com.af",
  status: "unknown",
  available: false,
  price: null,
  renewal: null,
  asOf: null,
  retryAfter: 5,
  kept: true,
};

const STREAM = [
  "Server-sent events (WHATWG HTML). Each `result` event is an Availability with an `id`, sent as soon as it is known. The last event, `done`,",
  'is `{"complete": true}`, or false if a status is still unknown. The stream waits up to 30 seconds for names that need the upstream. With',
  "`only=known` it contains only results from memory and ends immediately. If the exact name is taken, available alternatives can follow,",
  "marked with `suggested`. Lines that start with a colon keep the connection open. Close the connection after `done`.",
].join(" ");
const STREAMED = [
  `id: Zk3vQ0a9x1bT7cLw.01000`,
  "event: result",
  `data: ${JSON.stringify(exampleOf("Availability"))}`,
  "",
  "event: done",
  `data: ${JSON.stringify({ complete: true })}`,
  "\n",
].join("\n");

const search = operation({
  id: "search",
  tag: "visitors",
  summary: "Search for a name under several TLDs.",
  description:
    "A name that couldn't be checked in time is `unknown`, with the seconds to wait before a retry.",
  parameters: [
    ...queryOf(searchQuery),
    {
      name: "Last-Event-ID",
      in: "header",
      description:
        "The id of the last event received. Resumes an interrupted stream without repeating its results.",
      schema: { type: "string" },
    },
  ],
  answer: {
    description:
      "One result per TLD, the exact name first; as an event stream, in the order in which they become known.",
    content: [
      {
        schema: "Search",
        example: { ...exampleOf("Search"), results: [exampleOf("Availability"), UNKNOWN], complete: false },
      },
      {
        type: "text/event-stream",
        schema: { type: "string", description: STREAM },
        example: STREAMED,
      },
    ],
    cache: STORED_NOWHERE,
    // An event stream has none.
    headers: { ETag: optional(ETAG), "X-Accel-Buffering": UNBUFFERED },
  },
  problems: [...LOCAL, "Unavailable"],
});

const PROMOTED = {
  tld: ".af",
  action: "registration",
  years: 1,
  price: { amount: "22.50", currency: "USD" },
  promotion: { id: "nowruz", regular: PRICE, until: "2026-03-27T00:00:00.000Z" },
};
const RENEWAL = { tld: ".af", action: "renewal", years: 2, price: { amount: "49.99", currency: "USD" } };

const prices = operation({
  id: "listPrices",
  tag: "visitors",
  summary: "The prices of everything sold.",
  parameters: queryOf(pricesQuery),
  answer: {
    description: "The prices.",
    content: { schema: "PriceList", example: { asOf: AS_OF, prices: [PROMOTED, RENEWAL] } },
    cache: cacheControlLike(
      String.raw`^(?:public, max-age=\d+, stale-while-revalidate=\d+|no-store)$`,
      "public, max-age=300, stale-while-revalidate=3600",
    ),
    isShared: true,
  },
  // It makes no call, but while no price is known it says why.
  problems: ASKING,
});

const quote = operation({
  id: "getQuote",
  tag: "visitors",
  summary: "The price of one action.",
  parameters: queryOf(quoteQuery),
  answer: {
    description: "The price.",
    content: { schema: "Quote", example: { ...RENEWAL, asOf: AS_OF, stale: false } },
  },
  problems: ASKING,
});

/** A line that has no price, and says why. */
const PROBLEM = {
  domain: "gold.af",
  tld: ".af",
  action: "renewal",
  years: 1,
  price: null,
  status: "not_checked",
  premium: true,
  asOf: AS_OF,
  problem: {
    code: "upstream_contract",
    detail: "This is a premium name, and the registry service has no price for this action on it.",
  },
};

const quotes = operation({
  id: "quoteCart",
  tag: "visitors",
  summary: "Price and sign a cart.",
  description:
    "Names to be registered are checked again if necessary. A line that can't be priced has its own problem; the others are priced and signed. The request fails only if no line could be answered.",
  body: {
    schema: "QuoteRequest",
    example: { items: [{ domain: "kabul.af", action: "registration", years: 1 }] },
  },
  answer: {
    description: "The priced cart, with its lines in the order of the request.",
    content: {
      schema: "Quotes",
      example: {
        ...exampleOf("Quotes"),
        items: [exampleOf("QuoteLine"), PROBLEM],
        validUntil: "2026-03-01T09:45:00.000Z",
      },
    },
  },
  problems: [...ASKING, "PayloadTooLarge", "UnsupportedMediaType"],
});

export const VISITOR_PATHS: JsonObject = {
  "/v1/availability": { get: availability },
  "/v1/search": { get: search },
  "/v1/prices": { get: prices },
  "/v1/quotes": { get: quote, post: quotes },
};
