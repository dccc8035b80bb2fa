/** The shapes of the overview for staff, and of its history. */
import { z } from "zod";
import { perLane } from "../quota/lane.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import { action, count, dateTime, moneyShape, tld, years } from "./visitors.js";

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

const perMinute = z.array(count);
const perMinuteIfAny = z.array(z.number().min(0).nullable());

export const historyShape = z
  .strictObject({
    everyMs: count,
    at: z.array(dateTime),
    used: perMinute,
    budget: perMinute,
    waitMs: z
      .strictObject(perLane(() => perMinute))
      .describe("The mean wait of the requests served in that minute, by lane."),
    hitRate: perMinuteIfAny.describe(
      "The share of lookups answered without a call; null if there were none.",
    ),
    meanMs: perMinuteIfAny,
    p95Ms: perMinuteIfAny,
    failed: perMinute.describe("Failed calls of the preceding ten minutes."),
    calls: perMinute.describe("All calls of the preceding ten minutes."),
  })
  .describe("Figures of the service for the last day, one row per minute, as columns of equal length.");
