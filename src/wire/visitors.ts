/** The shapes of requests and answers of visitors: parsed, presented and documented from here. Any other field is an error. */
import { z } from "zod";
import { ERROR_CODES } from "../errors.js";
import { ACTIONS } from "../upstream/contract.js";

/** What makes an example in the document, where the first of several values or the smallest number wouldn't do. */
export const dateTime = z.iso.datetime().meta({ example: "2026-03-01T09:30:00.000Z" });
const minute = dateTime.describe("A whole minute, rounded down.");
export const count = z.int().min(0).meta({ example: 12 });
export const domain = z.string().meta({ example: "kabul.af" });
const MAX_YEARS = 10;
export const years = z.int().min(1).max(MAX_YEARS);
export const tld = z
  .string()
  .regex(/^\.[a-z0-9-]+(?:\.[a-z0-9-]+)*$/)
  .meta({ example: ".af" });
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .meta({ example: "USD" });
export const action = z.enum(ACTIONS);

export const moneyShape = z
  .strictObject({
    amount: z
      .string()
      .regex(/^\d+(?:\.\d+)?$/)
      .meta({ example: "24.99" }),
    currency,
  })
  .describe("An exact amount: a decimal string with the currency's digits.");

export const promotionShape = z
  .strictObject({ id: z.string(), regular: moneyShape, until: dateTime })
  .describe("A temporarily lower price, with the regular price and the end of the promotion.");

export const availabilityShape = z
  .strictObject({
    domain: domain.describe("The name in its canonical ASCII form."),
    unicodeName: domain,
    tld,
    status: z.enum(["available", "taken", "unknown"]),
    available: z.boolean().meta({ example: true }),
    premium: z.boolean(),
    years,
    price: moneyShape.nullable().describe("The registration price; null unless available."),
    renewal: moneyShape
      .nullable()
      .describe(
        "The price of the shortest renewal if the name is available and not premium; null if unknown.",
      ),
    asOf: minute.nullable().describe("The minute in which the registry was asked; null only for unknown."),
    stale: z
      .boolean()
      .describe("The answer is past its freshness and no newer one is available, or its price is doubtful."),
    retryAfter: z
      .int()
      .min(1)
      .optional()
      .describe("In a search, for unknown: seconds to wait before a retry. Absent with `only=known`."),
    kept: z
      .boolean()
      .optional()
      .describe(
        "In a search, for unknown: whether a call is reserved, so that a retry at that second succeeds.",
      ),
    suggested: z
      .literal(true)
      .optional()
      .describe("In an event stream: an alternative to the name searched for, which is taken."),
  })
  .describe("Whether a name can be registered, and for how much.");

export const searchShape = z
  .strictObject({
    query: z.string().meta({ example: "kabul" }),
    label: z.string().meta({ example: "kabul" }),
    results: z.array(availabilityShape).describe("The exact name first."),
    complete: z.boolean().describe("False if any status is unknown."),
  })
  .describe("The results for one label under the requested TLDs.");

const term = { tld, action, years };

export const priceShape = z
  .strictObject({ ...term, price: moneyShape, promotion: promotionShape.optional() })
  .describe("The price of one action for one term.");

export const priceListShape = z
  .strictObject({ asOf: minute, prices: z.array(priceShape) })
  .describe("The prices of everything sold.");

export const quoteShape = z
  .strictObject({
    ...priceShape.shape,
    asOf: minute,
    stale: z.boolean().describe("The price is past its freshness or doubtful, and is being refreshed."),
  })
  .describe("The price of one action for one term, with its age.");

const ITEMS = "must have 1 to 20 items";

export const quoteRequestShape = z
  .strictObject({
    items: z
      .array(
        z.strictObject({
          domain: z.string("must be a string").min(1, "is missing").meta({ example: "kabul.af" }),
          action: z.enum(ACTIONS, `must be one of ${ACTIONS.join(", ")}`),
          years: z
            .int("must be a whole number of years")
            .min(1, "must be at least 1")
            .max(MAX_YEARS, `must be at most ${MAX_YEARS}`)
            .optional(),
        }),
        "must be a list",
      )
      .min(1, ITEMS)
      .max(20, ITEMS),
  })
  .describe("A cart. Without `years`, a line has the shortest term sold.");

export const quoteLineShape = z
  .strictObject({
    domain,
    ...term,
    price: moneyShape.nullable(),
    status: z
      .enum(["available", "taken", "not_checked"])
      .describe("`not_checked` for every action but registration, and for a line with a problem."),
    premium: z.boolean(),
    asOf: minute.describe(
      "When the oldest fact behind the line was requested, or the line itself if it has a problem.",
    ),
    problem: z
      .strictObject({ code: z.enum(ERROR_CODES), detail: z.string(), retryAfter: z.int().min(1).optional() })
      .optional()
      .describe("Why the line has no price, unless the name is taken."),
  })
  .describe("One line of a cart.");

export const quotesShape = z
  .strictObject({
    items: z.array(quoteLineShape),
    total: z.array(moneyShape).describe("One amount per currency."),
    promise: z
      .string()
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
      .meta({ example: "eyJhbGciOiJFZERTQSJ9.eyJjdXJyZW5jeSI6IlVTRCJ9.c2lnbmF0dXJl" })
      .nullable()
      .describe(
        "The signed priced lines: a compact JWS, verified with /.well-known/jwks.json. Null if no line has a price or the service has no signing key.",
      ),
    validUntil: dateTime.nullable().describe("When the promise expires; null without a promise."),
  })
  .describe("A priced cart.");
