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
  })
  .meta({ description: "A promised price and what is behind it." });

export const staffPromiseShape = z
  .strictObject({
    id: z.string().meta({ description: "The jti of the signed promise." }),
    issuedAt: dateTime,
    validUntil: dateTime,
    items: z.array(staffPromiseLineShape),
  })
  .meta({ description: "A price promise that still holds." });

export const laneShape = z
  .strictObject({
    queued: count,
    served: count,
    refused: count,
    left: count.meta({ description: "Gone before their turn came." }),
    retried: count.meta({ description: "Came back to their reservation." }),
    retriedServed: count,
    waitedMsTotal: z.number().min(0),
    longestWaitMs: z.number().min(0),
  })
  .meta({ description: "One lane of the queue for quota." });

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
      shared: count.meta({ description: "Learned from another replica." }),
    }),
  })
  .meta({ description: "One pool of the cache." });

const operation = z.enum(["check", "quote", "domains", "domain", "balance", "tier"]);

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
