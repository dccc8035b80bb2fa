/** Paths for the reseller's staff, with a bearer token. */
import { ACT_COLUMNS, CART_COLUMNS, DOMAIN_COLUMNS, PRICE_COLUMNS } from "../csv.js";
import { calendarQuery, promisesQuery } from "../queries.js";
import { inPath, operation, queryOf } from "./operation.js";
import { ASKING, LOCAL, type ProblemResponse } from "./problems.js";
import type { JsonObject, SchemaName } from "./schemas.js";

const FROM_MEMORY = [...LOCAL, "Unauthenticated", "Forbidden", "ShuttingDown"] as const;
const ASKING_WITH_TOKEN = [...ASKING, "Unauthenticated", "Forbidden"] as const;
const WITH_BODY = [...FROM_MEMORY, "PayloadTooLarge", "UnsupportedMediaType"] as const;
const PROMISE_ID = inPath(
  "id",
  "The `jti` of the signed cart.",
  { type: "string", minLength: 1 },
  "0b9e1c3a-6a3f-4a58-9a5f-8a0f6f2f6f0d",
);

interface Reading {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly schema: SchemaName;
  /** Default: those of an answer from memory. */
  readonly problems?: readonly ProblemResponse[];
  readonly parameters?: readonly JsonObject[];
  /** The columns of the CSV version. */
  readonly csv?: readonly string[];
}

function reading({ schema, csv, ...facts }: Reading): JsonObject {
  const table = { type: "text/csv", schema: { type: "string" }, example: `${csv?.join(",")}\r\n` };
  return {
    get: operation({
      problems: FROM_MEMORY,
      ...facts,
      tag: "staff",
      scope: "read",
      answer: {
        description: "The last known state.",
        content: [{ schema }, ...(csv === undefined ? [] : [table])],
      },
    }),
  };
}

const calendar = operation({
  id: "listExpiringDomains",
  tag: "staff",
  summary: "When domains expire, as a calendar to subscribe to (RFC 5545).",
  description: "With a token, or as a signed link, which `npm run token` prints.",
  scope: "read",
  parameters: queryOf(calendarQuery),
  answer: {
    description: "A day for each domain: its name, and whether it renews automatically.",
    content: { type: "text/calendar", schema: { type: "string" } },
  },
  problems: ASKING_WITH_TOKEN,
});

const preview = operation({
  id: "previewPrices",
  tag: "staff",
  summary: "Preview a changed RETAIL_CONFIG.",
  description:
    "Returns the current and the new price of every term, with margins and warnings, or every fault of the file. " +
    "Makes no upstream call and changes nothing.",
  scope: "operate",
  body: {
    type: "application/yaml",
    schema: { type: "string", maxLength: 65_536 },
    example:
      'currency: USD\ncatalog:\n  - tld: .af\n    years: { registration: [1] }\nrules:\n  - markupPercent: "25"\n',
  },
  answer: { description: "The changes, or the faults of the file.", content: { schema: "PricePreview" } },
  problems: WITH_BODY,
});

const note = operation({
  id: "notePromise",
  tag: "staff",
  summary: "Say what the checkout knows of a signed cart of the last 30 days.",
  description: "Saying the same again changes nothing. A reference must say nothing about a person.",
  scope: "order",
  parameters: [PROMISE_ID],
  body: { schema: "CartNoteRequest", example: { state: "ordered", reference: "2026-0042" } },
  answer: { description: "The cart.", content: { schema: "FollowedCart" } },
  problems: [...WITH_BODY, "NotFound"],
});

const purge = operation({
  id: "purgeCache",
  tag: "staff",
  summary: "Purge cached data.",
  description: "The data is fetched again, which costs quota. Prices stay visible until they are refreshed.",
  scope: "operate",
  body: { schema: "PurgeRequest" },
  answer: {
    description: "How many entries are affected on the replica that answers, by kind.",
    content: { schema: "Purged", example: { purged: { prices: 40 } } },
  },
  problems: WITH_BODY,
});

export const STAFF_PATHS: JsonObject = {
  "/v1/staff/domains": reading({
    id: "listManagedDomains",
    summary: "The domains that the reseller manages.",
    schema: "StaffDomains",
    csv: DOMAIN_COLUMNS,
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/domains/expiring.ics": { get: calendar },
  "/v1/staff/domains/{domain}": reading({
    id: "getManagedDomain",
    summary: "One of the domains that the reseller manages.",
    schema: "StaffDomain",
    problems: [...ASKING_WITH_TOKEN, "NotFound"],
    parameters: [inPath("domain", "The domain name.", { type: "string", minLength: 1 }, "kabul.af")],
  }),
  "/v1/staff/balance": reading({
    id: "getBalance",
    summary: "The account's balance and credit limit.",
    schema: "Balance",
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/tier": reading({
    id: "getTier",
    summary: "The pricing tier, and what the next one requires.",
    schema: "Tier",
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/prices": reading({
    id: "listStaffPrices",
    summary: "Wholesale, retail and margin of everything sold, with warnings.",
    schema: "StaffPrices",
    csv: PRICE_COLUMNS,
  }),
  "/v1/staff/prices/preview": { post: preview },
  "/v1/staff/promises": reading({
    id: "listPromises",
    summary: "The signed carts of the last 30 days, and what became of their lines.",
    description: "Uses no quota of its own, at most the last 10,000 carts.",
    schema: "FollowedCarts",
    parameters: queryOf(promisesQuery),
    csv: CART_COLUMNS,
  }),
  "/v1/staff/promises/{id}": {
    ...reading({
      id: "getPromise",
      summary: "A signed cart, with the wholesale prices of its lines when it was signed and now.",
      schema: "StaffPromise",
      problems: [...FROM_MEMORY, "NotFound"],
      parameters: [PROMISE_ID],
    }),
    post: note,
  },
  "/v1/staff/overview": reading({
    id: "getOverview",
    summary: "Quota, lanes, caches, upstream and credentials.",
    description: "Uses no quota.",
    schema: "Overview",
  }),
  "/v1/staff/history": reading({
    id: "getHistory",
    summary: "The figures of the last day, for charts.",
    description: "Uses no quota. With Redis: of all replicas. Without it: of this replica since startup.",
    schema: "History",
  }),
  "/v1/staff/audit": reading({
    id: "getAudit",
    summary: "The last 1,000 staff actions, newest first.",
    description:
      "Purges, previews, look-ups of signed carts, what the checkout said of them, refused tokens and changes of RETAIL_CONFIG, for up to 30 days.",
    schema: "Audit",
    csv: ACT_COLUMNS,
  }),
  "/v1/staff/cache/purge": { post: purge },
};
