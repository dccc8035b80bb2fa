/** What the service still holds of requests that it has answered, while their connections stay open. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { IncomingMessage } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { FakeClock } from "../support/fake-clock.js";
import { type Service, startService, until } from "../support/service.js";

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
});
afterAll(() => service.close());

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc()");
}

test.each([
  ["a known name", "/v1/availability?domain=kabul.af"],
  ["a bad name", "/v1/availability?domain=-"],
  ["an answer by Express", "/health"],
])("an idle connection holds nothing of its last request: %s", async (_what, path) => {
  await service.ask("/v1/availability?domain=kabul.af");
  const requests: WeakRef<IncomingMessage>[] = [];
  const watch = (request: IncomingMessage): void => void requests.push(new WeakRef(request));
  service.server.on("request", watch);
  await service.ask(path);
  service.server.off("request", watch);
  expect(requests).toHaveLength(1);
  await until(() => {
    collectGarbage();
    return requests.every((request) => request.deref() === undefined);
  }, "the request");
  const open = await new Promise<number>((done) => {
    service.server.getConnections((_error, count) => {
      done(count);
    });
  });
  expect(open).toBeGreaterThan(0);
});
