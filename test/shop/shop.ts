/** A small world with round numbers, and a client of the service for visitors with carts. */
import { type ClientRequest, request } from "node:http";
import { availabilityShape, quoteShape, quotesShape } from "../../src/wire/visitors.js";
import type { Service } from "../support/service.js";
import { claimsOf } from "../support/promise.js";

/** One year of `.af` costs 17.31 wholesale to register and 20.00 to renew; Gold pays 10 % less. */
export const WORLD = `
rateLimit: { limit: 1000, windowMs: 60000 }
nameservers: [ns1.example.af]
tiers:
  - { name: Silver, fromDomains: 0, discountPercent: 0 }
  - { name: Gold, fromDomains: 25, discountPercent: 10 }
priceLists:
  USD:
    .af: { registration: ["17.31", "33.00"], renewal: ["20.00"], transfer: ["19.00"], restore: ["80.00"] }
names: { takenPercent: 0, premium: { gold.af: { USD: "900.00" } } }
resellers:
  - id: demo
    accountNumber: RS-1
    currency: USD
    tier: Silver
    balance: "100.00"
    creditLimit: "0.00"
    credentials: [{ key: shop-demo-key, secret: shop-demo-secret }]
`;

/** Wholesale plus 50 % and a dollar; for premium names, plus 10 %; always at least two dollars above cost. */
export const RETAIL = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1], transfer: [1], restore: [1] } }]
rules: [{ match: {}, markupPercent: "50", addFixed: "1.00", minMargin: "2.00" }]
premium: { markupPercent: "10", minMargin: "2.00" }
`;

export const usd = (amount: string) => ({ amount, currency: "USD" });

export interface CartLine {
  readonly domain: string;
  readonly action: "registration" | "renewal" | "transfer" | "restore";
  readonly years: number;
}

export function shopAt({ ask, port }: Pick<Service, "ask" | "port">) {
  return {
    async availability(domain: string, years = 1) {
      const { body } = await ask(`/v1/availability?domain=${domain}&years=${years}`);
      return availabilityShape.parse(body);
    },
    async quote(action: CartLine["action"], years = 1) {
      const { body } = await ask(`/v1/quotes?tld=.af&action=${action}&years=${years}`);
      return quoteShape.parse(body);
    },
    /** Sends a cart and returns the raw answer. */
    post: (lines: readonly CartLine[]) => ask("/v1/quotes", { method: "POST", body: { items: lines } }),
    /** Sends a cart and returns the lines shown, and those signed, as "domain action price". */
    async cart(...lines: readonly CartLine[]) {
      const { status, text, body } = await this.post(lines);
      if (status !== 200) throw new Error(`the whole cart was refused: ${text}`);
      const { items, total, promise } = quotesShape.parse(body);
      const signed = promise === null ? [] : claimsOf(promise).items;
      return {
        items,
        total,
        signed: signed.map(({ domain, action, price }) => `${domain} ${action} ${price.amount}`),
      };
    },
    /** Requests a name's availability without waiting for it. `leave` disconnects, as a closed browser tab does. */
    startLookup(domain: string, years = 1) {
      const path = `/v1/availability?domain=${domain}&years=${years}`;
      const outgoing: ClientRequest = request({ host: "127.0.0.1", port, path });
      outgoing.on("error", () => undefined);
      outgoing.end();
      return {
        async leave(): Promise<void> {
          outgoing.destroy();
          // This is sent after that connection ended, so it is answered after the end was noticed.
          await ask("/livez");
        },
      };
    },
  };
}

export const registration = (domain: string, years = 1): CartLine => ({
  domain,
  action: "registration",
  years,
});
export const renewal = (domain: string): CartLine => ({ domain, action: "renewal", years: 1 });
export const transfer = (domain: string): CartLine => ({ domain, action: "transfer", years: 1 });
