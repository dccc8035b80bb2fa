/**
 * `npm run bench -- waits`: the waits given to visitors, whether they are true, and what they cost, at several multiples of the budget; on a
 * simulated clock, and through the whole service over HTTP in scaled time.
 */
import { hash } from "node:crypto";
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { WINDOW_MS } from "../quota/support/asks.js";
import { largestWindow } from "../quota/support/rolling.js";
import {
  counted,
  IMPATIENT_EVERY_MS,
  IMPATIENT_FOR_MS,
  meanWaitMs,
  type Person,
  RAMP_WINDOWS,
  randomPerson,
  servedWithin,
  TAIL_MS,
  useOfSafeBound,
  waits,
  type WaitsSettings,
} from "../quota/support/waits.js";
import { upstreamAt } from "../support/upstream.js";
import { startService } from "./candidates.js";
import { selected } from "./rounds.js";
import type { HttpRequest } from "./server.js";
import { figure, table } from "./table.js";

const LIMIT = 60;
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

function within(people: readonly Person[]): string {
  return [60_000, 120_000, 300_000].map((ms) => share(servedWithin(people, ms))).join(" ");
}

/** The table's columns for these people. Carts must be served within `cartsMs`. */
function figures(people: readonly Person[], cartsMs: number): string[] {
  const retryTimesMs = people.flatMap((one) => one.retryTimesMs).sort((a, b) => a - b);
  const quantile = (part: number): string =>
    String((retryTimesMs[Math.floor((retryTimesMs.length - 1) * part)] ?? 0) / 1000);
  const of = (behaviour: string): Person[] =>
    people.filter((one) => one.behaviour === behaviour && one.lane === "exact");
  const carts = people.filter(({ lane }) => lane === "checkout");
  const others = people.filter(({ behindOneAddress }) => !behindOneAddress);
  return [
    retryTimesMs.length === 0 ? "–" : `${quantile(0.5)} ${quantile(0.99)} ${quantile(1)}`,
    within(of("obedient")),
    within(of("impatient")),
    [of("obedient"), of("impatient")].map((group) => figure(meanWaitMs(group, TAIL_MS) / 1000)).join(" "),
    share(servedWithin(carts, cartsMs)),
    others.length === people.length ? "–" : share(servedWithin(others, cartsMs)),
  ];
}

async function simulate({ name, ...row }: Row): Promise<string[]> {
  const seen = await waits({ budget: BUDGET, windows: WINDOWS, seed: 1, ...row });
  const { idleCalls, reservations } = seen.figures;
  const used = row.load + (row.carts ?? 0) + (row.behindOneAddress ?? 0) + (row.bots ?? 0);
  return [
    name,
    ...figures(counted(seen, WINDOWS), PATIENCE_MS),
    `${seen.reservations.served} of ${seen.reservations.claimed}`,
    String(reservations.unclaimed),
    used < 1 ? "–" : share(useOfSafeBound(seen, BUDGET, WINDOWS)),
    share(idleCalls / Math.max(1, seen.arrivals.length)),
    `${largestWindow(seen.arrivals, WINDOW_MS)} of ${BUDGET}`,
  ];
}

/** A scaled second. Retry-After has whole real seconds, so this is long enough that each of them is only a few scaled seconds. */
const SECOND_MS = 200;
const MINUTE_MS = 60 * SECOND_MS;

/** A crowd over HTTP, as multiples of the budget. A window stands for a minute. */
interface Crowd {
  readonly name: string;
  /** First requests: from different addresses, from one address, and carts. */
  readonly load: number;
  readonly behindOneAddress?: number;
  readonly carts?: number;
}

/** Groups of crowds. The crowds of a group run at the same time, the groups one after another. */
const CROWDS: readonly (readonly Crowd[])[] = [
  [0.5, 1, 2].map((load) => ({ name: `${load} and carts at a third`, load, carts: CARTS })),
  [
    { name: "5 and carts at a third", load: 5, carts: CARTS },
    { name: "behind one address at 2, alone", load: 0, behindOneAddress: 2 },
    { name: "behind one address at 5, others at 0.5", load: 0.5, behindOneAddress: 5 },
  ],
  [{ name: "20 and carts at a third", load: 20, carts: CARTS }],
];
const MINUTES = 15;
/** Scaled time divided by real time. */
const SCALE = 60_000 / MINUTE_MS;
const MEAN_CALL_MS = 0.2 * SECOND_MS;
const PATIENCE_MS = 8000;
const STAFF_TOKEN = "the-bench-reads-the-overview";

const OVERVIEW = z.object({
  quota: z.object({
    waits: z.object({ idleCalls: z.number(), reservations: z.object({ unclaimed: z.number() }) }),
  }),
});
const PROBLEM = z.object({ code: z.string(), kept: z.boolean().optional() });

async function overHttp({ name, load, behindOneAddress = 0, carts = 0 }: Crowd): Promise<string[]> {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: MINUTE_MS },
    // Before and after the call.
    latency: { jitterMs: MEAN_CALL_MS },
  });
  const service = await startService({
    env: {
      ...upstreamAt(sandbox),
      UPSTREAM_RATE_WINDOW_MS: String(MINUTE_MS),
      QUOTA_MAX_WAIT_MS: String(8 * SECOND_MS),
      QUOTA_COLD_START: "assume-free",
      // Twenty a minute, in scaled minutes.
      CLIENT_COLD_PER_MINUTE: String(20 * SCALE),
      TRUST_PROXY_HOPS: "1",
      STAFF_TOKENS: `bench:${hash("sha256", STAFF_TOKEN)}:read`,
    },
  });
  const people: Person[] = [];
  const kept = { came: 0, served: 0 };
  /** For carts, every answer other than a price; for everybody else, those other than a result or a refusal by the quota. */
  const failures: Record<string, number> = {};
  const fail = (what: string): void => {
    failures[what] = (failures[what] ?? 0) + 1;
  };
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  const passes = (ms: number): Promise<boolean> =>
    sleep(ms, true, { signal: over.signal }).catch(() => false);
  const beganAt = performance.now();
  const now = (): number => performance.now() - beganAt;
  let made = 0;

  async function visit(person: Person, request: HttpRequest): Promise<void> {
    people.push(person);
    for (let wasKept = false; ;) {
      const answer = await service.ask(request).catch(() => null);
      if (over.signal.aborted) return;
      if (wasKept) kept.came += 1;
      if (answer?.status === 200) {
        person.servedAt = now();
        if (wasKept) kept.served += 1;
        return;
      }
      const problem = answer && PROBLEM.parse(JSON.parse(answer.body.toString()));
      const code = problem?.code ?? "none";
      if (person.lane === "checkout") fail(`cart: ${code}`);
      else if (code !== "quota_exhausted") fail(code);
      const retryAfterMs = Number(answer?.headers["retry-after"] ?? NaN) * 1000;
      if (Number.isNaN(retryAfterMs)) return;
      if (code === "quota_exhausted") person.retryTimesMs.push(retryAfterMs);
      const isImpatient =
        person.behaviour === "impatient" && (now() - person.arrivedAt) * SCALE < IMPATIENT_FOR_MS;
      if (person.behaviour !== "obedient" && !isImpatient) return;
      wasKept = person.behaviour === "obedient" && problem?.kept === true;
      if (!(await passes(isImpatient ? IMPATIENT_EVERY_MS / SCALE : retryAfterMs))) return;
    }
  }

  async function arrive(budgets: number, come: () => Promise<void>): Promise<void> {
    const all: Promise<void>[] = [];
    if (budgets === 0) return;
    while (await passes((-Math.log(1 - Math.random()) * MINUTE_MS) / (budgets * BUDGET))) all.push(come());
    await Promise.all(all);
  }

  const newName = (): string => `waits-${(made += 1)}.af`;
  const from = (address: string) => ({ "X-Forwarded-For": address });
  const newAddress = () => from(`10.${made >> 16}.${(made >> 8) & 255}.${made & 255}`);
  const person = (more: Partial<Person> = {}): Person => ({
    ...randomPerson(Math.random(), now()),
    ...more,
  });
  try {
    // As in a service that has been running for a while.
    const prices = async (): Promise<string | undefined> =>
      (await service.firstAnswer({ path: "/v1/prices" }, 200)).headers["cache-control"];
    while ((await prices()) === "no-store") await sleep(50);
    const played = Promise.all([
      arrive(load, () => {
        const path = `/v1/availability?domain=${newName()}`;
        return visit(person(), { path, headers: newAddress() });
      }),
      arrive(behindOneAddress, () => {
        const path = `/v1/availability?domain=${newName()}`;
        return visit(person({ behindOneAddress: true }), { path, headers: from("192.0.2.1") });
      }),
      arrive(carts, () => {
        const items = [{ domain: newName(), action: "registration", years: 1 }];
        return visit(person({ lane: "checkout", behaviour: "gone" }), {
          path: "/v1/quotes",
          headers: newAddress(),
          body: { items },
        });
      }),
    ]);
    const { key } = sandbox.credential();
    const used = () => sandbox.stats().credentials.find((one) => one.key === key);
    await sleep(RAMP_WINDOWS * MINUTE_MS);
    const before = used()?.accepted ?? 0;
    const steadyFrom = now();
    await sleep(MINUTES * MINUTE_MS);
    const after = used();
    const steadyMs = now() - steadyFrom;
    const overview = await service.ask({
      path: "/v1/staff/overview",
      headers: { ...from("10.255.0.1"), Authorization: `Bearer ${STAFF_TOKEN}` },
    });
    over.abort();
    await played;
    const { idleCalls, reservations } = OVERVIEW.parse(JSON.parse(overview.body.toString())).quota.waits;
    const endedAt = steadyFrom + steadyMs;
    const seen = people.filter(
      ({ arrivedAt }) => arrivedAt > steadyFrom && arrivedAt < endedAt - TAIL_MS / SCALE,
    );
    // In scaled time.
    const scaled = seen.map((one) => ({
      ...one,
      arrivedAt: one.arrivedAt * SCALE,
      servedAt: one.servedAt === null ? null : one.servedAt * SCALE,
      retryTimesMs: one.retryTimesMs.map((ms) => ms * SCALE),
    }));
    const calls = (after?.accepted ?? 0) - before;
    const bound = (steadyMs * BUDGET) / (MINUTE_MS + MEAN_CALL_MS);
    return [
      name,
      ...figures(scaled, 1.5 * PATIENCE_MS),
      `${kept.served} of ${kept.came}`,
      String(reservations.unclaimed),
      load + behindOneAddress + carts < 1 ? "–" : share(calls / bound),
      share(idleCalls / Math.max(1, after?.accepted ?? 0)),
      `${after?.largestWindow ?? 0} of ${BUDGET}`,
      String(after?.rejected429 ?? 0),
      Object.entries(failures)
        .map(([what, times]) => `${times} × ${what}`)
        .join(", "),
    ];
  } finally {
    await service.stop();
    await sandbox.close();
  }
}

/** Prints both tables; `only` selects rows by words in their names. */
export async function benchWaits({ only = "" }: { readonly only?: string } = {}): Promise<void> {
  console.log(
    `\nWaits on a simulated clock: a budget of ${BUDGET} a minute for ${WINDOWS} minutes; half of the visitors honour Retry-After, three tenths retry every 5 s for two minutes, and a fifth never return`,
  );
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
  const rows: string[][] = [];
  const wanted = new Set<object>(selected([...ROWS, ...CROWDS.flat()], only));
  for (const row of ROWS.filter((one) => wanted.has(one))) rows.push(await simulate(row));
  console.log(table(columns, rows));
  console.log(
    "safe bound: window / (window + mean latency); mean wait: 200 s for those who weren't served; idle calls: calls that were due but weren't made, divided by all calls; others: everyone except those behind the one address",
  );
  console.log(
    `\nThe same through the service over HTTP, for ${MINUTES} minutes: a minute is scaled to ${MINUTE_MS} ms, and Retry-After has whole real seconds`,
  );
  const played: string[][] = [];
  for (const group of CROWDS)
    played.push(...(await Promise.all(group.filter((one) => wanted.has(one)).map(overHttp))));
  console.log(table([...columns, "rejections", "other answers"], played));
}
