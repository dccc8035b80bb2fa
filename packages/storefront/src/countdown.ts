import { now } from "../../client/src/clock.js";

/** One countdown at a time, ended by a newer one or by `stop`. */
export class Countdown {
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Calls `tick` with the whole seconds left until that time of `now()`, immediately and whenever they change, with 0 last. */
  start(untilMs: number, tick: (secondsLeft: number) => void): void {
    this.stop();
    const look = (): void => {
      const leftMs = Math.max(0, untilMs - now());
      if (leftMs > 0) this.#timer = setTimeout(look, leftMs % 1000 || 1000);
      tick(Math.ceil(leftMs / 1000));
    };
    look();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
