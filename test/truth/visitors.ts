/** The visitors of a history: they put questions, and have the oracle judge every answer that comes. */
import { z } from "zod";
import type { Delivered } from "../../src/sandbox/sandbox.js";
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
import type { Question, Reply, SimulatedService } from "./simulation.js";
import { NAMES, partsOf, termOf } from "./world.js";

const DOUBT_CALLS = 2;

export interface Pending {
  readonly question: Question;
  readonly isCart: boolean;
  readonly startedMs: number;
}

export interface VisitorSettings {
  readonly service: SimulatedService;
  readonly oracle: Oracle;
  /** Whether nothing keeps the service from asking whatever it wants to know. */
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

  /** Those who wait for an answer. */
  get pending(): readonly Pending[] {
    return [...this.#pending];
  }

  get #nowMs(): number {
    return this.#settings.service.clock.monotonic();
  }

  /** One of them closes the page. */
  leave(at: number): void {
    const left = this.pending[at % Math.max(1, this.#pending.size)];
    if (left === undefined) return;
    this.#pending.delete(left);
    left.question.leave();
  }

  /** The service has gone, and with it every connection. */
  cutOff(): void {
    this.#pending.clear();
  }

  /** A name that was premium has been checked and is not any more. */
  noteCheck({ fact, decidedMs }: Extract<Delivered, { operation: "check" }>): void {
    const state = this.#oracle.world.during(decidedMs, decidedMs).at(-1);
    if (fact.available && state?.premium.has(fact.domain) !== true)
      this.#premiumSinceMs.delete(NAMES.findIndex((one) => one === fact.domain));
  }

  /** Puts a question; `judge` gets the reply with what there was when it was put and when it was answered. */
  #ask(path: string, body: unknown, judge: (reply: Reply, exchange: Exchange) => void): void {
    const startedMs = this.#nowMs;
    const isCalm = this.#settings.canAsk() && this.#pending.size === 0;
    const state = this.#oracle.world.now;
    const question = this.#settings.service.ask(path, body, (reply) => {
      this.#settings.note(`${this.#nowMs} visitor ${path} ${reply.status} ${textOf(reply.body)}`);
      this.#pending.delete(pending);
      const endedMs = this.#nowMs;
      const isSame = startedMs === endedMs && state === this.#oracle.world.now;
      const exchange = { startedMs, endedMs, isCalm: isCalm && isSame };
      try {
        if (reply.status === 500) throw new Error("an internal problem");
        judge(reply, exchange);
      } catch (error) {
        const what = error instanceof Error ? error.message : String(error);
        this.#oracle.report("failed: the service itself", this.#nowMs, `${path}: ${what}`);
      }
    });
    const pending = { question, isCart: body !== undefined, startedMs };
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
    const isSingle = isOneDoubt(this.#oracle, name, termOf("registration", years));
    this.#ask(`/v1/availability?domain=${domain}&years=${years}`, undefined, ({ status, body }, exchange) => {
      const what = `${domain} for ${years}`;
      const { isCalm, endedMs } = exchange;
      if (status !== 200) {
        if (isCalm)
          this.#oracle.report(
            "shown: nothing although the upstream could be asked",
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
      if (isCalm && (calls > DOUBT_CALLS || (isSingle && shown.stale)))
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
      const refused = (what: string): void => {
        const kind = "shown: nothing although the upstream could be asked";
        if (exchange.isCalm && priceable.length > 0) this.#oracle.report(kind, exchange.endedMs, what);
      };
      if (status !== 200) return refused(`${JSON.stringify(lines)}: ${textOf(body)}`);
      const { items: shown, promise } = cartReply.parse(body);
      this.#judgeSigned(shown, promise, exchange);
      for (const [at, { price, premium, status: availability }] of shown.entries()) {
        const line = lines[at];
        if (premium && line !== undefined && !this.#premiumSinceMs.has(line.name))
          this.#premiumSinceMs.set(line.name, exchange.endedMs);
        const isUnanswered = price === null && availability !== "taken";
        if (line !== undefined && priceable.includes(line) && isUnanswered)
          refused(`${JSON.stringify(line)}: ${textOf(body)}`);
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
        "signed: other lines than shown",
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

  /** Whether the service has every reason to name a price for this line. */
  #isPriceable(name: number, term: TermName): boolean {
    const { now } = this.#oracle.world;
    const domain = NAMES[name] ?? "";
    if (!isOneDoubt(this.#oracle, name, term)) return false;
    if (term.startsWith("registration")) return !now.taken.has(domain);
    return !now.premium.has(domain) && !this.#premiumSinceMs.has(name);
  }
}
