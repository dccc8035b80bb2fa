/** The shapes of answers for customers. */
import { z } from "zod";
import { originShape, record } from "./staff.js";
import { moneyShape, years } from "./visitors.js";

export const customerDomainShape = z
  .strictObject({
    ...record,
    renewal: z
      .array(z.strictObject({ years, price: moneyShape }))
      .describe("What a renewal costs. Empty if no price is known or no renewal is sold."),
    ...originShape.shape,
  })
  .describe("One of the customer's own domains.");

export const customerDomainsShape = z
  .strictObject({ domains: z.array(customerDomainShape) })
  .describe("The customer's own domains, in the order of the token.");
