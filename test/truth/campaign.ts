/** Plays many histories, with one process per core, and collects the results. */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { z } from "zod";
import { parseHistory } from "./history.js";
import type { Totals } from "./worker.js";

export interface Campaign {
  readonly seed: number;
  readonly histories: number;
  /** A history to play instead of those generated from the seeds. */
  readonly history?: string | undefined;
  /** Plays each history twice and compares the traces. */
  readonly twice?: boolean;
  readonly trace?: boolean;
  readonly onFailure?: (failure: FailureReport) => void;
  /** Called from time to time with the number of histories played since the last call. */
  readonly onProgress?: (played: number) => void;
}

export interface Report {
  readonly totals: Totals;
  readonly failures: readonly FailureReport[];
  readonly trace: readonly string[];
}

const failureShape = z.object({
  seed: z.int(),
  kind: z.string(),
  history: z.unknown().transform((steps) => parseHistory(JSON.stringify(steps))),
  violations: z.array(z.object({ kind: z.string(), atMs: z.number(), what: z.string() })),
});
export type FailureReport = z.infer<typeof failureShape>;
const totalsShape = z.object({
  histories: z.int(),
  failed: z.int(),
  calls: z.int(),
  repeated: z.int(),
  kinds: z.record(z.string(), z.int()),
  differing: z.array(z.int()),
}) satisfies z.ZodType<Totals>;
const messageShape = z.union([
  z.object({ failure: failureShape }),
  z.object({ totals: totalsShape }),
  z.object({ trace: z.array(z.string()) }),
  z.object({ played: z.int() }),
]);

/** Next to `src`, so that the service finds its pages and its configuration. */
const BUNDLE = "dist-bench/truth-worker.js";

let bundled: Promise<unknown> | undefined;

/** Runs once for all campaigns of this process. */
function bundle(): Promise<unknown> {
  bundled ??= build({
    entryPoints: ["test/truth/worker.ts"],
    outfile: BUNDLE,
    bundle: true,
    format: "esm",
    platform: "node",
    logLevel: "error",
    // CommonJS packages call it.
    banner: {
      js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
    },
  });
  return bundled;
}

export async function runCampaign(campaign: Campaign): Promise<Report> {
  await bundle();
  const workers = Math.min(availableParallelism(), campaign.histories);
  const parts = await Promise.all(Array.from({ length: workers }, (_, at) => runPart(campaign, at, workers)));
  const kinds: Record<string, number> = {};
  for (const { totals } of parts)
    for (const [kind, count] of Object.entries(totals.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count;
  const sum = (of: (totals: Totals) => number): number =>
    parts.reduce((all, part) => all + of(part.totals), 0);
  return {
    totals: {
      histories: sum(({ histories }) => histories),
      failed: sum(({ failed }) => failed),
      calls: sum(({ calls }) => calls),
      repeated: sum(({ repeated }) => repeated),
      kinds,
      differing: parts.flatMap(({ totals }) => totals.differing),
    },
    failures: parts.flatMap(({ failures }) => failures),
    trace: parts.flatMap(({ trace }) => trace),
  };
}

/** Plays every `workers`-th history, starting at `at`. */
async function runPart(campaign: Campaign, at: number, workers: number): Promise<Report> {
  const { seed, histories, history, twice = false, trace: traced = false } = campaign;
  const count = Math.floor((histories - at + workers - 1) / workers);
  const args = [
    `--first=${seed + at}`,
    `--count=${count}`,
    `--every=${workers}`,
    ...(history === undefined ? [] : [`--history=${history}`]),
    ...(twice ? ["--twice"] : []),
    ...(traced ? ["--trace"] : []),
  ];
  const child = spawn(process.execPath, [BUNDLE, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const failures: FailureReport[] = [];
  const trace: string[] = [];
  let totals: Totals | null = null;
  for await (const text of createInterface({ input: child.stdout })) {
    const message = messageShape.parse(JSON.parse(text));
    if ("totals" in message) totals = message.totals;
    else if ("trace" in message) trace.push(...message.trace);
    else if ("played" in message) campaign.onProgress?.(message.played);
    else {
      failures.push(message.failure);
      campaign.onFailure?.(message.failure);
    }
  }
  if (totals === null) throw new Error("a process that plays histories exited early");
  return { totals, failures, trace };
}

/** Describes a failure, with the command that replays it. */
export function describeFailure({ seed, kind, history, violations }: FailureReport): string {
  const steps = JSON.stringify(history);
  const found = violations.map(({ atMs, what }) => `    at ${atMs} ms: ${what}`);
  return [kind, ...found, `  npm run bench -- truth --seed ${seed} --history '${steps}'`].join("\n");
}
