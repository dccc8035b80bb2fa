/** A burst of connections whose clients don't stay: what they sent is counted and logged like everything else. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { connect } from "node:net";
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
