/**
 * `npm run bench -- regions` calculates how two regions with different busy hours use one budget: with a fixed share per region, with shares that
 * lend what they don't use, and with one Redis far away. It simulates requests for new names for a day, in steps of one second. For one hour, the
 * regions can't reach each other.
 */
import { table } from "./table.js";

const BUDGET = 57;
const WINDOW_S = 60;
const DAY_S = 24 * 3600;
const CUT_OFF_S = 3600;
/** How long a message takes from one region to the other. */
const MESSAGE_S = 1;
const DEMANDS = [0.8, 1.2, 2];

/** How the regions share the budget. */
type Policy = "a fixed share per region" | "shares that lend" | "one Redis far away";
const POLICIES: readonly Policy[] = ["a fixed share per region", "shares that lend", "one Redis far away"];

/** New names per second. Both regions sleep at night; their nights are eight hours apart. */
function demandOf(region: number, second: number, load: number): number {
  const hour = (second / 3600 + region * 8) % 24;
  const shape = Math.max(0.05, Math.sin(((hour - 6) / 16) * Math.PI));
  return (load * BUDGET * shape) / WINDOW_S / 1.25;
}

interface Day {
  readonly use: number;
  readonly refused: number;
  readonly largestWindow: number;
}

function play(policy: Policy, load: number): Day {
  /** Each slot belongs to the region `home`, can be used by the region `at`, and is free from the second `freeAt`. */
  const slots = Array.from({ length: BUDGET }, (_, id) => ({ home: id % 2, at: id % 2, freeAt: 0 }));
  const owed = [0, 0];
  const calls: number[] = [];
  let refused = 0;
  let asked = 0;
  let usable = 0;
  for (let second = 0; second < DAY_S; second += 1) {
    const isCut = second >= DAY_S / 2 && second < DAY_S / 2 + CUT_OFF_S;
    let made = 0;
    let wanted = 0;
    for (const region of [0, 1]) {
      const demand = demandOf(region, second, load);
      owed[region] = (owed[region] ?? 0) + demand;
      asked += demand;
      wanted += demand;
      while ((owed[region] ?? 0) >= 1) {
        const shared = policy === "one Redis far away" && !isCut;
        const free = slots.find(
          ({ home, at, freeAt }) =>
            freeAt <= second && (shared || (policy === "shares that lend" ? at : home) === region),
        );
        owed[region] = (owed[region] ?? 0) - 1;
        if (free === undefined) {
          refused += 1;
          // Takes back its own slot or borrows one that is free elsewhere. Both take a message in each direction.
          const lent = slots.find(({ at, freeAt }) => at !== region && freeAt <= second);
          if (policy === "shares that lend" && !isCut && lent !== undefined) {
            lent.at = region;
            lent.freeAt = second + 2 * MESSAGE_S;
          }
          continue;
        }
        free.freeAt = second + WINDOW_S + 1;
        made += 1;
      }
    }
    calls.push(made);
    usable += Math.min(wanted, BUDGET / WINDOW_S);
  }
  let current = 0;
  let largestWindow = 0;
  for (const [second, made] of calls.entries()) {
    current += made - (calls[second - WINDOW_S] ?? 0);
    largestWindow = Math.max(largestWindow, current);
  }
  const total = calls.reduce((sum, made) => sum + made, 0);
  return { use: total / usable, refused: refused / asked, largestWindow };
}

export async function benchRegions(): Promise<void> {
  console.log(
    `\nTwo regions with one budget of ${BUDGET} a minute: a day whose busy hours are eight hours apart, with one hour without a connection between the regions`,
  );
  console.log(
    table(
      ["policy", ...DEMANDS.map((load) => `use, refused at ${load}`), "largest window"],
      POLICIES.map((policy) => {
        const days = DEMANDS.map((load) => play(policy, load));
        return [
          policy,
          ...days.map(({ use, refused }) => `${use.toFixed(2)} ${refused.toFixed(2)}`),
          `${Math.max(...days.map(({ largestWindow }) => largestWindow))} of ${BUDGET}`,
        ];
      }),
    ),
  );
  console.log(
    "use: share of the calls that a single region with the same visitors could make; load: new names at the busiest time, as a multiple of the budget",
  );
}
