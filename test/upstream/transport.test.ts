/** When a request is sent: not before its socket is connected, and not if another replica may use its slot by then. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, type Server } from "node:http";
import { promisify } from "node:util";
import { systemClock } from "../../src/clock.js";
import { createTransport, type Transport } from "../../src/upstream/transport.js";
import { until } from "../support/service.js";

const CREDENTIAL = { role: "active", key: "key", secret: "secret", fingerprint: "abc" } as const;
const TIER = { method: "GET", path: "/api/v1/account/tier" } as const;

let server: Server;
let settings: Parameters<typeof createTransport>[0];
let transport: Transport;
let requests: number;
let connections: number;
beforeAll(async () => {
  server = createServer((_request, response) => {
    requests += 1;
    response.end("{}");
  });
  server.on("connection", () => (connections += 1));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  settings = { baseUrl: `http://127.0.0.1:${address.port}`, timeoutMs: 2000, clock: systemClock };
  transport = createTransport(settings);
});
afterAll(() => new Promise((done) => server.close(done)));
beforeEach(() => {
  requests = 0;
  connections = 0;
});

test("a request is sent once, on its own connection, and reports that it was answered", async () => {
  let answered = 0;
  const permit = { isValid: () => true, answered: () => (answered += 1) };
  for (let n = 1; n <= 2; n += 1) {
    expect((await transport.send(CREDENTIAL, TIER, permit)).status).toBe(200);
    expect([requests, connections, answered]).toEqual([n, n, n]);
  }
});

test("calls that are due together are begun one per turn of the event loop", async () => {
  let turn = 0;
  const begun: number[] = [];
  const note = (): void => void begun.push(turn);
  subscribe("net.client.socket", note);
  const permit = { isValid: () => true, answered: () => {} };
  const calls = Promise.all(Array.from({ length: 3 }, () => transport.send(CREDENTIAL, TIER, permit)));
  for (turn = 1; turn <= 3; turn += 1) await new Promise(setImmediate);
  await calls;
  unsubscribe("net.client.socket", note);
  expect(begun).toEqual([1, 2, 3]);
});

test("a request whose permit expires while it connects isn't sent, and its connection is closed", async () => {
  let isValid = true;
  let answered = 0;
  const call = transport.send(CREDENTIAL, TIER, { isValid: () => isValid, answered: () => (answered += 1) });
  const expire = (): void => void (isValid = false);
  subscribe("net.client.socket", expire);
  await expect(call).rejects.toMatchObject({ code: "upstream_timeout" });
  unsubscribe("net.client.socket", expire);
  await until(
    async () => (await promisify(server.getConnections.bind(server))()) === 0,
    "the end of the connection",
  );
  expect([requests, answered]).toEqual([0, 0]);
});

test("a request whose permit has expired isn't sent on a connection that was kept", async () => {
  const keeping = createTransport({ ...settings, callsPerSecond: 100 });
  const named = { ...TIER, isNamedInAnswer: true };
  const answered = (): void => {};
  await keeping.send(CREDENTIAL, named, { isValid: () => true, answered });
  const late = keeping.send(CREDENTIAL, named, { isValid: () => false, answered });
  await expect(late).rejects.toMatchObject({ code: "upstream_timeout" });
  await keeping.send(CREDENTIAL, named, { isValid: () => true, answered });
  expect([requests, connections]).toEqual([2, 1]);
  keeping.distrust();
});

test("a request to a port where nothing listens fails immediately", async () => {
  const nowhere = createTransport({ baseUrl: "http://127.0.0.1:9", timeoutMs: 2000, clock: systemClock });
  const permit = { isValid: () => true, answered: () => {} };
  await expect(nowhere.send(CREDENTIAL, TIER, permit)).rejects.toMatchObject({ code: "upstream_failed" });
});
