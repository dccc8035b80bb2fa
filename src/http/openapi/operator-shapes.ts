/** The shapes of what operators do: previews of prices and the audit. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are the names of the contract; nothing awaits the rows */
import { z } from "zod";
import { signedMoneyShape } from "./staff-shapes.js";
import { action, count, dateTime, moneyShape, promotionShape, tld, years } from "./visitor-shapes.js";

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
    wholesale: z.union([moneyShape, z.null()]).meta({ description: "Null: not known yet." }),
    now: previewSide.meta({ description: "Null: not sold now." }),
    then: previewSide.meta({ description: "Null: would not be sold." }),
  })
  .meta({ description: "One term now, and as the new file would price it." });

export const pricePreviewShape = z
  .strictObject({
    faults: z.array(z.string()).meta({
      description: "Everything that is wrong with the file; empty if it would take effect.",
    }),
    sections: z.array(z.string()).meta({ description: "The sections that differ from those in effect." }),
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
        "What was purged, the `jti` looked up, the route that was refused, the file's fingerprint.",
    }),
    outcome: z.string().meta({ description: "`done`, `applied`, or the code of the error." }),
    times: count.meta({ description: "How often a token was refused in this way within an hour." }),
  })
  .meta({ description: "An act of staff." });

export const auditShape = z
  .strictObject({ acts: z.array(actShape) })
  .meta({ description: "The last 1,000 acts of staff within 30 days, newest first." });

const perMinute = z.array(count);
const perMinuteIfAny = z.array(z.union([z.number().min(0), z.null()]));

export const historyShape = z
  .strictObject({
    everyMs: count,
    at: z.array(dateTime),
    used: perMinute,
    budget: perMinute,
    waitMs: z
      .strictObject({
        checkout: perMinute,
        exact: perMinute,
        search: perMinute,
        account: perMinute,
        refresh: perMinute,
        suggestion: perMinute,
      })
      .meta({ description: "The mean wait of those served in that minute, by lane." }),
    hitRate: perMinuteIfAny.meta({ description: "The share answered without a call; null: nobody asked." }),
    meanMs: perMinuteIfAny,
    p95Ms: perMinuteIfAny,
    failed: perMinute.meta({ description: "Failed calls of the ten minutes before." }),
    calls: perMinute.meta({ description: "All calls of the ten minutes before." }),
  })
  .meta({
    description: "Figures of this replica for the last day, a row a minute, as columns of equal length.",
  });
