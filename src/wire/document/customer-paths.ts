/** Paths for customers, with a token from the reseller's login. */
import { inPath, operation } from "./operation.js";
import { ASKING } from "./problems.js";
import type { JsonObject } from "./schemas.js";

const PROBLEMS = [...ASKING, "Unauthenticated", "NotFound"] as const;
const DESCRIPTION = "The last known state, with the time when it was known.";

const list = operation({
  id: "listOwnDomains",
  tag: "customers",
  summary: "The customer's domains.",
  description: "The domains in the token that the reseller manages.",
  answer: { description: DESCRIPTION, content: { schema: "CustomerDomains" } },
  problems: PROBLEMS,
});

const one = operation({
  id: "getOwnDomain",
  tag: "customers",
  summary: "One of the customer's domains.",
  description: "A name that isn't in the token, or isn't managed by the reseller, is answered with 404.",
  parameters: [inPath("domain", "The domain name.", { type: "string", minLength: 1 }, "kabul.af")],
  answer: { description: DESCRIPTION, content: { schema: "CustomerDomain" } },
  problems: PROBLEMS,
});

export const CUSTOMER_PATHS: JsonObject = {
  "/v1/me/domains": { get: list },
  "/v1/me/domains/{domain}": { get: one },
};
