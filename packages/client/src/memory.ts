/** A small HTTP cache: answers are reused for as long as the service allows, then revalidated with their ETag. */
import { now } from "./clock.js";

interface Remembered {
  readonly etag: string;
  readonly text: string;
  readonly freshUntilMs: number;
}

const MOST = 30;

export class Memory {
  readonly #answers = new Map<string, Remembered>();

  find(address: string): Remembered | undefined {
    return this.#answers.get(address);
  }

  /**
   * `before` is the answer that was revalidated. Without one, the browser may have taken the answer from its own cache, which doesn't tell its age:
   * it isn't reused before it has been revalidated.
   */
  keep(address: string, { headers }: Response, text: string, before: Remembered | undefined): void {
    this.#answers.delete(address);
    const etag = headers.get("etag");
    const control = headers.get("cache-control") ?? "";
    if (etag === null || control.includes("no-store")) return;
    const seconds = Number(/max-age=(\d+)/.exec(control)?.[1] ?? 0) - Number(headers.get("age"));
    this.#answers.set(address, { etag, text, freshUntilMs: before ? now() + 1000 * seconds : 0 });
    const [oldest = ""] = this.#answers.keys();
    if (this.#answers.size > MOST) this.#answers.delete(oldest);
  }
}
