/** The shapes of what staff are told (contract section 6), the only ones that hold wholesale amounts. */
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
    .meta({ description: "Asked for just now, remembered, or past its freshness." }),
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
  .meta({ description: "An exact amount that may be below zero." });

export const domainRecordShape = z
  .strictObject(record)
  .meta({ description: "A domain that the reseller manages; null is what the upstream does not tell." });

export const staffDomainShape = z
  .strictObject({ ...record, ...learned })
  .meta({ description: "One managed domain, with its age." });

export const staffDomainsShape = z
  .strictObject({
    domains: z.array(domainRecordShape),
    truncated: z.literal(true).optional().meta({ description: "The account has more than the list shows." }),
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
  .meta({ description: "The reseller's credit." });

export const tierShape = z
  .strictObject({
    currentTier: z.string(),
    nextTier: z.string().nullable(),
    domainsNeeded: count.nullable(),
    ...learned,
  })
  .meta({ description: "The pricing tier, and what the next one needs." });

export const staffPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    wholesale: moneyShape,
    retail: z.union([moneyShape, z.null()]),
    margin: z.union([signedMoneyShape, z.null()]),
    rule: z.string().nullable().meta({ description: "The price rule that made the retail price." }),
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
          description: "What the wholesale price has gained; null if the currency is another one.",
        }),
      })
      .optional()
      .meta({ description: "The last change of the wholesale price, if it is less than a day ago." }),
    warning: z.string().optional(),
  })
  .meta({ description: "What one term costs the reseller and the visitor." });

export const staffPricesShape = z
  .strictObject({ asOf: dateTime, prices: z.array(staffPriceShape), warnings: z.array(z.string()) })
  .meta({ description: "The price of everything sold, with what is behind it." });

export const staffPromiseLineShape = z
  .strictObject({
    domain: z.string(),
    tld,
    action,
    years,
    price: moneyShape.meta({ description: "As promised." }),
    premium: z.boolean(),
    wholesale: moneyShape.meta({ description: "When it was promised." }),
    margin: z.union([signedMoneyShape, z.null()]),
    wholesaleToday: z
      .union([moneyShape, z.null()])
      .meta({ description: "As last known; null when not known, and for premium names." }),
    marginToday: z.union([signedMoneyShape, z.null()]),
    marginLost: z
      .union([moneyShape, z.null()])
      .meta({ description: "By how much the promised price is below the floor now; null when it isn't." }),
  })
  .meta({ description: "A promised price and what is behind it." });

export const staffPromiseShape = z
  .strictObject({
    id: z.string().meta({ description: "The jti of the signed promise." }),
    issuedAt: dateTime,
    validUntil: dateTime,
    items: z.array(staffPromiseLineShape),
    marginLost: z.array(moneyShape).meta({ description: "One amount per currency." }),
  })
  .meta({ description: "A price promise that still holds." });

export const laneShape = z
  .strictObject({
    queued: count,
    served: count,
    refused: count,
    left: count.meta({ description: "Gone before their turn came." }),
    retried: count.meta({ description: "Came back to the place kept for them when they were refused." }),
    retriedServed: count,
    waitedMsTotal: z.number().min(0),
    longestWaitMs: z.number().min(0),
  })
  .meta({ description: "One lane of the queue for quota." });

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
      shared: count.meta({ description: "Learned from another replica." }),
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
    }),
    redis: z.enum(["shared", "gone", "none"]).meta({
      description: "Whether replicas share quota and cache now, cannot reach Redis, or were given none.",
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
      leftAlone: z.array(operation).meta({
        description: "Operations that have failed several times and are called only now and then.",
      }),
      recent: z.strictObject({
        windowMs: count,
        operations: z
          .array(
            z.strictObject({
              operation,
              calls: count,
              failed: count.meta({
                description: "Of these, those without a usable answer: refused, broken off or too late.",
              }),
              meanMs: count,
              p95Ms: count,
            }),
          )
          .meta({ description: "The calls that ended within the last `windowMs`." }),
      }),
    }),
    surprises: z
      .array(z.strictObject({ operation, what: z.string(), count, firstSeen: dateTime }))
      .max(50)
      .meta({
        description: "What the upstream said since the start that nobody expected: shapes, no values.",
      }),
    credentials: z.array(
      z.strictObject({
        role: z.enum(["active", "standby"]),
        fingerprint: z.string(),
        refused: z.boolean().meta({ description: "The upstream has refused it lately." }),
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
      .meta({ description: "Upstream calls that were not needed." }),
  })
  .meta({ description: "How the service stands with the upstream." });

export const purgeRequestShape = z
  .strictObject({ what: z.enum(["prices", "availability", "account", "all"]) })
  .meta({ description: "What is to be forgotten." });

export const purgedShape = z
  .strictObject({
    purged: z.strictObject({
      prices: count.optional(),
      availability: count.optional(),
      account: count.optional(),
    }),
  })
  .meta({ description: "How much was forgotten." });
