/**
 * The quota under saturation, with real timers, a real ledger file and real kills. Calls are counted strictly when they arrive.
 * A safe policy can't know at which point during a call it was counted, so a slot rests for one window after the end of the call. So no safe
 * policy can use more than window / (window + mean latency), and the tables also compare the use with that bound.
 */
import { fork } from "node:child_process";
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import { createQuota } from "../../src/quota/scheduler/scheduler.js";
import { openFileLedger } from "../../src/quota/ledger/file.js";
import type { Quota } from "../../src/quota/quota.js";
import { ask, BUDGET, HEADROOM, type Jitter, JITTERS, LIMIT, Receiver, WINDOW_MS } from "./receiver.js";

const WINDOWS = 10;
const KILLS = 20;
const CALLERS = 2 * BUDGET;
const CHILD = "quota-bench-child";

function onFault(what: string, error: unknown): void {
  console.error(what, error);
}

/** The service's quota with a ledger file in `directory`. All slots are free at the start. */
export async function openQuota(directory: string): Promise<Quota> {
  const ledger = await openFileLedger({
    directory,
    fingerprint: "bench",
    limit: LIMIT,
    headroom: HEADROOM,
    windowMs: WINDOW_MS,
    coldStart: "assume-free",
    clock: systemClock,
    onFault,
  });
  return createQuota({ ledger, clock: systemClock, onFault });
}

/** Keeps more callers waiting than there are slots, until `stop` aborts. */
async function saturate(quota: Quota, port: number, stop: AbortSignal): Promise<void> {
  setMaxListeners(CALLERS, stop);
  const caller = async (_: unknown, index: number): Promise<void> => {
    while (!stop.aborted) {
      const request = {
        lane: "exact",
        client: `caller ${index}`,
        queryKey: "",
        maxWaitMs: 8000,
        signal: stop,
      } as const;
      try {
        await quota.run(request, ({ answered }) => ask(port, answered));
      } catch (error) {
        if (error instanceof ServiceError) await sleep(error.retryAfterMs ?? 1);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

interface Row {
  readonly [column: string]: string | number;
}

/**
 * The use excludes the first half window, because the initial burst would count one window's budget twice. Calls come in bursts, so a burst
 * at either end can change the figure of a short run by a few hundredths, even beyond the bound.
 */
function row(name: string, receiver: Receiver, startedAt: number, endedAt: number): Row {
  const use = receiver.use(startedAt + WINDOW_MS / 2, endedAt);
  const bound = WINDOW_MS / (WINDOW_MS + receiver.latencySumMs / Math.max(1, receiver.arrivals.length));
  return {
    "latency and jitter": name,
    "largest window / budget": `${receiver.largest} / ${BUDGET}`,
    "429s": receiver.refused,
    "calls per window / budget": use.toFixed(3),
    "bound of any safe policy": bound.toFixed(3),
    "use / bound": (use / bound).toFixed(3),
  };
}

async function withoutKills(jitter: Jitter): Promise<Row> {
  const directory = mkdtempSync(join(tmpdir(), "bench-quota-"));
  const receiver = new Receiver(jitter);
  const port = await receiver.listen();
  const quota = await openQuota(directory);
  const stop = new AbortController();
  const started = performance.now();
  const work = saturate(quota, port, stop.signal);
  await sleep((WINDOWS + 0.5) * WINDOW_MS);
  const figures = row(jitter.name, receiver, started, performance.now());
  stop.abort();
  await work;
  await quota.close();
  receiver.close();
  rmSync(directory, { recursive: true });
  return figures;
}

/** Kills a saturated child process without warning at random times, one window apart on average, and restarts it immediately. */
async function withKills(jitter: Jitter): Promise<Row> {
  const directory = mkdtempSync(join(tmpdir(), "bench-quota-"));
  const receiver = new Receiver(jitter);
  const port = await receiver.listen();
  const started = performance.now();
  for (let life = 0; life <= KILLS; life += 1) {
    const child = fork(fileURLToPath(import.meta.url), [CHILD, directory, String(port)]);
    const ended = new Promise((done) => child.once("exit", done));
    await sleep(WINDOW_MS * (0.5 + Math.random()));
    child.kill("SIGKILL");
    await ended;
  }
  const figures = row(jitter.name, receiver, started, performance.now());
  receiver.close();
  rmSync(directory, { recursive: true });
  return figures;
}

/** Prints how the budget is kept and used, without and with kills. */
export async function benchQuota(): Promise<void> {
  console.log(
    `quota: limit ${LIMIT}, headroom ${HEADROOM}, window ${WINDOW_MS} ms, ${CALLERS} callers that call again immediately`,
  );
  console.log(
    "no safe policy can use more than window / (window + mean latency), because it can't know when a call was counted",
  );
  const calm: Row[] = [];
  for (const jitter of JITTERS) calm.push(await withoutKills(jitter));
  console.log(`saturated for ${WINDOWS} windows`);
  console.table(calm);
  const killed: Row[] = [];
  for (const jitter of JITTERS) killed.push(await withKills(jitter));
  console.log(`saturated, with ${KILLS} kill -9, one per window on average; the time includes restarts`);
  console.table(killed);
}

if (process.argv[2] === CHILD) {
  const [, , , directory, port] = process.argv;
  if (directory === undefined || port === undefined) throw new Error("a directory and a port are required");
  // Waiting alone doesn't keep a process alive. In the service, the server does.
  setInterval(() => {}, WINDOW_MS);
  await saturate(await openQuota(directory), Number(port), new AbortController().signal);
}
