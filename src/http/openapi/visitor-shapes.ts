/** The shapes of what visitors ask and are told (contract section 4). Closed: a field that is not here is a fault. */
import { z } from "zod";
import { ACTIONS } from "../../upstream/contract.js";

export const dateTime = z.iso.datetime();
export const minute = z.iso.datetime().meta({ description: "A whole minute, rounded down." });
export const count = z.int().min(0);
export const years = z.int().min(1).max(10);
export const tld = z.string().regex(/^\.[a-z0-9-]+(?:\.[a-z0-9-]+)*$/);
export const currency = z.string().regex(/^[A-Z]{3}$/);
export const action = z.enum(ACTIONS);

export const moneyShape = z
  .strictObject({ amount: z.string().regex(/^\d+(?:\.\d+)?$/), currency })
  .meta({ description: "An exact amount: a decimal string with the currency's digits." });

export const promotionShape = z
  .strictObject({ id: z.string(), regular: moneyShape, until: dateTime })
  .meta({ description: "A lower price for a while: the regular price, and when it returns." });

export const availabilityShape = z
  .strictObject({
    domain: z.string().meta({ description: "The name in its canonical ASCII form." }),
    unicodeName: z.string(),
    tld,
    status: z.enum(["available", "taken", "unknown"]),
    available: z.boolean(),
    premium: z.boolean(),
    years,
    price: z.union([moneyShape, z.null()]).meta({ description: "For registration; null unless available." }),
    renewal: z.union([moneyShape, z.null()]).meta({
      description:
        "What the shortest renewal of an available ordinary name costs; null where unknown or premium.",
    }),
    asOf: minute
      .nullable()
      .meta({ description: "The minute in which this was asked; null only when unknown." }),
    stale: z.boolean().meta({
      description:
        "Past its freshness and shown because no newer answer can be had, or at a price that is doubtful.",
    }),
    retryAfter: z
      .int()
      .min(1)
      .optional()
      .meta({ description: "In a search, for unknown: whole seconds. Absent with `only=known`." }),
    kept: z.boolean().optional().meta({
      description:
        "In a search, for unknown: whether a call is reserved, so that a retry at that second succeeds.",
    }),
    suggested: z
      .literal(true)
      .optional()
      .meta({ description: "In an event stream: another name, because the one searched for is taken." }),
  })
  .meta({ description: "Whether one name can be registered, and for how much." });

export const searchShape = z
  .strictObject({
    query: z.string(),
    label: z.string(),
    results: z.array(availabilityShape).meta({ description: "The exact name first." }),
    complete: z.boolean().meta({ description: "False while any status is unknown." }),
  })
  .meta({ description: "One label under every TLD asked for." });

const term = { tld, action, years };

export const priceShape = z
  .strictObject({ ...term, price: moneyShape, promotion: promotionShape.optional() })
  .meta({ description: "The price of one action for one term." });

export const priceListShape = z
  .strictObject({ asOf: minute, prices: z.array(priceShape) })
  .meta({ description: "The price of everything sold." });

export const quoteShape = z
  .strictObject({
    ...term,
    price: moneyShape,
    promotion: promotionShape.optional(),
    asOf: minute,
    stale: z.boolean().meta({ description: "Past its freshness, or doubtful: it is being asked again." }),
  })
  .meta({ description: "The price of one action for one term, with its age." });

export const quoteRequestShape = z
  .strictObject({
    items: z
      .array(z.strictObject({ domain: z.string().min(1), action, years: years.optional() }))
      .min(1)
      .max(20),
  })
  .meta({ description: "What a visitor means to buy. Without years, the shortest term sold." });

export const quoteLineShape = z
  .strictObject({
    domain: z.string(),
    ...term,
    price: z.union([moneyShape, z.null()]),
    status: z
      .enum(["available", "taken", "not_checked"])
      .meta({ description: "Only what is to be registered is checked." }),
    premium: z.boolean(),
    asOf: minute.meta({
      description: "When the oldest fact behind the line was asked, or the line itself if it has a problem.",
    }),
    problem: z
      .strictObject({ code: z.string(), detail: z.string(), retryAfter: z.int().min(1).optional() })
      .optional()
      .meta({ description: "Why the line has no price, unless the name is taken; `code` as in problems." }),
  })
  .meta({ description: "One line of a cart." });

export const quotesShape = z
  .strictObject({
    items: z.array(quoteLineShape),
    total: z.array(moneyShape).meta({ description: "One amount per currency." }),
    promise: z
      .string()
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
      .nullable()
      .meta({
        description:
          "The lines that have a price, signed: a compact JWS, verified with /.well-known/jwks.json. Null when no line has one, or the service has no key.",
      }),
    validUntil: dateTime.nullable().meta({ description: "Until when the promise holds; null without one." }),
  })
  .meta({ description: "A priced cart." });
