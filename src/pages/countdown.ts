/** One countdown at a time, ended by a newer one, by `stop` or by the signal. */
export class Countdown {
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => {
      this.stop();
    });
  }

  /** Calls `tick` with the whole seconds left, now and whenever they change, with 0 last. */
  start(untilMs: number, tick: (secondsLeft: number) => void): void {
    this.stop();
    if (this.#signal.aborted) return;
    const look = (): void => {
      const leftMs = Math.max(0, untilMs - Date.now());
      if (leftMs > 0) this.#timer = setTimeout(look, leftMs % 1000 || 1000);
      tick(Math.ceil(leftMs / 1000));
    };
    look();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
