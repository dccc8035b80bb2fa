/** Event streams are limited in number and duration, and send nothing to clients that have gone. `test/service/stream.test.ts` tests what they send. */
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import express from "express";
import { z } from "zod";
import { createAccessLog, requestContext } from "../../src/http/edge/context.js";
import { createEventStreams, type EventStream } from "../../src/http/event-stream.js";
import { problemHandler } from "../../src/http/edge/problems.js";
import { createMetrics } from "../../src/metrics.js";
import { type OpenStream, openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";

const LONGEST_MS = 35_000;

let clock: FakeClock;
let server: Server;
let port: number;
/** The service's side of the streams. */
let opened: EventStream[];

beforeEach(async () => {
  clock = new FakeClock();
  opened = [];
  const streams = createEventStreams({ longestMs: LONGEST_MS, clock });
  const log = recordingLog([]);
  const app = express();
  app.set("trust proxy", 1);
  app.use(requestContext(createAccessLog(log, createMetrics(), clock), clock));
  app.get("/", (request, response) => {
    const stream = streams.open(request, response);
    opened.push(stream);
    stream.signal.addEventListener("abort", () => void stream.end());
  });
  app.use(
    problemHandler(
      log,
      () => undefined,
      () => Promise.resolve(),
    ),
  );
  server = createServer(app);
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  ({ port } = z.object({ port: z.int() }).parse(server.address()));
});

afterEach(async () => {
  const closed = new Promise((done) => server.close(done));
  server.closeAllConnections();
  await closed;
});

/** Opens a stream as the client with this number. */
function open(client = 0): Promise<OpenStream> {
  return openStream({ port }, "/", { "X-Forwarded-For": `198.51.${client >> 8}.${client & 255}` });
}

describe("an event stream", () => {
  test("ends after its maximum duration", async () => {
    const stream = await open();
    await clock.advance(LONGEST_MS - 1);
    expect(opened[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(opened[0]?.signal.aborted).toBe(true);
    await stream.whole();
  });

  test("whose client has gone ends, keeps no timer and sends nothing more", async () => {
    const stream = await open();
    expect(clock.pending).toBe(2);
    stream.hangUp();
    await until(() => opened[0]?.signal.aborted === true);
    expect(clock.pending).toBe(0);
    opened[0]?.send({ event: "result", data: {} });
    await opened[0]?.end();
  });

  test("is refused if all clients together have five hundred", async () => {
    const all = await Promise.all(Array.from({ length: 500 }, (_, client) => open(client)));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    const refused = await open(500);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "35"]);
    await clock.advance(LONGEST_MS);
    await until(() => opened.every(({ signal }) => signal.aborted));
    await until(async () => (await open(500)).status === 200);
  });
});
