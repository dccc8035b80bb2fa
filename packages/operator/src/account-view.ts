/** Tier and balance: how many domains the next tier needs, and how many typical orders the balance covers. */
import { byId, element } from "../../storefront/src/element.js";
import { coverage, written } from "./amounts.js";
import { count, counted, timeOf } from "./figures.js";
import type { Balance, Prices, Tier } from "./staff-api.js";

export interface Account {
  readonly tier: Tier;
  readonly balance: Balance;
}

function origin({ asOf, source }: { readonly asOf: string; readonly source: string }): HTMLElement {
  const old = source === "stale" ? ", the registry can't be asked" : "";
  return element("p", { class: "quiet" }, `as of ${timeOf(asOf)}${old}`);
}

export function showTier({ tier, balance }: Account): void {
  const { currentTier, nextTier, domainsNeeded } = tier;
  const { activeDomains } = balance;
  const ahead =
    nextTier === null || domainsNeeded === null
      ? [element("p", {}, nextTier === null ? "There is no next tier." : `Next: ${nextTier}.`)]
      : [
          element("progress", {
            max: String(Math.max(1, activeDomains + domainsNeeded)),
            value: String(activeDomains),
            "aria-label": `${activeDomains} of ${activeDomains + domainsNeeded} domains for ${nextTier}`,
          }),
          element("p", {}, `${counted(domainsNeeded, "more domain")} to ${nextTier}`),
        ];
  byId("tier", HTMLDivElement).replaceChildren(
    element("p", { class: "figure" }, currentTier),
    element("p", { class: "quiet" }, counted(activeDomains, "active domain")),
    ...ahead,
    origin(tier),
  );
}

export function showBalance({ balance }: Account, prices: Prices | null): void {
  const { currency } = balance;
  const own = { amount: balance.balance, currency };
  const credit = { amount: balance.creditLimit, currency };
  // The first registration in the list is the shortest term of the first TLD sold.
  const order = prices?.prices.find(({ action }) => action === "registration");
  const covered = order ? coverage([own], order.wholesale) : null;
  const withCredit = order ? coverage([own, credit], order.wholesale) : null;
  const isCovered = order !== undefined && covered !== null && withCredit !== null;
  byId("balance", HTMLDivElement).replaceChildren(
    element("p", { class: "figure" }, written(own)),
    element("p", { class: "quiet" }, `credit limit ${written(credit)}, account ${balance.accountNumber}`),
    ...(isCovered
      ? [
          element(
            "p",
            {},
            `covers ${counted(covered, "typical order")}, ${count(withCredit)} with the credit limit`,
          ),
          element(
            "p",
            { class: "quiet" },
            `A typical order is a ${order.tld} registration for ${counted(order.years, "year")} at ${written(order.wholesale)} wholesale.`,
          ),
        ]
      : [
          element(
            "p",
            {},
            "No price in this currency is known, so it isn't clear how many orders this covers.",
          ),
        ]),
    origin(balance),
  );
}
