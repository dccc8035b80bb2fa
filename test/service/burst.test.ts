/** A burst of connections: none is dropped, and the requests of clients that don't stay are logged like all others. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { get } from "../support/raw.js";
import { spawnService, type ServiceProcess, temporaryFolder, until } from "../support/service.js";

const CLIENTS = 300;
const folder = temporaryFolder();
let service: ServiceProcess;
beforeAll(() => {
  service = spawnService({ STATE_DIR: folder.path, CLIENT_RATE_PER_MINUTE: "100000" });
});
afterAll(async () => {
  await service.stop();
  folder.remove();
});

test("requests of clients that leave before they are served are each logged once", async () => {
  const port = await service.listening;
  const logged = (): number => service.stdout.filter((line) => line.includes('"http.request"')).length;
  const before = logged();
  for (let n = 0; n < CLIENTS; n += 1) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    // Half-closed immediately, so the service sees that nobody waits for the answer.
    socket.end(get("/v1/staff/tier"));
  }
  await until(() => logged() - before >= CLIENTS, "the log line of every request");
  expect(logged() - before).toBe(CLIENTS);
});

test("a thousand simultaneous connections are accepted even while the service is busy", async () => {
  const clients = Math.min(1_000, Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")));
  const port = await service.listening;
  const sockets: Socket[] = [];
  let connected = 0;
  service.child.kill("SIGSTOP");
  for (let n = 0; n < clients; n += 1) {
    const socket = connect({ port, host: "127.0.0.1" }, () => {
      connected += 1;
    });
    socket.on("error", () => undefined);
    sockets.push(socket);
  }
  // A dropped connection would be retried, but in vain while the process is stopped.
  await until(() => connected === clients, "the establishment of every connection").finally(() =>
    service.child.kill("SIGCONT"),
  );
  for (const socket of sockets) socket.destroy();
});
