/** Staff only: what a `retail.yaml` would change if it took effect now. Costs no call and changes nothing. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { isDeepStrictEqual } from "node:util";
import { instant } from "../clock.js";
import { presentWholesaleToStaff, type Wholesale } from "../money.js";
import type { LivePolicy } from "../retail/live-policy.js";
import { createRetailPolicy, marginWarnings, type RetailPolicy } from "../retail/policy.js";
import type { Combination } from "../upstream/contract.js";
import type { PriceList } from "../retail/price-list.js";
import { parseRetailConfig } from "../retail/price-file/parse.js";
import type { RetailConfig } from "../retail/price-file/retail-config.js";
import type { AnswerOf } from "../wire/answer.js";
import type { pricePreviewShape } from "../wire/staff.js";
import { presentPriced } from "./presenters.js";

interface PreviewParts {
  readonly policies: Pick<LivePolicy, "current" | "config">;
  readonly prices: Pick<PriceList, "peek">;
  readonly nowMs: number;
}

type Difference = "same" | "changed" | "added" | "removed";

export function presentPreview(
  text: string,
  { policies, prices, nowMs }: PreviewParts,
): AnswerOf<typeof pricePreviewShape> {
  const read = parseRetailConfig(text);
  if (!read.ok) return { faults: read.faults, sections: [], prices: [], warnings: [] };
  const inEffect = new Map<string, unknown>(Object.entries(policies.config()));
  const before = policies.current();
  const after = createRetailPolicy(read.config);

  const rows = everything(before, after).map((what) => {
    const wholesale = prices.peek(what)?.wholesale ?? null;
    const now = side(before, wholesale, what, nowMs);
    const then = side(after, wholesale, what, nowMs);
    return {
      ...what,
      change: difference(now, then),
      wholesale: wholesale && presentWholesaleToStaff(wholesale),
      now,
      then,
    };
  });
  return {
    faults: [],
    sections: Object.entries(read.config).flatMap(([name, now]) =>
      isDeepStrictEqual(now, inEffect.get(name)) ? [] : name,
    ),
    prices: rows,
    warnings: warningsAbout(read.config, after, prices, nowMs),
  };
}

/** Every combination that either policy sells, in the order of the new catalogue. */
function everything(before: RetailPolicy, after: RetailPolicy): Combination[] {
  return [...after.combinations(), ...before.combinations().filter((what) => !sells(after, what))];
}

function sells(policy: RetailPolicy, { tld, action, years }: Combination): boolean {
  return policy.yearsSold(tld, action).includes(years);
}

/** Null where it isn't sold. */
function side(policy: RetailPolicy, wholesale: Wholesale | null, what: Combination, atMs: number) {
  if (!sells(policy, what)) return null;
  if (wholesale === null) return { retail: null, margin: null, rule: null };
  return presentPriced(policy, wholesale, policy.price(wholesale, what, atMs));
}

function difference(now: object | null, then: object | null): Difference {
  if (now === null) return "added";
  if (then === null) return "removed";
  return isDeepStrictEqual(now, then) ? "same" : "changed";
}

function warningsAbout(
  config: RetailConfig,
  after: RetailPolicy,
  prices: Pick<PriceList, "peek">,
  nowMs: number,
): string[] {
  const known = after.combinations().flatMap((what) => {
    const wholesale = prices.peek(what)?.wholesale;
    return wholesale === undefined ? [] : [{ wholesale, priced: after.price(wholesale, what, nowMs) }];
  });
  const formed = known.flatMap(({ wholesale, priced }) =>
    priced.ok ? [{ wholesale, retail: priced.price }] : [],
  );
  const sold = after.combinations().length;
  const unknown = sold - known.length;
  const unformed = known.length - formed.length;
  return [
    ...marginWarnings(formed),
    ...(unformed > 0
      ? [`${unformed} of ${sold} prices can't be calculated: their wholesale currency has no rate.`]
      : []),
    ...(unknown > 0 ? [`${unknown} of ${sold} wholesale prices are unknown and would be requested.`] : []),
    ...config.promotions.flatMap(({ id, fromMs, toMs }) => {
      if (toMs <= nowMs) return [`Promotion ${id} ended at ${instant(toMs)}.`];
      if (fromMs > nowMs)
        return [`Promotion ${id} starts at ${instant(fromMs)} and isn't included in these prices.`];
      return [];
    }),
  ];
}
