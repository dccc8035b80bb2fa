/** The search box. Typed text is searched as `searchAsYouType` describes; a list is checked name by name. The search survives a reload. */
import type { Availability, QuoteLine, StorefrontClient } from "../../../client/src/client.js";
import { now } from "../../../client/src/clock.js";
import { asProblem } from "../../../client/src/problem.js";
import {
  searchAsYouType,
  type SearchState,
  type TypedSearch,
} from "../../../client/src/search-as-you-type.js";
import { byId } from "../element.js";
import { SOLD } from "./identity.js";
import { type Meaning, meaningOf } from "./query.js";
import type { Results } from "./results.js";
import { type Row, rowOf, rowsOf, rowWithout } from "./rows.js";
import { SearchView, type View } from "./search-view.js";
import { SAME_VISIT_MS, store, stored } from "./session.js";
import type { Texts } from "./texts/en.js";
import { wordsFor } from "./texts/texts.js";

type Shown = Omit<View, "text" | "meaning">;

export class Search {
  readonly #client: StorefrontClient;
  readonly #typed: TypedSearch;
  readonly #view: SearchView;
  #texts: Texts;
  #meaning: Meaning = { kind: "none" };
  /** Aborts the check of a list. */
  #checking = new AbortController();
  /** The rows of a list, by its names. */
  readonly #rows = new Map<string, Row>();
  /** Results as they are known to be since the cart was confirmed. */
  readonly #learned = new WeakMap<Availability, Availability>();
  #shown: Shown | null = null;
  /** Whether the search ended because the connection was lost. */
  #isLost = false;
  #searchedAtMs = 0;
  readonly #query = byId("query", HTMLInputElement);

  constructor(client: StorefrontClient, results: Results, texts: Texts) {
    this.#client = client;
    this.#texts = texts;
    this.#view = new SearchView(results, texts, (name) => this.#choose(name));
    this.#typed = searchAsYouType(client, { onChange: (state) => this.#follow(state) });
    this.#listen();
  }

  /** Resumes the last search of the same visit, or runs the one in a link. Of an earlier visit, only the text is restored. */
  begin(linked: string | null): void {
    const before = asLastSearch(stored("search"));
    this.#query.value = linked ?? before?.text ?? "";
    const isSameVisit = before !== null && Date.now() - before.searchedAtMs < SAME_VISIT_MS;
    if (linked !== null || isSameVisit) this.#searchNow();
    else this.render(this.#texts);
  }

  /** From now on shows which of these names are taken, or have come to be premium or ordinary, until they are checked again. */
  learn(lines: readonly QuoteLine[]): void {
    const { results, suggestions } = this.#typed.state;
    const listed = [...this.#rows.values()].flatMap((row) => (row.state === "known" ? row.result : []));
    for (const result of [...results, ...suggestions, ...listed]) {
      const line = lines.find(({ domain }) => domain === result.domain);
      if (line) this.#learned.set(result, updated(result, line) ?? this.#upToDate(result));
    }
  }

  /** Redraws everything after a change of the language, the term, the cart or the prices. */
  render(texts: Texts): void {
    this.#texts = texts;
    this.#meaning = meaningOf(this.#query.value, SOLD);
    if (this.#meaning.kind === "list" && this.#shown !== null) this.#show(this.#shown);
    else this.#follow(this.#typed.state);
  }

  #listen(): void {
    this.#query.addEventListener("input", () => {
      this.#typing();
    });
    this.#query.addEventListener("paste", (event) => {
      this.#insert(event, event.clipboardData?.getData("text/plain"));
    });
    // Text that is dropped, or that a keyboard inserts from its own clipboard.
    this.#query.addEventListener("beforeinput", (event) => {
      this.#insert(event, event.data ?? event.dataTransfer?.getData("text/plain"));
    });
    byId("search", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#searchNow();
    });
    byId("search-again", HTMLButtonElement).addEventListener("click", () => {
      this.#retry();
    });
    for (const example of document.querySelectorAll<HTMLButtonElement>("[data-example]")) {
      example.addEventListener("click", () => {
        this.#choose(example.textContent);
      });
    }
    addEventListener("offline", () => {
      this.#view.show(this.#texts);
    });
    addEventListener("online", () => {
      if (this.#isLost) this.#retry();
      else this.#view.show(this.#texts);
    });
  }

  /** Takes the text of the field, and ends what was done for the one before. */
  #take(searchedAtMs: number): void {
    this.#checking.abort();
    this.#meaning = meaningOf(this.#query.value, SOLD);
    this.#store(searchedAtMs);
    this.#rows.clear();
  }

  #typing(): void {
    const before = this.#meaning;
    const meaning = meaningOf(this.#query.value, SOLD);
    if (isSameQuestion(meaning, before) && this.#typed.state.phase !== "typing") {
      // A space or comma more or less ends no search, and no check of a list.
      this.#store(this.#searchedAtMs);
      return this.render(this.#texts);
    }
    this.#take(0);
    if (this.#meaning.kind === "list") {
      this.#typed.stop();
      this.#beginList(this.#meaning.names, "typing");
      this.#showList({ phase: "typing" });
    } else {
      this.#typed.type(this.#question());
      this.#follow(this.#typed.state);
    }
  }

  #searchNow(): void {
    const meaning = meaningOf(this.#query.value, SOLD);
    const isRunning = this.#shown?.phase === "searching" || this.#shown?.phase === "waiting";
    if (isRunning && meaning.kind === "list" && isSameQuestion(meaning, this.#meaning)) return;
    this.#take(Date.now());
    if (this.#meaning.kind === "list") void this.#checkList(this.#meaning.names);
    else this.#typed.search(this.#question());
  }

  #choose(name: string): void {
    this.#query.value = name;
    this.#searchNow();
  }

  #retry(): void {
    if (this.#meaning.kind !== "list") return this.#typed.retry();
    this.#store(Date.now());
    void this.#checkList(this.#meaning.names.filter((name) => this.#rows.get(name)?.state !== "known"));
  }

  /** The box has a single line, so names of an inserted list are separated by commas. */
  #insert(event: Event, inserted = ""): void {
    const text = inserted.trim();
    if (!/[\r\n\t]/.test(text)) return;
    event.preventDefault();
    const names = text.split(/[\r\n\t]+/).flatMap((name) => name.trim() || []);
    const { selectionStart, selectionEnd, value } = this.#query;
    this.#query.setRangeText(names.join(", "), selectionStart ?? 0, selectionEnd ?? value.length, "end");
    this.#typing();
  }

  #question(): { readonly q: string } {
    return { q: this.#meaning.kind === "name" ? this.#meaning.q : "" };
  }

  #store(searchedAtMs: number): void {
    this.#searchedAtMs = searchedAtMs;
    const text = this.#query.value;
    store("search", text.trim() === "" ? null : { text, searchedAtMs });
  }

  #follow(state: SearchState): void {
    if (this.#meaning.kind === "list") return;
    const { phase, problem, untilMs, suggestions } = state;
    // The search may have started by itself after a pause in typing.
    if (phase === "searching") this.#store(Date.now());
    const rows = rowsOf(state, SOLD);
    this.#show({ phase, problem, untilMs, rows, ideas: suggestions.filter(({ available }) => available) });
  }

  /** Checks the names one after another, as the quota allows. A name that is rejected or can't be checked doesn't end the list; a lost connection does. */
  async #checkList(names: readonly string[]): Promise<void> {
    this.#typed.stop();
    this.#checking.abort();
    const { signal } = (this.#checking = new AbortController());
    const proceed = (): void => this.#showList({ phase: "searching" });
    this.#beginList(names, "looking");
    proceed();
    for (const name of names) {
      try {
        const result = await this.#client.availability(
          { domain: name },
          {
            signal,
            onWait: (problem, waitMs) => {
              this.#showList({ phase: "waiting", problem, untilMs: now() + waitMs });
            },
            onRetry: proceed,
          },
        );
        this.#rows.set(name, rowOf(result));
      } catch (error) {
        if (signal.aborted) return;
        const problem = asProblem(error);
        if (problem.code === "unreachable") return this.#showList({ phase: "failed", problem });
        const why = (texts: Texts): string => wordsFor(texts, problem, SOLD);
        const isOpen = problem.code !== "invalid_request";
        this.#rows.set(name, rowWithout(name, SOLD, { state: "failed", why, isOpen }));
      }
      proceed();
    }
    this.#showList({ phase: "done" });
  }

  #beginList(names: readonly string[], state: "typing" | "looking"): void {
    for (const name of names) this.#rows.set(name, rowWithout(name, SOLD, { state }));
  }

  #upToDate(result: Availability): Availability {
    return this.#learned.get(result) ?? result;
  }

  #showList(view: Partial<View> & Pick<View, "phase">): void {
    this.#show({ problem: null, untilMs: null, ideas: [], rows: [...this.#rows.values()], ...view });
  }

  #show(view: Shown): void {
    this.#shown = view;
    this.#isLost = view.phase === "failed" && view.problem?.code === "unreachable";
    const rows = view.rows.map((row) =>
      row.state === "known" ? { ...row, result: this.#upToDate(row.result) } : row,
    );
    const ideas = view.ideas.map((idea) => this.#upToDate(idea)).filter(({ available }) => available);
    this.#view.show(this.#texts, { ...view, rows, ideas, text: this.#query.value, meaning: this.#meaning });
  }
}

/** The result as a later line of the cart shows it to be; undefined if the line couldn't be checked. */
function updated(result: Availability, line: QuoteLine): Availability | undefined {
  if (line.status === "taken")
    return { ...result, status: "taken", available: false, price: null, renewal: null };
  if (!line.price) return undefined;
  const { premium, years, price, asOf } = line;
  const isOther = result.available && premium !== result.premium;
  return isOther ? { ...result, premium, years, price, asOf, renewal: null } : result;
}

function isSameQuestion(one: Meaning, other: Meaning): boolean {
  if (one.kind === "list") return other.kind === "list" && String(one.names) === String(other.names);
  return one.kind === "name" && other.kind === "name" && one.q === other.q;
}

function asLastSearch(value: unknown): { readonly text: string; readonly searchedAtMs: number } | null {
  if (typeof value !== "object" || value === null || !("text" in value && "searchedAtMs" in value))
    return null;
  const { text, searchedAtMs } = value;
  return typeof text === "string" && typeof searchedAtMs === "number" ? { text, searchedAtMs } : null;
}
