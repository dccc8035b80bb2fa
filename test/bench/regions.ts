/**
 * `npm run bench -- regions`: one budget and two regions whose busy hours differ, on paper: a fixed share each, shares that lend what they do
 * not use, and one Redis far away. New names only; a day in steps of a second, and one hour in which the regions can't reach each other.
 */
import { table } from "./table.js";

const BUDGET = 57;
const WINDOW_S = 60;
const DAY_S = 24 * 3600;
const CUT_OFF_S = 3600;
/** How long a region learns of what the other lends or wants back. */
const MESSAGE_S = 1;
const DEMANDS = [0.8, 1.2, 2];

/** Who may use how many calls in which region at each second of the day. */
type Policy = "a fixed share each" | "shares that lend" | "one Redis far away";
const POLICIES: readonly Policy[] = ["a fixed share each", "shares that lend", "one Redis far away"];

/** New names a second: both regions sleep at night, the second one eight hours later. */
function demandOf(region: number, second: number, load: number): number {
  const hour = (second / 3600 + region * 8) % 24;
  const shape = Math.max(0.05, Math.sin(((hour - 6) / 16) * Math.PI));
  return (load * BUDGET * shape) / WINDOW_S / 1.25;
}

interface Day {
  readonly use: number;
  readonly refused: number;
  readonly worstWindow: number;
}

function play(policy: Policy, load: number): Day {
  /** The seconds from which each slot is free, by the region that may use it; a slot on its way belongs to nobody. */
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
          // It wants a slot of its own back, or one that rests elsewhere: both take a message there, and the rest of a window.
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
  let inWindow = 0;
  let worstWindow = 0;
  for (const [second, made] of calls.entries()) {
    inWindow += made - (calls[second - WINDOW_S] ?? 0);
    worstWindow = Math.max(worstWindow, inWindow);
  }
  const total = calls.reduce((sum, made) => sum + made, 0);
  return { use: total / usable, refused: refused / asked, worstWindow };
}

/** Prints the table. */
export async function benchRegions(): Promise<void> {
  console.log(
    `\ntwo regions on one budget of ${BUDGET} a minute: a day with busy hours eight hours apart, one of its hours without the line between them`,
  );
  console.log(
    table(
      ["policy", ...DEMANDS.map((load) => `use, refused at ${load}`), "worst window"],
      POLICIES.map((policy) => {
        const days = DEMANDS.map((load) => play(policy, load));
        return [
          policy,
          ...days.map(({ use, refused }) => `${use.toFixed(2)} ${refused.toFixed(2)}`),
          `${Math.max(...days.map(({ worstWindow }) => worstWindow))} of ${BUDGET}`,
        ];
      }),
    ),
  );
  console.log(
    "use: of the calls that one region with the same visitors could make; load: at the busiest moment of both together, of the budget",
  );
}
