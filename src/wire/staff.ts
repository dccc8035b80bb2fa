/** The shapes of requests and answers of staff, the only ones with wholesale amounts. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { z } from "zod";
import {
  action,
  count,
  currency,
  dateTime,
  domain,
  moneyShape,
  promotionShape,
  tld,
  years,
} from "./visitors.js";

export const originShape = z.strictObject({
  asOf: dateTime,
  source: z
    .enum(["upstream", "cache", "stale"])
    .describe("Whether the data was just fetched, comes from the cache, or is past its freshness."),
});
export const record = {
  domain,
  status: z.string().meta({ example: "active" }).nullable(),
  registeredAt: dateTime.meta({ example: "2024-05-02T00:00:00.000Z" }).nullable(),
  expiresAt: dateTime.meta({ example: "2027-05-02T00:00:00.000Z" }).nullable(),
  autoRenew: z.boolean().meta({ example: true }).nullable(),
  nameservers: z.array(z.string().meta({ example: "ns1.example.net" })),
};
const signedAmount = z
  .string()
  .regex(/^-?\d+(?:\.\d+)?$/)
  .meta({ example: "6.99" });

export const signedMoneyShape = z
  .strictObject({ amount: signedAmount, currency })
  .describe("An exact amount that can be negative.");

const WHOLESALE = { amount: "18.00", currency: "USD" };
const wholesaleShape = moneyShape.meta({ example: WHOLESALE });

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
    accountNumber: z.string().meta({ example: "R-10042" }),
    balance: signedAmount,
    currency,
    creditLimit: signedAmount,
    activeDomains: count,
    ...originShape.shape,
  })
  .describe("The account's balance and credit limit.");

export const tierShape = z
  .strictObject({
    currentTier: z.string().meta({ example: "silver" }),
    nextTier: z.string().meta({ example: "gold" }).nullable(),
    domainsNeeded: count.nullable(),
    ...originShape.shape,
  })
  .describe("The pricing tier, and how many more domains the next one requires.");

export const staffPriceShape = z
  .strictObject({
    tld,
    action,
    years,
    wholesale: wholesaleShape,
    retail: moneyShape.nullable(),
    margin: signedMoneyShape.nullable(),
    rule: z
      .string()
      .meta({ example: "rule 1" })
      .nullable()
      .describe("The price rule that determined the retail price."),
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
    domain,
    tld,
    action,
    years,
    price: moneyShape.describe("The signed price."),
    premium: z.boolean(),
    wholesale: moneyShape.meta({
      description: "The wholesale price when the cart was signed.",
      example: WHOLESALE,
    }),
    margin: signedMoneyShape
      .nullable()
      .describe(
        "The signed price minus `wholesale`, at the exchange rates in effect now; null if there is no rate, or the shown currency has changed.",
      ),
    wholesaleToday: wholesaleShape
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
