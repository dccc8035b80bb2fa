/** Many visitors, one question: the upstream is asked once, whoever comes and goes. */
import { expect, test } from "@jest/globals";
import { Agent, request } from "node:http";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { asker, bearer, CHECK, type Service, startService, until } from "../support/service.js";

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

const counted = z.object({
  caches: z.object({
    availability: z.object({ counts: z.object({ hit: z.number(), miss: z.number() }) }),
  }),
});

test("each name of a search counts once, as a hit where it was known and as a miss where it was not", () =>
  shared(async (service) => {
    const counts = async () => {
      const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
      const { hit, miss } = counted.parse(body).caches.availability.counts;
      return { hit, miss };
    };
    for (const domain of ["kabul.af", "kabul.com.af", "kabul.net.af"])
      expect((await service.ask(`/v1/availability?domain=${domain}`)).status).toBe(200);
    expect(await counts()).toEqual({ hit: 0, miss: 3 });
    const search = await service.ask("/v1/search?q=kabul");
    expect(search.body).toMatchObject({ complete: true });
    expect(await counts()).toEqual({ hit: 3, miss: 4 });
    await service.ask("/v1/search?q=kabul");
    expect(await counts()).toEqual({ hit: 7, miss: 4 });
    await service.ask("/v1/search?q=kabul&only=known");
    await service.ask("/v1/availability?domain=kabul.af");
    expect(await counts()).toEqual({ hit: 12, miss: 4 });
  }));
