/** The shapes of answers for staff (contract section 6), the only ones with wholesale amounts. */
import { z } from "zod";
import {
  action,
  count,
  currency,
  dateTime,
  moneyShape,
  promotionShape,
  tld,
  years,
} from "./visitor-shapes.js";

export const learned = {
  asOf: dateTime,
  source: z
    .enum(["upstream", "cache", "stale"])
    .meta({ description: "Whether the data was just fetched, cached, or is past its freshness." }),
};
export const record = {
  domain: z.string(),
  status: z.string().nullable(),
  registeredAt: dateTime.nullable(),
  expiresAt: dateTime.nullable(),
  autoRenew: z.boolean().nullable(),
  nameservers: z.array(z.string()),
};
const signedAmount = z.string().regex(/^-?\d+(?:\.\d+)?$/);

export const signedMoneyShape = z
  .strictObject({ amount: signedAmount, currency })
  .meta({ description: "An exact amount that can be negative." });

export const domainRecordShape = z.strictObject(record).meta({
  description: "A domain that the reseller manages. Fields that the upstream doesn't return are null.",
});

export const staffDomainShape = z
  .strictObject({ ...record, ...learned })
  .meta({ description: "One managed domain, and when it was known." });

export const staffDomainsShape = z
  .strictObject({
    domains: z.array(domainRecordShape),
    truncated: z
      .literal(true)
      .optional()
      .meta({ description: "The account has more domains than the upstream lists." }),
    ...learned,
  })
  .meta({ description: "The managed domains, at most 100." });

export const balanceShape = z
  .strictObject({
    accountNumber: z.string(),
    balance: signedAmount,
    currency,
    creditLimit: signedAmount,
    activeDomains: count,
    ...learned,
  })
  .meta({ description: "The account's balance and credit limit." });

export const tierShape = z
  .strictObject({
    currentTier: z.string(),
    nextTier: z.string().nullable(),
    domainsNeeded: count.nullable(),
    ...learned,
  })
  .meta({ description: "The pricing tier, and how many more domains the next one requires." });

export const staffPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    wholesale: moneyShape,
    retail: z.union([moneyShape, z.null()]),
    margin: z.union([signedMoneyShape, z.null()]),
    rule: z.string().nullable().meta({ description: "The price rule that determined the retail price." }),
    promotion: promotionShape.optional(),
    asOf: dateTime,
    doubtful: z.literal(true).optional().meta({
      description: "Evidence contradicts it: shown as stale, and not signed until it has been asked again.",
    }),
    changed: z
      .strictObject({
        at: dateTime,
        from: moneyShape,
        by: z.union([signedMoneyShape, z.null()]).meta({
          description: "The difference to the previous wholesale price; null if the currency changed.",
        }),
      })
      .optional()
      .meta({ description: "The last change of the wholesale price, if it was within the last day." }),
    warning: z.string().optional(),
  })
  .meta({ description: "What one term costs the reseller, and what it costs the visitor." });

export const staffPricesShape = z
  .strictObject({ asOf: dateTime, prices: z.array(staffPriceShape), warnings: z.array(z.string()) })
  .meta({ description: "Wholesale and retail prices of everything sold." });

export const staffPromiseLineShape = z
  .strictObject({
    domain: z.string(),
    tld,
    action,
    years,
    price: moneyShape.meta({ description: "The signed price." }),
    premium: z.boolean(),
    wholesale: moneyShape.meta({ description: "The wholesale price when the cart was signed." }),
    margin: z.union([signedMoneyShape, z.null()]),
    wholesaleToday: z
      .union([moneyShape, z.null()])
      .meta({ description: "The wholesale price now, as far as known; null for premium names." }),
    marginToday: z.union([signedMoneyShape, z.null()]),
    marginLost: z
      .union([moneyShape, z.null()])
      .meta({ description: "By how much the promised price is below the floor now; null when it isn't." }),
  })
  .meta({ description: "One line of a signed cart." });

export const staffPromiseShape = z
  .strictObject({
    id: z.string().meta({ description: "The `jti` of the signed cart." }),
    issuedAt: dateTime,
    validUntil: dateTime,
    items: z.array(staffPromiseLineShape),
    marginLost: z.array(moneyShape).meta({ description: "One amount per currency." }),
  })
  .meta({ description: "A signed cart that is still valid." });

export const laneShape = z
  .strictObject({
    queued: count,
    served: count,
    refused: count,
    left: count.meta({ description: "Requests that were abandoned before their turn." }),
    retried: count.meta({ description: "Refused requests that came back to claim their reservation." }),
    retriedServed: count,
    waitedMsTotal: z.number().min(0),
    longestWaitMs: z.number().min(0),
  })
  .meta({ description: "One lane of the quota queue, since startup." });

const waitsShape = z
  .strictObject({
    told: z
      .strictObject({ count, p50Seconds: count, p99Seconds: count, maxSeconds: count })
      .meta({ description: "What refused visitors were told to wait, over the last ten to twenty windows." }),
    reservations: z.strictObject({ made: count, claimed: count, honoured: count, unclaimed: count }).meta({
      description:
        "Since the start: given to refused visitors, come back to in time, served, never come back to.",
    }),
    refused: z.strictObject({ reserved: count, busy: count, early: count, late: count, fault: count }).meta({
      description:
        "Since the start: with a reservation, without one, back too early, after a wait in vain, for a fault of the ledger.",
    }),
    idleCalls: z
      .number()
      .min(0)
      .meta({ description: "Calls that were due while somebody waited and were not made." }),
    refusedAgoMs: z.number().min(0).nullable().meta({ description: "Since the last refusal." }),
  })
  .meta({ description: "Who was refused, what they were told, and whether it held." });

export const cachePoolShape = z
  .strictObject({
    entries: count,
    bound: count,
    inflight: count,
    counts: z.strictObject({
      hit: count,
      inflight: count,
      miss: count,
      stale: count,
      failed: count,
      shared: count.meta({ description: "Answered with a fact from another replica." }),
    }),
  })
  .meta({ description: "One pool of the cache." });

const operation = z.enum(["check", "quote", "domains", "domain", "balance", "tier"]);

export const endedEpochShape = z
  .strictObject({
    at: dateTime,
    evidence: z.enum(["tier", "quote", "purge", "replica"]),
    tld: tld.optional(),
    action: action.optional(),
    years: years.optional(),
    from: z.union([moneyShape, z.string()]).optional(),
    to: z.union([moneyShape, z.string()]).optional(),
  })
  .meta({
    description:
      "What ended a price epoch: another tier, another quote, a purge, or word of another replica.",
  });

const fleetFiguresShape = z
  .strictObject({
    queued: count,
    served: count,
    refused: count,
    promisesInForce: count,
    promisesBelowFloor: count,
    cacheHits: count,
    coalesced: count,
    shared: count,
    refusedLocally: count,
  })
  .meta({ description: "Lanes, signed promises and avoided calls since the start, as far as they add up." });

export const overviewShape = z
  .strictObject({
    mode: z.enum(["sandbox", "upstream"]),
    quota: z.strictObject({
      used: count,
      budget: count,
      limit: count,
      windowMs: count,
      largestWindowToday: count,
      pausedForMs: z.number().min(0),
      lanes: z.strictObject({
        checkout: laneShape,
        exact: laneShape,
        search: laneShape,
        account: laneShape,
        refresh: laneShape,
        suggestion: laneShape,
      }),
      waits: waitsShape,
    }),
    rateLimited: z.strictObject({ requests: count, cold: count }).meta({
      description:
        "Refused since the start: requests beyond a client's limit, and beyond what it may spend while others want quota.",
    }),
    redis: z.enum(["shared", "refusing", "gone", "none"]).meta({
      description:
        "Whether Redis is in use (`shared`), refuses commands (`refusing`), is unreachable (`gone`) or isn't configured (`none`).",
    }),
    caches: z.strictObject({
      availability: cachePoolShape,
      prices: cachePoolShape,
      tier: cachePoolShape,
      account: cachePoolShape,
    }),
    upstream: z.strictObject({
      lastSuccessAt: dateTime.nullable(),
      lastFailureAt: dateTime.nullable(),
      openCircuits: z.array(operation).meta({
        description: "Operations whose circuit is open: they keep failing, and only trial requests are made.",
      }),
      recent: z.strictObject({
        windowMs: count,
        operations: z
          .array(
            z.strictObject({
              operation,
              calls: count,
              failed: count.meta({
                description: "Calls without a usable answer: refused, interrupted or timed out.",
              }),
              meanMs: count,
              p95Ms: count,
            }),
          )
          .meta({ description: "Calls that ended within the last `windowMs`." }),
      }),
    }),
    unexpected: z
      .array(z.strictObject({ operation, what: z.string(), count, firstSeen: dateTime }))
      .max(50)
      .meta({
        description:
          "Fields, status words and error codes of the upstream that aren't known, by their shape. Values aren't included.",
      }),
    credentials: z.array(
      z.strictObject({
        role: z.enum(["active", "standby"]),
        fingerprint: z.string(),
        refused: z.boolean().meta({ description: "The upstream recently refused this credential." }),
      }),
    ),
    prices: z
      .strictObject({
        sold: count,
        known: count,
        doubtful: count.meta({ description: "Contradicted by evidence, not signed until asked again." }),
        epochsEnded: z.array(endedEpochShape).meta({
          description: "What showed within the last day that prices had changed, newest first.",
        }),
        config: z
          .strictObject({ fingerprint: z.string(), since: dateTime, faults: z.array(z.string()) })
          .meta({
            description:
              "The `RETAIL_CONFIG` in effect, since when, and why a changed file isn't used. No faults: the file is in effect.",
          }),
      })
      .meta({ description: "How far the price list can be relied on." }),
    promises: z
      .strictObject({
        inForce: count,
        belowFloor: count,
        marginLost: z.array(moneyShape).meta({ description: "One amount per currency." }),
      })
      .meta({ description: "Price promises that still hold." }),
    saved: z
      .strictObject({ cache: count, coalesced: count, shared: count, refusedLocally: count })
      .meta({ description: "Upstream calls that were avoided." }),
    fleet: z
      .array(
        z.strictObject({
          replica: z.string(),
          version: z.string(),
          since: dateTime,
          settings: z.string().meta({
            description: "Fingerprint of the settings and the credential that all replicas must share.",
          }),
          figures: fleetFiguresShape,
        }),
      )
      .min(1)
      .meta({ description: "The replicas that share this Redis, the one that answers first." }),
    fleetTotal: fleetFiguresShape,
  })
  .meta({ description: "The state of quota, lanes, caches, upstream and credentials." });

export const purgeRequestShape = z
  .strictObject({ what: z.enum(["prices", "availability", "account", "all"]) })
  .meta({ description: "Which data to discard." });

export const purgedShape = z
  .strictObject({
    purged: z.strictObject({
      prices: count.optional(),
      availability: count.optional(),
      account: count.optional(),
    }),
  })
  .meta({ description: "The number of discarded entries by kind." });
