/** Builds the response bodies for visitors and customers field by field, as new objects, without wholesale amounts. */
import type { UnknownDomain } from "../customers/customer-domains.js";
import type { Known } from "../facts/page.js";
import { instant } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { ServiceError } from "../errors.js";
import { presentRetail, type Retail, totalsOf } from "../money.js";
import type { AppliedPromotion, RetailPolicy } from "../retail/policy.js";
import { oldest, type KnownQuote } from "../retail/price-list.js";
import type { Availability } from "../shop/availability.js";
import type { Cart, TermQuote } from "../shop/quotes.js";
import type { SearchedName, Unknown } from "../shop/search.js";
import type { Combination, DomainRecord } from "../upstream/contract.js";
import type { AnswerOf } from "../wire/answer.js";
import type { customerDomainShape, unknownDomainShape } from "../wire/customers.js";
import { presentOrigin, presentPromotion } from "../wire/parts.js";
import type { domainRecordShape } from "../wire/staff.js";
import type * as visitor from "../wire/visitors.js";
import { retryAfterSeconds } from "./edge/problems.js";

export function presentAvailability(
  found: Availability | Unknown,
): AnswerOf<typeof visitor.availabilityShape> {
  if (found.status === "unknown")
    return {
      ...presentUnknown(found),
      retryAfter: retryAfterSeconds(found.retryAfterMs),
      kept: found.kept,
    };
  return {
    ...presentName(found),
    status: found.status,
    available: found.status === "available",
    premium: found.kind === "premium",
    years: found.years,
    price: found.price && presentRetail(found.price),
    renewal: found.renewal && presentRetail(found.renewal),
    asOf: minute(found.asOfMs),
    stale: found.stale,
  };
}

/** A name with no known facts. */
export function presentUnknown(asked: SearchedName): AnswerOf<typeof visitor.availabilityShape> {
  return {
    ...presentName(asked),
    status: "unknown" as const,
    available: false,
    premium: false,
    years: asked.years,
    price: null,
    renewal: null,
    asOf: null,
    stale: false,
  };
}

function presentName({ name }: SearchedName) {
  return { domain: name.ascii, unicodeName: name.unicode, tld: name.tld };
}

type Listed = Combination & Pick<KnownQuote, "wholesale" | "asOfMs">;

/** The retail prices of known ones, without those that can't be calculated. */
export function presentPrices(
  facts: readonly Listed[],
  policy: RetailPolicy,
  atMs: number,
): AnswerOf<typeof visitor.priceListShape> {
  const prices = facts.flatMap(({ wholesale, ...what }) => {
    const priced = policy.price(wholesale, what, atMs);
    return priced.ok ? [presentPrice(what, priced)] : [];
  });
  return { asOf: minute(oldest(facts, atMs)), prices };
}

export function presentTermQuote(what: Combination, quote: TermQuote): AnswerOf<typeof visitor.quoteShape> {
  return { ...presentPrice(what, quote), asOf: minute(quote.asOfMs), stale: quote.stale };
}

function presentPrice(
  { tld, action, years }: Combination,
  { price, promotion }: { readonly price: Retail; readonly promotion?: AppliedPromotion | undefined },
): AnswerOf<typeof visitor.priceShape> {
  return { tld, action, years, price: presentRetail(price), ...presentPromotion(promotion) };
}

export function presentCart({ lines, promise }: Cart): AnswerOf<typeof visitor.quotesShape> {
  return {
    items: lines.map(({ name, action, years, price, status, kind, asOfMs, problem }) => ({
      domain: name.ascii,
      tld: name.tld,
      action,
      years,
      price: price && presentRetail(price),
      status,
      premium: kind === "premium",
      asOf: minute(asOfMs),
      ...(problem && { problem: presentLineProblem(problem) }),
    })),
    total: totalsOf(lines.map(({ price }) => price).filter((price) => price !== null)),
    promise: promise && promise.jws,
    validUntil: promise && instant(promise.validUntilMs),
  };
}

function presentLineProblem({ code, detail, retryAfterMs }: ServiceError) {
  return {
    code,
    detail,
    ...(retryAfterMs !== undefined && { retryAfter: retryAfterSeconds(retryAfterMs) }),
  };
}

export function presentDomain(record: DomainRecord): AnswerOf<typeof domainRecordShape> {
  const { domain, status, registeredAt, expiresAt, autoRenew, nameservers } = record;
  return { domain, status, registeredAt, expiresAt, autoRenew, nameservers };
}

/** For its owner: the record with the known renewal prices of its TLD. */
export function presentCustomerDomain(
  known: Known<DomainRecord> & { readonly name: DomainName },
  facts: readonly KnownQuote[],
  policy: RetailPolicy,
  atMs: number,
): AnswerOf<typeof customerDomainShape> {
  const renewals = facts.filter(({ tld, action }) => tld === known.name.tld && action === "renewal");
  const { prices } = presentPrices(renewals, policy, atMs);
  return {
    ...presentDomain(known.value),
    renewal: prices.map(({ years, price }) => ({ years, price })),
    ...presentOrigin(known),
  };
}

export function presentUnknownDomain({
  name,
  retryAfterMs,
}: UnknownDomain): AnswerOf<typeof unknownDomainShape> {
  return { domain: name.ascii, status: "unknown", retryAfter: retryAfterSeconds(retryAfterMs) };
}

/** For visitors: seconds would reveal when another visitor searched. */
function minute(atMs: number): string {
  return instant(Math.floor(atMs / 60_000) * 60_000);
}
