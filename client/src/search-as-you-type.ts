/**
 * A search box that spends nothing on keystrokes: while somebody types it shows what the service knows already, and it searches on Enter,
 * on a button, or after a pause on something that can be a name. Needs no framework and no DOM.
 */
import type { Availability, StorefrontClient } from "./client.js";
import { StorefrontProblem } from "./problem.js";

export interface NameQuery {
  /** A label or a whole name, as it was typed. */
  readonly q: string;
  /** Default: every ending sold. */
  readonly tlds?: readonly string[];
  /** Default: the shortest term sold under each ending. */
  readonly years?: number;
}

export interface SearchState {
  /**
   * `idle`: the box is empty. `typing`: nothing has been searched yet; results come from the service's memory. `waiting`: the search goes on
   * by itself at `untilMs`. `done`: names may still be `unknown`. `failed`: see `problem`.
   */
  readonly phase: "idle" | "typing" | "searching" | "waiting" | "done" | "failed";
  readonly query: NameQuery | null;
  /** One for each name, in the order in which they became known. */
  readonly results: readonly Availability[];
  /** Available names like one that is taken. */
  readonly suggestions: readonly Availability[];
  /** Why it waits or has failed; null where it waits for names that could not be asked in time. */
  readonly problem: StorefrontProblem | null;
  /**
   * As `Date.now()` counts. `searching`: until then the service waits for the registry. `waiting`: when the search goes on. `done`, `failed`:
   * when a retry makes sense; null if unknown.
   */
  readonly untilMs: number | null;
}

export interface SearchAsYouTypeSettings {
  /** Called with every new state. */
  readonly onChange: (state: SearchState) => void;
  /** The pause that counts as the end of typing. Default: 1 s. */
  readonly pauseMs?: number;
}

export interface TypedSearch {
  readonly state: SearchState;
  /** Call this on every change of the text or of what else is asked. Ends a search for something else. */
  type(query: NameQuery): void;
  /** Searches now: Enter, the button, a suggestion. Does nothing while the same search is running. */
  search(query: NameQuery): void;
  /** Asks again for what is not known, without waiting any longer. */
  retry(): void;
  /** Ends every search and timer. */
  stop(): void;
}

const PAUSE_MS = 1_000;
/** Questions to the service's memory are free but count as requests of this client. */
const BETWEEN_LOOKS_MS = 1_000;
const FIRST_LOOK_MS = 150;
/** How often each name is asked for before people are asked to decide. */
const MOST_ASKS = 4;
/** For so long the service keeps a stream waiting for the registry. */
const STREAM_WAITS_MS = 30_000;
/** Names due within this time are asked for together. */
const TOGETHER_MS = 1_000;

const IDLE: SearchState = {
  phase: "idle",
  query: null,
  results: [],
  suggestions: [],
  problem: null,
  untilMs: null,
};

export function searchAsYouType(client: StorefrontClient, settings: SearchAsYouTypeSettings): TypedSearch {
  const { onChange, pauseMs = PAUSE_MS } = settings;
  let state = IDLE;
  /** Ends whatever is going on for the current query. */
  let current = new AbortController();
  let pause: ReturnType<typeof setTimeout> | undefined;
  let look: ReturnType<typeof setTimeout> | undefined;
  let lookedAtMs = -Infinity;

  function become(change: Partial<SearchState>): void {
    state = { ...state, ...change };
    onChange(state);
  }

  /** Ends everything that is going on and returns the signal of what comes next. */
  function begin(): AbortSignal {
    clearTimeout(pause);
    clearTimeout(look);
    current.abort();
    current = new AbortController();
    return current.signal;
  }

  function found(result: Availability): void {
    const list = result.suggested === true ? "suggestions" : "results";
    const isKnown = state[list].some(({ domain }) => domain === result.domain);
    const replaced = state[list].map((other) => (other.domain === result.domain ? result : other));
    become({ [list]: isKnown ? replaced : [...state[list], result] });
  }

  async function lookUpKnown(query: NameQuery, signal: AbortSignal): Promise<void> {
    lookedAtMs = Date.now();
    try {
      const { results } = await client.search({ ...query, only: "known" }, { signal });
      if (!signal.aborted) become({ results });
    } catch {
      // People are still typing: what is wrong is said when they search.
    }
  }

  function searching(): void {
    become({ phase: "searching", problem: null, untilMs: Date.now() + STREAM_WAITS_MS });
  }

  async function run(query: NameQuery, signal: AbortSignal): Promise<void> {
    const onWait = (problem: StorefrontProblem, waitMs: number): void => {
      become({ phase: "waiting", problem, untilMs: Date.now() + waitMs });
    };
    /** When each unknown name can be asked for again, by its ending. */
    const due = new Map<string, number>();
    /** When names that wait will be asked for again. */
    const waits = new Set<number>();
    let streams = 0;

    async function stream(question: NameQuery): Promise<Set<string>> {
      const unknown = new Set<string>();
      streams += 1;
      searching();
      for await (const event of client.searchStream(question, { signal, onWait })) {
        if (event.event !== "result" || signal.aborted) continue;
        if (state.phase === "waiting") searching();
        const { tld, status, retryAfter = 0 } = event.result;
        due.delete(tld);
        unknown.delete(tld);
        if (status === "unknown") {
          due.set(tld, Date.now() + 1000 * retryAfter);
          unknown.add(tld);
        }
        found(event.result);
      }
      streams -= 1;
      return unknown;
    }

    /** Each name that stays unknown is asked for again at its own time, whatever becomes of the others. */
    async function ask(question: NameQuery, times: number): Promise<void> {
      const unknown = await stream(question);
      const groups = times < MOST_ASKS ? together([...due].filter(([tld]) => unknown.has(tld))) : [];
      for (const { untilMs } of groups) waits.add(untilMs);
      if (streams === 0 && waits.size > 0)
        become({ phase: "waiting", problem: null, untilMs: Math.min(...waits) });
      await Promise.all(
        groups.map(async ({ untilMs, tlds }) => {
          await until(untilMs, signal);
          waits.delete(untilMs);
          await ask({ ...query, tlds }, times + 1);
        }),
      );
    }

    try {
      await ask(query, 1);
      const untilMs = due.size === 0 ? null : Math.min(...due.values());
      become({ phase: "done", problem: null, untilMs });
    } catch (error) {
      if (signal.aborted) return;
      current.abort();
      const problem =
        error instanceof StorefrontProblem
          ? error
          : new StorefrontProblem("unreadable", "", { cause: error });
      const untilMs = problem.retryAfter === undefined ? null : Date.now() + 1000 * problem.retryAfter;
      become({ phase: "failed", problem, untilMs });
    }
  }

  function search(query: NameQuery): void {
    const isSameAgain = isSame(query, state.query);
    if (isSameAgain && (state.phase === "searching" || state.phase === "waiting")) return;
    const signal = begin();
    if (query.q.trim() === "") return become(IDLE);
    // What is already known about the same names stays until the answers come.
    state = { ...IDLE, query, results: isSameAgain ? state.results : [] };
    void run(query, signal);
  }

  return {
    get state() {
      return state;
    },
    search,
    type(query) {
      if (isSame(query, state.query)) return;
      const signal = begin();
      if (query.q.trim() === "") return become(IDLE);
      state = IDLE;
      become({ phase: "typing", query });
      const lookInMs = Math.max(FIRST_LOOK_MS, lookedAtMs + BETWEEN_LOOKS_MS - Date.now());
      look = setTimeout(() => void lookUpKnown(query, signal), lookInMs);
      if (canBeName(query.q)) pause = setTimeout(search, pauseMs, query);
    },
    retry() {
      const { query, results } = state;
      if (query === null) return;
      const signal = begin();
      const unknown = results.flatMap(({ status, tld }) => (status === "unknown" ? [tld] : []));
      void run(unknown.length > 0 ? { ...query, tlds: unknown } : query, signal);
    },
    stop() {
      begin();
      become(IDLE);
    },
  };
}

/** Names that are due at about the same time, with the first of these times. */
function together(due: readonly (readonly [tld: string, atMs: number])[]) {
  const groups: { readonly untilMs: number; readonly tlds: string[] }[] = [];
  for (const [tld, atMs] of [...due].sort(([, one], [, other]) => one - other)) {
    const last = groups.at(-1);
    if (last !== undefined && atMs <= last.untilMs + TOGETHER_MS) last.tlds.push(tld);
    else groups.push({ untilMs: atMs, tlds: [tld] });
  }
  return groups;
}

/** With the joiners of Arabic script, and no hyphen at either end. */
const LETTERS_AND_HYPHENS = /^(?!-)(?:\p{L}|\p{M}|\p{N}|\u200C|\u200D|-)+(?<!-)$/u;

/** Whether somebody may mean this as a name: at least three letters or digits where the name would stand. */
export function canBeName(text: string): boolean {
  const [label = ""] = hostIn(text).split(".");
  return Array.from(label).length >= 3 && LETTERS_AND_HYPHENS.test(label);
}

/** What is left of a pasted address without its scheme, `www.` and path. */
export function hostIn(text: string): string {
  return text
    .trim()
    .replace(/^(?:[a-z][a-z\d+.-]*:)?\/\//i, "")
    .replace(/[/?#].*$/s, "")
    .replace(/^www\./i, "")
    .replace(/\.$/, "");
}

function isSame(one: NameQuery, other: NameQuery | null): boolean {
  return (
    other !== null &&
    one.q.trim() === other.q.trim() &&
    one.years === other.years &&
    String(one.tlds) === String(other.tlds)
  );
}

function until(atMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, Math.max(0, atMs - Date.now()));
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        failed(signal.reason);
      },
      { once: true },
    );
  });
}
