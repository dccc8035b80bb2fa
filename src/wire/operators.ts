/** The shapes of price previews, the audit log and the history. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { z } from "zod";
import { perLane } from "../quota/lane.js";
import { signedMoneyShape, wholesaleShape } from "./staff.js";
import { action, count, dateTime, moneyShape, promotionShape, tld, years } from "./visitors.js";

const previewSide = z
  .strictObject({
    retail: moneyShape.nullable(),
    margin: signedMoneyShape.nullable(),
    rule: z.string().nullable(),
    promotion: promotionShape.optional(),
  })
  .nullable();

export const previewedPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    change: z.enum(["same", "changed", "added", "removed"]),
    wholesale: wholesaleShape.nullable().describe("Null if unknown."),
    now: previewSide.describe("Null if it isn't sold now."),
    then: previewSide.describe("Null if it wouldn't be sold."),
  })
  .describe("One term with the current price and the price by the new file.");

export const pricePreviewShape = z
  .strictObject({
    faults: z.array(z.string()).describe("Every fault of the file; empty if it would take effect."),
    sections: z.array(z.string()).describe("The sections that differ from the file in effect."),
    prices: z.array(previewedPriceShape).describe("Empty for a file with faults."),
    warnings: z.array(z.string()),
  })
  .describe("What a `retail.yaml` would change.");

export const actShape = z
  .strictObject({
    id: z.string().meta({ example: "0b9e1c3a-6a3f-4a58-9a5f-8a0f6f2f6f0d" }),
    when: dateTime,
    who: z
      .string()
      .meta({ example: "ops" })
      .nullable()
      .describe("The name of the token; null without a valid one, and for a changed `RETAIL_CONFIG`."),
    what: z.enum(["purge", "preview", "promise", "order", "token", "retail_config"]),
    subject: z
      .string()
      .meta({ example: "prices" })
      .nullable()
      .describe(
        "What was purged, the number of previewed changes, the `jti` that was looked up or about which the checkout said something, the refused route, or the file's fingerprint.",
      ),
    outcome: z
      .string()
      .meta({ example: "done" })
      .describe("`done`, `applied`, `rejected`, `interrupted`, or the code of the error."),
    times: count.describe("How often this refusal occurred within an hour."),
  })
  .describe("A staff action.");

export const auditShape = z
  .strictObject({ acts: z.array(actShape) })
  .describe("The last 1,000 staff actions within 30 days, newest first.");

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
