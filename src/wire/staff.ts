/** The shapes of requests and answers of staff, the only ones with wholesale amounts. */
import { z } from "zod";
import { perLane } from "../quota/lane.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import { action, count, currency, dateTime, moneyShape, promotionShape, tld, years } from "./visitors.js";

export const originShape = z.strictObject({
  asOf: dateTime,
  source: z
    .enum(["upstream", "cache", "stale"])
    .describe("Whether the data was just fetched, comes from the cache, or is past its freshness."),
});
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
  .describe("An exact amount that can be negative.");

export const domainRecordShape = z
  .strictObject(record)
  .describe("A domain that the reseller manages. Fields that the upstream doesn't return are null.");

export const staffDomainShape = z
  .strictObject({ ...record, ...originShape.shape })
  .describe("One managed domain, with the age and source of the record.");

export const staffDomainsShape = z
  .strictObject({
    domains: z.array(domainRecordShape),
    unreadable: z
      .array(z.strictObject({ domain: z.string().nullable(), why: z.string() }))
      .optional()
      .describe("Records that couldn't be read, with the name if that could."),
    truncated: z.literal(true).optional().describe("The account has more domains than the upstream lists."),
    ...originShape.shape,
  })
  .describe("The managed domains, at most 100.");

export const balanceShape = z
  .strictObject({
    accountNumber: z.string(),
    balance: signedAmount,
    currency,
    creditLimit: signedAmount,
    activeDomains: count,
    ...originShape.shape,
  })
  .describe("The account's balance and credit limit.");

export const tierShape = z
  .strictObject({
    currentTier: z.string(),
    nextTier: z.string().nullable(),
    domainsNeeded: count.nullable(),
    ...originShape.shape,
  })
  .describe("The pricing tier, and how many more domains the next one requires.");

export const staffPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    wholesale: moneyShape,
    retail: moneyShape.nullable(),
    margin: signedMoneyShape.nullable(),
    rule: z.string().nullable().describe("The price rule that determined the retail price."),
    promotion: promotionShape.optional(),
    asOf: dateTime,
    doubtful: z
      .literal(true)
      .optional()
      .describe(
        "Evidence contradicts the price, or staff have purged it. It is shown as stale and not signed until it has been refreshed.",
      ),
    changed: z
      .strictObject({
        at: dateTime,
        from: moneyShape,
        by: signedMoneyShape
          .nullable()
          .describe("The difference to the previous wholesale price; null if the currency changed."),
      })
      .optional()
      .describe("The last change of the wholesale price, if it was in the last 24 hours."),
    warning: z.string().optional(),
  })
  .describe("The wholesale and retail price of one term.");

export const staffPricesShape = z
  .strictObject({ asOf: dateTime, prices: z.array(staffPriceShape), warnings: z.array(z.string()) })
  .describe("Wholesale and retail prices of everything sold.");

export const staffPromiseLineShape = z
  .strictObject({
    domain: z.string(),
    tld,
    action,
    years,
    price: moneyShape.describe("The signed price."),
    premium: z.boolean(),
    wholesale: moneyShape.describe("The wholesale price when the cart was signed."),
    margin: signedMoneyShape
      .nullable()
      .describe(
        "The signed price minus `wholesale`, at the exchange rates in effect now; null if there is no rate, or the shown currency has changed.",
      ),
    wholesaleToday: moneyShape
      .nullable()
      .describe("The current wholesale price; null if unknown and for premium names."),
    marginToday: signedMoneyShape
      .nullable()
      .describe("The signed price minus `wholesaleToday`, at the same rates; null if unknown."),
    marginLost: moneyShape
      .nullable()
      .describe("How far the signed price is below the current floor; null if it isn't."),
  })
  .describe("One line of a signed cart.");

export const staffPromiseShape = z
  .strictObject({
    id: z.string().describe("The `jti` of the signed cart."),
    issuedAt: dateTime,
    validUntil: dateTime,
    items: z.array(staffPromiseLineShape),
    marginLost: z.array(moneyShape).describe("One amount per currency."),
  })
  .describe("A signed cart that is still valid.");

export const CART_STATES = ["open", "expired", "managed", "lost", "unknown"] as const;
const reference = z
  .string()
  .regex(/^[\w.:/#-]{1,64}$/, "must be 1 to 64 letters, digits and _ . : / # -, and nothing about a person");

export const cartNoteRequestShape = z
  .strictObject({
    state: z.enum(["ordered", "cancelled"], "must be ordered or cancelled"),
    reference: reference.optional().describe("The checkout's own number for it."),
  })
  .describe("What the checkout knows of a signed cart.");

export const followedCartShape = z
  .strictObject({
    id: z.string().describe("The `jti` of the signed cart."),
    issuedAt: dateTime,
    validUntil: dateTime,
    checkout: z
      .strictObject({
        state: z.enum(["ordered", "cancelled"]),
        reference: z.string().nullable(),
        at: dateTime,
      })
      .nullable()
      .describe("What the checkout has said."),
    items: z.array(
      z.strictObject({
        ...staffPromiseLineShape.shape,
        state: z
          .enum(CART_STATES)
          .describe(
            "`open`: may still be ordered at this price. `expired`: the promise has ended, and nothing was seen. `managed`: ordered, as the account's records show. `lost`: somebody else has the name. `unknown`: nothing shows what became of it.",
          ),
        stateAt: dateTime.describe("When the state began, or when the answer was asked that shows it."),
      }),
    ),
  })
  .describe("A signed cart, and what became of its lines.");

const sum = z
  .strictObject({ names: count, amounts: z.array(moneyShape).describe("One amount per currency.") })
  .describe("Names with their signed prices; a name that was signed several times counts once.");
const sums = z.strictObject({ signed: sum, ordered: sum, managed: sum });

export const followedCartsShape = z
  .strictObject({
    promises: z.array(followedCartShape),
    sums: z.strictObject({ days7: sums, days30: sums }),
  })
  .describe("The signed carts of the last 30 days, the newest first.");

export const laneShape = z
  .strictObject({
    queued: count,
    served: count,
    refused: count,
    left: count.describe("Requests that were abandoned before their turn."),
    retried: count.describe("Refused requests that came back to claim their reservation."),
    retriedServed: count,
    waitedMsTotal: z.number().min(0),
    longestWaitMs: z.number().min(0),
  })
  .describe("One lane of the quota queue, since startup.");

const waitsShape = z
  .strictObject({
    retryAfter: z
      .strictObject({ count, p50Seconds: count, p99Seconds: count, maxSeconds: count })
      .describe(
        "The `Retry-After` values of refused visitors over the last twenty windows, of a thousand at most.",
      ),
    reservations: z
      .strictObject({ made: count, claimed: count, honoured: count, unclaimed: count })
      .describe(
        "Reservations of refused visitors since startup: made, claimed in time, served, never claimed.",
      ),
    refused: z
      .strictObject({ reserved: count, busy: count, early: count, late: count, fault: count })
      .describe(
        "Refusals since startup: with a reservation, without one, for a retry that was too early, after the longest wait, because of a ledger fault.",
      ),
    idleCalls: z.number().min(0).describe("Calls that were possible while requests waited but weren't made."),
    refusedAgoMs: z.number().min(0).nullable().describe("Time since the last refusal, in ms."),
  })
  .describe("Refused requests, their `Retry-After` values, and whether reservations were honoured.");

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
    }),
  })
  .describe("One pool of the cache.");

const operation = z.enum(OPERATIONS);

export const endedEpochShape = z
  .strictObject({
    at: dateTime,
    evidence: z.enum(["tier", "quote", "purge"]),
    tld: tld.optional(),
    action: action.optional(),
    years: years.optional(),
    from: z.union([moneyShape, z.string()]).optional(),
    to: z.union([moneyShape, z.string()]).optional(),
  })
  .describe("What ended a price epoch: a changed tier, a changed quote, or a purge.");

export const alarmShape = z
  .strictObject({
    kind: z.string(),
    level: z.enum(["bad", "warn"]),
    text: z.string(),
    todo: z.string().describe("What to do about it."),
  })
  .describe("Something that staff should look at.");

export const noticesShape = z
  .strictObject({
    on: z.boolean().describe("Whether there is a `NOTIFY_URL`."),
    waiting: count,
    last: z
      .array(
        z.strictObject({
          id: z.string(),
          at: dateTime,
          kind: z.string(),
          state: z.enum(["begun", "ended", "lost", "unordered", "test"]),
          text: z.string(),
          attempts: count,
          delivery: z.enum(["waiting", "delivered", "failed"]),
          deliveryAt: dateTime.describe("When it was delivered or given up, or will be tried next."),
          problem: z.string().nullable().describe("Why the last attempt failed."),
        }),
      )
      .describe("The last 50, newest first."),
  })
  .describe("What was posted to `NOTIFY_URL`, and with what outcome.");

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
      lanes: z.strictObject(perLane(() => laneShape)),
      waits: waitsShape,
    }),
    rateLimited: z
      .strictObject({ requests: count, cold: count })
      .describe(
        "Requests refused since startup: by the client limit, and by the cold limit, which applies while others want quota.",
      ),
    redis: z
      .enum(["shared", "refusing", "gone", "none"])
      .describe(
        "Whether Redis is in use (`shared`), refuses commands (`refusing`), is unreachable (`gone`) or isn't configured (`none`).",
      ),
    caches: z.strictObject({
      availability: cachePoolShape,
      prices: cachePoolShape,
      tier: cachePoolShape,
      account: cachePoolShape,
    }),
    upstream: z.strictObject({
      lastSuccessAt: dateTime.nullable(),
      lastFailureAt: dateTime.nullable(),
      openCircuits: z
        .array(operation)
        .describe("Operations whose circuit is open: they keep failing, and only trial requests are made."),
      recent: z.strictObject({
        windowMs: count,
        operations: z
          .array(
            z.strictObject({
              operation,
              calls: count,
              failed: count.describe("Calls without a usable answer: refused, interrupted or timed out."),
              meanMs: count,
              p95Ms: count,
            }),
          )
          .describe("Calls that ended within the last `windowMs`."),
      }),
    }),
    unexpected: z
      .array(z.strictObject({ operation, what: z.string(), count, firstSeen: dateTime }))
      .max(50)
      .describe(
        "Fields, status words and error codes of the upstream that aren't known, by their shape. Values aren't included.",
      ),
    credentials: z.array(
      z.strictObject({
        role: z.enum(["active", "standby"]),
        fingerprint: z.string(),
        refused: z.boolean().describe("The upstream recently refused this credential."),
      }),
    ),
    prices: z
      .strictObject({
        sold: count,
        known: count,
        doubtful: count.describe("Contradicted by evidence or purged, and not signed until refreshed."),
        epochsEnded: z
          .array(endedEpochShape)
          .describe("The evidence of changed prices in the last 24 hours, newest first."),
        config: z
          .strictObject({ fingerprint: z.string(), since: dateTime, faults: z.array(z.string()) })
          .describe(
            "The `RETAIL_CONFIG` in effect, since when, and why a changed file isn't used. No faults: the file is in effect.",
          ),
      })
      .describe("The state of the price list."),
    promises: z
      .strictObject({
        inForce: count,
        belowFloor: count,
        marginLost: z.array(moneyShape).describe("One amount per currency."),
      })
      .describe("Valid price promises."),
    saved: z
      .strictObject({ cache: count, coalesced: count, refusedLocally: count })
      .describe("Upstream calls that were avoided."),
    owner: z
      .strictObject({ role: z.enum(["alone", "owner", "follower", "none"]), since: dateTime })
      .describe("Which part this replica has, and since when. The owner alone calls the upstream."),
    alarms: z.array(alarmShape),
    notices: noticesShape,
    proxy: z
      .enum(["fits", "more", "fewer"])
      .describe(
        "Whether X-Forwarded-For has as many addresses as TRUST_PROXY_HOPS expects, or more or fewer.",
      ),
  })
  .describe("The state of quota, lanes, caches, upstream and credentials.");

export const purgeRequestShape = z
  .strictObject({
    what: z.enum(
      ["prices", "availability", "account", "all"],
      "must be prices, availability, account or all",
    ),
  })
  .describe("Which data to discard.");

export const purgedShape = z
  .strictObject({
    purged: z.strictObject({
      prices: count.optional(),
      availability: count.optional(),
      account: count.optional(),
    }),
  })
  .describe("How many entries are affected, by kind.");
