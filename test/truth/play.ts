/** Plays a history step by step and has the oracle judge every answer that comes of it. */
import { z } from "zod";
import { claimsOf } from "../support/promise.js";
import { Evidence } from "./evidence.js";
import { type History, randomOf, type Step, type TermName } from "./history.js";
import { type Exchange, Oracle, type Violation } from "./oracle.js";
import { judgeSigned } from "./signing.js";
import { EPOCH_MS, type Question, type Reply, type SimulatedService, type Simulator } from "./simulation.js";
import { NAMES, partsOf, termOf, World } from "./world.js";

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly calls: number;
  /** Calls for what was known and fresh: they were spent on doubts. */
  readonly again: number;
  /** What happened in this history, so that two runs can be compared. */
  readonly trace: readonly string[];
}

const money = z
  .object({ amount: z.string().regex(/^\d+\.\d\d$/), currency: z.literal("USD") })
  .transform(({ amount }) => Math.round(Number(amount) * 100));
const moment = z.iso.datetime().transform((text) => Date.parse(text) - EPOCH_MS);
const availability = z
  .object({
    status: z.enum(["available", "taken", "unknown"]),
    premium: z.boolean(),
    price: money.nullable(),
    asOf: moment,
    stale: z.boolean(),
  })
  .transform(({ price, asOf, ...rest }) => ({ ...rest, cents: price, asOfMs: asOf }));
const search = z.object({ results: z.tuple([z.union([availability, z.looseObject({})])]) });
const quote = z.object({ price: money, asOf: moment, stale: z.boolean().default(false) });
const listed = z.object({
  action: z.enum(["registration", "renewal", "transfer"]),
  years: z.int(),
  price: money,
});
const prices = z.object({ asOf: moment, prices: z.array(listed) });
const cartLine = z.object({ domain: z.string(), ...listed.shape, price: money.nullable() });
const cart = z.object({ items: z.array(cartLine), promise: z.string().nullable() });

/** A call that failed may have opened a circuit, which is tried again after half a minute. */
const RECOVERED_MS = 40_000;
const GIVEN_UP_MS = 20_000;
const DOUBT_CALLS = 2;

interface Pending {
  readonly question: Question;
  readonly isCart: boolean;
  readonly startedMs: number;
}

class Player {
  readonly #service: SimulatedService;
  readonly #world: World;
  readonly #evidence = new Evidence();
  readonly #oracle: Oracle;
  readonly #pending = new Set<Pending>();
  readonly #shownPremium = new Set<number>();
  readonly trace: string[] = [];
  #troubledUntilMs = -Infinity;
  #isDown = false;
  #linesRead = 0;

  constructor(service: SimulatedService) {
    this.#service = service;
    const { control } = service.sandbox;
    this.#world = new World(control, () => this.#nowMs);
    this.#oracle = new Oracle(this.#world, this.#evidence);
    service.onSettled(() => {
      this.#world.catchUp();
      const news = service.log.slice(this.#linesRead);
      this.#linesRead = service.log.length;
      if (news.some((line) => line.includes('"upstream.failed"')))
        this.#troubledUntilMs = this.#nowMs + RECOVERED_MS;
    });
    control.watch((answer) => {
      this.trace.push(`${answer.deliveredMs} upstream ${answer.operation} ${JSON.stringify(answer.fact)}`);
      this.#evidence.add(
        answer,
        [...this.#pending].some(({ isCart }) => isCart),
      );
      if (answer.operation !== "check" || !answer.fact.available) return;
      const name = NAMES.findIndex((one) => one === answer.fact.domain);
      const [state] = this.#world.during(answer.decidedMs, answer.decidedMs).slice(-1);
      if (state?.premium.has(answer.fact.domain) !== true) this.#shownPremium.delete(name);
    });
  }

  get #nowMs(): number {
    return this.#service.clock.monotonic();
  }

  async play(history: History): Promise<Outcome> {
    await this.#service.start();
    for (const step of history) {
      this.trace.push(`${this.#nowMs} ${JSON.stringify(step)}`);
      await this.#take(step);
      await this.#service.clock.advance(1);
    }
    await this.#end();
    const { violations } = this.#oracle;
    return { violations, calls: this.#evidence.calls, again: this.#evidence.again, trace: this.trace };
  }

  /** Nobody is left without an answer once nothing holds it up. */
  async #end(): Promise<void> {
    this.#setUpstream("up");
    this.#releaseAll();
    await this.#service.clock.advance(GIVEN_UP_MS);
    for (const { startedMs } of this.#pending)
      this.#oracle.report("answered: never", this.#nowMs, `a question from ${startedMs} ms`);
  }

  async #take(step: Step): Promise<void> {
    const { clock, sandbox } = this.#service;
    const { control } = sandbox;
    if ("look" in step) this.#look(step.look, step.years, step.known === true);
    else if ("quote" in step) this.#quote(step.quote);
    else if ("prices" in step) this.#prices();
    else if ("cart" in step) this.#cart(step.cart);
    else if ("leave" in step) this.#leave(step.leave);
    else if ("after" in step) this.#world.change(step.change, step.after);
    else if ("hold" in step) control.hold({ operation: step.hold, calls: step.calls, decided: step.decided });
    else if ("release" in step) {
      const held = control.holds().flatMap((hold) => hold.answers());
      held[step.release % Math.max(1, held.length)]?.release();
    } else if ("releaseAll" in step) this.#releaseAll();
    else if ("upstream" in step) this.#setUpstream(step.upstream);
    else if ("purge" in step) this.#purge(step.purge);
    else if ("staffTier" in step) this.#service.ask("/v1/staff/tier", undefined, () => undefined, true);
    else if ("restart" in step) await this.#restart(step.restart);
    else if ("pass" in step) await clock.advance(step.pass);
    else this.#world.change(step);
    await clock.advance(0);
  }

  #releaseAll(): void {
    for (const hold of this.#service.sandbox.control.holds()) hold.release();
  }

  #setUpstream(to: "down" | "up"): void {
    this.#isDown = to === "down";
    this.#service.setUpstream(!this.#isDown);
  }

  #leave(at: number): void {
    const left = [...this.#pending][at % Math.max(1, this.#pending.size)];
    if (left === undefined) return;
    this.#pending.delete(left);
    left.question.leave();
  }

  #purge(what: "prices" | "availability" | "account" | "all"): void {
    if (what === "availability" || what === "all") {
      this.#evidence.forgetChecks(this.#nowMs);
      this.#shownPremium.clear();
    }
    if (what === "prices" || what === "all") this.#evidence.forgetQuotes(this.#nowMs);
    this.#service.ask("/v1/staff/cache/purge", { what }, () => undefined, true);
  }

  async #restart(downMs: number): Promise<void> {
    this.#pending.clear();
    this.#releaseAll();
    await this.#service.stop();
    this.#evidence.forgetChecks(this.#nowMs);
    this.#evidence.forgetQuotes(this.#nowMs);
    this.#shownPremium.clear();
    await this.#service.clock.advance(downMs);
    await this.#service.start();
  }

  get #isCalm(): boolean {
    const { control } = this.#service.sandbox;
    return (
      !this.#isDown &&
      this.#nowMs > this.#troubledUntilMs &&
      control.holds().length === 0 &&
      this.#pending.size === 0
    );
  }

  /** Puts a question; `judge` gets the reply with what there was when it was put and when it was answered. */
  #ask(path: string, body: unknown, judge: (reply: Reply, exchange: Exchange) => void): void {
    const startedMs = this.#nowMs;
    const isCalm = this.#isCalm;
    const state = this.#world.now;
    const question = this.#service.ask(path, body, (reply) => {
      this.trace.push(`${this.#nowMs} visitor ${path} ${reply.status} ${told(reply.body)}`);
      this.#pending.delete(pending);
      const endedMs = this.#nowMs;
      const isSame = startedMs === endedMs && state === this.#world.now;
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

  #look(name: number, years: number, onlyKnown: boolean): void {
    const domain = NAMES[name] ?? "";
    if (onlyKnown) {
      this.#ask(
        `/v1/search?q=${domain}&years=${years}&only=known`,
        undefined,
        ({ status, body }, exchange) => {
          if (status !== 200) return;
          const [result] = search.parse(body).results;
          const shown = availability.safeParse(result);
          if (shown.success)
            this.#oracle.availability(name, years, shown.data, { ...exchange, isCalm: false });
        },
      );
      return;
    }
    const callsBefore = this.#doubtCalls(name);
    this.#ask(`/v1/availability?domain=${domain}&years=${years}`, undefined, ({ status, body }, exchange) => {
      const what = `name ${name} for ${years}`;
      const { isCalm, endedMs } = exchange;
      if (status !== 200) {
        if (isCalm)
          this.#oracle.report(
            "shown: nothing although the upstream could be asked",
            endedMs,
            `${what}: ${told(body)}`,
          );
        return;
      }
      const shown = availability.parse(body);
      this.#oracle.availability(name, years, shown, exchange);
      if (shown.premium && !shown.stale) this.#shownPremium.add(name);
      const calls = this.#doubtCalls(name) - callsBefore;
      if (isCalm && (shown.stale || calls > DOUBT_CALLS))
        this.#oracle.report(
          "doubt: not resolved within two calls",
          endedMs,
          `${what}: ${calls} calls, ${told(body)}`,
        );
    });
  }

  /** Calls spent so far on doubts that a question for this name can have. */
  #doubtCalls(name: number): number {
    const isOfName = (fact: { readonly name: number; readonly isAgain: boolean }): boolean =>
      fact.name === name && fact.isAgain;
    const ofTerms = this.#evidence.quotes.filter(
      ({ term, isAgain }) => isAgain && term.startsWith("registration"),
    );
    return this.#evidence.checks.filter(isOfName).length + ofTerms.length;
  }

  #quote(term: TermName): void {
    const { action, years } = partsOf(term);
    this.#ask(
      `/v1/quotes?tld=.af&action=${action}&years=${years}`,
      undefined,
      ({ status, body }, exchange) => {
        if (status !== 200) return;
        const shown = quote.parse(body);
        this.#oracle.quote(term, shown.price, shown.asOf, shown.stale, exchange);
      },
    );
  }

  #prices(): void {
    this.#ask("/v1/prices", undefined, ({ status, body }, { endedMs }) => {
      if (status !== 200) return;
      const list = prices.parse(body);
      for (const { action, years, price } of list.prices)
        this.#oracle.listed(termOf(action, years), price, list.asOf, endedMs);
    });
  }

  #cart(lines: readonly { readonly name: number; readonly term: TermName }[]): void {
    const items = lines.map(({ name, term }) => ({ domain: NAMES[name], ...partsOf(term) }));
    this.#ask("/v1/quotes", { items }, ({ status, body }, exchange) => {
      const priceable = lines.filter(({ name, term }) => this.#isPriceable(name, term));
      const refused = (what: string): void => {
        const kind = "shown: nothing although the upstream could be asked";
        if (exchange.isCalm && priceable.length > 0) this.#oracle.report(kind, exchange.endedMs, what);
      };
      if (status !== 200) return refused(`${JSON.stringify(lines)}: ${told(body)}`);
      const { items: shown, promise } = cart.parse(body);
      this.#judgeSigned(shown, promise, exchange);
      for (const [at, { price }] of shown.entries()) {
        const line = lines[at];
        if (line !== undefined && priceable.includes(line) && price === null)
          refused(`${JSON.stringify(line)}: ${told(body)}`);
      }
    });
  }

  /** Whether the service has every reason to name a price for this line. */
  #isPriceable(name: number, term: TermName): boolean {
    const { now } = this.#world;
    const domain = NAMES[name] ?? "";
    if (term.startsWith("registration")) return !now.taken.has(domain);
    return !now.premium.has(domain) && !this.#shownPremium.has(name);
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
      judgeSigned(this.#oracle, line, this.#shownPremium.has(name), exchange);
    }
  }
}

/** A body in one line, without what no two runs share. */
function told(body: unknown): string {
  return JSON.stringify(body, (key, value: unknown) =>
    ["requestId", "promise", "etag"].includes(key) ? undefined : value,
  );
}

/** The seed is that of everything random in the service. */
export async function play(simulator: Simulator, history: History, seed: number): Promise<Outcome> {
  const { random } = Math;
  Math.random = randomOf(seed ^ 0x5eed);
  try {
    const service = await simulator.open();
    try {
      return await new Player(service).play(history);
    } finally {
      await service.close();
    }
  } finally {
    Math.random = random;
  }
}
