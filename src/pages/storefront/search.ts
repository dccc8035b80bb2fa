/** The search box. Typed text is searched as `searchAsYouType` describes; a list is checked name by name. The search survives a reload. */
import {
  searchAsYouType,
  type SearchState,
  type StorefrontClient,
  StorefrontProblem,
  type TypedSearch,
} from "../../../client/src/index.js";
import { byId } from "../element.js";
import { checkNames } from "./name-list.js";
import type { Prices } from "./prices.js";
import { type Meaning, meaningOf, rowsFor } from "./query.js";
import { type Results, type Row, rowOf, type Unanswered } from "./results.js";
import { SearchView, type View } from "./search-view.js";
import { store, stored } from "./session.js";
import { type Texts, wordsFor } from "./texts/texts.js";

type Shown = Omit<View, "text" | "meaning">;

/** A page opened within this time resumes the search; later, only the text is restored. */
const SAME_VISIT_MS = 600_000;

export class Search {
  readonly #client: StorefrontClient;
  readonly #prices: Prices;
  readonly #typed: TypedSearch;
  readonly #view: SearchView;
  #texts: Texts;
  #meaning: Meaning = { kind: "none" };
  /** Aborts the check of a list. */
  #checking = new AbortController();
  /** Whether a list waits for the prices, which are needed to recognize the TLDs sold. */
  #isEarly = false;
  #rows = new Map<string, Row>();
  /** Names that were available in the search but taken when the cart was confirmed. */
  #taken: ReadonlySet<string> = new Set();
  #shown: Shown | null = null;
  /** Whether the search ended because the connection was lost. */
  #isLost = false;
  readonly #query = byId("query", HTMLInputElement);

  constructor(parts: {
    readonly client: StorefrontClient;
    readonly prices: Prices;
    readonly results: Results;
    /** Announces to screen readers. */
    readonly say: (text: string) => void;
    readonly texts: Texts;
  }) {
    this.#client = parts.client;
    this.#prices = parts.prices;
    this.#texts = parts.texts;
    this.#view = new SearchView({ ...parts, choose: (name) => this.#choose(name) });
    this.#typed = searchAsYouType(parts.client, { onChange: (state) => this.#follow(state) });
    this.#listen();
  }

  /** Resumes the last search, or runs the one in a link. */
  begin(linked: string | null): void {
    const before = asLastSearch(stored("search"));
    this.#query.value = linked ?? before?.text ?? "";
    const isSameVisit = before !== null && Date.now() - before.searchedAtMs < SAME_VISIT_MS;
    if (linked !== null || isSameVisit) this.#searchNow();
    else this.#follow(this.#typed.state);
  }

  /** Shows these names as taken until the next search. */
  learnTaken(domains: readonly string[]): void {
    this.#taken = new Set([...this.#taken, ...domains]);
  }

  /** Redraws everything after a change of the language, the term, the cart or the prices. */
  render(texts: Texts): void {
    this.#texts = texts;
    if (this.#isEarly && this.#prices.tlds.length > 0) return this.#searchNow();
    this.#meaning = meaningOf(this.#query.value, this.#prices.tlds);
    if (this.#meaning.kind === "list" && this.#shown !== null) this.#show(this.#shown);
    else this.#follow(this.#typed.state);
  }

  #listen(): void {
    const hideTaken = byId("hide-taken", HTMLInputElement);
    hideTaken.checked = stored("hideTaken") === true;
    this.#view.hideTaken(hideTaken.checked);
    hideTaken.addEventListener("change", () => {
      store("hideTaken", hideTaken.checked);
      this.#view.hideTaken(hideTaken.checked);
    });
    this.#query.addEventListener("input", () => {
      this.#typing();
    });
    this.#query.addEventListener("paste", (event) => {
      this.#paste(event);
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

  #typing(): void {
    this.#checking.abort();
    this.#isEarly = false;
    this.#taken = new Set();
    this.#meaning = meaningOf(this.#query.value, this.#prices.tlds);
    this.#store(0);
    if (this.#meaning.kind === "list") {
      this.#typed.stop();
      this.#rows = new Map(
        this.#meaning.names.map((name) => [name, this.#rowFor(name, { state: "typing" })]),
      );
      this.#showList({ phase: "typing" });
    } else {
      this.#typed.type(this.#question());
      this.#follow(this.#typed.state);
    }
  }

  #searchNow(): void {
    this.#checking.abort();
    this.#taken = new Set();
    this.#meaning = meaningOf(this.#query.value, this.#prices.tlds);
    this.#store(Date.now());
    this.#isEarly = this.#meaning.kind === "list" && this.#prices.tlds.length === 0;
    if (this.#meaning.kind === "list") this.#checkList(this.#meaning.names);
    else this.#typed.search(this.#question());
  }

  #choose(name: string): void {
    this.#query.value = name;
    this.#searchNow();
  }

  #retry(): void {
    if (this.#meaning.kind === "list") this.#searchNow();
    else this.#typed.retry();
  }

  /** The box has a single line, so names of a pasted list are separated by commas. */
  #paste(event: ClipboardEvent): void {
    const text = event.clipboardData?.getData("text/plain").trim() ?? "";
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
    const text = this.#query.value;
    store("search", text.trim() === "" ? null : { text, searchedAtMs });
  }

  #follow({ phase, query, results, suggestions, problem, untilMs }: SearchState): void {
    if (this.#meaning.kind === "list") return;
    // The search may have started by itself after a pause in typing.
    if (phase === "searching") this.#store(Date.now());
    const isName = query !== null && problem?.code !== "invalid_request";
    const { label, tlds } = rowsFor(isName ? query.q : this.#texts.yourName, this.#prices.tlds);
    const without = ((): Unanswered => {
      if (!isName) return { state: "idle" };
      if (phase === "typing") return { state: "typing" };
      // No result: the label isn't sold under this TLD.
      if (phase === "done") return { state: "failed", why: this.#texts.notOffered };
      return phase === "failed" ? { state: "failed", why: this.#texts.unknown } : { state: "looking" };
    })();
    const rows = tlds.map((tld, at): Row => {
      const place = { label, tld, isExact: isName && at === 0 };
      const result = results.find((one) => one.tld === tld);
      const isAnswer = result !== undefined && (result.status !== "unknown" || phase !== "typing");
      return isAnswer ? { ...rowOf(result), isExact: place.isExact } : { ...place, ...without };
    });
    const others = isName ? results.filter(({ tld }) => !tlds.includes(tld)).map(rowOf) : [];
    this.#show({
      phase,
      problem,
      untilMs,
      rows: [...rows, ...others],
      ideas: suggestions.filter(({ available }) => available),
    });
  }

  #checkList(names: readonly string[]): void {
    this.#typed.stop();
    const { signal } = (this.#checking = new AbortController());
    this.#rows = new Map(names.map((name) => [name, this.#rowFor(name, { state: "looking" })]));
    const become = (name: string, row: Row): void => {
      this.#rows.set(name, row);
      this.#showList({ phase: "searching" });
    };
    this.#showList({ phase: "searching" });
    if (this.#isEarly) return;
    checkNames(this.#client, names, signal, {
      onResult: (name, result) => {
        become(name, rowOf(result));
      },
      onProblem: (name, problem) => {
        become(name, this.#rowFor(name, { state: "failed", why: wordsFor(this.#texts, problem) }));
      },
      onWait: (problem, waitMs) => {
        this.#showList({ phase: "waiting", problem, untilMs: Date.now() + waitMs });
      },
      onRetry: () => {
        this.#showList({ phase: "searching" });
      },
    }).then(
      () => {
        this.#showList({ phase: "done" });
      },
      (error: unknown) => {
        if (signal.aborted) return;
        const problem = error instanceof StorefrontProblem ? error : new StorefrontProblem("unreadable", "");
        this.#showList({ phase: "failed", problem });
      },
    );
  }

  #rowFor(name: string, state: Unanswered): Row {
    const { label, tlds } = rowsFor(name, this.#prices.tlds);
    return { label, tld: tlds[0] ?? "", isExact: false, ...state };
  }

  #upToDate(row: Row): Row {
    if (row.state !== "known" || !this.#taken.has(row.result.domain)) return row;
    const gone = { status: "taken", available: false, price: null, renewal: null } as const;
    return { ...row, result: { ...row.result, ...gone } };
  }

  #showList(view: Partial<View> & Pick<View, "phase">): void {
    this.#show({ problem: null, untilMs: null, ideas: [], rows: [...this.#rows.values()], ...view });
  }

  #show(view: Shown): void {
    this.#shown = view;
    this.#isLost = view.phase === "failed" && view.problem?.code === "unreachable";
    const rows = view.rows.map((row) => this.#upToDate(row));
    this.#view.show(this.#texts, { ...view, rows, text: this.#query.value, meaning: this.#meaning });
  }
}

function asLastSearch(value: unknown): { readonly text: string; readonly searchedAtMs: number } | null {
  if (typeof value !== "object" || value === null || !("text" in value && "searchedAtMs" in value))
    return null;
  const { text, searchedAtMs } = value;
  return typeof text === "string" && typeof searchedAtMs === "number" ? { text, searchedAtMs } : null;
}
