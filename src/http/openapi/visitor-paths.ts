/** What everyone may ask: availability, search, prices and quotes (contract section 4). */
import { ACTIONS } from "../../upstream/contract.js";
import { cacheControl, ETAG, STORED_NOWHERE, UNBUFFERED } from "./headers.js";
import { countedAnswer, IF_NONE_MATCH, operation, query, sharedAnswer } from "./operation.js";
import { type JsonObject, schemaRef } from "./schemas.js";

const AS_OF = "2026-03-01T09:30:00.000Z";
const PRICE = { amount: "24.99", currency: "USD" };
const AVAILABLE = {
  domain: "kabul.af",
  unicodeName: "kabul.af",
  tld: ".af",
  status: "available",
  available: true,
  premium: false,
  years: 1,
  price: PRICE,
  renewal: { amount: "27.99", currency: "USD" },
  asOf: AS_OF,
  stale: false,
};
const UNKNOWN = {
  ...AVAILABLE,
  domain: "kabul.com.af",
  unicodeName: "kabul.com.af",
  tld: ".com.af",
  status: "unknown",
  available: false,
  price: null,
  renewal: null,
  asOf: null,
  retryAfter: 5,
};
const QUOTED = { tld: ".af", action: "renewal", years: 2, price: { amount: "49.99", currency: "USD" } };
const PROMOTED = {
  tld: ".af",
  action: "registration",
  years: 1,
  price: { amount: "22.50", currency: "USD" },
  promotion: { id: "nowruz", regular: PRICE, until: "2026-03-27T00:00:00.000Z" },
};

const TLD: JsonObject = { type: "string" };
const YEARS: JsonObject = { type: "integer", minimum: 1, maximum: 10 };
const ACTION: JsonObject = { type: "string", enum: ACTIONS };
const yearsWanted = query("years", "The term. The shortest one sold, unless given.", YEARS, { example: 1 });
const onlyKnown = query(
  "only",
  "`known`: answer from memory alone. This is free and immediate; a name that is not in memory is `unknown`.",
  { type: "string", enum: ["known"] },
);
const required = { required: true };

const LOCAL = ["InvalidRequest", "NotAcceptable", "RateLimited", "Internal"] as const;
const ASKING = [...LOCAL, "UpstreamFailed", "Unavailable", "UpstreamTimeout"] as const;

const availability = operation({
  id: "getAvailability",
  tag: "visitors",
  summary: "Can this name be registered, and for how much?",
  description:
    "A taken name is a success. The name may be written as people paste it: any case, Unicode, a whole URL.",
  parameters: [
    query("domain", "The name.", { type: "string", minLength: 1 }, { ...required, example: "kabul.af" }),
    yearsWanted,
    onlyKnown,
  ],
  answers: {
    200: countedAnswer({
      description: "What is known of the name.",
      content: { schema: schemaRef("Availability"), example: AVAILABLE },
      cache: cacheControl("private, max-age=5"),
    }),
  },
  problems: ASKING,
});

const STREAM = [
  "An event stream (WHATWG HTML). Each `result` is an Availability in the order in which they become known, with an `id`; then `done` is",
  '`{"complete": true}`, or false where a status stayed unknown. A name that has to wait for the upstream is waited for, for half of a',
  "minute. With `only=known` the stream has the results in memory alone and ends at once. When the exact name is taken, other names that",
  "are available may follow it, with `suggested`. Lines that begin with a colon keep the connection open. Close it at `done`.",
].join(" ");
const STREAMED = [
  `id: Zk3vQ0a9x1bT7cLw.01000`,
  "event: result",
  `data: ${JSON.stringify(AVAILABLE)}`,
  "",
  "event: done",
  `data: ${JSON.stringify({ complete: true })}`,
  "\n",
].join("\n");

const search = operation({
  id: "search",
  tag: "visitors",
  summary: "Look for a name under several TLDs.",
  description: "What cannot be had in time is told as unknown, with the seconds after which to ask again.",
  parameters: [
    query(
      "q",
      "A label, or a whole name.",
      { type: "string", minLength: 1 },
      { ...required, example: "kabul" },
    ),
    query(
      "tlds",
      "Where to look; everything sold, unless given.",
      { type: "array", items: TLD, minItems: 1 },
      { style: "form", explode: false, example: [".af", ".com.af"] },
    ),
    yearsWanted,
    onlyKnown,
    {
      name: "Last-Event-ID",
      in: "header",
      description: "Where a broken event stream ended: what it told is neither told nor asked for again.",
      schema: { type: "string" },
    },
  ],
  answers: {
    200: countedAnswer({
      description:
        "One result for each TLD, the exact name first; or, as an event stream, as they become known.",
      content: [
        {
          schema: schemaRef("Search"),
          example: { query: "kabul", label: "kabul", results: [AVAILABLE, UNKNOWN], complete: false },
        },
        {
          type: "text/event-stream",
          schema: { type: "string", description: STREAM },
          example: STREAMED,
        },
      ],
      cache: STORED_NOWHERE,
      headers: { "X-Accel-Buffering": UNBUFFERED },
    }),
  },
  problems: [...LOCAL, "Unavailable"],
});

const pricesCache = cacheControl("public, max-age=300, stale-while-revalidate=3600");
const prices = operation({
  id: "listPrices",
  tag: "visitors",
  summary: "The price of everything sold.",
  parameters: [
    query("tld", "Only this TLD.", TLD, { example: ".af" }),
    query("action", "Only this action.", ACTION, { example: "registration" }),
    query("years", "Only this term.", YEARS, { example: 1 }),
    IF_NONE_MATCH,
  ],
  answers: {
    200: sharedAnswer({
      description: "The prices.",
      content: { schema: schemaRef("PriceList"), example: { asOf: AS_OF, prices: [PROMOTED, QUOTED] } },
      cache: pricesCache,
      headers: { ETag: ETAG },
    }),
    304: sharedAnswer({
      description: "The list already held is still the right one.",
      cache: pricesCache,
      headers: { ETag: ETAG },
    }),
  },
  problems: [...LOCAL, "Unavailable"],
});

const quote = operation({
  id: "getQuote",
  tag: "visitors",
  summary: "The price of one action.",
  parameters: [
    query("tld", "The TLD.", TLD, { ...required, example: ".af" }),
    query("action", "What is to be done.", ACTION, { ...required, example: "renewal" }),
    { ...yearsWanted, example: 2 },
  ],
  answers: {
    200: countedAnswer({
      description: "The price.",
      content: { schema: schemaRef("Quote"), example: { ...QUOTED, asOf: AS_OF, stale: false } },
    }),
  },
  problems: ASKING,
});

const quotes = operation({
  id: "quoteBasket",
  tag: "visitors",
  summary: "Price a cart, and check again what is to be registered.",
  description:
    "A line that cannot be priced has a problem of its own; the others are priced and signed. Only when no line at all could be answered is the whole a problem.",
  body: {
    schema: "QuoteRequest",
    example: { items: [{ domain: "kabul.af", action: "registration", years: 1 }] },
  },
  answers: {
    200: countedAnswer({
      description: "The priced cart, line by line in the order asked.",
      content: {
        schema: schemaRef("Quotes"),
        example: {
          items: [
            {
              domain: "kabul.af",
              tld: ".af",
              action: "registration",
              years: 1,
              price: PRICE,
              status: "available",
              premium: false,
              asOf: AS_OF,
            },
            {
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
                detail:
                  "This is a premium name, and the registry service names no price for this action on it.",
              },
            },
          ],
          total: [PRICE],
          promise: "eyJhbGciOiJFZERTQSJ9.eyJjdXJyZW5jeSI6IlVTRCJ9.c2lnbmF0dXJl",
          validUntil: "2026-03-01T09:45:00.000Z",
        },
      },
    }),
  },
  problems: [...ASKING, "PayloadTooLarge", "UnsupportedMediaType"],
});

export const VISITOR_PATHS: JsonObject = {
  "/v1/availability": { get: availability },
  "/v1/search": { get: search },
  "/v1/prices": { get: prices },
  "/v1/quotes": { get: quote, post: quotes },
};
