/** Renders a search: its rows, its state as text with a countdown, and faults of the name at the input field. */
import type { Availability, StorefrontProblem } from "../../../client/src/client.js";
import { canBeName, type SearchState } from "../../../client/src/search-as-you-type.js";
import { Countdown } from "../countdown.js";
import { button, byId, element, refill } from "../element.js";
import { SOLD } from "./identity.js";
import { count, seconds } from "./language.js";
import type { Meaning } from "./query.js";
import type { Results } from "./results.js";
import type { Row } from "./rows.js";
import { say } from "./say.js";
import { store, stored } from "./session.js";
import type { Texts } from "./texts/en.js";
import { isolated } from "./texts/isolates.js";
import { causeOf, wordsFor } from "./texts/texts.js";

/** What is shown, for a search or a list. */
export interface View {
  readonly phase: SearchState["phase"];
  readonly text: string;
  readonly meaning: Meaning;
  readonly rows: readonly Row[];
  readonly ideas: readonly Availability[];
  readonly problem: StorefrontProblem | null;
  readonly untilMs: number | null;
}

const NOTHING: View = {
  phase: "idle",
  text: "",
  meaning: { kind: "none" },
  rows: [],
  ideas: [],
  problem: null,
  untilMs: null,
};

/** A search that still has this many of its 30 seconds left, and no answer, is called slow. */
const SLOW_WITH_LEFT = 27;
/** Longer queries are shortened. This many characters fit into two lines on a phone. */
const LONG = 32;

export class SearchView {
  readonly #results: Results;
  readonly #choose: (name: string) => void;
  #texts: Texts;
  #view = NOTHING;
  readonly #countdown = new Countdown();
  #secondsLeft = 0;
  readonly #query = byId("query", HTMLInputElement);
  readonly #offers = byId("offers", HTMLElement);
  readonly #examples = byId("examples", HTMLElement);
  readonly #main = byId("main", HTMLElement);
  readonly #statusLine = byId("search-status", HTMLElement);
  readonly #hideTaken = byId("hide-taken", HTMLInputElement);
  readonly #heading = byId("results-heading", HTMLElement);
  readonly #again = byId("search-again", HTMLButtonElement);
  readonly #section = byId("results", HTMLElement);

  /** `choose` searches for another name. */
  constructor(results: Results, texts: Texts, choose: (name: string) => void) {
    this.#results = results;
    this.#texts = texts;
    this.#choose = choose;
    this.#hideTaken.checked = stored("hideTaken") === true;
    this.#hideTaken.addEventListener("change", () => {
      store("hideTaken", this.#hideTaken.checked);
      this.#draw();
    });
  }

  /** Shows a new state, or the same state in another language. */
  show(texts: Texts, view: View = this.#view): void {
    const before = this.#view;
    const focused = [this.#examples, this.#offers, this.#again, this.#section].find((one) =>
      one.contains(document.activeElement),
    );
    this.#texts = texts;
    this.#view = view;
    const isNews = view.phase !== before.phase || view.untilMs !== before.untilMs;
    if (isNews) this.#count(view.phase === "waiting" || view.phase === "searching" ? view.untilMs : null);
    this.#draw();
    // The focused button may have been hidden or removed.
    if (focused && (focused.hidden || !focused.contains(document.activeElement)))
      this.#heading.focus({ preventScroll: true });
    const exact = knownExact(view);
    if (isNews && ["done", "waiting", "failed"].includes(view.phase)) say(this.#statusText());
    else if (view.phase === "searching" && exact && !knownExact(before))
      say(this.#results.spoken(texts, exact));
  }

  #count(untilMs: number | null): void {
    this.#countdown.stop();
    this.#secondsLeft = 0;
    if (untilMs === null) return;
    this.#countdown.start(untilMs, (left) => {
      this.#secondsLeft = left;
      this.#drawStatus();
    });
  }

  #statusText(): string {
    const texts = this.#texts;
    const { phase, text, meaning, problem } = this.#view;
    // A wait for the registry isn't shorter when the connection is back, so it is still counted down.
    const continuesOnline = phase === "searching" || problem?.code === "unreachable";
    if (!navigator.onLine && continuesOnline) return texts.offline;
    if (phase === "idle" && text.trim() === "") return texts.page.hint;
    if (phase === "idle" || phase === "typing") return this.#typingText(meaning);
    const isSlow = phase === "searching" && this.#secondsLeft > 0 && this.#secondsLeft <= SLOW_WITH_LEFT;
    if (isSlow) return texts.slow(seconds(texts, this.#secondsLeft));
    if (phase === "searching")
      return meaning.kind === "list" ? this.#progress() : texts.lookingFor(isolated(shortened(text.trim())));
    if (phase === "waiting") {
      const why = problem === null ? texts.notAll : causeOf(texts, problem);
      return `${why} ${texts.again(seconds(texts, Math.max(1, this.#secondsLeft)))}`;
    }
    if (problem !== null) return wordsFor(texts, problem, SOLD);
    return this.#sum();
  }

  #typingText(meaning: Meaning): string {
    const texts = this.#texts;
    if (meaning.kind === "none") return texts.typingShort;
    if (meaning.kind === "name") return canBeName(meaning.q) ? texts.typing : texts.typingShort;
    const names = count(texts, meaning.names.length);
    return meaning.leftOut > 0 ? texts.listTooLong(names) : texts.list(names);
  }

  #progress(): string {
    const { rows } = this.#view;
    const checked = rows.filter(({ state }) => state !== "looking").length;
    return this.#texts.checkedOf(count(this.#texts, checked), count(this.#texts, rows.length));
  }

  #sum(): string {
    const { rows } = this.#view;
    const available = rows.filter((row) => row.state === "known" && row.result.available).length;
    const sum = this.#texts.availableOf(count(this.#texts, available), count(this.#texts, rows.length));
    return hasUnknown(rows) ? `${sum} ${this.#texts.notAll}` : sum;
  }

  #drawStatus(): void {
    const { phase, problem, rows } = this.#view;
    const isRefused = problem?.code === "invalid_request";
    this.#statusLine.textContent = this.#statusText();
    this.#statusLine.dataset["kind"] = isRefused ? "refused" : phase;
    this.#query.setAttribute("aria-invalid", String(isRefused));
    const { tryNow, tryAgain } = this.#texts.page;
    this.#again.textContent = phase === "waiting" ? tryNow : tryAgain;
    const isOpen = phase === "failed" ? !isRefused : phase === "done" && hasUnknown(rows);
    // A client over its rate limit would be refused again until the wait is over.
    const canTryNow = phase === "waiting" && problem?.code !== "rate_limited";
    this.#again.hidden = !canTryNow && !isOpen;
  }

  #draw(): void {
    const { rows, ideas, phase, text, meaning } = this.#view;
    this.#main.dataset["phase"] = phase;
    this.#examples.hidden = text.trim() !== "";
    this.#heading.textContent = phase === "idle" ? this.#texts.page.examplePrices : this.#texts.page.results;
    this.#drawStatus();
    this.#drawOffers(meaning.kind === "name" ? meaning.offers : []);
    const isShown = (row: Row): boolean =>
      !this.#hideTaken.checked || row.isExact || row.state !== "known" || row.result.status !== "taken";
    this.#results.draw(this.#texts, {
      rows: rows.filter(isShown),
      ideas,
      busy: phase === "searching" || phase === "waiting",
      isChecking: phase === "searching",
    });
  }

  #drawOffers(offers: readonly string[]): void {
    this.#offers.hidden = offers.length === 0;
    const buttons = offers.map((offer) =>
      button({ dir: "ltr", id: `offer-${offer}` }, () => this.#choose(offer), offer),
    );
    refill(this.#offers, element("span", {}, this.#texts.orElse), ...buttons);
  }
}

function knownExact({ rows }: View): Availability | null {
  const [exact] = rows;
  return exact?.state === "known" && exact.isExact && exact.result.status !== "unknown" ? exact.result : null;
}

function hasUnknown(rows: readonly Row[]): boolean {
  return rows.some((row) =>
    row.state === "known" ? row.result.status === "unknown" : row.state === "failed" && row.isOpen,
  );
}

/** Shortened so that a long name doesn't push the results down. */
function shortened(text: string): string {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}
