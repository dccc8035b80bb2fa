/** The calls of one credential, counted on arrival. Only for the portal's statistics, never for decisions. */
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
  /** Calls with a known key whose credential, account or address was refused. */
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
    // Cut only at twice the length, so that the cost of cutting occurs once in 5000 calls.
    if (this.#calls.length >= 2 * KEPT_CALLS) this.#calls = this.#calls.slice(-KEPT_CALLS);
  }

  lastCalls(): Call[] {
    return this.#calls.slice(-KEPT_CALLS);
  }
}
