/** `npm run bench -- waits`: the waits given to visitors, whether they are true, and what they cost, at several multiples of the budget, on a simulated clock. */
import { WINDOW_MS } from "../quota/support/asks.js";
import { largestWindow } from "../quota/support/rolling.js";
import {
  counted,
  meanWaitMs,
  servedWithin,
  TAIL_MS,
  useOfSafeBound,
  waits,
  type WaitsSettings,
} from "../quota/support/waits.js";
import { figure, type Options, selected, table } from "./table.js";

const BUDGET = 57;
const WINDOWS = 25;
const LOADS = [0.5, 1, 2, 5, 20];
const CARTS = 1 / 3;

interface Row extends Omit<WaitsSettings, "budget" | "windows" | "seed"> {
  readonly name: string;
}

const ROWS: readonly Row[] = [
  ...LOADS.map((load) => ({ name: `${load} times the budget`, load })),
  ...LOADS.map((load) => ({ name: `${load} and carts at a third`, load, carts: CARTS })),
  { name: "1, carts at a third, 20 bots", load: 1, carts: CARTS, bots: 20 },
  { name: "behind one address at 2, alone", load: 0, behindOneAddress: 2 },
  { name: "behind one address at 5, others at 0.5", load: 0.5, behindOneAddress: 5 },
];

const share = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(3));

async function simulate({ name, ...row }: Row): Promise<string[]> {
  const seen = await waits({ budget: BUDGET, windows: WINDOWS, seed: 1, ...row });
  const { idleCalls, reservations } = seen.figures;
  const people = counted(seen, WINDOWS);
  const retryTimesMs = people.flatMap((one) => one.retryTimesMs).sort((a, b) => a - b);
  const quantile = (part: number): string =>
    String((retryTimesMs[Math.floor((retryTimesMs.length - 1) * part)] ?? 0) / 1000);
  const groups = ["obedient", "impatient"].map((behaviour) =>
    people.filter((one) => one.behaviour === behaviour && one.lane === "exact"),
  );
  const carts = people.filter(({ lane }) => lane === "checkout");
  const others = people.filter(({ behindOneAddress }) => !behindOneAddress);
  const used = row.load + (row.carts ?? 0) + (row.behindOneAddress ?? 0) + (row.bots ?? 0);
  return [
    name,
    retryTimesMs.length === 0 ? "–" : `${quantile(0.5)} ${quantile(0.99)} ${quantile(1)}`,
    ...groups.map((group) =>
      [60_000, 120_000, 300_000].map((ms) => share(servedWithin(group, ms))).join(" "),
    ),
    groups.map((group) => figure(meanWaitMs(group, TAIL_MS) / 1000)).join(" "),
    share(servedWithin(carts, 8000)),
    others.length === people.length ? "–" : share(servedWithin(others, 8000)),
    `${seen.reservations.served} of ${seen.reservations.claimed}`,
    String(reservations.unclaimed),
    used < 1 ? "–" : share(useOfSafeBound(seen, BUDGET, WINDOWS)),
    share(idleCalls / Math.max(1, seen.arrivals.length)),
    `${largestWindow(seen.arrivals, WINDOW_MS)} of ${BUDGET}`,
  ];
}

/** `only` selects rows by words in their names. */
export async function benchWaits({ only = "" }: Options): Promise<void> {
  console.log(
    `\nWaits on a simulated clock: a budget of ${BUDGET} a minute for ${WINDOWS} minutes; half of the visitors honour Retry-After, three tenths retry every 5 s for two minutes, and a fifth never return`,
  );
  const rows: string[][] = [];
  for (const row of selected(ROWS, only)) rows.push(await simulate(row));
  const columns = [
    "visitors",
    "Retry-After p50 p99 max s",
    "obedient served in 1 2 5 min",
    "impatient served in 1 2 5 min",
    "mean wait s, both",
    "carts in time",
    "others in time",
    "reservations honoured",
    "unclaimed",
    "use / safe bound",
    "idle calls",
    "largest window",
  ];
  console.log(table(columns, rows));
  console.log(
    "safe bound: window / (window + mean latency); mean wait: 200 s for those who weren't served; idle calls: calls that were due but weren't made, divided by all calls; others: everyone except those behind the one address",
  );
}
