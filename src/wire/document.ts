/** The complete interface as an OpenAPI 3.1 document. The tests check every answer against it. */
import { CUSTOMER_PATHS } from "./document/customer-paths.js";
import { problemResponses } from "./document/problems.js";
import { type JsonObject, namedSchemas } from "./document/schemas.js";
import { SERVICE_PATHS } from "./document/service-paths.js";
import { STAFF_PATHS } from "./document/staff-paths.js";
import { VISITOR_PATHS } from "./document/visitor-paths.js";

interface OpenApiDocument extends JsonObject {
  readonly openapi: string;
  readonly paths: JsonObject;
  readonly components: JsonObject;
}

const DESCRIPTION = `Availability and retail prices of domain names for visitors; account data for the reseller's staff.

Times are RFC 3339 in UTC. Money is a decimal string with its currency. Errors are RFC 9457 problems with a \`code\`
from a closed list. Requests with unknown parameters or fields are rejected.`;

const STAFF_TOKEN = {
  type: "http",
  scheme: "bearer",
  description: [
    "A staff token. Its scopes say what it can do:",
    "",
    "- `read`: view domains, balance, tier, prices, signed carts, the overview, its history and the audit log",
    "- `operate`: purge caches and preview a changed price file",
    "- `order`: say what became of a signed cart",
    "- `metrics`: read `/metrics`",
  ].join("\n"),
};

const CUSTOMER_TOKEN = {
  type: "http",
  scheme: "bearer",
  bearerFormat: "JWT",
  description: "A token from the reseller's login, with the customer's domains in its `domains` claim.",
};

export function openApiDocument({ version }: { readonly version: string }): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "Storefront service",
      version,
      description: DESCRIPTION,
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [{ url: "/", description: "The server of this document." }],
    tags: [
      { name: "visitors", description: "Open to everyone, with a rate limit for each client." },
      {
        name: "customers",
        description: "For people who own domains. Answers 404 unless customer tokens are configured.",
      },
      { name: "staff", description: "For the reseller's staff and their tools." },
      { name: "service", description: "For operators of the service." },
    ],
    paths: { ...VISITOR_PATHS, ...CUSTOMER_PATHS, ...STAFF_PATHS, ...SERVICE_PATHS },
    components: {
      schemas: namedSchemas(),
      responses: problemResponses(),
      securitySchemes: { customerToken: CUSTOMER_TOKEN, staffToken: STAFF_TOKEN },
    },
  };
}
