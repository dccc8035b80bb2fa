/** The visitors of a history. They send requests, and the oracle judges every answer. */
import { z } from "zod";
import type { Delivered } from "../../packages/sandbox/src/sandbox.js";
import { claimsOf } from "../support/promise.js";
import { doubtCalls, isOneDoubt } from "./doubts.js";
import type { TermName } from "./history.js";
import type { Exchange, Oracle } from "./oracle.js";
import {
  availabilityReply,
  cartLine,
  cartReply,
  pricesReply,
  quoteReply,
  searchReply,
  textOf,
} from "./replies.js";
import { judgeSigned } from "./signing.js";
import { type SentRequest, type Reply, type SimulatedService, trueTime } from "./simulation.js";
import { NAMES, partsOf, termOf } from "./world.js";

const DOUBT_CALLS = 2;

export interface Pending {
  readonly request: SentRequest;
  readonly isCart: boolean;
  readonly startedMs: number;
}

export interface VisitorSettings {
  readonly service: SimulatedService;
  readonly oracle: Oracle;
  /** Whether nothing prevents the service from asking the upstream. */
  readonly canAsk: () => boolean;
  readonly note: (what: string) => void;
}

export class Visitors {
  readonly #settings: VisitorSettings;
  readonly #oracle: Oracle;
  readonly #pending = new Set<Pending>();
  /** Names shown as premium, and since when. */
  readonly #premiumSinceMs = new Map<number, number>();

  constructor(settings: VisitorSettings) {
    this.#settings = settings;
    this.#oracle = settings.oracle;
  }

  /** The requests that wait for an answer. */
  get pending(): readonly Pending[] {
    return [...this.#pending];
  }

  get #nowMs(): number {
    return trueTime(this.#settings.service.clock);
  }

  /** One visitor closes the page. */
  leave(at: number): void {
    const left = this.pending[at % Math.max(1, this.#pending.size)];
    if (left === undefined) return;
    this.#pending.delete(left);
    left.request.leave();
  }

  /** The service has stopped, so all connections are gone. */
  disconnectAll(): void {
    this.#pending.clear();
  }

  /** Forgets that a name was shown as premium once a check finds it ordinary. */
  noteCheck({ fact, decidedMs }: Extract<Delivered, { operation: "check" }>): void {
    const state = this.#oracle.world.during(decidedMs, decidedMs).at(-1);
    if (fact.available && state?.premium.has(fact.domain) !== true)
      this.#premiumSinceMs.delete(NAMES.findIndex((one) => one === fact.domain));
  }

  /** Sends a request. `judge` gets the reply, and when it was requested and answered. */
  #ask(path: string, body: unknown, judge: (reply: Reply, exchange: Exchange) => void): void {
    const startedMs = this.#nowMs;
    const isCalm = this.#settings.canAsk() && this.#pending.size === 0;
    const state = this.#oracle.world.now;
    const request = this.#settings.service.ask(path, body, (reply) => {
      this.#settings.note(`${this.#nowMs} visitor ${path} ${reply.status} ${textOf(reply.body)}`);
      this.#pending.delete(pending);
      const endedMs = this.#nowMs;
      const isSame = startedMs === endedMs && state === this.#oracle.world.now;
      const exchange = { startedMs, endedMs, isCalm: isCalm && isSame };
      try {
        if (reply.status === 500) throw new Error("an internal error");
        judge(reply, exchange);
      } catch (error) {
        const what = error instanceof Error ? error.message : String(error);
        this.#oracle.report("failed: the service itself", this.#nowMs, `${path}: ${what}`);
      }
    });
    const pending = { request, isCart: body !== undefined, startedMs };
    this.#pending.add(pending);
  }

  look(name: number, years: number, onlyKnown: boolean): void {
    const domain = NAMES[name] ?? "";
    if (onlyKnown) {
      this.#ask(
        `/v1/search?q=${domain}&years=${years}&only=known`,
        undefined,
        ({ status, body }, exchange) => {
          if (status !== 200) return;
          const [result] = searchReply.parse(body).results;
          const shown = availabilityReply.safeParse(result);
          if (shown.success)
            this.#oracle.availability(name, years, shown.data, { ...exchange, isCalm: false });
        },
      );
      return;
    }
    const callsBefore = doubtCalls(this.#oracle.evidence, name, years);
    const isSingleDoubt = isOneDoubt(this.#oracle, name, termOf("registration", years));
    this.#ask(`/v1/availability?domain=${domain}&years=${years}`, undefined, ({ status, body }, exchange) => {
      const what = `${domain} for ${years}`;
      const { isCalm, endedMs } = exchange;
      if (status !== 200) {
        if (isCalm)
          this.#oracle.report(
            "shown: nothing although the upstream was available",
            endedMs,
            `${what}: ${textOf(body)}`,
          );
        return;
      }
      const shown = availabilityReply.parse(body);
      this.#oracle.availability(name, years, shown, exchange);
      if (shown.premium && !shown.stale && !this.#premiumSinceMs.has(name))
        this.#premiumSinceMs.set(name, endedMs);
      const calls = doubtCalls(this.#oracle.evidence, name, years) - callsBefore;
      if (isCalm && (calls > DOUBT_CALLS || (isSingleDoubt && shown.stale)))
        this.#oracle.report(
          "doubt: not resolved within two calls",
          endedMs,
          `${what}: ${calls} calls, ${textOf(body)}`,
        );
    });
  }

  quote(term: TermName): void {
    const { action, years } = partsOf(term);
    this.#ask(
      `/v1/quotes?tld=.af&action=${action}&years=${years}`,
      undefined,
      ({ status, body }, exchange) => {
        if (status !== 200) return;
        const shown = quoteReply.parse(body);
        this.#oracle.quote(term, shown.price, shown.asOf, shown.stale, exchange);
      },
    );
  }

  prices(): void {
    this.#ask("/v1/prices", undefined, ({ status, body }, { endedMs }) => {
      if (status !== 200) return;
      const list = pricesReply.parse(body);
      for (const { action, years, price } of list.prices)
        this.#oracle.listed(termOf(action, years), price, list.asOf, endedMs);
    });
  }

  cart(lines: readonly { readonly name: number; readonly term: TermName }[]): void {
    const items = lines.map(({ name, term }) => ({ domain: NAMES[name], ...partsOf(term) }));
    const priceable = lines.filter(({ name, term }) => this.#isPriceable(name, term));
    this.#ask("/v1/quotes", { items }, ({ status, body }, exchange) => {
      const reportMissing = (what: string): void => {
        const kind = "shown: nothing although the upstream was available";
        if (exchange.isCalm && priceable.length > 0) this.#oracle.report(kind, exchange.endedMs, what);
      };
      if (status !== 200) return reportMissing(`${JSON.stringify(lines)}: ${textOf(body)}`);
      const { items: shown, promise } = cartReply.parse(body);
      this.#judgeSigned(shown, promise, exchange);
      for (const [at, { price, premium, status: availability }] of shown.entries()) {
        const line = lines[at];
        if (premium && line !== undefined && !this.#premiumSinceMs.has(line.name))
          this.#premiumSinceMs.set(line.name, exchange.endedMs);
        const isUnanswered = price === null && availability !== "taken";
        if (line !== undefined && priceable.includes(line) && isUnanswered)
          reportMissing(`${JSON.stringify(line)}: ${textOf(body)}`);
      }
    });
  }

  #judgeSigned(shown: readonly z.infer<typeof cartLine>[], promise: string | null, exchange: Exchange): void {
    const keyOf = (line: { domain: string; action: string; years: number }): string =>
      `${line.domain} ${line.action} ${line.years}`;
    const priced = shown.filter(({ price }) => price !== null);
    const signed = promise === null ? [] : z.array(cartLine).parse(claimsOf(promise).items);
    const linesOf = (list: typeof signed): string =>
      list.map((one) => `${keyOf(one)} ${one.price}`).join(", ");
    if (linesOf(priced) !== linesOf(signed))
      this.#oracle.report(
        "signed: different lines than shown",
        exchange.endedMs,
        `${linesOf(priced)}: ${linesOf(signed)}`,
      );
    for (const { domain, action, years, price } of signed) {
      const name = NAMES.findIndex((one) => one === domain);
      if (price === null) continue;
      const line = { name, term: termOf(action, years), cents: price };
      const wasPremium = (this.#premiumSinceMs.get(name) ?? Infinity) < exchange.endedMs;
      judgeSigned(this.#oracle, line, wasPremium, exchange);
    }
  }

  /** Whether the service must be able to price this line. */
  #isPriceable(name: number, term: TermName): boolean {
    const { now } = this.#oracle.world;
    const domain = NAMES[name] ?? "";
    if (!isOneDoubt(this.#oracle, name, term)) return false;
    if (term.startsWith("registration")) return !now.taken.has(domain);
    return !now.premium.has(domain) && !this.#premiumSinceMs.has(name);
  }
}
