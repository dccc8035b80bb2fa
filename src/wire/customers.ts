/** The shapes of answers for customers. */
import { z } from "zod";
import { originShape, record } from "./staff.js";
import { domain, moneyShape, years } from "./visitors.js";

export const customerDomainShape = z
  .strictObject({
    ...record,
    renewal: z
      .array(z.strictObject({ years, price: moneyShape }))
      .describe("What a renewal costs. Empty if no price is known or no renewal is sold."),
    ...originShape.shape,
  })
  .describe("One of the customer's own domains.");

export const unknownDomainShape = z
  .strictObject({
    domain,
    status: z.literal("unknown"),
    retryAfter: z.int().min(1).describe("Seconds after which more may be known."),
  })
  .describe("A domain that hasn't been loaded yet.");

export const customerDomainsShape = z
  .strictObject({ domains: z.array(z.union([customerDomainShape, unknownDomainShape])) })
  .describe("The customer's own domains, in the order of the token.");
