/** The ground truth of one history: every state of the registry and of the reseller's prices, and when it was in effect. */
import type { Change, Control } from "../../packages/sandbox/src/sandbox.js";
import { type Action, type TermName, TERMS, type WorldStep } from "./history.js";

export const NAMES = ["kabul.af", "herat.af", "balkh.af"] as const;
const TIERS = 10;

/** Cents. */
const LIST: Readonly<Record<TermName, number>> = {
  "registration 1": 1731,
  "registration 2": 3307,
  "renewal 1": 2011,
  "transfer 1": 1907,
};

const decimal = (cents: number): string => (cents / 100).toFixed(2);

/** The sandbox's configuration. */
export const WORLD = `
rateLimit: { limit: 100000, windowMs: 60000 }
nameservers: [ns1.example.af]
tiers: [${Array.from({ length: TIERS }, (_, at) => `{ name: T${at}, fromDomains: ${at}, discountPercent: ${at * 3} }`).join(", ")}]
priceLists:
  USD:
    .af:
      registration: ["${decimal(LIST["registration 1"])}", "${decimal(LIST["registration 2"])}"]
      renewal: ["${decimal(LIST["renewal 1"])}"]
      transfer: ["${decimal(LIST["transfer 1"])}"]
      restore: []
names: { takenPercent: 0 }
resellers:
  - { id: demo, accountNumber: RS-1, currency: USD, tier: T0, balance: "1.00", creditLimit: "0.00", credentials: [{ key: truth-demo-key, secret: truth-demo-secret }] }
`;

/** The shop's rules. The functions below calculate the same in cents. */
export const RETAIL = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "50", addFixed: "1.00", minMargin: "2.00" }]
premium: { markupPercent: "10", minMargin: "2.00" }
`;
const MIN_MARGIN = 200;
export function retail(wholesale: number, premium: boolean): number {
  const wanted = premium ? Math.ceil((wholesale * 110) / 100) : Math.ceil((wholesale * 150) / 100) + 100;
  return Math.max(wanted, wholesale + MIN_MARGIN);
}
export const floorOf = (wholesale: number): number => wholesale + MIN_MARGIN;

export interface State {
  /** When the state was in effect, both ends included: ms on the clock of the history. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly tier: number;
  readonly set: ReadonlyMap<TermName, number>;
  readonly taken: ReadonlySet<string>;
  /** The first year's price by name. */
  readonly premium: ReadonlyMap<string, number>;
}

export const termOf = (action: Action, years: number): TermName => {
  switch (action) {
    case "registration":
      return years === 1 ? "registration 1" : "registration 2";
    case "renewal":
      return "renewal 1";
    case "transfer":
      return "transfer 1";
    default:
      return action satisfies never;
  }
};
export const partsOf = (term: TermName): { readonly action: Action; readonly years: number } => {
  switch (term) {
    case "registration 1":
      return { action: "registration", years: 1 };
    case "registration 2":
      return { action: "registration", years: 2 };
    case "renewal 1":
      return { action: "renewal", years: 1 };
    case "transfer 1":
      return { action: "transfer", years: 1 };
    default:
      return term satisfies never;
  }
};

/** What the reseller pays for a term, in cents. */
export function costOf(state: State, term: TermName): number {
  return state.set.get(term) ?? Math.floor((LIST[term] * (100 - state.tier * 3) + 50) / 100);
}

/** What the reseller pays to register this name. */
export function registrationOf(state: State, name: string, years: number): number {
  const whole = costOf(state, termOf("registration", years));
  const firstYear = state.premium.get(name);
  return firstYear === undefined ? whole : firstYear + whole - costOf(state, "registration 1");
}

/** Converts a step to changes of the sandbox. */
export function changesOf(step: WorldStep, state: State): readonly Change[] {
  const price = (term: TermName, amountCents: number): Change => ({
    price: { reseller: "demo", tld: ".af", ...partsOf(term), amountCents },
  });
  if ("taken" in step) return [{ taken: { domain: NAMES[step.taken] ?? "", taken: step.is } }];
  if ("premium" in step) {
    const firstYear = step.cents === null ? null : { USD: step.cents };
    return [{ premium: { domain: NAMES[step.premium] ?? "", firstYear } }];
  }
  if ("price" in step) return [price(step.price, step.cents)];
  if ("list" in step)
    return TERMS.map((term) => price(term, Math.round((costOf(state, term) * step.list) / 100)));
  return [{ tier: { reseller: "demo", tier: `T${step.tier}` } }];
}

function stateAfter(state: State, change: Change): State {
  if ("taken" in change) {
    const taken = new Set(state.taken);
    if (change.taken.taken) taken.add(change.taken.domain);
    else taken.delete(change.taken.domain);
    return { ...state, taken };
  }
  if ("premium" in change) {
    const premium = new Map(state.premium);
    const firstYear = change.premium.firstYear?.["USD"];
    if (firstYear === undefined) premium.delete(change.premium.domain);
    else premium.set(change.premium.domain, firstYear);
    return { ...state, premium };
  }
  if ("tier" in change) return { ...state, tier: Number(change.tier.tier.slice(1)) };
  const { action, years, amountCents } = change.price;
  if (action === "restore" || amountCents === null) throw new Error("no history makes such a change");
  return { ...state, set: new Map(state.set).set(termOf(action, years), amountCents) };
}

interface ScheduledChange {
  readonly changes: readonly Change[];
  callsLeft: number;
}

/** The states of the sandbox, starting with its first one. From then on, the sandbox may be changed only through this class. */
export class World {
  readonly #control: Pick<Control, "schedule" | "scheduled">;
  readonly #now: () => number;
  readonly #states: State[] = [
    { fromMs: 0, toMs: Infinity, tier: 0, set: new Map(), taken: new Set(), premium: new Map() },
  ];
  readonly #tiersSeen = new Set([0]);
  readonly #scheduled = new Map<number, ScheduledChange>();

  constructor(control: Pick<Control, "schedule" | "scheduled">, now: () => number) {
    this.#control = control;
    this.#now = now;
  }

  get now(): State {
    this.catchUp();
    const last = this.#states.at(-1);
    if (last === undefined) throw new Error("there is always a state");
    return last;
  }

  /** Every state that was in effect at any time in this interval, both ends included. */
  during(fromMs: number, toMs: number): readonly State[] {
    this.catchUp();
    return this.#states.filter((state) => state.fromMs <= toMs && state.toMs >= fromMs);
  }

  /** How often the result of `of` has changed since then. */
  changesSince(fromMs: number, of: (state: State) => string): number {
    const seen = this.during(fromMs, this.#now()).map(of);
    return seen.filter((value, at) => at > 0 && value !== seen[at - 1]).length;
  }

  /** Makes the change now, or after this many further calls. */
  change(step: WorldStep, afterCalls = 0): void {
    if ("tier" in step) {
      // Each tier occurs only once, because a price that returns can't be distinguished from one that never changed.
      if (this.#tiersSeen.has(step.tier)) return;
      this.#tiersSeen.add(step.tier);
    }
    const changes = changesOf(step, this.now);
    if (afterCalls > 0) {
      const id = this.#control.schedule({ afterCalls }, changes);
      this.#scheduled.set(id, { changes, callsLeft: afterCalls });
    } else {
      this.#control.schedule({ afterMs: 0 }, changes);
      this.#record(changes);
    }
  }

  /** Records scheduled changes that have been made. They were made at the current time, because this is called before the clock advances. */
  catchUp(): void {
    if (this.#scheduled.size === 0) return;
    const pending = new Map(this.#control.scheduled().map(({ id, due }) => [id, due]));
    const due = [...this.#scheduled].filter(([id]) => !pending.has(id));
    // Several may have been made since the last call, in the order in which their calls were used up.
    for (const [id, { changes }] of due.toSorted(([, a], [, b]) => a.callsLeft - b.callsLeft)) {
      this.#scheduled.delete(id);
      this.#record(changes);
    }
    for (const [id, later] of this.#scheduled) {
      const left = pending.get(id);
      if (left !== undefined && "afterCalls" in left) later.callsLeft = left.afterCalls;
    }
  }

  #record(changes: readonly Change[]): void {
    const atMs = this.#now();
    const last = this.#states.pop();
    if (last === undefined) throw new Error("there is always a state");
    this.#states.push(
      { ...last, toMs: atMs },
      { ...changes.reduce(stateAfter, last), fromMs: atMs, toMs: Infinity },
    );
  }
}
