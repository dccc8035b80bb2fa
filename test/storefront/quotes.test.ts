/** A cart of which no line could be answered: what its visitor is told. */
import { expect, test } from "@jest/globals";
import { parseDomainName } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { createQuotes, type QuoteItem } from "../../src/storefront/quotes.js";
import { FakeClock } from "../support/fake-clock.js";

const item = (label: string, action: QuoteItem["action"]): QuoteItem => ({
  name: parseDomainName(`${label}.af`, [".af"], "domain"),
  action,
  years: 1,
});
const unused = (): never => {
  throw new Error("nothing here has a price");
};

/** Asks for a registration of each label, which is refused as given, and for the renewal of a premium name, which has no price. */
function cartOf(refusals: Readonly<Record<string, ServiceError>>) {
  const quotes = createQuotes({
    policy: { price: unused, promotionEpoch: unused, promiseValidMs: 0 },
    prices: { fresh: unused, peek: unused, quote: unused },
    availability: {
      register: (_ask, { label }) => Promise.reject(refusals[label] ?? new Error("unknown label")),
    },
    premiumNames: {
      isPremium: () => Promise.resolve(true),
      consult: unused,
      isOrdinary: () => false,
      isKnownPremium: () => true,
    },
    promises: { sign: unused },
    clock: new FakeClock(),
  });
  const ask = {
    lane: "checkout" as const,
    client: "visitor",
    waitUntilMs: 0,
    signal: new AbortController().signal,
    spend: () => undefined,
  };
  return (items: readonly QuoteItem[]): Promise<unknown> =>
    quotes.cart(ask, items).then(unused, (error: unknown) => error);
}

test.each([
  ["a wait before a failure without one", 5_000, undefined],
  ["the shorter wait", 5_000, 60_000],
])("is told %s, in whatever order its lines are", async (_what, soonMs, laterMs) => {
  const soon = new ServiceError("quota_exhausted", "soon", { retryAfterMs: soonMs, kept: true });
  const later = new ServiceError("quota_exhausted", "later", { retryAfterMs: 60_000, kept: false });
  const refusedCart = cartOf({ soon, later });
  const other = laterMs === undefined ? item("gold", "renewal") : item("later", "registration");
  const lines = [item("soon", "registration"), other];
  expect(await refusedCart(lines)).toBe(soon);
  expect(await refusedCart(lines.toReversed())).toBe(soon);
});

test("is told of a reserved call before another one at the same second", async () => {
  const busy = new ServiceError("quota_exhausted", "busy", { retryAfterMs: 60_000, kept: false });
  const reserved = new ServiceError("quota_exhausted", "reserved", { retryAfterMs: 60_000, kept: true });
  const lines = [item("busy", "registration"), item("reserved", "registration")];
  expect(await cartOf({ busy, reserved })(lines)).toBe(reserved);
});
