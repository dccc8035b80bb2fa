/** Reads an event stream as a browser does, each over its own socket. */
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { z } from "zod";
import { until } from "./service.js";

export interface ReadEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: unknown;
}

export interface OpenStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The events received so far. */
  readonly events: readonly ReadEvent[];
  comments(): number;
  /** Whether the service has ended the stream. */
  ended(): boolean;
  /** Waits until at least this many events have been received. */
  atLeast(count: number): Promise<void>;
  /** Waits for the end of the stream and returns all events. */
  whole(): Promise<readonly ReadEvent[]>;
  hangUp(): void;
}

/** Resolves once the response headers have arrived. */
export function openStream(
  { port }: { readonly port: number },
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OpenStream> {
  return new Promise((opened, failed) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        path,
        agent: new Agent(),
        headers: { Accept: "text/event-stream", ...headers },
      },
      (response) => {
        const events: ReadEvent[] = [];
        let comments = 0;
        let ended = false;
        let rest = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          const blocks = (rest + chunk).split("\n\n");
          rest = blocks.pop() ?? "";
          for (const block of blocks) {
            if (block.startsWith(":")) comments += 1;
            else events.push(eventOf(block));
          }
        });
        response.on("error", () => undefined);
        response.on("end", () => {
          ended = true;
        });
        opened({
          status: z.int().parse(response.statusCode),
          headers: response.headers,
          events,
          comments: () => comments,
          ended: () => ended,
          atLeast: (count) => until(() => events.length >= count, `event ${count}`),
          async whole() {
            await until(() => ended, "the end of the stream");
            return events;
          },
          hangUp: () => {
            outgoing.destroy();
          },
        });
      },
    );
    outgoing.on("error", failed);
    outgoing.end();
  });
}

function eventOf(block: string): ReadEvent {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([a-z]+): (.*)$/.exec(line) ?? [];
    if (fields.has(name) || !["id", "event", "data"].includes(name))
      throw new Error(`unexpected line in an event: ${line}`);
    fields.set(name, value);
  }
  return {
    id: fields.get("id"),
    event: fields.get("event") ?? "message",
    data: JSON.parse(fields.get("data") ?? "null"),
  };
}
