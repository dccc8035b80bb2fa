/** What hostile clients, and a log without a reader, cost a service in a process of its own is bounded, and others are answered in the meantime. */
import { afterEach, describe, expect, test } from "@jest/globals";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { processes } from "../support/processes.js";
import { get } from "../support/raw.js";
import { asker, until } from "../support/service.js";
import { type ServiceProcess } from "../support/service-process.js";

const LOGGER = new URL("../../dist/logger.js", import.meta.url).href;
const MAX_RSS_MB = 600;
const SPARE_DESCRIPTORS = 100;
/** More than a connection serves. Node reads a whole packet of them at once, and V8 collects what they leave only later. */
const REQUESTS = 150;
const BURST = 600;

/** Memory and descriptors are read from /proc. */
const onLinux = existsSync("/proc/self/fd") ? describe : describe.skip;

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

/** Clients have different addresses, so that they don't share a limit. */
function open(port: number, localAddress = "127.0.0.2"): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  sockets.add(socket);
  return socket;
}

function rssMbOf({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** Expects that the process uses a bounded amount of memory and descriptors while `during` runs. */
async function expectBoundedUse({ child }: ServiceProcess, during: () => Promise<void>): Promise<void> {
  let [rssMb, descriptors] = [0, 0];
  const sample = (): void => {
    rssMb = Math.max(rssMb, rssMbOf(child));
    descriptors = Math.max(descriptors, readdirSync(`/proc/${child.pid}/fd`).length);
  };
  const timer = setInterval(sample, 20);
  try {
    await during();
    sample();
  } finally {
    clearInterval(timer);
  }
  expect(rssMb).toBeLessThan(MAX_RSS_MB);
  expect(descriptors).toBeLessThan(sockets.size + SPARE_DESCRIPTORS);
}

/** Three times what is longest: its answers alone would be too much if they were kept. */
const ROUTES = [
  ...Array.from({ length: 3 }, () => "/docs/assets/swagger-ui-bundle.js"),
  "/openapi.json",
  "/v1/prices",
  "/v1/availability?domain=google.af",
  "/v1/availability?domain=-.af",
  "/livez",
];

onLinux("a hostile client", () => {
  const here = processes();

  test("that opens many connections while the service is busy, never reads, or sends and reads slowly, costs bounded memory and descriptors, and keeps neither others from an answer nor the service from stopping", async () => {
    const service = here.start({
      CLIENT_RATE_PER_MINUTE: "1000000000",
      SHUTDOWN_GRACE_MS: "300",
      LOG_LEVEL: "error",
    });
    const port = await service.listening;
    // More than Node's default backlog, and as many as the system allows: they wait, and are then served.
    const clients = Math.min(BURST, Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")));
    let [connected, served] = [0, 0];
    service.child.kill("SIGSTOP");
    for (let client = 0; client < clients; client += 1) {
      const socket = open(port, "127.0.0.1").setEncoding("latin1");
      socket.once("data", (text: string) => {
        if (text.startsWith("HTTP/1.1 200 ")) served += 1;
      });
      socket.once("connect", () => {
        connected += 1;
        socket.write(get("/livez"));
      });
    }
    // A dropped connection would be retried, but in vain while the process is stopped.
    await until(() => connected === clients, "every connection").finally(() => service.child.kill("SIGCONT"));
    await until(() => served === clients, "every answer");

    const ask = asker(port, new Agent({ keepAlive: false }));
    expect((await ask("/v1/availability?domain=google.af")).status).toBe(200);
    await expectBoundedUse(service, async () => {
      for (const path of ROUTES) open(port).pause().write(get(path).repeat(REQUESTS));
      for (let count = 0; count < 30; count += 1) {
        open(port).write("GET /livez HTTP/1.1\r\nHost: a\r\nX-");
        open(port).write(
          "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 30000\r\n\r\n{",
        );
        open(port, `127.0.1.${1 + (count % 4)}`)
          .pause()
          .write(get(`/v1/search?q=slow-${count}`, { Accept: "text/event-stream" }));
      }
      await until(() =>
        [...sockets].every(({ bytesWritten, connecting }) => !connecting && bytesWritten > 0),
      );
      for (let count = 0; count < 5; count += 1)
        for (const path of ["/livez", "/v1/availability?domain=google.af"])
          expect((await ask(path)).status).toBe(200);
    });
    expect(await service.stop()).toBe(0);
    // At this level the log has only what somebody waits for.
    const events = service.stdout.map((line) => /"event":"([^"]+)"/.exec(line)?.[1]);
    expect(events).toEqual(["staff.token.created", "server.listening"]);
  });
});

onLinux("a log that nobody reads", () => {
  const LINES = 40_000;
  /** More than the buffer keeps. */
  const script = `
    import { createLog } from ${JSON.stringify(LOGGER)};
    const log = createLog("info");
    for (let n = 0; n < ${LINES}; n += 1) {
      log.info("line", { text: "${"x".repeat(200)}" });
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    process.stderr.write("logged");
  `;

  test("costs bounded memory, and says how many lines are missing", async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
    child.stdout.pause();
    await once(child.stderr, "data");
    expect(rssMbOf(child)).toBeLessThan(MAX_RSS_MB);
    const lines = (await text(child.stdout)).trim().split("\n");
    const kept = lines.filter((line) => line.includes('"event":"line"')).length;
    const dropped = lines
      .map((line) => Number(/"event":"log\.dropped","lines":(\d+)/.exec(line)?.[1] ?? 0))
      .reduce((sum, missing) => sum + missing, 0);
    expect([kept < LINES, kept + dropped]).toEqual([true, LINES]);
  });
});
