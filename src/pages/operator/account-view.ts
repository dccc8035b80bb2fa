/** Tier and balance: how many domains the next tier needs, and how many typical orders the balance covers. */
import { byId, element } from "../element.js";
import { coverage, written } from "./amounts.js";
import type { Balance, Price, Prices, Tier } from "./staff-api.js";

const count = new Intl.NumberFormat("en");
const time = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

export interface Account {
  readonly tier: Tier;
  readonly balance: Balance;
}

function origin({ asOf, source }: { readonly asOf: string; readonly source: string }): HTMLElement {
  const old = source === "stale" ? ", the registry can't be asked" : "";
  return element("p", { class: "quiet" }, `as of ${time.format(Date.parse(asOf))}${old}`);
}

export function showTier({ tier, balance }: Account): void {
  const { currentTier, nextTier, domainsNeeded } = tier;
  const { activeDomains } = balance;
  const domains = `${count.format(activeDomains)} active ${activeDomains === 1 ? "domain" : "domains"}`;
  const ahead =
    nextTier === null || domainsNeeded === null
      ? [element("p", {}, nextTier === null ? "There is no next tier." : `Next: ${nextTier}.`)]
      : [
          element("progress", {
            max: String(Math.max(1, activeDomains + domainsNeeded)),
            value: String(activeDomains),
            "aria-label": `${activeDomains} of ${activeDomains + domainsNeeded} domains for ${nextTier}`,
          }),
          element(
            "p",
            {},
            `${count.format(domainsNeeded)} more ${domainsNeeded === 1 ? "domain" : "domains"} to ${nextTier}`,
          ),
        ];
  byId("tier", HTMLDivElement).replaceChildren(
    element("p", { class: "figure" }, currentTier),
    element("p", { class: "quiet" }, domains),
    ...ahead,
    origin(tier),
  );
}

/** A typical order: the first registration in the price list, which is the shortest term of the first TLD sold. */
function typical({ prices }: Prices): Price | undefined {
  return prices.find(({ action }) => action === "registration");
}

export function showBalance({ balance }: Account, prices: Prices | null): void {
  const { currency } = balance;
  const own = { amount: balance.balance, currency };
  const credit = { amount: balance.creditLimit, currency };
  const order = prices && typical(prices);
  const covered = order ? coverage([own], order.wholesale) : null;
  const withCredit = order ? coverage([own, credit], order.wholesale) : null;
  const words =
    !order || covered === null || withCredit === null
      ? "No price in this currency is known, so it isn't clear how many orders this covers."
      : `covers ${count.format(covered)} typical orders, ${count.format(withCredit)} with the credit limit`;
  byId("balance", HTMLDivElement).replaceChildren(
    element("p", { class: "figure" }, written(own)),
    element("p", { class: "quiet" }, `credit limit ${written(credit)}, account ${balance.accountNumber}`),
    element("p", {}, words),
    ...(order && covered !== null
      ? [
          element(
            "p",
            { class: "quiet" },
            `A typical order is a ${order.tld} registration for ${yearsOf(order.years)} at ${written(order.wholesale)} wholesale.`,
          ),
        ]
      : []),
    origin(balance),
  );
}

export function yearsOf(years: number): string {
  return `${years} ${years === 1 ? "year" : "years"}`;
}
