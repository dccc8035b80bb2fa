/** A burst of connections: none is dropped, and the requests of clients that don't stay are logged like all others. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { z } from "zod";
import { CLOSE, get } from "../support/raw.js";
import { spawnService, type ServiceProcess, temporaryFolder, until } from "../support/service.js";

const CLIENTS = 300;
const requestLine = z.object({ event: z.literal("http.request"), requestId: z.string(), status: z.int() });
const folder = temporaryFolder();
let service: ServiceProcess;
beforeAll(() => {
  service = spawnService({ STATE_DIR: folder.path, CLIENT_RATE_PER_MINUTE: "100000" });
});
afterAll(async () => {
  await service.stop();
  folder.remove();
});

/** Connects this many clients while the service is stopped. Each gets its number. */
async function connectAll(
  count: number,
  onConnected: (socket: Socket, client: number) => void,
): Promise<void> {
  const port = await service.listening;
  let connected = 0;
  service.child.kill("SIGSTOP");
  for (let client = 0; client < count; client += 1) {
    const socket = connect({ port, host: "127.0.0.1" }, () => {
      connected += 1;
      onConnected(socket, client);
    });
    socket.on("error", () => undefined);
  }
  // A dropped connection would be retried, but in vain while the process is stopped.
  await until(() => connected === count, "the establishment of every connection").finally(() =>
    service.child.kill("SIGCONT"),
  );
}

test("a thousand connections, or as many as the system allows, wait while the service is busy, and are then served", async () => {
  const clients = Math.min(1_000, Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")));
  let served = 0;
  let closed = 0;
  await connectAll(clients, (socket) => {
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
    });
    socket.once("close", () => {
      closed += 1;
      if (answer.startsWith("HTTP/1.1 200 ")) served += 1;
    });
    socket.write(get("/livez", CLOSE));
  });
  await until(() => closed === clients, "the end of every connection");
  expect(served).toBe(clients);
});

test("requests of clients that leave before they are served are each logged once", async () => {
  await connectAll(CLIENTS, (socket, client) => {
    // Half-closed immediately, so the service sees that nobody waits for the answer.
    socket.end(get("/v1/staff/tier", { "X-Request-Id": `client-${client}` }));
  });
  const logged = () =>
    service.stdout
      .filter((line) => line.includes('"http.request"') && line.includes('"requestId":"client-'))
      .map((line) => requestLine.parse(JSON.parse(line)));
  await until(() => logged().length >= CLIENTS, "the log line of every request");
  await service.stop();
  const ids = logged().map(({ requestId }) => requestId);
  expect(ids.toSorted()).toEqual(
    Array.from({ length: CLIENTS }, (_, client) => `client-${client}`).toSorted(),
  );
  // The first ones may be answered before their client's end of the connection is read.
  expect(logged().filter(({ status }) => status === 499).length).toBeGreaterThan(0.9 * CLIENTS);
});
