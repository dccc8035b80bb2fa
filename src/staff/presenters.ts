/** Builds the response bodies for staff field by field, as new objects. The only answers with wholesale amounts. */
import { instant } from "../clock.js";
import type { Known } from "../facts/page.js";
import {
  presentRetail,
  presentWholesaleToStaff,
  type Retail,
  totalsOf,
  type Wholesale,
  wholesaleDifference,
} from "../money.js";
import { type CatalogRow, marginWarnings, type PriceResult, type RetailPolicy } from "../retail/policy.js";
import type { RetailFileState } from "../retail/live-policy.js";
import { lostMargin, wholesaleNow } from "../retail/lost-margin.js";
import type { NotedChange } from "../facts/price-changes.js";
import { oldest, type KnownQuote, type PriceList } from "../retail/price-list.js";
import type { PricePromise, PromisedLine } from "../retail/promise.js";
import type { Balance, Tier, UnreadableRecord } from "../upstream/contract.js";
import type { AnswerOf } from "../wire/answer.js";
import type { endedEpochShape } from "../wire/overview.js";
import type * as staff from "../wire/staff.js";
import type { Act } from "./audit.js";
import type { SeenCart } from "./carts.js";
import { presentOrigin, presentPromotion } from "../wire/parts.js";

export function presentBalance(known: Known<Balance>): AnswerOf<typeof staff.balanceShape> {
  const { accountNumber, balance, currency, creditLimit, activeDomains } = known.value;
  return { accountNumber, balance, currency, creditLimit, activeDomains, ...presentOrigin(known) };
}

export function presentTier(known: Known<Tier>): AnswerOf<typeof staff.tierShape> {
  const { currentTier, nextTier, domainsNeeded } = known.value;
  return { currentTier, nextTier, domainsNeeded, ...presentOrigin(known) };
}

export function presentUnreadable({ names, why }: UnreadableRecord) {
  return { domain: names[0] ?? null, why: `The record ${why}.` };
}

/** The retail price, margin and rule that a policy gives for a wholesale price. */
export function presentPriced(policy: RetailPolicy, wholesale: Wholesale, priced: PriceResult) {
  if (!priced.ok) return { retail: null, margin: null, rule: null };
  const { price, rule, promotion } = priced;
  const margin = policy.margin(wholesale, price);
  return { retail: presentRetail(price), margin, rule, ...presentPromotion(promotion) };
}

/** Wholesale, retail and margin of each price, the rule behind it, and warnings. */
export function presentStaffPrices(
  list: Pick<PriceList, "all" | "failures">,
  policy: RetailPolicy,
  file: Pick<RetailFileState, "faults">,
  atMs: number,
): AnswerOf<typeof staff.staffPricesShape> {
  const facts = list.all();
  const catalogue: CatalogRow[] = [];
  const unformed: string[] = [];
  const prices = facts.map(({ tld, action, years, wholesale, asOfMs, stale, isCurrent, changed }) => {
    const priced = policy.price(wholesale, { tld, action, years }, atMs);
    const warnings: string[] = !isCurrent
      ? ["This price may be outdated. It is shown as stale and not signed until it has been refreshed."]
      : stale
        ? ["The upstream hasn't confirmed this price recently."]
        : [];
    if (priced.ok) catalogue.push({ wholesale, retail: priced.price });
    else {
      const why =
        priced.reason === "not_sold" ? "no rule matches" : `the currency ${wholesale.currency} has no rate`;
      warnings.push(`The retail price can't be calculated: ${why}.`);
      unformed.push(why);
    }
    return {
      tld,
      action,
      years,
      wholesale: presentWholesaleToStaff(wholesale),
      ...presentPriced(policy, wholesale, priced),
      asOf: instant(asOfMs),
      ...(!isCurrent && { doubtful: true as const }),
      ...(isRecent(changed, atMs) && {
        changed: {
          at: instant(changed.atMs),
          from: presentWholesaleToStaff(changed.from),
          by: wholesaleDifference(wholesale, changed.from),
        },
      }),
      ...(warnings.length > 0 && { warning: warnings.join(" ") }),
    };
  });
  const sold = policy.combinations().length;
  const changes = facts.filter(({ changed }) => isRecent(changed, atMs)).length;
  const doubtful = facts.filter(({ isCurrent }) => !isCurrent).length;
  const warnings = [
    ...file.faults.map((fault) => `RETAIL_CONFIG was changed, but isn't used because of a fault: ${fault}`),
    ...marginWarnings(catalogue),
    ...counted(unformed).map(([why, n]) => `${n} of ${sold} prices can't be calculated: ${why}.`),
    ...counted(list.failures()).map(([why, n]) => `${n} of ${sold} prices couldn't be refreshed: ${why}`),
    ...(doubtful > 0 ? [`${doubtful} of ${facts.length} prices are doubtful and being refreshed.`] : []),
    ...(changes > 0 ? [`${changes} of ${facts.length} wholesale prices changed in the last 24 hours.`] : []),
    ...(facts.length < sold ? [`${sold - facts.length} of ${sold} prices are unknown.`] : []),
  ];
  return { asOf: instant(oldest(facts, atMs)), prices, warnings };
}

/**
 * The wholesale price of each line when it was signed and now, if known from memory, and the margin lost since. */
export function presentPromise(
  promise: PricePromise,
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): AnswerOf<typeof staff.staffPromiseShape> {
  const { id, issuedAtMs, validUntilMs, lines } = promise;
  const items = lines.map((line) => presentPromisedLine(line, facts, policy, atMs));
  const marginLost = totalsOf(items.flatMap((item) => item.marginLost ?? []));
  return { id, issuedAt: instant(issuedAtMs), validUntil: instant(validUntilMs), items, marginLost };
}

function presentPromisedLine(
  line: PromisedLine,
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): AnswerOf<typeof staff.staffPromiseLineShape> {
  const { domain, tld, action, years, price, kind, wholesale } = line;
  const today = wholesaleNow(line, facts);
  return {
    domain,
    tld,
    action,
    years,
    price: presentRetail(price),
    premium: kind === "premium",
    wholesale: presentWholesaleToStaff(wholesale),
    margin: policy.margin(wholesale, price),
    wholesaleToday: today ? presentWholesaleToStaff(today) : null,
    marginToday: today ? policy.margin(today, price) : null,
    marginLost: lostMargin(line, facts, policy, atMs),
  };
}

export function presentCart(
  { id, issuedAtMs, validUntilMs, checkout, lines }: SeenCart,
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): AnswerOf<typeof staff.followedCartShape> {
  return {
    id,
    issuedAt: instant(issuedAtMs),
    validUntil: instant(validUntilMs),
    checkout: checkout && {
      state: checkout.state,
      reference: checkout.reference,
      at: instant(checkout.atMs),
    },
    items: lines.map((line) => ({
      ...presentPromisedLine(line, facts, policy, atMs),
      state: line.state,
      stateAt: instant(line.stateAt),
    })),
  };
}

const DAY_MS = 24 * 3_600_000;

/** What was signed, ordered and managed in the last 7 and 30 days. A name's lines are one, which counts as what became of the best of them. */
export function presentSums(
  carts: readonly SeenCart[],
  nowMs: number,
): AnswerOf<typeof staff.followedCartsShape>["sums"] {
  const since = (sinceAt: number) => {
    const names = new Map<string, { readonly price: Retail; readonly reached: number }>();
    for (const { issuedAtMs, checkout, lines } of carts) {
      if (issuedAtMs < sinceAt) continue;
      for (const { domain, action, price, state } of lines) {
        const reached = state === "managed" ? 2 : checkout?.state === "ordered" ? 1 : 0;
        const before = names.get(`${domain} ${action}`);
        if (before === undefined || before.reached < reached)
          names.set(`${domain} ${action}`, { price, reached });
      }
    }
    const sum = (least: number) => {
      const counted = [...names.values()].filter(({ reached }) => reached >= least);
      return { names: counted.length, amounts: totalsOf(counted.map(({ price }) => price)) };
    };
    return { signed: sum(0), ordered: sum(1), managed: sum(2) };
  };
  return { days7: since(nowMs - 7 * DAY_MS), days30: since(nowMs - 30 * DAY_MS) };
}

/** Why older prices became stale. */
export function presentPriceChange({ evidence, atMs }: NotedChange): AnswerOf<typeof endedEpochShape> {
  const at = instant(atMs);
  if (evidence.kind === "tier") return { at, evidence: "tier", from: evidence.from, to: evidence.to };
  if (evidence.kind !== "quote") return { at, evidence: evidence.kind };
  const { tld, action, years, from, to } = evidence;
  return {
    at,
    evidence: "quote",
    tld,
    action,
    years,
    from: presentWholesaleToStaff(from),
    to: presentWholesaleToStaff(to),
  };
}

export function presentAudit(acts: readonly Act[]): AnswerOf<typeof staff.auditShape> {
  return {
    acts: acts.map(({ id, whenMs, who, what, subject, outcome, times }) => ({
      id,
      when: instant(whenMs),
      who,
      what,
      subject,
      outcome,
      times,
    })),
  };
}

const CHANGES_SHOWN_MS = DAY_MS;

function isRecent<T extends { readonly atMs: number }>(change: T | undefined, nowMs: number): change is T {
  return change !== undefined && nowMs - change.atMs < CHANGES_SHOWN_MS;
}

function counted(list: readonly string[]): [text: string, times: number][] {
  return [...new Set(list)].map((text) => [text, list.filter((one) => one === text).length]);
}
