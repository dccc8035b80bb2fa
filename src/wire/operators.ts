/** The shapes of price previews and the audit log. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { z } from "zod";
import { perLane } from "../quota/lane.js";
import { signedMoneyShape } from "./staff.js";
import { action, count, dateTime, moneyShape, promotionShape, tld, years } from "./visitors.js";

const previewSide = z.union([
  z.strictObject({
    retail: z.union([moneyShape, z.null()]),
    margin: z.union([signedMoneyShape, z.null()]),
    rule: z.string().nullable(),
    promotion: promotionShape.optional(),
  }),
  z.null(),
]);

export const previewedPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    change: z.enum(["same", "changed", "added", "removed"]),
    wholesale: z.union([moneyShape, z.null()]).meta({ description: "Null if unknown." }),
    now: previewSide.meta({ description: "Null if it isn't sold now." }),
    then: previewSide.meta({ description: "Null if it wouldn't be sold." }),
  })
  .meta({ description: "One term with the current price and the price by the new file." });

export const pricePreviewShape = z
  .strictObject({
    faults: z.array(z.string()).meta({
      description: "Every fault of the file; empty if it would take effect.",
    }),
    sections: z.array(z.string()).meta({ description: "The sections that differ from the file in effect." }),
    prices: z.array(previewedPriceShape).meta({ description: "Empty for a file with faults." }),
    warnings: z.array(z.string()),
  })
  .meta({ description: "What a `retail.yaml` would change." });

export const actShape = z
  .strictObject({
    id: z.string(),
    when: dateTime,
    who: z.string().nullable().meta({
      description: "The name of the token; null without a valid one, and for a changed `RETAIL_CONFIG`.",
    }),
    what: z.enum(["purge", "preview", "promise", "token", "retail_config"]),
    subject: z.string().nullable().meta({
      description:
        "What was purged, the number of previewed changes, the `jti` that was looked up, the refused route, or the file's fingerprint.",
    }),
    outcome: z
      .string()
      .meta({ description: "`done`, `applied`, `rejected`, `interrupted`, or the code of the error." }),
    times: count.meta({ description: "How often this refusal occurred within an hour." }),
  })
  .meta({ description: "A staff action." });

export const auditShape = z
  .strictObject({ acts: z.array(actShape) })
  .meta({ description: "The last 1,000 staff actions within 30 days, newest first." });

const perMinute = z.array(count);
const perMinuteIfAny = z.array(z.union([z.number().min(0), z.null()]));

export const historyShape = z
  .strictObject({
    everyMs: count,
    at: z.array(dateTime),
    used: perMinute,
    budget: perMinute,
    waitMs: z
      .strictObject(perLane(() => perMinute))
      .meta({ description: "The mean wait of the requests served in that minute, by lane." }),
    hitRate: perMinuteIfAny.meta({
      description: "The share of lookups answered without a call; null if there were none.",
    }),
    meanMs: perMinuteIfAny,
    p95Ms: perMinuteIfAny,
    failed: perMinute.meta({ description: "Failed calls of the preceding ten minutes." }),
    calls: perMinute.meta({ description: "All calls of the preceding ten minutes." }),
  })
  .meta({
    description: "Figures of the service for the last day, one row per minute, as columns of equal length.",
  });
