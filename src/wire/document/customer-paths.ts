/** Paths for customers, with a token from the reseller's login. */
import { countedAnswer, inPath, operation, repeatable } from "./operation.js";
import { ASKING } from "./problems.js";
import type { JsonObject } from "./schemas.js";
import { LEARNED, RECORD } from "./staff-paths.js";

const OWN = {
  ...RECORD,
  renewal: [{ years: 1, price: { amount: "24.99", currency: "USD" } }],
  ...LEARNED,
};

const PROBLEMS = [...ASKING, "Unauthenticated", "NotFound"] as const;

const list = operation({
  id: "listOwnDomains",
  tag: "customers",
  summary: "The customer's domains.",
  description: "The domains in the token that the reseller manages.",
  answers: repeatable(countedAnswer, {
    description: "The last known state, with the time when it was known.",
    content: { schema: "CustomerDomains", example: { domains: [OWN] } },
  }),
  problems: PROBLEMS,
});

const one = operation({
  id: "getOwnDomain",
  tag: "customers",
  summary: "One of the customer's domains.",
  description: "A name that isn't in the token, or isn't managed by the reseller, is answered with 404.",
  parameters: [inPath("domain", "The domain name.", { type: "string", minLength: 1 }, "kabul.af")],
  answers: repeatable(countedAnswer, {
    description: "The last known state, with the time when it was known.",
    content: { schema: "CustomerDomain", example: OWN },
  }),
  problems: PROBLEMS,
});

export const CUSTOMER_PATHS: JsonObject = {
  "/v1/me/domains": { get: list },
  "/v1/me/domains/{domain}": { get: one },
};
