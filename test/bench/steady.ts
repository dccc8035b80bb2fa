/** A steady load far below what the servers can do: what a visitor waits for an answer from memory, also while the quota is spent. */
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { HIT, startPeer, startService } from "./candidates.js";
import { pinned } from "./cores.js";
import { load } from "./load.js";
import { interleaved } from "./rounds.js";
import type { Server } from "./server.js";
import { figure, median, table } from "./table.js";

const PER_SECOND = 500;
const WARM_UP_SECONDS = 2;
const COLD_EVERY_MS = 100;
const RENEW_EVERY_MS = 1000;
/** In which the cold names and the renewals spend what the quota still has. */
const SPEND_MS = 2000;

const OPEN_LOOP = fileURLToPath(new URL("open-loop.js", import.meta.url));
const run = promisify(execFile);

const reportSchema = z.object({
  /** Questions without an answer. */
  lost: z.number(),
  /** Answers that were not 200. */
  others: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** How late the sender itself was. */
  lateP99Ms: z.number(),
});
type Report = Readonly<z.infer<typeof reportSchema>>;

export async function benchSteady(rounds: number, seconds: number): Promise<void> {
  const token = randomBytes(24).toString("base64url");
  const sha256 = createHash("sha256").update(token).digest("hex");
  const pressed = await startService({ STAFF_TOKENS: `bench:${sha256}:operate` });
  const pressure = new Pressure(pressed, token);
  const entries = [
    { name: "bare node:http", server: await startPeer("bare.mjs"), pressure: null },
    { name: "service: availability, hit", server: await startService(), pressure: null },
    { name: "the same, quota spent, prices renewed every second", server: pressed, pressure },
  ].map((entry) => ({ ...entry, reports: [] as Report[] }));
  for (const { server } of entries) {
    await server.firstAnswer(HIT, 200);
    await load(server.port, HIT, WARM_UP_SECONDS);
  }
  for (const { server, pressure, reports } of interleaved(rounds, entries)) {
    const stop = await pressure?.begin();
    reports.push(await ask(server, seconds));
    stop?.();
  }
  for (const { server } of entries) await server.stop();

  const rows = entries.map(({ name, reports }) => {
    const of = (what: keyof Report): number => median(reports.map((report) => report[what]));
    return { name, of };
  });
  const [bare] = rows;
  const beside = (what: keyof Report, value: number): string => figure(value / (bare?.of(what) ?? NaN));
  console.log(
    `\n${PER_SECOND} requests a second, each counted from the moment at which it was due: ${rounds} rounds of ${seconds} s, medians`,
  );
  console.log(
    table(
      ["server", "p50 ms", "p99 ms", "p50 × bare", "p99 × bare", "sender late, p99 ms"],
      rows.map(({ name, of }) => [
        name,
        figure(of("p50Ms")),
        figure(of("p99Ms")),
        beside("p50Ms", of("p50Ms")),
        beside("p99Ms", of("p99Ms")),
        figure(of("lateP99Ms")),
      ]),
    ),
  );
  console.log("where the sender itself was late by milliseconds, the machine was too busy to tell");
  console.log(
    `quota spent: a cold name every ${COLD_EVERY_MS} ms; ${pressure.refused} of ${pressure.settled} were refused`,
  );
}

async function ask(server: Server, seconds: number): Promise<Report> {
  const job = JSON.stringify({ port: server.port, path: HIT.path, perSecond: PER_SECOND, seconds });
  const [program = "", ...args] = pinned("load", [process.execPath, OPEN_LOOP, job]);
  const report = reportSchema.parse(JSON.parse((await run(program, args)).stdout));
  const { lost, others } = report;
  if (lost > 0 || others > 0) throw new Error(`${lost} answers did not come, ${others} were not 200`);
  return report;
}

/** More cold names than the quota has calls for, and staff who have the prices renewed again and again. */
class Pressure {
  settled = 0;
  refused = 0;
  #asked = 0;
  readonly #server: Server;
  readonly #token: string;

  constructor(server: Server, token: string) {
    this.#server = server;
    this.#token = token;
  }

  /** Resolves when the quota is spent; what it resolves with ends the pressure. */
  async begin(): Promise<() => void> {
    const timers = [
      setInterval(() => void this.#askCold(), COLD_EVERY_MS),
      setInterval(() => void this.#renewPrices(), RENEW_EVERY_MS),
    ];
    await sleep(SPEND_MS);
    return () => {
      for (const timer of timers) clearInterval(timer);
    };
  }

  async #askCold(): Promise<void> {
    this.#asked += 1;
    // Those that still wait at the end are cut off.
    const answer = await this.#server
      .ask({ path: `/v1/availability?domain=cold-${this.#asked}.af` })
      .catch(() => null);
    if (answer === null) return;
    this.settled += 1;
    if (answer.status === 503) this.refused += 1;
  }

  async #renewPrices(): Promise<void> {
    const answer = await this.#server.ask({
      path: "/v1/staff/cache/purge",
      headers: { Authorization: `Bearer ${this.#token}` },
      body: { what: "prices" },
    });
    if (answer.status !== 200) throw new Error(`the purge was answered with ${answer.status}`);
  }
}
