/**
 * `npm run bench -- waits`: what people who wait are told, whether it holds, and what it costs; on a clock of its own at several multiples
 * of the budget, and through the whole service over HTTP in scaled time.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../src/sandbox/sandbox.js";
import { WINDOW_MS } from "../quota/support/asks.js";
import { largestWindow } from "../quota/support/rolling.js";
import {
  counted,
  meanWaitMs,
  type Person,
  servedWithin,
  useOfSafeBound,
  waits,
  type WaitsSettings,
} from "../quota/support/waits.js";
import { BUDGET, isKept, LIMIT, MINUTE_MS, type Question, SECOND_MS, Service } from "./bots.js";
import { figure, table } from "./table.js";

const WINDOWS = 25;
const LOADS = [0.5, 1, 2, 5, 20];
const CARTS = 1 / 3;

interface Row extends Omit<WaitsSettings, "budget" | "windows" | "seed"> {
  readonly name: string;
}

const ROWS: readonly Row[] = [
  ...LOADS.map((load) => ({ name: `${load} of the budget`, load })),
  ...LOADS.map((load) => ({ name: `${load} and carts at a third`, load, carts: CARTS })),
  { name: "1, carts at a third, 20 bots", load: 1, carts: CARTS, bots: 20 },
  { name: "behind one address at 2, alone", load: 0, behindOneAddress: 2 },
  { name: "behind one address at 5, others at 0.5", load: 0.5, behindOneAddress: 5 },
];

const share = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(3));

function within(people: readonly Person[]): string {
  return [60_000, 120_000, 300_000].map((ms) => share(servedWithin(people, ms))).join(" ");
}

async function simulate({ name, ...row }: Row): Promise<string[]> {
  const seen = await waits({ budget: BUDGET, windows: WINDOWS, seed: 1, ...row });
  const people = counted(seen, WINDOWS);
  const told = people.flatMap(({ toldMs }) => toldMs).sort((a, b) => a - b);
  const quantile = (part: number): string => String((told[Math.floor((told.length - 1) * part)] ?? 0) / 1000);
  const of = (manner: string): Person[] =>
    people.filter((one) => one.manner === manner && one.lane === "exact");
  const carts = people.filter(({ lane }) => lane === "checkout");
  const others = people.filter(({ behindOneAddress }) => !behindOneAddress);
  const { idleCalls, reservations } = seen.snapshot.waits;
  const used = row.load + (row.carts ?? 0) + (row.behindOneAddress ?? 0) + (row.bots ?? 0);
  return [
    name,
    `${quantile(0.5)} ${quantile(0.99)} ${quantile(1)}`,
    `${seen.kept.served} of ${seen.kept.came}`,
    String(reservations.unclaimed),
    within(of("obedient")),
    within(of("impatient")),
    [of("obedient"), of("impatient")].map((group) => figure(meanWaitMs(group, 200_000) / 1000)).join(" "),
    carts.length === 0 ? "–" : share(servedWithin(carts, 8000)),
    row.behindOneAddress === undefined || row.load === 0 ? "–" : share(servedWithin(others, 8000)),
    used < 1 ? "–" : share(useOfSafeBound(seen, BUDGET, WINDOWS)),
    share(idleCalls / Math.max(1, seen.arrivals.length)),
    `${largestWindow(seen.arrivals, WINDOW_MS)} of ${BUDGET}`,
  ];
}

/** A crowd over HTTP; a minute stands for a window. */
interface Crowd {
  readonly name: string;
  /** First asks in a minute: from addresses of their own, from one address, and carts. */
  readonly visitors: number;
  readonly behindOneAddress: number;
  readonly carts: number;
}

const CROWDS: readonly Crowd[] = [
  { name: "5 and carts at a third", visitors: 5 * BUDGET, behindOneAddress: 0, carts: CARTS * BUDGET },
  { name: "behind one address at 2, alone", visitors: 0, behindOneAddress: 2 * BUDGET, carts: 0 },
  {
    name: "behind one address at 5, others at 0.5",
    visitors: BUDGET / 2,
    behindOneAddress: 5 * BUDGET,
    carts: 0,
  },
];
const MINUTES = 20;
const RAMP_MINUTES = 2;
const IMPATIENT_TRIES = 24;

class Visits {
  toldMs: number[] = [];
  came = 0;
  honoured = 0;
  limited = 0;
  readonly served = { visitors: 0, address: 0, carts: 0 };
  readonly asked = { visitors: 0, address: 0, carts: 0 };
}

type Group = keyof Visits["asked"];

async function overHttp(crowd: Crowd): Promise<string[]> {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: MINUTE_MS },
    latency: { jitterMs: 0.2 * SECOND_MS },
  });
  // Twenty a minute, in scaled minutes.
  const cold = String((20 * 60_000) / MINUTE_MS);
  const service = new Service(sandbox, { CLIENT_COLD_PER_MINUTE: cold });
  const visits = new Visits();
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  const passes = (ms: number): Promise<boolean> =>
    sleep(ms, true, { signal: over.signal }).catch(() => false);
  let made = 0;

  /** Half come back when told, three tenths try every five seconds, a fifth never return. */
  async function visit(group: Group, question: Question): Promise<void> {
    const manner = Math.random();
    visits.asked[group] += 1;
    let reserved = false;
    for (let tries = 0; tries <= IMPATIENT_TRIES; tries += 1) {
      const { status, retryAfterMs, text } = await service.ask(question);
      if (over.signal.aborted) return;
      if (reserved) visits.came += 1;
      if (status === 200) {
        if (reserved) visits.honoured += 1;
        if (tries === 0) visits.served[group] += 1;
        return;
      }
      if (retryAfterMs === null) return;
      if (status === 429) visits.limited += 1;
      else visits.toldMs.push(retryAfterMs);
      if (group === "carts" || manner > 0.8) return;
      const obeys = manner < 0.5;
      reserved = obeys && status === 503 && isKept(text);
      if (!(await passes(obeys ? retryAfterMs : 5 * SECOND_MS))) return;
    }
  }

  async function arrive(perMinute: number, come: () => Promise<void>): Promise<void> {
    const all: Promise<void>[] = [];
    if (perMinute === 0) return;
    while (await passes((-Math.log(1 - Math.random()) * MINUTE_MS) / perMinute)) all.push(come());
    await Promise.all(all);
  }

  const name = (): string => `waits-${(made += 1)}.af`;
  const address = (): string => `10.${made >> 16}.${(made >> 8) & 255}.${made & 255}`;
  try {
    await service.warm();
    const played = Promise.all([
      arrive(crowd.visitors, () => {
        const path = `/v1/availability?domain=${name()}`;
        return visit("visitors", { from: address(), path });
      }),
      arrive(crowd.behindOneAddress, () =>
        visit("address", { from: "192.0.2.1", path: `/v1/availability?domain=${name()}` }),
      ),
      arrive(crowd.carts, () => {
        const items = [{ domain: name(), action: "registration", years: 1 }];
        return visit("carts", { from: address(), path: "/v1/quotes", body: JSON.stringify({ items }) });
      }),
    ]);
    const { key } = sandbox.credential();
    const used = () => sandbox.stats().credentials.find((one) => one.key === key);
    await sleep(RAMP_MINUTES * MINUTE_MS);
    const before = used()?.accepted ?? 0;
    await sleep(MINUTES * MINUTE_MS);
    const after = used();
    over.abort();
    await played;
    const told = visits.toldMs.sort((a, b) => a - b);
    const quantile = (part: number): number => (told[Math.floor((told.length - 1) * part)] ?? 0) / 1000;
    const first = (group: Group): string =>
      visits.asked[group] === 0 ? "–" : share(visits.served[group] / visits.asked[group]);
    return [
      crowd.name,
      `${quantile(0.5)} ${quantile(0.99)} ${quantile(1)} of ${MINUTE_MS / 1000}`,
      `${visits.honoured} of ${visits.came}`,
      String(visits.limited),
      first("visitors"),
      first("address"),
      first("carts"),
      share(((after?.accepted ?? 0) - before) / (MINUTES * BUDGET)),
      `${after?.largestWindow ?? 0} of ${BUDGET}`,
      String(after?.rejected429 ?? 0),
    ];
  } finally {
    await service.close();
    await sandbox.close();
  }
}

/** Prints both tables. */
export async function benchWaits(): Promise<void> {
  console.log(
    `\nwaits, on a clock of their own: a budget of ${BUDGET} a minute for ${WINDOWS} minutes; half of the visitors come back when told, three tenths try every 5 s for two minutes, a fifth never return`,
  );
  const rows: string[][] = [];
  for (const row of ROWS) rows.push(await simulate(row));
  console.log(
    table(
      [
        "visitors",
        "told p50 p99 max s",
        "kept and honoured",
        "unclaimed",
        "obedient in 1 2 5 min",
        "impatient in 1 2 5 min",
        "mean s, both",
        "carts in 8 s",
        "others in 8 s",
        "use / safe bound",
        "idle while waited",
        "worst window",
      ],
      rows,
    ),
  );
  console.log(
    "safe bound: window / (window + mean latency); mean s: one who was not served counts 200 s; idle while waited: of all calls",
  );
  console.log(
    `\nthe same through the service over HTTP: a minute is ${MINUTE_MS} ms, told in whole real seconds; ${MINUTES} minutes; the rows ran side by side`,
  );
  console.log(
    table(
      [
        "visitors",
        "told p50 p99 max s",
        "kept and honoured",
        "429",
        "visitors at once",
        "address at once",
        "carts at once",
        "use",
        "worst window",
        "rejections",
      ],
      await Promise.all(CROWDS.map(overHttp)),
    ),
  );
}
