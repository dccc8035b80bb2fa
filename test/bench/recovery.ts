/**
 * `npm run bench -- recovery`: how much of the budget four replicas use in the minutes after a fault, when visitors ask for twice as much. Redis is
 * real and the clock is simulated, so the window is the upstream's own and the machine's noise has no effect.
 */
import {
  BUDGET,
  FAULTS,
  LOAD,
  recovery,
  type RecoveryResult,
  REPLICAS,
  WINDOWS_AFTER,
} from "../quota/support/recovery.js";
import { median, table } from "./table.js";

const SEEDS = 5;

export async function benchRecovery(): Promise<void> {
  console.log(
    `\n${REPLICAS} replicas with a budget of ${BUDGET}, and visitors who ask for ${LOAD} times as much: share of the budget used during a fault and in each minute after it (lowest and median of ${SEEDS} runs)`,
  );
  const rows: string[][] = [];
  for (const [name, fault] of Object.entries(FAULTS)) {
    const seen: RecoveryResult[] = [];
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
  console.log(table(["fault", "during", ...after, "largest window"], rows));
}
