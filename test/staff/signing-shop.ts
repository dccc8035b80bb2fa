/** A shop that signs carts at an upstream of the test, whose portal takes orders, and what its staff see. */
import { expect } from "@jest/globals";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { openApiDocument } from "../../src/wire/document.js";
import { followedCartsShape } from "../../src/wire/staff.js";
import { quotesShape } from "../../src/wire/visitors.js";
import { type OpenedShop, openShop } from "../shop/opened-shop.js";
import type { CartLine } from "../shop/shop.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { claimsOf } from "../support/promise.js";
import { type Ask, bearer, inTime, type Service } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

/** Few prices, because all of them are asked for again every hour. */
const RETAIL = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1, 2], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "25", addFixed: "1.00", ending: "0.99" }]
`;

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
const document = openApiDocument({ version: "1.2.3" });

export async function sign(ask: Ask, clock: FakeClock, ...items: CartLine[]): Promise<string> {
  const { status, body } = await inTime(clock, ask("/v1/quotes", { method: "POST", body: { items } }));
  const claims = claimsOf(quotesShape.parse(body).promise ?? "");
  expect([status, claims.items.length]).toEqual([200, items.length]);
  return claims.jti;
}

export async function listed(ask: Ask, query = "") {
  const path = `/v1/staff/promises${query}`;
  const answer = await ask(path, { headers: bearer("read") });
  matchesDocument(document, "get", path, answer);
  return followedCartsShape.parse(answer.body);
}

export async function statesOf(ask: Ask): Promise<Record<string, string>> {
  const { promises } = await listed(ask, "?limit=1000");
  return Object.fromEntries(
    promises.flatMap(({ id, items }) =>
      items.map(({ domain, action, state }) => [`${id} ${action} ${domain}`, state]),
    ),
  );
}

export const say = (ask: Ask, id: string, body: object) =>
  ask(`/v1/staff/promises/${id}`, { method: "POST", headers: bearer("order"), body });

/** A shop at an upstream of the test, which can be stopped and started again. */
export class Shop {
  service: Service;
  readonly clock: FakeClock;
  readonly sandbox: Sandbox;
  readonly #opened: OpenedShop;

  private constructor(opened: OpenedShop, service: Service) {
    this.#opened = opened;
    this.service = service;
    ({ clock: this.clock, sandbox: this.sandbox } = opened);
  }

  /** `more`: further settings. */
  static async open(reseller = "demo", more: Readonly<Record<string, string>> = {}): Promise<Shop> {
    const opened = await openShop({
      clock: new FakeClock(Date.UTC(2026, 2, 20, 9)),
      world: null,
      retail: RETAIL,
      limit: 60,
      env: (sandbox) => ({ ...upstreamAt(sandbox, reseller), UPSTREAM_RATE_LIMIT: "60", ...more }),
    });
    const shop = new Shop(opened, await opened.start({ warm: false }));
    await shop.#warm();
    return shop;
  }

  async restart(): Promise<void> {
    await this.service.close();
    this.service = await this.#opened.start({ warm: false });
    await this.#warm();
  }

  #warm(): Promise<void> {
    return this.pass(5 * MINUTE_MS, 15_000);
  }

  /** Time passes in leaps, and after each one the answers of the sandbox arrive. */
  async pass(ms: number, leapMs = 20 * MINUTE_MS): Promise<void> {
    for (let left = ms; left > 0; left -= leapMs) {
      await this.clock.leap(Math.min(left, leapMs));
      await new Promise((done) => setTimeout(done, 4));
      await this.clock.advance(200);
    }
  }

  /** Names to register are available. */
  sign(...items: CartLine[]): Promise<string> {
    for (const { domain, action } of items)
      if (action === "registration") this.sandbox.control.setTaken(domain, false);
    return sign(this.service.ask, this.clock, ...items);
  }

  async stateOf(domain: string): Promise<string | undefined> {
    const entries = Object.entries(await statesOf(this.service.ask));
    return entries.find(([line]) => line.endsWith(` ${domain}`))?.[1];
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.#opened.close();
  }
}
