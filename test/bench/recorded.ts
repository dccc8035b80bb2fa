/**
 * An upstream that hardly uses the load's core, on which it runs: it passes each request to a sandbox once, and from then on repeats the answer. New
 * names of the benchmarks are all answered like the first one, each with itself in the answer.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { startUpstream } from "./candidates.js";

export type Upstream = Pick<Sandbox, "url" | "credential" | "close">;

interface Recording {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** The names that open-loop.ts asks for. */
const NEW_NAME = /tail-\d+-\d+/;
const ANY_NAME = "tail-0-0";

/** Starts it in this process. */
export async function startRecorded(): Promise<Upstream> {
  const sandbox = await startUpstream();
  const recordings = new Map<string, Promise<Recording>>();

  function recordingOf(
    { method = "", url = "", headers }: IncomingMessage,
    body: string,
  ): Promise<Recording> {
    const key = `${method} ${url} ${body}`;
    const known = recordings.get(key) ?? record(`${sandbox.url}${url}`, { method, headers, body });
    recordings.set(key, known);
    return known;
  }

  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      const name = NEW_NAME.exec(body)?.[0] ?? ANY_NAME;
      const recording = await recordingOf(request, body.replace(name, ANY_NAME));
      const answer = recording.body.replaceAll(ANY_NAME, name);
      const headers = { "Content-Type": recording.type, "Content-Length": Buffer.byteLength(answer) };
      response.writeHead(recording.status, headers).end(answer);
    })();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = z.object({ port: z.int() }).parse(server.address());

  return {
    url: `http://127.0.0.1:${port}`,
    credential: sandbox.credential,
    async close() {
      server.close();
      await sandbox.close();
    },
  };
}

async function record(
  url: string,
  { method, headers, body }: { method: string; headers: IncomingMessage["headers"]; body: string },
): Promise<Recording> {
  const sent = ["content-type", "x-service-key", "x-service-secret"].flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
  const answer = await fetch(url, { method, headers: sent, body: body === "" ? null : body });
  return { status: answer.status, type: answer.headers.get("content-type") ?? "", body: await answer.text() };
}
