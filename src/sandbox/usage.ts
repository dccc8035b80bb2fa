/** What one credential did, counted at arrival: for the portal side's statistics only, never for decisions. */
const KEPT_CALLS = 5000;

export interface Call {
  /** Monotonic ms on the sandbox's clock. */
  readonly at: number;
  readonly route: string;
  readonly accepted: boolean;
}

export class Usage {
  accepted = 0;
  rejected429 = 0;
  /** Refused with 401 or 403 although the key is known. */
  refused = 0;
  readonly byRoute = new Map<string, number>();
  #calls: Call[] = [];

  record(call: Call): void {
    if (call.accepted) {
      this.accepted += 1;
      this.byRoute.set(call.route, (this.byRoute.get(call.route) ?? 0) + 1);
    } else {
      this.rejected429 += 1;
    }
    this.#calls.push(call);
    // Twice the length before cutting, so that a cut is paid once in 5000 calls.
    if (this.#calls.length >= 2 * KEPT_CALLS) this.#calls = this.#calls.slice(-KEPT_CALLS);
  }

  lastCalls(): Call[] {
    return this.#calls.slice(-KEPT_CALLS);
  }
}
