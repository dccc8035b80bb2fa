/** Paths for the reseller's staff, with a bearer token. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { perLane } from "../../quota/lane.js";
import { ACT_COLUMNS, CART_COLUMNS, csvOf, DOMAIN_COLUMNS, PRICE_COLUMNS } from "../csv.js";
import { presentKind } from "../parts.js";
import { calendarQuery, promisesQuery } from "../queries.js";
import { countedAnswer, inPath, operation, queryOf, repeatable } from "./operation.js";
import { ASKING, LOCAL, type ProblemResponse } from "./problems.js";
import type { JsonObject, SchemaName } from "./schemas.js";

const AS_OF = "2026-03-01T09:30:00.000Z";
export const LEARNED = { asOf: AS_OF, source: "cache" };
export const RECORD = {
  domain: "kabul.af",
  status: "active",
  registeredAt: "2024-05-02T00:00:00.000Z",
  expiresAt: "2027-05-02T00:00:00.000Z",
  autoRenew: true,
  nameservers: ["ns1.example.net", "ns2.example.net"],
};
const WHOLESALE = { amount: "18.00", currency: "USD" };
const RETAIL = { amount: "24.99", currency: "USD" };
const PRICE = {
  tld: ".af",
  action: "registration",
  years: 1,
  wholesale: WHOLESALE,
  retail: RETAIL,
  margin: { amount: "6.99", currency: "USD" },
  rule: "rule 1",
  asOf: AS_OF,
  changed: {
    at: AS_OF,
    from: { amount: "18.80", currency: "USD" },
    by: { amount: "-0.80", currency: "USD" },
  },
};
const ACT = {
  id: "0b9e1c3a-6a3f-4a58-9a5f-8a0f6f2f6f0d",
  when: AS_OF,
  who: "ops",
  what: "purge",
  subject: "prices",
  outcome: "done",
  times: 1,
};
const PROMISE_ID = "0b9e1c3a-6a3f-4a58-9a5f-8a0f6f2f6f0d";
const PROMISE_LINE = {
  domain: "kabul.af",
  tld: ".af",
  action: "registration",
  years: 1,
  price: RETAIL,
  ...presentKind("ordinary"),
  wholesale: WHOLESALE,
  margin: { amount: "6.99", currency: "USD" },
  wholesaleToday: WHOLESALE,
  marginToday: { amount: "6.99", currency: "USD" },
  marginLost: null,
};
const PROMISE = { id: PROMISE_ID, issuedAt: AS_OF, validUntil: "2026-03-01T09:45:00.000Z" };
const PROMISE_LINE_STATE = { state: "managed", stateAt: "2026-03-01T10:30:00.000Z" };
const CHECKOUT = { state: "ordered", reference: "2026-0042", at: "2026-03-01T09:31:00.000Z" };
const CART = { ...PROMISE, checkout: CHECKOUT, items: [{ ...PROMISE_LINE, ...PROMISE_LINE_STATE }] };
const SUM = { names: 1, amounts: [RETAIL] };
const SUMS = { signed: SUM, ordered: SUM, managed: SUM };
const IN_PATH = inPath("id", "The `jti` of the signed cart.", { type: "string", minLength: 1 }, PROMISE_ID);
const LANE = {
  queued: 0,
  served: 12,
  refused: 0,
  left: 0,
  retried: 0,
  retriedServed: 0,
  waitedMsTotal: 340,
  longestWaitMs: 120,
};
const POOL = {
  entries: 40,
  bound: 5000,
  inflight: 0,
  counts: { hit: 310, inflight: 4, miss: 52, stale: 1, failed: 0 },
};
const OVERVIEW = {
  mode: "upstream",
  quota: {
    used: 21,
    budget: 57,
    limit: 60,
    windowMs: 60000,
    largestWindowToday: 48,
    pausedForMs: 0,
    lanes: perLane(() => LANE),
    waits: {
      retryAfter: { count: 14, p50Seconds: 21, p99Seconds: 60, maxSeconds: 60 },
      reservations: { made: 9, claimed: 7, honoured: 7, unclaimed: 1 },
      refused: { reserved: 9, busy: 3, early: 2, late: 0, fault: 0 },
      idleCalls: 0,
      refusedAgoMs: 184000,
    },
  },
  rateLimited: { requests: 3, cold: 0 },
  redis: "none",
  caches: { availability: POOL, prices: POOL, tier: POOL, account: POOL },
  upstream: {
    lastSuccessAt: AS_OF,
    lastFailureAt: null,
    openCircuits: [],
    recent: {
      windowMs: 600000,
      operations: [{ operation: "check", calls: 52, failed: 1, meanMs: 180, p95Ms: 420 }],
    },
  },
  unexpected: [{ operation: "tier", what: "data.badge (string)", count: 3, firstSeen: AS_OF }],
  credentials: [{ role: "active", fingerprint: "5d41402abc4b", refused: false }],
  prices: {
    sold: 28,
    known: 28,
    doubtful: 0,
    epochsEnded: [{ at: AS_OF, evidence: "tier", from: "Silver", to: "Gold" }],
    config: { fingerprint: "9f86d081884c", since: AS_OF, faults: [] },
  },
  promises: { inForce: 12, belowFloor: 0, marginLost: [] },
  saved: { cache: 310, coalesced: 4, refusedLocally: 0 },
  owner: { role: "alone", since: AS_OF },
  alarms: [
    {
      kind: "expired",
      level: "bad",
      text: "A domain has expired: khyber.af (1 day ago).",
      todo: "Renew it in the reseller portal.",
    },
  ],
  notices: {
    on: true,
    waiting: 0,
    last: [
      {
        id: "5f0f6a3c-2a52-4d8e-8d1b-0c5d6e1f7a90",
        at: AS_OF,
        kind: "expired",
        state: "begun",
        text: "A domain has expired: khyber.af (1 day ago).",
        attempts: 1,
        delivery: "delivered",
        deliveryAt: AS_OF,
        problem: null,
      },
    ],
  },
  proxy: "fits",
};

const WITH_TOKEN = [...LOCAL, "Unauthenticated", "Forbidden"] as const;
const FROM_MEMORY = [...WITH_TOKEN, "ShuttingDown"] as const;
const ASKING_WITH_TOKEN = [...ASKING, "Unauthenticated", "Forbidden"] as const;

interface Reading {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly schema: SchemaName;
  readonly example: unknown;
  /** Default: those of an answer from memory. */
  readonly problems?: readonly ProblemResponse[];
  readonly parameters?: readonly JsonObject[];
  /** The first lines of the CSV version. */
  readonly csv?: string;
}

function reading({ schema, example, csv, ...facts }: Reading): JsonObject {
  const content = [
    { schema, example },
    ...(csv === undefined ? [] : [{ type: "text/csv", schema: { type: "string" }, example: csv }]),
  ];
  return {
    get: operation({
      problems: FROM_MEMORY,
      ...facts,
      tag: "staff",
      scope: "read",
      answers: repeatable(countedAnswer, { description: "The last known state.", content }),
    }),
  };
}

const purge = operation({
  id: "purgeCache",
  tag: "staff",
  summary: "Purge cached data.",
  description: "The data is fetched again, which costs quota. Prices stay visible until they are refreshed.",
  scope: "operate",
  body: { schema: "PurgeRequest", example: { what: "prices" } },
  answers: {
    200: countedAnswer({
      description: "How many entries are affected on the replica that answers, by kind.",
      content: { schema: "Purged", example: { purged: { prices: 40 } } },
    }),
  },
  problems: [...FROM_MEMORY, "PayloadTooLarge", "UnsupportedMediaType"],
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
  answers: {
    200: countedAnswer({
      description: "The changes, or the faults of the file.",
      content: {
        schema: "PricePreview",
        example: {
          faults: [],
          sections: ["rules"],
          prices: [
            {
              tld: ".af",
              action: "registration",
              years: 1,
              change: "changed",
              wholesale: WHOLESALE,
              now: { retail: RETAIL, margin: { amount: "6.99", currency: "USD" }, rule: "rule 1" },
              then: {
                retail: { amount: "22.50", currency: "USD" },
                margin: { amount: "4.50", currency: "USD" },
                rule: "rule 1",
              },
            },
          ],
          warnings: [],
        },
      },
    }),
  },
  problems: [...FROM_MEMORY, "PayloadTooLarge", "UnsupportedMediaType"],
});

const calendar = operation({
  id: "listExpiringDomains",
  tag: "staff",
  summary: "When domains expire, as a calendar to subscribe to (RFC 5545).",
  description: "With a token, or as a signed link, which `npm run token` prints.",
  scope: "read",
  parameters: queryOf(calendarQuery),
  answers: repeatable(countedAnswer, {
    description: "A day for each domain: its name, and whether it renews automatically.",
    content: { type: "text/calendar", schema: { type: "string" } },
  }),
  problems: [...ASKING_WITH_TOKEN],
});

const note = operation({
  id: "notePromise",
  tag: "staff",
  summary: "Say what the checkout knows of a signed cart of the last 30 days.",
  description: "Saying the same again changes nothing. A reference must say nothing about a person.",
  scope: "order",
  parameters: [IN_PATH],
  body: { schema: "CartNoteRequest", example: { state: "ordered", reference: "2026-0042" } },
  answers: {
    200: countedAnswer({ description: "The cart.", content: { schema: "FollowedCart", example: CART } }),
  },
  problems: [...FROM_MEMORY, "NotFound", "PayloadTooLarge", "UnsupportedMediaType"],
});

export const STAFF_PATHS: JsonObject = {
  "/v1/staff/domains": reading({
    id: "listManagedDomains",
    summary: "The domains that the reseller manages.",
    schema: "StaffDomains",
    example: { domains: [RECORD], ...LEARNED },
    csv: csvOf({ columns: DOMAIN_COLUMNS, rows: [{ ...RECORD, ...LEARNED }] }),
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/domains/expiring.ics": { get: calendar },
  "/v1/staff/domains/{domain}": reading({
    id: "getManagedDomain",
    summary: "One of the domains that the reseller manages.",
    schema: "StaffDomain",
    example: { ...RECORD, ...LEARNED },
    problems: [...ASKING_WITH_TOKEN, "NotFound"],
    parameters: [inPath("domain", "The domain name.", { type: "string", minLength: 1 }, "kabul.af")],
  }),
  "/v1/staff/balance": reading({
    id: "getBalance",
    summary: "The account's balance and credit limit.",
    schema: "Balance",
    example: {
      accountNumber: "R-10042",
      balance: "812.50",
      currency: "USD",
      creditLimit: "1000.00",
      activeDomains: 37,
      ...LEARNED,
    },
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/tier": reading({
    id: "getTier",
    summary: "The pricing tier, and what the next one requires.",
    schema: "Tier",
    example: { currentTier: "silver", nextTier: "gold", domainsNeeded: 13, ...LEARNED },
    problems: ASKING_WITH_TOKEN,
  }),
  "/v1/staff/prices": reading({
    id: "listStaffPrices",
    summary: "Wholesale, retail and margin of everything sold, with warnings.",
    schema: "StaffPrices",
    example: {
      asOf: AS_OF,
      prices: [PRICE],
      warnings: ["1 of 28 wholesale prices changed in the last 24 hours."],
    },
    csv: csvOf({ columns: PRICE_COLUMNS, rows: [PRICE] }),
  }),
  "/v1/staff/prices/preview": { post: preview },
  "/v1/staff/promises": reading({
    id: "listPromises",
    summary: "The signed carts of the last 30 days, and what became of their lines.",
    description: "Uses no quota of its own, at most the last 10,000 carts.",
    schema: "FollowedCarts",
    parameters: queryOf(promisesQuery),
    example: { promises: [CART], sums: { days7: SUMS, days30: SUMS } },
    csv: csvOf({
      columns: CART_COLUMNS,
      rows: [{ ...PROMISE, checkout: CHECKOUT, ...PROMISE_LINE, ...PROMISE_LINE_STATE }],
    }),
  }),
  "/v1/staff/promises/{id}": {
    ...reading({
      id: "getPromise",
      summary: "A signed cart, with the wholesale prices of its lines when it was signed and now.",
      schema: "StaffPromise",
      example: { ...PROMISE, items: [PROMISE_LINE], marginLost: [] },
      problems: [...FROM_MEMORY, "NotFound"],
      parameters: [IN_PATH],
    }),
    post: note,
  },
  "/v1/staff/overview": reading({
    id: "getOverview",
    summary: "Quota, lanes, caches, upstream and credentials.",
    description: "Uses no quota.",
    schema: "Overview",
    example: OVERVIEW,
  }),
  "/v1/staff/history": reading({
    id: "getHistory",
    summary: "The figures of the last day, for charts.",
    description: "Uses no quota. With Redis: of all replicas. Without it: of this replica since startup.",
    schema: "History",
    example: {
      everyMs: 60000,
      at: [AS_OF],
      used: [12],
      budget: [57],
      waitMs: { checkout: [0], exact: [0], search: [140], account: [0], refresh: [0], suggestion: [0] },
      hitRate: [0.92],
      meanMs: [48],
      p95Ms: [120],
      failed: [0],
      calls: [31],
    },
  }),
  "/v1/staff/audit": reading({
    id: "getAudit",
    summary: "The last 1,000 staff actions, newest first.",
    description:
      "Purges, previews, look-ups of signed carts, what the checkout said of them, refused tokens and changes of RETAIL_CONFIG, for up to 30 days.",
    schema: "Audit",
    example: { acts: [ACT] },
    csv: csvOf({ columns: ACT_COLUMNS, rows: [ACT] }),
  }),
  "/v1/staff/cache/purge": { post: purge },
};
