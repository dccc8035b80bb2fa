/** `npm run bench -- floods`: what one hostile client costs another one, compared with bare `node:http` that sends the same bytes. */
import { execFile } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Attack } from "./attack.js";
import { HIT, startPeer, startService } from "./candidates.js";
import { coresInWords, pinned } from "./cores.js";
import { selected } from "./rounds.js";
import { type HttpRequest, type Server, temporaryFolder } from "./server.js";
import { figure, median, table } from "./table.js";

const FLOOD_SECONDS = 8;
/** Longer than slow clients are tolerated. */
const SLOW_FLOOD_SECONDS = 25;
const BEFORE_MS = 1_500;
const AFTER_MS = 4_000;
/** How long Node needs to parse the first packets of a hundred sockets: about 3 s here. */
const FIRST_WAVE_MS = 4_000;
const RECOVERY_MS = 2_000;
const PROBE_EVERY_MS = 20;
const SAMPLE_EVERY_MS = 50;
const LIMIT = "120";
const EVENTS = { Accept: "text/event-stream" };

const PIPELINED = { kind: "pipelined", sockets: 100, requests: 20_000 } as const;

interface Flood {
  readonly name: string;
  readonly attack: Attack;
  /** The attack's sockets, for comparison with the number of descriptors. */
  readonly sockets: number;
  readonly seconds: number;
}

function pipelined(name: string, path: string): Flood {
  return { name, attack: { ...PIPELINED, path }, sockets: PIPELINED.sockets, seconds: FLOOD_SECONDS };
}

function slow(name: string, attack: Attack & { readonly sockets: number }): Flood {
  return { name, attack, sockets: attack.sockets, seconds: SLOW_FLOOD_SECONDS };
}

const FLOODS: readonly Flood[] = [
  pipelined("a page's asset", "/docs/assets/swagger-ui-bundle.js"),
  pipelined("the OpenAPI document", "/openapi.json"),
  pipelined("prices", "/v1/prices"),
  pipelined("a known name", HIT.path),
  pipelined("a refused name", "/v1/availability?domain=-.af"),
  pipelined("/livez", "/livez"),
  {
    name: "200 connections a second",
    attack: { kind: "connections", path: "/v1/prices", perSecond: 200 },
    sockets: 200 * FLOOD_SECONDS,
    seconds: FLOOD_SECONDS,
  },
  slow("1,500 slow headers", { kind: "slow headers", sockets: 1500 }),
  slow("1,500 slow bodies", { kind: "slow bodies", sockets: 1500 }),
  slow("500 slow stream readers", { kind: "slow readers", sockets: 500 }),
];

interface Probe {
  readonly startedAtMs: number;
  readonly tookMs: number;
}

interface FloodFigures {
  /** The longest time without an answer for another client, ms. */
  readonly silentMs: number;
  readonly silentLaterMs: number;
  readonly usualMs: number;
  readonly afterwardsMs: number;
  readonly rssMb: number;
  readonly descriptors: number;
}

/** `only` selects floods by words in their names. Times are medians of the rounds; memory and descriptors are maxima. */
export async function benchFloods({
  only = "",
  rounds = 3,
}: { readonly only?: string; readonly rounds?: number } = {}): Promise<void> {
  const rows: string[][] = [];
  for (const flood of selected(FLOODS, only)) {
    const servers: [string, () => Promise<Server>][] = [
      ["bare node:http", () => bareWithBytesOf(flood.attack)],
      [`limit ${LIMIT}`, () => startService({ env: { CLIENT_RATE_PER_MINUTE: LIMIT } })],
      // A limit makes no difference to slow clients.
      ...(flood.seconds === FLOOD_SECONDS
        ? [["no limit", () => startService()] as [string, () => Promise<Server>]]
        : []),
    ];
    const figures = servers.map((): FloodFigures[] => []);
    for (let round = 0; round < rounds; round += 1)
      for (const [index, [, start]] of servers.entries()) figures[index]?.push(await measure(flood, start));
    const typical = figures.map(typicalOf);
    for (const [index, one] of typical.entries()) {
      const row = [
        flood.name,
        servers[index]?.[0] ?? "",
        figure(one.silentMs),
        figure(one.silentMs / (typical[0]?.silentMs ?? NaN)),
        figure(one.silentLaterMs),
        figure(one.usualMs),
        figure(one.afterwardsMs),
        figure(one.rssMb),
        `${one.descriptors} / ${flood.sockets + 100}`,
      ];
      rows.push(row);
      console.log(row.join(" · "));
    }
  }
  console.log(
    `\nOne hostile client, and another one that asks for /livez and a known name; Node ${process.version}; ${coresInWords()}`,
  );
  console.log(
    table(
      [
        "flood",
        "server",
        "longest silence, ms",
        "× bare",
        `after ${FIRST_WAVE_MS / 1000} s`,
        "before",
        `${RECOVERY_MS / 1000} s after the end`,
        "most RSS, MB",
        "descriptors",
      ],
      rows,
    ),
  );
}

function typicalOf(rounds: readonly FloodFigures[]): FloodFigures {
  const middle = (of: (one: FloodFigures) => number): number => median(rounds.map(of));
  return {
    silentMs: middle(({ silentMs }) => silentMs),
    silentLaterMs: middle(({ silentLaterMs }) => silentLaterMs),
    usualMs: middle(({ usualMs }) => usualMs),
    afterwardsMs: middle(({ afterwardsMs }) => afterwardsMs),
    rssMb: Math.max(...rounds.map(({ rssMb }) => rssMb)),
    descriptors: Math.max(...rounds.map(({ descriptors }) => descriptors)),
  };
}

async function measure({ attack, seconds }: Flood, start: () => Promise<Server>): Promise<FloodFigures> {
  const server = await start();
  await server.firstAnswer(HIT, 200);
  const probes: Probe[] = [];
  let rssMb = 0;
  let descriptors = 0;
  const stop = new AbortController();
  const sampler = setInterval(() => {
    rssMb = Math.max(rssMb, server.usage().rssMb);
    descriptors = Math.max(descriptors, readdirSync(`/proc/${server.pid}/fd`).length);
  }, SAMPLE_EVERY_MS);
  const probing = ["/livez", HIT.path].map((path) => probe(server.port, path, probes, stop.signal));
  await sleep(BEFORE_MS);
  const floodAtMs = performance.now();
  await run(server.port, attack, seconds);
  const endAtMs = performance.now();
  await sleep(AFTER_MS);
  stop.abort();
  await Promise.all(probing);
  clearInterval(sampler);
  await server.stop();
  const longest = (from: number, to = Infinity): number =>
    Math.max(
      0,
      ...probes
        .filter(({ startedAtMs }) => startedAtMs >= from && startedAtMs < to)
        .map(({ tookMs }) => tookMs),
    );
  return {
    silentMs: longest(floodAtMs),
    silentLaterMs: longest(floodAtMs + FIRST_WAVE_MS, endAtMs + RECOVERY_MS),
    usualMs: median(probes.filter(({ startedAtMs }) => startedAtMs < floodAtMs).map(({ tookMs }) => tookMs)),
    afterwardsMs: longest(endAtMs + RECOVERY_MS),
    rssMb,
    descriptors,
  };
}

/** A server that answers every request with the bytes of the service's answer to the flood, and keeps connections open as the service does. */
async function bareWithBytesOf(attack: Attack): Promise<Server> {
  const service = await startService();
  await service.firstAnswer(HIT, 200);
  const { headers, body } = await service.ask(requestOf(attack));
  await service.stop();
  const { connection: _, ...kept } = headers;
  const file = join(temporaryFolder(), "bytes.json");
  writeFileSync(file, JSON.stringify({ headers: kept, body: body.toString("latin1") }));
  return startPeer("bytes.mjs", { env: { BYTES: file } });
}

function requestOf(attack: Attack): HttpRequest {
  if (attack.kind === "slow readers") return { path: "/v1/search?q=slow-0", headers: EVENTS };
  return { path: "path" in attack ? attack.path : "/livez" };
}

async function run(port: number, attack: Attack, seconds: number): Promise<void> {
  const job = JSON.stringify({ port, seconds, attack });
  const command = pinned("load", [process.execPath, "dist-bench/test/bench/flood-client.js", job]);
  const [program = "", ...args] = command;
  await promisify(execFile)(program, args);
}

/** Sends one request after another, each over a new connection and from a different address, so that no limit applies. */
async function probe(port: number, path: string, probes: Probe[], stop: AbortSignal): Promise<void> {
  for (let asked = 0; !stop.aborted; asked += 1) {
    const startedAtMs = performance.now();
    const localAddress = `127.1.${Math.floor(asked / 250) % 250}.${1 + (asked % 250)}`;
    await new Promise<void>((done, failed) => {
      httpRequest({ port, host: "127.0.0.1", localAddress, path, agent: false }, (response) => {
        response.resume().once("end", done);
      })
        .once("error", failed)
        .end();
    });
    probes.push({ startedAtMs, tookMs: performance.now() - startedAtMs });
    await sleep(PROBE_EVERY_MS);
  }
}
