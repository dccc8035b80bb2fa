/** A stub upstream that writes raw bytes, so that it can break every rule of HTTP. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { z } from "zod";

/** One request as received. */
interface Seen {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** What the stub does with a request. */
export type Play = (socket: Socket, seen: Seen) => void;

export interface Stub {
  readonly url: string;
  readonly seen: Seen[];
  /** The sockets of all connections so far. */
  readonly sockets: Socket[];
  /** Queues these for the next requests. Later requests get the healthy answer. */
  next(...plays: readonly Play[]): void;
  forget(): void;
  close(): Promise<void>;
}

export async function startStub(healthy: Play): Promise<Stub> {
  const seen: Seen[] = [];
  const sockets: Socket[] = [];
  const queue: Play[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    let received = "";
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      received += text;
      const request = requestIn(received);
      if (request === null) return;
      received = "";
      seen.push(request);
      (queue.shift() ?? healthy)(socket, request);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    sockets,
    next(...plays) {
      queue.push(...plays);
    },
    forget() {
      seen.length = 0;
      sockets.length = 0;
      queue.length = 0;
    },
    async close() {
      const ended = once(server.close(), "close");
      for (const socket of sockets) socket.destroy();
      await ended;
    },
  };
}

/** The request if it is complete. */
function requestIn(received: string): Seen | null {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const [start = "", ...lines] = received.slice(0, end).split("\r\n");
  const [method = "", path = ""] = start.split(" ");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const body = received.slice(end + 4);
  return body.length < Number(headers.get("content-length") ?? 0) ? null : { method, path, headers, body };
}

export type Headers = Readonly<Record<string, string>>;

/** The head of an answer, with a marker word in the reason phrase. */
export function head(status: number, headers: Headers): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} marrow-reason\r\n${lines.join("")}\r\n`;
}

/** A complete and valid answer, unless `headers` make it invalid. */
export function answer(status: number, body: string | Uint8Array, headers: Headers = {}): Play {
  const bytes = Buffer.from(body);
  const all = { "Content-Type": "application/json", "Content-Length": String(bytes.length), ...headers };
  return (socket) => {
    socket.write(Buffer.concat([Buffer.from(head(status, all)), bytes]));
  };
}

export function json(value: unknown, status = 200, headers: Headers = {}): Play {
  return answer(status, JSON.stringify(value), headers);
}

export function success(data: unknown): Play {
  return json({ success: true, data });
}

/** Sends as much as the client reads, up to `bytes`. */
export function flood(bytes: number, first: string): Play {
  const chunk = Buffer.alloc(64 * 1024, "x");
  return (socket) => {
    let sent = 0;
    const more = (): void => {
      while (sent < bytes && !socket.destroyed) {
        sent += chunk.length;
        if (!socket.write(chunk)) return;
      }
    };
    socket.write(first);
    socket.on("drain", more);
    more();
  };
}
