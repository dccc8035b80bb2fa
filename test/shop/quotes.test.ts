/** The error for a cart of which no line could be quoted. */
import { expect, test } from "@jest/globals";
import { parseDomainName } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { createQuotes, type QuoteItem } from "../../src/shop/quotes.js";
import { FakeClock } from "../support/fake-clock.js";

const item = (label: string, action: QuoteItem["action"]): QuoteItem => ({
  name: parseDomainName(`${label}.af`, [".af"], "domain"),
  action,
  years: 1,
});
const unused = (): never => {
  throw new Error("nothing here has a price");
};

/** Quotes carts whose registrations are refused with these errors. Renewals are of a premium name, so they have no price. */
function cartOf(refusals: Readonly<Record<string, ServiceError>>) {
  const quotes = createQuotes({
    policy: { price: unused, promiseValidMs: 0 },
    prices: { peek: unused, ask: unused },
    availability: {
      signable: () => undefined,
      prepare: (_ask, { label }) => Promise.reject(refusals[label] ?? new Error("unknown label")),
    },
    namePrices: { isOrdinary: () => false, settle: unused },
    nameKinds: { of: () => "premium" },
    promises: { sign: unused },
    clock: new FakeClock(),
    factClock: new FakeClock(),
  });
  const ask = {
    lane: "checkout" as const,
    client: "visitor",
    waitUntilAt: 0,
    signal: new AbortController().signal,
    spend: () => undefined,
  };
  return (items: readonly QuoteItem[]): Promise<unknown> =>
    quotes.cart(ask, items).then(unused, (error: unknown) => error);
}

test.each([
  ["a wait rather than a failure without one", 5_000, undefined],
  ["the shorter wait", 5_000, 60_000],
])("a cart without prices fails with %s, in whatever order its lines are", async (_what, soonMs, laterMs) => {
  const soon = new ServiceError("quota_exhausted", "soon", { retryAfterMs: soonMs, kept: true });
  const later = new ServiceError("quota_exhausted", "later", { retryAfterMs: 60_000, kept: false });
  const refusedCart = cartOf({ soon, later });
  const other = laterMs === undefined ? item("gold", "renewal") : item("later", "registration");
  const lines = [item("soon", "registration"), other];
  expect(await refusedCart(lines)).toBe(soon);
  expect(await refusedCart(lines.toReversed())).toBe(soon);
});

test("a cart without prices fails with a reserved call rather than an unreserved one at the same second", async () => {
  const busy = new ServiceError("quota_exhausted", "busy", { retryAfterMs: 60_000, kept: false });
  const reserved = new ServiceError("quota_exhausted", "reserved", { retryAfterMs: 60_000, kept: true });
  const lines = [item("busy", "registration"), item("reserved", "registration")];
  expect(await cartOf({ busy, reserved })(lines)).toBe(reserved);
});
