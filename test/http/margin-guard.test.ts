/** Whatever the wholesale prices and promotions are, no price published to visitors is below wholesale × rate + minMargin. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { presentPrices } from "../../src/http/presenters.js";
import { parseWholesale } from "../../src/money.js";
import { createRetailPolicy } from "../../src/retail/policy.js";
import { parseRetailConfig } from "../../src/retail/price-file/parse.js";
import { firstMatching, type RetailConfig } from "../../src/retail/price-file/retail-config.js";

const NOW = Date.UTC(2026, 2, 20);

function shipped(): RetailConfig {
  const result = parseRetailConfig(
    readFileSync(new URL("../../config/retail.yaml", import.meta.url), "utf8"),
  );
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.config;
}

/** An exact amount in millionths. Rates here have at most four decimals, and amounts have two. */
function millionths(text: string): bigint {
  const [whole = "0", rest = ""] = text.split(".");
  return BigInt(whole + rest.padEnd(6, "0"));
}

const cents = (units: number): string => `${Math.floor(units / 100)}.${String(units % 100).padStart(2, "0")}`;

describe("a published price", () => {
  const base = shipped();
  const combinations = createRetailPolicy(base).combinations();

  test("is never below its wholesale price plus the minimum margin, for every combination sold (4,200 prices)", () => {
    const setting = fc.record({
      wholesale: fc.array(fc.integer({ min: 1, max: 5_000_00 }), {
        minLength: combinations.length,
        maxLength: combinations.length,
      }),
      rate: fc.integer({ min: 1, max: 2_0000 }),
      minMargin: fc.integer({ min: 0, max: 50_00 }),
      markupPercent: fc.integer({ min: 0, max: 60 }),
      percentOff: fc.integer({ min: 1, max: 100 }),
    });
    let published = 0;
    fc.assert(
      fc.property(setting, ({ wholesale, rate, minMargin, markupPercent, percentOff }) => {
        const rateText = `${Math.floor(rate / 10_000)}.${String(rate % 10_000).padStart(4, "0")}`;
        const config: RetailConfig = {
          ...base,
          rates: { EUR: rateText },
          rules: base.rules.map((rule, index) => ({
            ...rule,
            // The first rule is as shipped; the others vary over their whole range.
            ...(index > 0 && { markupPercent: String(markupPercent), minMargin: cents(minMargin) }),
          })),
          promotions: [
            { id: "all", match: {}, percentOff: String(percentOff), fromMs: NOW - 1, toMs: NOW + 1 },
          ],
        };
        const facts = combinations.map((what, index) => {
          const price = parseWholesale(cents(wholesale[index] ?? 1), "EUR");
          if (price === null) throw new Error("not a wholesale price");
          return {
            ...what,
            wholesale: price,
            asOfMs: NOW,
          };
        });
        const { prices } = presentPrices(facts, createRetailPolicy(config), NOW);
        expect(prices).toHaveLength(facts.length);
        for (const [index, { price, tld, action, years }] of prices.entries()) {
          const least = firstMatching(config.rules, { tld, action, years })?.minMargin ?? "0";
          const cost = BigInt(wholesale[index] ?? 0) * BigInt(rate);
          expect(millionths(price.amount)).toBeGreaterThanOrEqual(cost + millionths(least));
          published += 1;
        }
      }),
      { numRuns: 150 },
    );
    expect(published).toBe(150 * combinations.length);
  });
});
