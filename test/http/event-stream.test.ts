/** Event streams are limited in number and duration. `test/service/stream.test.ts` tests what they send. */
import { createServer } from "node:http";
import { expect, test } from "@jest/globals";
import express from "express";
import { z } from "zod";
import { createAccessLog, requestContext } from "../../src/http/edge/context.js";
import { createEventStreams } from "../../src/http/event-stream.js";
import { problemHandler } from "../../src/http/edge/problems.js";
import { createMetrics } from "../../src/metrics.js";
import { openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";

const LONGEST_MS = 35_000;

test("an event stream is refused while all clients together have five hundred, which end after their maximum duration", async () => {
  const clock = new FakeClock();
  const streams = createEventStreams({ longestMs: LONGEST_MS, clock });
  const log = recordingLog([]);
  const app = express();
  app.set("trust proxy", 1);
  app.use(requestContext(createAccessLog(log, createMetrics(), clock), clock));
  app.get("/", (request, response) => {
    const stream = streams.open(request, response);
    stream.signal.addEventListener("abort", () => void stream.end());
  });
  const ignored = (): undefined => undefined;
  app.use(problemHandler(log, ignored, async () => {}));
  const server = createServer(app);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = z.object({ port: z.int() }).parse(server.address());
  const open = (client: number) =>
    openStream({ port }, "/", { "X-Forwarded-For": `198.51.${client >> 8}.${client & 255}` });

  const all = await Promise.all(Array.from({ length: 500 }, (_, client) => open(client)));
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
  const refused = await open(500);
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "35"]);
  await clock.advance(LONGEST_MS - 1);
  expect(all.filter((stream) => stream.ended())).toEqual([]);
  await clock.advance(1);
  await until(() => all.every((stream) => stream.ended()), "the end of the streams");
  expect((await open(500)).status).toBe(200);

  const closed = new Promise((done) => server.close(done));
  server.closeAllConnections();
  await closed;
});
