/** The search box. Typed text is searched as `searchAsYouType` describes; a list is checked name by name. The search survives a reload. */
import type { Availability, QuoteLine } from "../../../client/src/client.js";
import { now } from "../../../client/src/clock.js";
import { asProblem } from "../../../client/src/problem.js";
import {
  searchAsYouType,
  type SearchState,
  type TypedSearch,
} from "../../../client/src/search-as-you-type.js";
import { type Meaning, meaningOf } from "./query.js";
import { type Row, rowOf, rowsOf, rowWithout } from "./rows.js";
import type { Shop } from "./shop.js";
import { SAME_VISIT_MS, storeForTab, stored } from "./storage.js";
import type { Texts } from "./texts/en.js";
import { wordsFor } from "./texts/texts.js";

type Progress = Pick<SearchState, "phase" | "problem" | "untilMs">;

/** What is shown, for a search or a list. */
export interface Found extends Progress {
  readonly meaning: Meaning;
  readonly rows: readonly Row[];
  readonly ideas: readonly Availability[];
}

interface SearchSettings {
  readonly shop: Shop;
  /** Where the last search is stored. */
  readonly key: string;
  /** The TLDs that are searched, the main one first; empty while they are unknown. */
  readonly tlds: () => readonly string[];
  /** The same if the website has chosen them. */
  readonly chosenTlds: () => readonly string[] | undefined;
  readonly onChange: () => void;
  /** Called when a search begins; returns false if the website has taken it over. */
  readonly onBegin: (q: string) => boolean;
}

const IDLE: Progress = { phase: "idle", problem: null, untilMs: null };

export class Search {
  readonly #settings: SearchSettings;
  readonly #typed: TypedSearch;
  #text = "";
  #meaning: Meaning = { kind: "none" };
  /** The progress and rows of a list, and what aborts its check. */
  #list: Progress = IDLE;
  readonly #rows = new Map<string, Row>();
  #checking = new AbortController();
  /** Results as they are known to be since the cart was confirmed. */
  readonly #learned = new WeakMap<Availability, Availability>();
  #begun: SearchState["query"] = null;
  #searchedAtMs = 0;

  constructor(settings: SearchSettings) {
    this.#settings = settings;
    this.#typed = searchAsYouType(settings.shop.client, { onChange: (state) => this.#follow(state) });
  }

  get text(): string {
    return this.#text;
  }

  get found(): Found {
    const { phase, problem, untilMs, suggestions } = this.#typed.state;
    const meaning = meaningOf(this.#text, this.#settings.tlds());
    const isList = meaning.kind === "list";
    const rows = isList ? [...this.#rows.values()] : rowsOf(this.#typed.state, this.#settings.tlds());
    return {
      ...(isList ? this.#list : { phase, problem, untilMs }),
      meaning,
      rows: rows.map((row) => (row.state === "known" ? { ...row, result: this.#upToDate(row.result) } : row)),
      ideas: isList
        ? []
        : suggestions.map((idea) => this.#upToDate(idea)).filter(({ available }) => available),
    };
  }

  /** Searches what the website asks for; otherwise resumes the last search of the same visit. Of an earlier visit, only the text is restored. */
  begin(asked: string | null): void {
    const before = asLastSearch(stored(this.#settings.key));
    const isSameVisit = before !== null && Date.now() - before.searchedAtMs < SAME_VISIT_MS;
    if (asked !== null || isSameVisit) return this.search(asked ?? before?.text ?? "");
    this.#text = before?.text ?? "";
    this.#meaning = this.found.meaning;
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

  type(text: string): void {
    const before = this.#meaning;
    const meaning = meaningOf(text, this.#settings.tlds());
    if (isSameQuestion(meaning, before) && this.found.phase !== "typing") {
      // A space or comma more or less ends no search, and no check of a list.
      this.#text = text;
      return this.#store(this.#searchedAtMs);
    }
    this.#take(text, 0);
    if (this.#meaning.kind === "list") {
      this.#typed.stop();
      this.#beginList(this.#meaning.names, "typing");
      this.#follow({ phase: "typing" });
    } else this.#typed.type(this.#question());
  }

  search(text: string): void {
    const meaning = meaningOf(text, this.#settings.tlds());
    const isRunning = this.#list.phase === "searching" || this.#list.phase === "waiting";
    if (isRunning && meaning.kind === "list" && isSameQuestion(meaning, this.#meaning)) return;
    this.#take(text, Date.now());
    if (this.#meaning.kind !== "list") this.#typed.search(this.#question());
    else if (this.#settings.onBegin(text)) void this.#checkList();
  }

  retry(): void {
    if (this.#meaning.kind !== "list") return this.#typed.retry();
    this.#store(Date.now());
    void this.#checkList();
  }

  /** Cancels everything. */
  stop(): void {
    this.#checking.abort();
    this.#typed.stop();
  }

  /** Takes the text, and ends what was done for the one before. */
  #take(text: string, searchedAtMs: number): void {
    this.#checking.abort();
    this.#text = text;
    this.#meaning = meaningOf(text, this.#settings.tlds());
    this.#store(searchedAtMs);
    this.#rows.clear();
    this.#list = IDLE;
  }

  #question() {
    const tlds = this.#settings.chosenTlds();
    return { q: this.#meaning.kind === "name" ? this.#meaning.q : "", ...(tlds && { tlds }) };
  }

  #store(searchedAtMs: number): void {
    this.#searchedAtMs = searchedAtMs;
    const text = this.#text;
    storeForTab(this.#settings.key, text.trim() === "" ? null : { text, searchedAtMs });
  }

  #follow(state: Partial<SearchState> & Pick<SearchState, "phase">): void {
    if (this.#meaning.kind === "list") this.#list = { ...IDLE, ...state };
    else if (state.phase === "searching") {
      // The search may have started by itself after a pause in typing.
      this.#store(Date.now());
      const { query = null } = state;
      if (query !== null && query !== this.#begun) {
        this.#begun = query;
        if (!this.#settings.onBegin(query.q)) return this.#typed.stop();
      }
    }
    this.#settings.onChange();
  }

  /** Checks the open names one after another, as the quota allows. A name that is rejected or can't be checked doesn't end the list; a lost connection does. */
  async #checkList(): Promise<void> {
    const { shop, tlds } = this.#settings;
    this.#typed.stop();
    this.#checking.abort();
    const { signal } = (this.#checking = new AbortController());
    const proceed = (): void => this.#follow({ phase: "searching" });
    proceed();
    // A name without an ending is meant under the main one.
    if (tlds().length === 0) await shop.loaded;
    if (signal.aborted) return;
    this.#meaning = meaningOf(this.#text, tlds());
    const names = this.#meaning.kind === "list" ? this.#meaning.names : [];
    const open = names.filter((name) => this.#rows.get(name)?.state !== "known");
    this.#beginList(open, "looking");
    proceed();
    for (const name of open) {
      try {
        const result = await shop.client.availability(
          { domain: name },
          {
            signal,
            onWait: (problem, waitMs) => {
              this.#follow({ phase: "waiting", problem, untilMs: now() + waitMs });
            },
            onRetry: proceed,
          },
        );
        this.#rows.set(name, rowOf(result));
      } catch (error) {
        if (signal.aborted) return;
        const problem = asProblem(error);
        if (problem.code === "unreachable") return this.#follow({ phase: "failed", problem });
        const why = (texts: Texts): string => wordsFor(texts, problem, tlds());
        const isOpen = problem.code !== "invalid_request";
        this.#rows.set(name, rowWithout(name, tlds(), { state: "failed", why, isOpen }));
      }
      proceed();
    }
    this.#follow({ phase: "done" });
  }

  #beginList(names: readonly string[], state: "typing" | "looking"): void {
    for (const name of names) this.#rows.set(name, rowWithout(name, this.#settings.tlds(), { state }));
  }

  #upToDate(result: Availability): Availability {
    return this.#learned.get(result) ?? result;
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
