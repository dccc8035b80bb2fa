/** Polls with one request at a time and not while the page is hidden. After a failure, waits as long as `fail` returns. */
interface PollSettings<T> {
  readonly everyMs: number;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly show: (value: T) => void;
  /** Returns how long to wait before a retry, in ms; null stops polling. */
  readonly fail: (error: unknown) => number | null;
}

interface Poll {
  /** Polls immediately, unless a request is in progress or a failure asked to wait. */
  now(): void;
  stop(): void;
}

export function poll<T>({ everyMs, ask, show, fail }: PollSettings<T>): Poll {
  const end = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  let dueAt = 0;
  let pausedUntilAt = 0;

  async function round(): Promise<void> {
    if (end.signal.aborted || isAsking || document.hidden || performance.now() < pausedUntilAt) return;
    clearTimeout(timer);
    isAsking = true;
    let waitMs: number | null = everyMs;
    try {
      const value = await ask(end.signal);
      if (!end.signal.aborted) show(value);
    } catch (error) {
      if (!end.signal.aborted) {
        waitMs = fail(error);
        pausedUntilAt = performance.now() + (waitMs ?? 0);
      }
    }
    isAsking = false;
    if (waitMs === null || end.signal.aborted) return;
    dueAt = performance.now() + waitMs;
    wait();
  }
  function now(): void {
    void round();
  }

  function wait(): void {
    clearTimeout(timer);
    // Timers can fire slightly early.
    timer = setTimeout(now, Math.max(0, Math.ceil(dueAt - performance.now()) + 1));
  }

  // Catches up when the page becomes visible again.
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
