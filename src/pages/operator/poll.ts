/** Asks again and again: never twice at a time, not while the page is hidden, and after a refusal no sooner than it says. */
export interface PollSettings<T> {
  readonly everyMs: number;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly show: (value: T) => void;
  /** Answers how long to wait at least, in ms; null ends the asking. */
  readonly fail: (error: unknown) => number | null;
}

export interface Poll {
  /** Asks at once, unless it is asking already. */
  now(): void;
  stop(): void;
}

export function poll<T>({ everyMs, ask, show, fail }: PollSettings<T>): Poll {
  const end = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  let notBeforeMs = 0;

  async function round(): Promise<void> {
    clearTimeout(timer);
    if (end.signal.aborted || isAsking || document.hidden) return;
    isAsking = true;
    let waitMs: number | null = everyMs;
    try {
      const value = await ask(end.signal);
      if (!end.signal.aborted) show(value);
    } catch (error) {
      if (!end.signal.aborted) {
        const leastMs = fail(error);
        waitMs = leastMs === null ? null : Math.max(everyMs, leastMs);
      }
    }
    isAsking = false;
    if (waitMs === null || end.signal.aborted) return;
    notBeforeMs = performance.now() + waitMs;
    timer = setTimeout(now, waitMs);
  }
  function now(): void {
    void round();
  }

  const onVisible = (): void => {
    // What was due while the page was hidden is asked for now.
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(now, Math.max(0, notBeforeMs - performance.now()));
  };
  document.addEventListener("visibilitychange", onVisible, { signal: end.signal });
  now();
  return {
    now,
    stop() {
      clearTimeout(timer);
      end.abort();
    },
  };
}
