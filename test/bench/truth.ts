/** `npm run bench -- truth`: plays many random histories and prints what the oracle finds, or replays one history and prints all its events. */
import { describeFailure, runCampaign } from "../truth/campaign.js";
import { figure, table } from "./table.js";

const HISTORIES = 100_000;
const PROGRESS_EVERY = 5_000;

export interface TruthOptions {
  readonly histories?: number;
  readonly seed?: number;
  /** A history as JSON, as failures print it. */
  readonly history?: string;
}

export async function benchTruth({ seed = 1, history, ...options }: TruthOptions): Promise<void> {
  const histories = history === undefined ? (options.histories ?? HISTORIES) : 1;
  console.log(`Truth over time: ${histories} histories, starting with seed ${seed}.\n`);
  const startedMs = performance.now();
  let played = 0;
  const { totals, trace } = await runCampaign({
    seed,
    histories,
    history,
    trace: history !== undefined,
    onFailure: (failure) => {
      console.log(`${describeFailure(failure)}\n`);
    },
    onProgress: (more) => {
      played += more;
      if (played % PROGRESS_EVERY === 0)
        console.log(`${played} played, ${Math.round((performance.now() - startedMs) / 1000)} s`);
    },
  });
  for (const line of trace) console.log(line);
  const seconds = (performance.now() - startedMs) / 1000;
  const share = (part: number, whole: number): string => `${figure((100 * part) / Math.max(1, whole))} %`;
  console.log(
    table(
      ["", "histories", "share"],
      [
        ["played", String(totals.histories), ""],
        ["with a violation", String(totals.failed), share(totals.failed, totals.histories)],
        ...Object.entries(totals.kinds).map(([kind, count]) => [
          kind,
          String(count),
          share(count, totals.histories),
        ]),
      ],
    ),
  );
  console.log(
    `\n${totals.calls} calls, of which ${totals.repeated} (${share(totals.repeated, totals.calls)}) were made to settle doubts: ` +
      `they asked for what was known and fresh. ${figure(seconds)} s, ${figure((1000 * seconds) / totals.histories)} ms per history.`,
  );
  if (totals.failed > 0) process.exitCode = 1;
}
