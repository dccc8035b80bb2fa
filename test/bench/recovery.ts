/**
 * `npm run bench -- recovery`: how much of the budget four replicas use in the minutes after a fault, asked for twice as much; over a real Redis
 * on a simulated clock, so with the upstream's own window and without the machine's noise.
 */
import {
  BUDGET,
  FAULTS,
  LOAD,
  recovery,
  type RecoverySeen,
  REPLICAS,
  WINDOWS_AFTER,
} from "../quota/support/recovery.js";
import { median, table } from "./table.js";

const SEEDS = 5;

/** Prints the table. */
export async function benchRecovery(): Promise<void> {
  console.log(
    `\n${REPLICAS} replicas, a budget of ${BUDGET}, visitors for ${LOAD} times as much: its use during a fault and in each minute after it (least, median of ${SEEDS})`,
  );
  const rows: string[][] = [];
  for (const [name, fault] of Object.entries(FAULTS)) {
    const seen: RecoverySeen[] = [];
    for (let seed = 1; seed <= SEEDS; seed += 1) seen.push(await recovery(fault, seed));
    const columns = Array.from({ length: 1 + WINDOWS_AFTER }, (_, column) =>
      seen.map(({ use }) => use[column] ?? NaN),
    );
    rows.push([
      name,
      ...columns.map((uses) => `${Math.min(...uses).toFixed(2)} ${median(uses).toFixed(2)}`),
      String(Math.max(...seen.map(({ largest }) => largest))),
    ]);
  }
  const after = Array.from({ length: WINDOWS_AFTER }, (_, index) => `minute ${index + 1}`);
  console.log(table(["fault", "during", ...after, "worst window"], rows));
}
