/** Plays many histories, one process for each core, and gathers what they found. */
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
  /** Instead of those that the seeds make. */
  readonly history?: string | undefined;
  /** Plays each twice and compares. */
  readonly twice?: boolean;
  readonly trace?: boolean;
  readonly onFailure?: (failure: Printed) => void;
  /** Called now and then with how many more have been played. */
  readonly onProgress?: (played: number) => void;
}

export interface Report {
  readonly totals: Totals;
  readonly failures: readonly Printed[];
  readonly trace: readonly string[];
}

const failureShape = z.object({
  seed: z.int(),
  kind: z.string(),
  history: z.unknown().transform((steps) => parseHistory(JSON.stringify(steps))),
  violations: z.array(z.object({ kind: z.string(), atMs: z.number(), what: z.string() })),
});
export type Printed = z.infer<typeof failureShape>;
const totalsShape = z.object({
  histories: z.int(),
  failed: z.int(),
  calls: z.int(),
  again: z.int(),
  kinds: z.record(z.string(), z.int()),
  differing: z.array(z.int()),
}) satisfies z.ZodType<Totals>;
const line = z.union([
  z.object({ failure: failureShape }),
  z.object({ totals: totalsShape }),
  z.object({ trace: z.array(z.string()) }),
  z.object({ played: z.int() }),
]);

/** Beside `src`, so that the service finds its pages and its configuration. */
const BUNDLE = "dist-bench/truth-worker.js";

let bundled: Promise<unknown> | undefined;

/** Once for all campaigns of this process. */
function bundle(): Promise<unknown> {
  bundled ??= build({
    entryPoints: ["test/truth/worker.ts"],
    outfile: BUNDLE,
    bundle: true,
    format: "esm",
    platform: "node",
    logLevel: "error",
    // Packages of the older kind call it.
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
      again: sum(({ again }) => again),
      kinds,
      differing: parts.flatMap(({ totals }) => totals.differing),
    },
    failures: parts.flatMap(({ failures }) => failures),
    trace: parts.flatMap(({ trace }) => trace),
  };
}

/** Every `workers`-th history, from `at` on. */
async function runPart(campaign: Campaign, at: number, workers: number): Promise<Report> {
  const { seed, histories, history, twice = false, trace: traced = false } = campaign;
  const count = Math.floor((histories - at + workers - 1) / workers);
  const given = [
    `--first=${seed + at}`,
    `--count=${count}`,
    `--every=${workers}`,
    ...(history === undefined ? [] : [`--history=${history}`]),
    ...(twice ? ["--twice"] : []),
    ...(traced ? ["--trace"] : []),
  ];
  const child = spawn(process.execPath, [BUNDLE, ...given], { stdio: ["ignore", "pipe", "inherit"] });
  const failures: Printed[] = [];
  const trace: string[] = [];
  let totals: Totals | null = null;
  for await (const text of createInterface({ input: child.stdout })) {
    const told = line.parse(JSON.parse(text));
    if ("totals" in told) totals = told.totals;
    else if ("trace" in told) trace.push(...told.trace);
    else if ("played" in told) campaign.onProgress?.(told.played);
    else {
      failures.push(told.failure);
      campaign.onFailure?.(told.failure);
    }
  }
  if (totals === null) throw new Error("a process that plays histories ended before its time");
  return { totals, failures, trace };
}

/** What to do with a failure: read it, and play it again. */
export function described({ seed, kind, history, violations }: Printed): string {
  const steps = JSON.stringify(history);
  const found = violations.map(({ atMs, what }) => `    at ${atMs} ms: ${what}`);
  return [kind, ...found, `  npm run bench -- truth --seed ${seed} --history '${steps}'`].join("\n");
}
