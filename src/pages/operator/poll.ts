/** Asks again and again: never twice at a time, not while the page is hidden, and after a refusal no sooner than it says. */
export interface PollSettings<T> {
  readonly everyMs: number;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly show: (value: T) => void;
  /** Answers how long to wait until the next try, in ms; null ends the asking. */
  readonly fail: (error: unknown) => number | null;
}

export interface Poll {
  /** Asks at once, unless it is asking already or was told to wait. */
  now(): void;
  stop(): void;
}

export function poll<T>({ everyMs, ask, show, fail }: PollSettings<T>): Poll {
  const end = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  let dueAtMs = 0;
  let refusedUntilMs = 0;

  async function round(): Promise<void> {
    if (end.signal.aborted || isAsking || document.hidden || performance.now() < refusedUntilMs) return;
    clearTimeout(timer);
    isAsking = true;
    let waitMs: number | null = everyMs;
    try {
      const value = await ask(end.signal);
      if (!end.signal.aborted) show(value);
    } catch (error) {
      if (!end.signal.aborted) {
        waitMs = fail(error);
        refusedUntilMs = performance.now() + (waitMs ?? 0);
      }
    }
    isAsking = false;
    if (waitMs === null || end.signal.aborted) return;
    dueAtMs = performance.now() + waitMs;
    wait();
  }
  function now(): void {
    void round();
  }

  function wait(): void {
    clearTimeout(timer);
    // A timer may be a little early.
    timer = setTimeout(now, Math.max(0, Math.ceil(dueAtMs - performance.now()) + 1));
  }

  // What was due while the page was hidden is asked for now.
  document.addEventListener("visibilitychange", wait, { signal: end.signal });
  now();
  return {
    now,
    stop() {
      clearTimeout(timer);
      end.abort();
    },
  };
}
