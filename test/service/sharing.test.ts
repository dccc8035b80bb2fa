/** Many visitors, one question: the upstream is asked once, whoever comes and goes. */
import { expect, test } from "@jest/globals";
import { Agent, request } from "node:http";
import { FakeClock } from "../support/fake-clock.js";
import { asker, CHECK, type Service, startService, until } from "../support/service.js";

const MANY = 500;
const PATH = "/v1/availability?domain=kabul.af";

async function shared(act: (service: Service, agent: Agent) => Promise<void>): Promise<void> {
  const service = await startService({ clock: new FakeClock() });
  const agent = new Agent({ keepAlive: true, maxSockets: MANY });
  try {
    await act(service, agent);
  } finally {
    agent.destroy();
    await service.close();
  }
}

/** Requests that have come in and are not answered, as the service's sockets show them. */
function openSockets({ server }: Service): Promise<number> {
  return new Promise((done, failed) => {
    server.getConnections((error, count) => {
      if (error) failed(error);
      else done(count);
    });
  });
}

test(`${MANY} simultaneous searches for a name that nobody knows cost one call`, () =>
  shared(async (service, agent) => {
    service.sandbox.control.setBehaviour({ beforeMs: 300 });
    const ask = asker(service.port, agent);
    const answers = await Promise.all(Array.from({ length: MANY }, () => ask(PATH)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(service.calls(CHECK)).toBe(1);
  }));

test("the same when the first caller hangs up while the upstream is asked", () =>
  shared(async (service, agent) => {
    service.sandbox.control.setBehaviour({ afterMs: 1500 });
    const first = request({ host: "127.0.0.1", port: service.port, path: PATH, agent: false });
    const hungUp = new Promise((done) => first.on("close", done));
    first.on("error", () => undefined);
    first.end();
    await until(() => service.calls(CHECK) === 1);
    const ask = asker(service.port, agent);
    const others = Promise.all(Array.from({ length: MANY - 1 }, () => ask(PATH)));
    await until(async () => (await openSockets(service)) > MANY / 2, "the others");
    first.destroy();
    await hungUp;
    const answers = await others;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(service.calls(CHECK)).toBe(1);
    await until(() => service.log.some((line) => line.includes('"status":499')));
    expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  }));

test("the same for a search under every TLD: one call for each", () =>
  shared(async (service, agent) => {
    service.sandbox.control.setBehaviour({ beforeMs: 100 });
    const ask = asker(service.port, agent);
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask("/v1/search?q=kabul")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(service.calls(CHECK)).toBe(4);
  }));
