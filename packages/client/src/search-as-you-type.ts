/**
 * A search box whose keystrokes cost no registry calls. While the user types, it shows what the service already knows. It searches on Enter, on a
 * click, or after a pause if the text can be a name. Needs no framework and no DOM.
 */
import { callAt, waitUntil } from "./call.js";
import type { Availability, StorefrontClient } from "./client.js";
import { now } from "./clock.js";
import { asProblem, type StorefrontProblem } from "./problem.js";

export interface NameQuery {
  /** A label or a whole name, as typed. */
  readonly q: string;
  /** Default: every TLD sold. */
  readonly tlds?: readonly string[];
  /** Default: the shortest term sold under each TLD. */
  readonly years?: number;
}

export interface SearchState {
  /**
   * `idle`: the box is empty. `typing`: nothing has been searched yet; results come from the service's cache. `waiting`: the search continues
   * automatically at `untilMs`. `done`: names may still be `unknown`. `failed`: see `problem`.
   */
  readonly phase: "idle" | "typing" | "searching" | "waiting" | "done" | "failed";
  readonly query: NameQuery | null;
  /** One per name, in the order in which they became known. */
  readonly results: readonly Availability[];
  /** Available alternatives to a taken name. */
  readonly suggestions: readonly Availability[];
  /** Why the search waits or has failed; null while it waits to check unknown names again. */
  readonly problem: StorefrontProblem | null;
  /**
   * A time of `now()`. `searching`: until when the service waits for the registry. `waiting`: when the search continues. `done`, `failed`: when a
   * retry makes sense; null if unknown.
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
  /** Call this whenever the query changes. Cancels the search for any other query. */
  type(query: NameQuery): void;
  /** Searches immediately: for Enter, the button or a suggestion. Does nothing while the same search is running. */
  search(query: NameQuery): void;
  /** Searches again immediately: for the unknown names, or for all if none is unknown or some have no result. */
  retry(): void;
  /** Cancels all searches and timers. */
  stop(): void;
}

const PAUSE_MS = 1_000;
/** Looking up known names costs no registry calls, but counts towards this client's rate limit. */
const BETWEEN_LOOKS_MS = 1_000;
const FIRST_LOOK_MS = 150;
/** How often each name is checked automatically. After that, the user decides. */
const MOST_ASKS = 4;
/** How long the service keeps a stream open while it waits for the registry. */
const STREAM_WAITS_MS = 30_000;
/** Names due within this time of each other are checked together. */
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
  /** Cancels all work for the current query. */
  let current = new AbortController();
  let lookedAtMs = -Infinity;
  /** Whether a stream of this search has ended, so that each name has a result. */
  let isWhole = false;

  function become(change: Partial<SearchState>): void {
    state = { ...state, ...change };
    onChange(state);
  }

  /** Cancels all work and returns the signal for what follows. */
  function begin(): AbortSignal {
    current.abort();
    current = new AbortController();
    return current.signal;
  }

  function found(result: Availability): void {
    const list = result.suggested === true ? "suggestions" : "results";
    const byDomain = new Map(state[list].map((one) => [one.domain, one]));
    become({ [list]: [...byDomain.set(result.domain, result).values()] });
  }

  /** Asks for these names alone, by their label: a full name would be checked again with each of them. */
  function only(query: NameQuery, tlds: readonly string[]): NameQuery {
    const [one] = state.results;
    return { ...query, q: one?.domain.split(".")[0] ?? query.q, tlds };
  }

  async function lookUpKnown(query: NameQuery, signal: AbortSignal): Promise<void> {
    lookedAtMs = now();
    try {
      const { results } = await client.search({ ...query, only: "known" }, { signal });
      if (!signal.aborted) become({ results });
    } catch {
      // The user is still typing; an error is shown once they search.
    }
  }

  async function run(query: NameQuery, signal: AbortSignal): Promise<void> {
    /** When the first of the names that stay unknown can be checked again. */
    let laterMs = Infinity;
    /** Why, and until when, streams and groups of names wait. */
    const waits = new Map<object, readonly [problem: StorefrontProblem | null, untilMs: number]>();
    /** The number of streams that don't wait. */
    let streams = 0;

    /** Shows the next wait unless something is being checked meanwhile. */
    function rest(): void {
      const [next] = [...waits.values()].sort(byTime);
      if (streams === 0 && next) become({ phase: "waiting", problem: next[0], untilMs: next[1] });
    }

    /** Checks names, and each that is still unknown again at its own time, whatever happens to the others. */
    async function ask(question: NameQuery, times: number): Promise<void> {
      /** When each name that is still unknown can be checked again, by TLD. */
      const due = new Map<string, number>();
      const onRetry = (): void => {
        waits.delete(due);
        streams += 1;
        become({ phase: "searching", problem: null, untilMs: now() + STREAM_WAITS_MS });
      };
      onRetry();
      const events = client.searchStream(question, {
        signal,
        onWait(problem, waitMs) {
          waits.set(due, [problem, now() + waitMs]);
          streams -= 1;
          rest();
        },
        onRetry,
      });
      for await (const event of events) {
        if (signal.aborted) throw new Error("Another search has begun.");
        if (event.event !== "result") continue;
        const { tld, status, retryAfter = 0 } = event.result;
        due.delete(tld);
        if (status === "unknown") due.set(tld, now() + 1000 * retryAfter);
        found(event.result);
      }
      isWhole = true;
      streams -= 1;
      const groups = times < MOST_ASKS ? together(due) : [];
      if (groups.length === 0) laterMs = Math.min(laterMs, ...due.values());
      const again = groups.map(async ({ untilMs, tlds }) => {
        waits.set(tlds, [null, untilMs]);
        await waitUntil(untilMs, signal);
        waits.delete(tlds);
        await ask(only(query, tlds), times + 1);
      });
      rest();
      await Promise.all(again);
    }

    try {
      await ask(query, 1);
      become({ phase: "done", problem: null, untilMs: laterMs < Infinity ? laterMs : null });
    } catch (error) {
      if (signal.aborted) return;
      current.abort();
      const problem = asProblem(error);
      const untilMs = problem.retryAfter === undefined ? null : now() + 1000 * problem.retryAfter;
      become({ phase: "failed", problem, untilMs });
    }
  }

  function search(query: NameQuery): void {
    const isSameAgain = isSame(query, state.query);
    if (isSameAgain && (state.phase === "searching" || state.phase === "waiting")) return;
    const signal = begin();
    if (query.q.trim() === "") return become(IDLE);
    isWhole = false;
    // Keep what is known about the same names until the new answers arrive.
    state = { ...IDLE, query, results: isSameAgain ? state.results : [] };
    void run(query, signal);
  }

  return {
    get state() {
      return state;
    },
    search,
    type(query) {
      const isSameAgain = isSame(query, state.query);
      if (isSameAgain && state.phase !== "typing") return;
      const signal = begin();
      if (query.q.trim() === "") return become(IDLE);
      if (!isSameAgain) state = IDLE;
      become({ phase: "typing", query });
      const lookAtMs = Math.max(now() + FIRST_LOOK_MS, lookedAtMs + BETWEEN_LOOKS_MS);
      callAt(lookAtMs, signal, () => void lookUpKnown(query, signal));
      if (canBeName(query.q)) callAt(now() + pauseMs, signal, () => search(query));
    },
    retry() {
      const { query, results } = state;
      if (query === null) return;
      const signal = begin();
      const unknown = results.flatMap(({ status, tld }) => (isWhole && status === "unknown" ? [tld] : []));
      void run(unknown.length > 0 ? only(query, unknown) : query, signal);
    },
    stop() {
      begin();
      become(IDLE);
    },
  };
}

function byTime([, one]: readonly [unknown, number], [, other]: readonly [unknown, number]): number {
  return one - other;
}

/** Groups names that are due at about the same time; `untilMs` is the earliest time of a group. */
function together(due: ReadonlyMap<string, number>) {
  const groups: { readonly untilMs: number; readonly tlds: string[] }[] = [];
  for (const [tld, atMs] of [...due].sort(byTime)) {
    const last = groups.at(-1);
    if (last && atMs <= last.untilMs + TOGETHER_MS) last.tlds.push(tld);
    else groups.push({ untilMs: atMs, tlds: [tld] });
  }
  return groups;
}

/** Allows the joiners of Arabic script, and no hyphen at either end. */
const POSSIBLE_LABEL = /^(?!-)[\u200C-\u200D\p{L}\p{M}\p{N}-]{3,}(?<!-)$/u;

/** Whether the text may be meant as a name: its label has at least three characters, only letters, digits and inner hyphens. */
export function canBeName(text: string): boolean {
  const [label = ""] = hostIn(text).split(".");
  return POSSIBLE_LABEL.test(label);
}

/** The host in a pasted URL: without its scheme, `www.`, path and final dot. */
export function hostIn(text: string): string {
  return text
    .trim()
    .replace(/^(?:[a-z][a-z\d+.-]*:)?\/\//i, "")
    .replace(/[/?#].*/s, "")
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
