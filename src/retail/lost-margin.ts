/** The margin lost on promises whose price was above the floor when they were signed and is below it at the current wholesale price. */
import { belowFloor, type Money, totalsOf, type Wholesale } from "../money.js";
import type { RetailPolicy } from "./policy.js";
import type { KnownQuote } from "./price-list.js";
import type { PricePromise, PromisedLine } from "./promise.js";

export interface PromisesInForce {
  readonly inForce: number;
  readonly belowFloor: number;
  /** By currency. */
  readonly marginLost: readonly Money[];
}

/** The wholesale price of the line in the price list, which contains those of ordinary names; undefined if unknown. */
export function wholesaleNow(line: PromisedLine, facts: readonly KnownQuote[]): Wholesale | undefined {
  if (line.kind !== "ordinary") return undefined;
  return facts.find(
    ({ tld, action, years }) => tld === line.tld && action === line.action && years === line.years,
  )?.wholesale;
}

/** By how much the promised price is below the floor (cost plus minMargin) of the price list; null when it isn't, or another currency is shown now. */
export function lostMargin(
  line: PromisedLine,
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): Money | null {
  const now = wholesaleNow(line, facts);
  const priced = now && policy.price(now, line, atMs);
  return priced?.ok === true ? belowFloor(line.price, priced.floor) : null;
}

export function promisesInForce(
  promises: readonly PricePromise[],
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): PromisesInForce {
  const losses = promises.map(({ lines }) =>
    lines.map((line) => lostMargin(line, facts, policy, atMs)).filter((lost) => lost !== null),
  );
  return {
    inForce: promises.length,
    belowFloor: losses.filter(({ length }) => length > 0).length,
    marginLost: totalsOf(losses.flat()),
  };
}
