/** What one call gets instead of its answer, in raw bytes. Timers and floods that it starts end with its socket. */
import type { Socket } from "node:net";

/** Part of every text that a fault invents, so that a test can find where one is passed on. */
export const BAIT = "bait-6b1f93";

/** One call that a fault applies to. */
export interface Struck {
  readonly socket: Socket;
  /** The correct answer. */
  readonly honest: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  };
  /** The path as requested, and the credential. */
  readonly request: { readonly path: string; readonly key: string; readonly secret: string };
  readonly ms: number;
  /** The target of redirects to another host. */
  readonly elsewhere: string;
  /** What is merged into the answer's `data`. */
  readonly patch: unknown;
  /** Sends the correct answer normally. */
  honestly(): void;
}

export type Play = (call: Struck) => void;

/** How an answer differs from the correct one. */
interface Message {
  readonly status?: number;
  /** They can be wrong. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export function bytesOf({ honest }: Struck, message: Message = {}): Buffer {
  const { status = honest.status, headers = {}, body = honest.text } = message;
  const hasBody = status !== 204 && status !== 304;
  const fields = {
    "Content-Type": "application/json; charset=utf-8",
    ...honest.headers,
    "Content-Length": hasBody ? String(Buffer.byteLength(body)) : null,
    Connection: "close",
    ...headers,
  };
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    value === null ? [] : `${name}: ${value}\r\n`,
  );
  const head = Buffer.from(`HTTP/1.1 ${status} ${BAIT}\r\n${lines.join("")}\r\n`, "latin1");
  const content = typeof body === "string" ? Buffer.from(body) : body;
  return Buffer.concat(hasBody ? [head, content] : [head]);
}

/** What happens to the connection after the bytes. */
export const ENDINGS = {
  end: (socket: Socket, bytes: Uint8Array): void => {
    socket.end(bytes);
  },
  reset: (socket: Socket, bytes: Uint8Array): void => {
    socket.write(bytes, () => {
      // Enough time for the bytes to arrive.
      const timer = setTimeout(() => socket.resetAndDestroy(), 10);
      socket.once("close", () => clearTimeout(timer));
    });
  },
  silence: (socket: Socket, bytes: Uint8Array): void => {
    socket.write(bytes);
  },
} as const;

export function raw(bytes: (call: Struck) => Uint8Array, ending: keyof typeof ENDINGS = "end"): Play {
  return (call) => ENDINGS[ending](call.socket, bytes(call));
}

/** An answer that differs from the correct one like this, then the end of the connection. */
export function says(message: Message | ((text: string, call: Struck) => Message)): Play {
  return raw((call) =>
    bytesOf(call, typeof message === "function" ? message(call.honest.text, call) : message),
  );
}

/** The bytes before this place at once, and the rest one byte at a time. */
export function drip(from: (bytes: Buffer) => number): Play {
  return (call) => {
    const { socket } = call;
    const bytes = bytesOf(call);
    let at = from(bytes);
    socket.write(bytes.subarray(0, at));
    const timer = setInterval(() => {
      socket.write(bytes.subarray(at, at + 1));
      at += 1;
      if (at >= bytes.length) socket.end();
    }, call.ms);
    for (const event of ["finish", "close"]) socket.once(event, () => clearInterval(timer));
  };
}

const CHUNK_BYTES = 64 * 1024;

/** `first`, then `unit` repeatedly, as fast as it is read, up to `bytes` in total. */
export function flood(first: string, unit: string, bytes: number): Play {
  const chunk = unit.repeat(Math.ceil(CHUNK_BYTES / unit.length));
  return ({ socket }) => {
    let sent = 0;
    const more = (): void => {
      while (sent < bytes) {
        if (socket.destroyed) return;
        sent += chunk.length;
        if (!socket.write(chunk)) return;
      }
      socket.end();
    };
    socket.write(first);
    socket.on("drain", more);
    more();
  };
}
