/** A hostile client of a service in a process of its own: it costs bounded memory and descriptors, and others are answered in the meantime. */
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { connect, type Socket } from "node:net";
import { get } from "../support/raw.js";
import { asker, type ServiceProcess, spawnService, temporaryFolder, until } from "../support/service.js";

const MAX_RSS_MB = 600;
const SPARE_DESCRIPTORS = 100;
const SOCKETS = 30;
/** More than a connection serves. Node reads a whole packet of them at once, and V8 collects what they leave only later. */
const REQUESTS = 150;
const STOP_SOON = { SHUTDOWN_GRACE_MS: "300" };

/** Memory and descriptors are read from /proc. */
const onLinux = existsSync("/proc/self/fd") ? describe : describe.skip;

const folder = temporaryFolder();
const sockets = new Set<Socket>();
let service: ServiceProcess | null = null;

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await service?.stop();
});
afterAll(() => {
  folder.remove();
});

async function start(
  env: Readonly<Record<string, string>> = {},
): Promise<{ port: number; started: ServiceProcess }> {
  const started = spawnService({ STATE_DIR: folder.path, ...env });
  service = started;
  return { port: await started.listening, started };
}

/** Clients have different addresses, so that they don't share a limit. */
function open(port: number, localAddress = "127.0.0.2"): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  sockets.add(socket);
  return socket;
}

/** The most that the process uses while `during` runs. */
async function peakUse(child: ServiceProcess["child"], during: () => Promise<void>) {
  let rssMb = 0;
  let descriptors = 0;
  const sample = (): void => {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    rssMb = Math.max(rssMb, Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
    descriptors = Math.max(descriptors, readdirSync(`/proc/${child.pid}/fd`).length);
  };
  const timer = setInterval(sample, 20);
  await during();
  sample();
  clearInterval(timer);
  return { rssMb, descriptors };
}

const ROUTES = [
  "/docs/assets/swagger-ui-bundle.js",
  "/openapi.json",
  "/v1/prices",
  "/v1/availability?domain=google.af",
  "/v1/availability?domain=-.af",
  "/livez",
];

onLinux("a client that never reads", () => {
  test("costs bounded memory and descriptors", async () => {
    const { port, started } = await start({ CLIENT_RATE_PER_MINUTE: "1000000000", ...STOP_SOON });
    expect((await started.ask("/v1/availability?domain=google.af")).status).toBe(200);
    const others = new Agent({ keepAlive: false });
    const ask = asker(port, others);
    const peak = await peakUse(started.child, async () => {
      for (const path of ROUTES) {
        for (let count = 0; count < SOCKETS / ROUTES.length; count += 1)
          open(port).pause().write(get(path).repeat(REQUESTS));
      }
      await until(() =>
        [...sockets].every(({ bytesWritten, connecting }) => !connecting && bytesWritten > 0),
      );
      for (let count = 0; count < 20; count += 1) {
        expect((await ask("/livez")).status).toBe(200);
        expect((await ask("/v1/availability?domain=google.af")).status).toBe(200);
      }
    });
    expect(peak.rssMb).toBeLessThan(MAX_RSS_MB);
    expect(peak.descriptors).toBeLessThan(SOCKETS + SPARE_DESCRIPTORS);
  });

  test("doesn't keep the service from stopping", async () => {
    const { port, started } = await start({ CLIENT_RATE_PER_MINUTE: "1000000000", ...STOP_SOON });
    for (let count = 0; count < 5; count += 1)
      open(port).pause().write(get("/openapi.json").repeat(REQUESTS));
    await until(() => started.stdout.filter((line) => line.includes("/openapi.json")).length >= 5);
    expect(await started.stop()).toBe(0);
  });
});

onLinux("a burst of connections", () => {
  test("waits while the service is busy, a thousand or as many as the system allows, and is then served", async () => {
    const { port, started } = await start();
    const clients = Math.min(1_000, Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")));
    let connected = 0;
    let served = 0;
    started.child.kill("SIGSTOP");
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
    await until(() => connected === clients, "every connection").finally(() => started.child.kill("SIGCONT"));
    await until(() => served === clients, "every answer");
  });
});

onLinux("a log that nobody reads", () => {
  test("costs bounded memory, and says how many lines are missing", async () => {
    const { port, started } = await start({ CLIENT_RATE_PER_MINUTE: "1000000000" });
    const { stdout } = started.child;
    stdout?.pause();
    const peak = await peakUse(started.child, async () => {
      const requests = get("/livez", { "X-Request-Id": "x".repeat(64) }).repeat(99);
      const last = get("/livez", { "X-Request-Id": "x".repeat(64), Connection: "close" });
      for (let connections = 0; connections < 300; connections += 1) {
        const socket = open(port).resume();
        socket.write(requests + last);
        await new Promise((closed) => socket.once("close", closed));
        sockets.delete(socket);
      }
    });
    expect(peak.rssMb).toBeLessThan(MAX_RSS_MB);
    stdout?.resume();
    await until(
      () => started.stdout.some((line) => line.includes('"log.dropped"')),
      "the line about dropped lines",
    );
    const dropped = (): number =>
      started.stdout
        .map((line) => Number(/"event":"log\.dropped","lines":(\d+)/.exec(line)?.[1] ?? 0))
        .reduce((sum, lines) => sum + lines, 0);
    const kept = (): number => started.stdout.filter((line) => line.includes('"http.request"')).length;
    await until(() => kept() + dropped() >= 30_000, "every line, kept or counted");
    expect(kept()).toBeLessThan(30_000);
  });
});

onLinux("slow clients", () => {
  test("don't keep others from getting an answer", async () => {
    const { port, started } = await start();
    const peak = await peakUse(started.child, async () => {
      for (let count = 0; count < 150; count += 1) {
        open(port).write("GET /livez HTTP/1.1\r\nHost: a\r\nX-");
        open(port).write(
          "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 30000\r\n\r\n{",
        );
        open(port, `127.0.1.${1 + (count % 20)}`)
          .pause()
          .write(get(`/v1/search?q=slow-${count}`, { Accept: "text/event-stream" }));
      }
      await until(() => [...sockets].every(({ bytesWritten }) => bytesWritten > 0));
      for (let count = 0; count < 20; count += 1) {
        const answer = await started.ask("/livez");
        expect(answer.status).toBe(200);
      }
    });
    expect(peak.rssMb).toBeLessThan(MAX_RSS_MB);
    expect(peak.descriptors).toBeLessThan(sockets.size + SPARE_DESCRIPTORS);
  });
});
