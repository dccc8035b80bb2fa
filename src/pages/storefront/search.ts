/**
 * The search: asks while the visitor types, shows each answer in the row of its ending as it comes, and tells in words what cannot be had
 * and when it is asked again. A newer search ends the one before it.
 */
import { type Availability, StorefrontProblem, type StorefrontClient } from "../../../client/src/client.js";
import { Countdown } from "../countdown.js";
import { byId, element } from "../element.js";
import { amount, count, seconds, timeOfDay, years } from "./language.js";
import type { Prices } from "./prices.js";
import type { Texts } from "./texts/texts.js";

export interface Wanted {
  readonly domain: string;
  readonly unicodeName: string;
  readonly tld: string;
  readonly years: number;
  readonly price: Availability["price"];
}

/** What the search needs of the cart. */
export interface Basket {
  has(domain: string): boolean;
  add(wanted: Wanted): void;
}

const TYPING_MS = 200;
/** Names that are still unknown at the end of a search are asked for this often more. */
const MORE_ROUNDS = 3;
/** As many letters of a query fit into two lines on a phone. */
const LONG = 32;

type Row =
  | { readonly state: "idle" | "looking" | "failed"; readonly name: string; readonly tld: string }
  | { readonly state: "known"; readonly result: Availability };

type Status =
  | { readonly kind: "hint" | "done" }
  | { readonly kind: "looking"; readonly query: string }
  | { readonly kind: "waiting"; readonly problem: StorefrontProblem | null; readonly left: number }
  | { readonly kind: "refused"; readonly problem: StorefrontProblem; readonly left: number };

export class Search {
  readonly #client: StorefrontClient;
  readonly #prices: Prices;
  readonly #basket: Basket;
  readonly #say: (text: string) => void;
  #texts: Texts;
  #rows: Row[] = [];
  #ideas: Availability[] = [];
  #status: Status = { kind: "hint" };
  #current = new AbortController();
  readonly #form = byId("search", HTMLFormElement);
  readonly #query = byId("query", HTMLInputElement);
  readonly #statusLine = byId("search-status", HTMLElement);
  readonly #again = byId("search-again", HTMLButtonElement);
  readonly #list = byId("results-list", HTMLElement);
  readonly #ideasList = byId("ideas-list", HTMLElement);
  readonly #ideasNone = byId("ideas-none", HTMLElement);

  constructor(parts: {
    readonly client: StorefrontClient;
    readonly prices: Prices;
    readonly basket: Basket;
    /** Tells a screen reader. */
    readonly say: (text: string) => void;
    readonly texts: Texts;
  }) {
    this.#client = parts.client;
    this.#prices = parts.prices;
    this.#basket = parts.basket;
    this.#say = parts.say;
    this.#texts = parts.texts;
    this.#query.addEventListener("input", () => {
      this.#look(TYPING_MS);
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#look(0);
    });
    this.#again.addEventListener("click", () => {
      this.#look(0);
      this.#query.focus();
    });
    for (const example of this.#form.querySelectorAll<HTMLButtonElement>("[data-example]")) {
      example.addEventListener("click", () => {
        this.#query.value = example.textContent;
        this.#look(0);
      });
    }
  }

  /** Draws everything anew: for another language, another cart, or prices that have come. */
  render(texts: Texts): void {
    this.#texts = texts;
    if (this.#query.value.trim() === "") this.#rest();
    this.#draw();
  }

  #rest(): void {
    this.#rows = this.#prices.tlds.map((tld) => ({ state: "idle", name: this.#texts.yourName, tld }));
    this.#ideas = [];
    this.#status = { kind: "hint" };
  }

  /** The rows stand there at once, so that nothing moves when the answers come. */
  #look(afterMs: number): void {
    this.#current.abort();
    const asking = new AbortController();
    this.#current = asking;
    const query = this.#query.value.trim();
    if (query === "") {
      this.#rest();
      this.#draw();
      return;
    }
    const { label, tlds } = guess(query, this.#prices.tlds);
    this.#rows = tlds.map((tld) => ({ state: "looking", name: label, tld }));
    this.#ideas = [];
    this.#status = { kind: "looking", query };
    this.#draw();
    const timer = setTimeout(() => void this.#ask(query, asking.signal), afterMs);
    asking.signal.addEventListener("abort", () => {
      clearTimeout(timer);
    });
  }

  async #ask(query: string, signal: AbortSignal): Promise<void> {
    const wait = new Countdown(signal);
    const onWait = (problem: StorefrontProblem, waitMs: number): void => {
      this.#say(
        `${this.#words(problem)} ${this.#texts.again(seconds(this.#texts, Math.ceil(waitMs / 1000)))}`,
      );
      wait.start(Date.now() + waitMs, (left) => {
        this.#show(left > 0 ? { kind: "waiting", problem, left } : { kind: "looking", query });
      });
    };
    try {
      let tlds: readonly string[] | undefined;
      for (let round = 0; ; round += 1) {
        const question = tlds === undefined ? { q: query } : { q: query, tlds };
        for await (const event of this.#client.searchStream(question, { signal, onWait })) {
          if (event.event === "result") this.#found(event.result);
        }
        const open = this.#unknown();
        if (open.length === 0 || round === MORE_ROUNDS) break;
        tlds = open.map(({ tld }) => tld);
        const waitMs = 1000 * Math.max(...open.map(({ retryAfter = 1 }) => retryAfter));
        await new Promise<void>((done, failed) => {
          wait.start(Date.now() + waitMs, (left) => {
            this.#show(left > 0 ? { kind: "waiting", problem: null, left } : { kind: "looking", query });
            if (left === 0) done();
          });
          this.#say(this.#statusText());
          signal.addEventListener("abort", () => {
            failed(signal.reason);
          });
        });
      }
      wait.stop();
      this.#status = { kind: "done" };
      this.#giveUpWaiting();
      this.#draw();
      this.#say(this.#statusText());
    } catch (error) {
      if (signal.aborted) return;
      const problem = error instanceof StorefrontProblem ? error : new StorefrontProblem("unreadable", "");
      this.#giveUpWaiting();
      wait.start(Date.now() + 1000 * (problem.retryAfter ?? 0), (left) => {
        this.#show({ kind: "refused", problem, left });
      });
      this.#draw();
      this.#say(this.#statusText());
    }
  }

  /** Rows for which there will be no answer, such as an ending under which the name cannot be had. */
  #giveUpWaiting(): void {
    this.#rows = this.#rows.map((row) => (row.state === "looking" ? { ...row, state: "failed" } : row));
  }

  #unknown(): Availability[] {
    return this.#rows.flatMap((row) =>
      row.state === "known" && row.result.status === "unknown" ? [row.result] : [],
    );
  }

  #found(result: Availability): void {
    const isIdea = result.suggested === true;
    if (isIdea) {
      const others = this.#ideas.filter(({ domain }) => domain !== result.domain);
      this.#ideas = result.available ? [...others, result] : others;
    } else {
      const at = this.#rows.findIndex(
        (row) => (row.state === "known" ? row.result.tld : row.tld) === result.tld,
      );
      if (at === -1) this.#rows.push({ state: "known", result });
      else this.#rows[at] = { state: "known", result };
      if (at <= 0 && result.status !== "unknown") this.#say(this.#heard(result));
    }
    if (this.#status.kind === "waiting") this.#status = { kind: "looking", query: this.#query.value.trim() };
    this.#draw();
  }

  #show(status: Status): void {
    this.#status = status;
    this.#drawStatus();
  }

  #words(problem: StorefrontProblem): string {
    const { problems } = this.#texts;
    return problems[problem.code] ?? problems.other;
  }

  #heard(result: Availability): string {
    const texts = this.#texts;
    const price = result.price ? amount(texts, result.price) : "";
    return texts.heard(result.unicodeName, texts[result.status], price);
  }

  #statusText(): string {
    const texts = this.#texts;
    const status = this.#status;
    if (status.kind === "hint") return texts.page.hint;
    if (status.kind === "looking") return texts.lookingFor(isolated(shortened(status.query)));
    if (status.kind === "refused") return this.#words(status.problem);
    if (status.kind === "waiting") {
      const why = status.problem === null ? texts.notAll : this.#words(status.problem);
      return `${why} ${texts.again(seconds(texts, status.left))}`;
    }
    const free = this.#rows.filter((row) => row.state === "known" && row.result.available).length;
    const told = texts.freeOf(count(texts, free), count(texts, this.#rows.length));
    return this.#unknown().length > 0 ? `${told} ${texts.notAll}` : told;
  }

  #drawStatus(): void {
    const status = this.#status;
    this.#statusLine.textContent = this.#statusText();
    this.#statusLine.dataset["kind"] = status.kind;
    const busy = status.kind === "looking" || status.kind === "waiting";
    this.#list.setAttribute("aria-busy", String(busy));
    const canRetry = status.kind === "refused" && status.problem.code !== "invalid_request";
    this.#again.hidden = !canRetry;
    if (status.kind !== "refused") return;
    this.#again.disabled = status.left > 0;
    const word = this.#texts.page.tryAgain;
    this.#again.textContent = status.left > 0 ? `${word} (${seconds(this.#texts, status.left)})` : word;
  }

  #draw(): void {
    this.#drawStatus();
    const focused = document.activeElement?.id;
    this.#list.replaceChildren(...this.#rows.map((row) => this.#drawnRow(row)));
    this.#ideasList.replaceChildren(...this.#ideas.map((idea) => this.#drawnIdea(idea)));
    this.#ideasList.hidden = this.#ideas.length === 0;
    this.#ideasNone.hidden = this.#ideas.length > 0;
    if (focused !== undefined && focused !== "") document.getElementById(focused)?.focus();
  }

  #drawnRow(row: Row): HTMLElement {
    const texts = this.#texts;
    if (row.state !== "known") {
      const from = this.#prices.terms(row.tld)[0];
      const price =
        row.state === "idle" && from !== undefined
          ? this.#prices.price(row.tld, "registration", from)
          : undefined;
      return element(
        "li",
        { class: "name", "data-state": row.state },
        nameOf(row.name, row.tld),
        element("p", { class: "state" }, row.state === "looking" ? texts.looking : ""),
        priceOf(texts, price?.price ?? null, price?.years),
      );
    }
    const { result } = row;
    const state = element("p", { class: "state" }, element("span", { class: "badge" }, texts[result.status]));
    if (result.premium) state.append(" ", element("span", { class: "badge premium" }, texts.premium));
    if (result.stale && result.asOf !== null)
      state.append(" ", element("small", {}, texts.asOf(timeOfDay(texts, result.asOf))));
    return element(
      "li",
      { class: "name", "data-state": result.status, "data-domain": result.domain },
      nameOf(result.unicodeName.slice(0, -result.tld.length), result.tld),
      state,
      priceOf(texts, result.price, result.years),
      ...(result.available ? [this.#adder(result)] : []),
    );
  }

  #drawnIdea(idea: Availability): HTMLElement {
    return element(
      "li",
      { class: "idea", "data-state": idea.status, "data-domain": idea.domain },
      nameOf(idea.unicodeName.slice(0, -idea.tld.length), idea.tld),
      priceOf(this.#texts, idea.price, idea.years),
      ...(idea.available ? [this.#adder(idea)] : []),
    );
  }

  #adder(result: Availability): HTMLElement {
    const texts = this.#texts;
    const isIn = this.#basket.has(result.domain);
    const button = element(
      "button",
      {
        type: "button",
        class: "button second",
        id: `add-${result.domain}`,
        "aria-label": isIn ? `${result.unicodeName}: ${texts.inCart}` : texts.addNamed(result.unicodeName),
        "aria-disabled": String(isIn),
      },
      isIn ? texts.inCart : texts.page.add,
    );
    button.addEventListener("click", () => {
      if (!this.#basket.has(result.domain)) this.#basket.add(result);
    });
    return button;
  }
}

/** A name is written from left to right in every language, its own script notwithstanding. */
function nameOf(label: string, tld: string): HTMLElement {
  const whole = element(
    "bdi",
    { dir: "ltr" },
    element("bdi", {}, label),
    element("span", { class: "tld" }, tld),
  );
  return element("p", { class: "domain", title: label + tld }, whole);
}

function priceOf(texts: Texts, price: Availability["price"], term: number | undefined): HTMLElement {
  if (price === null || term === undefined) return element("p", { class: "price" });
  return element("p", { class: "price" }, amount(texts, price), element("small", {}, years(texts, term)));
}

/** Text of the visitor's own within a sentence of either direction. */
function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

/** So that a long name does not push the results down. */
function shortened(text: string): string {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

/** What the service will probably take the text for; what it answers counts. */
function guess(query: string, sold: readonly string[]): { label: string; tlds: readonly string[] } {
  const host = query
    .toLowerCase()
    .replace(/^[a-z][a-z\d+.-]*:\/\//, "")
    .replace(/[/?#].*$/, "")
    .replace(/^www\./, "")
    .replace(/\.$/, "");
  const exact = sold
    .filter((tld) => host.endsWith(tld))
    .reduce((longest, tld) => (tld.length > longest.length ? tld : longest), "");
  if (exact === "") return { label: host, tlds: sold };
  return { label: host.slice(0, -exact.length), tlds: [exact, ...sold.filter((tld) => tld !== exact)] };
}
