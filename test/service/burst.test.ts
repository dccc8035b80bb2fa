/** A burst of connections: none is dropped, and what clients sent that didn't stay is counted and logged like everything else. */
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

test("requests of clients that leave before they are served have their lines in the log", async () => {
  const port = await service.listening;
  const logged = (): number => service.stdout.filter((line) => line.includes('"http.request"')).length;
  const before = logged();
  for (let n = 0; n < CLIENTS; n += 1) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    // Half-closed at once: the service learns that nobody waits for the answer.
    socket.end(get("/v1/staff/tier"));
  }
  await until(() => logged() - before >= CLIENTS, "every line");
  expect(logged() - before).toBe(CLIENTS);
});

test("a thousand connections at once are accepted even while the service is busy", async () => {
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
  // A dropped connection would be tried again, but never accepted while nobody does.
  await until(() => connected === clients, "every connection").finally(() => service.child.kill("SIGCONT"));
  for (const socket of sockets) socket.destroy();
});
