/**
 * What a fault can do to one answer, in raw bytes. The result violates HTTP unless stated otherwise. Timers and floods that an answer starts
 * end with its socket.
 */
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
  readonly request: {
    /** The path as requested. */
    readonly path: string;
    readonly host: string;
    readonly key: string;
    readonly secret: string;
  };
  /** Whether the answer is about one name, which a wrong answer can replace. */
  readonly ofOneName: boolean;
  /** 1 for the first call that this setting applied to. */
  readonly nth: number;
  readonly ms: number;
  /** The target of redirects to another host. */
  readonly elsewhere: string;
  /** What is merged into the answer's `data`. */
  readonly patch: unknown;
  /** Sends the correct answer normally. */
  honestly(): void;
}

export type Play = (call: Struck) => void;
type Bytes = string | Uint8Array;
type HeaderLines = Readonly<Record<string, string>>;

const JSON_TYPE = "application/json; charset=utf-8";

/** A status line and header lines, including the empty line. */
export function head(status: number, headers: HeaderLines): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${BAIT}\r\n${lines.join("")}\r\n`;
}

function honestHead({ honest }: Struck, headers: HeaderLines): string {
  return head(honest.status, { "Content-Type": JSON_TYPE, ...honest.headers, ...headers });
}

function lengthOf(body: Bytes): string {
  return String(Buffer.byteLength(body));
}

/** The correct answer with its real length, except for what `headers` overrides. */
export function honestBytes(call: Struck, headers: HeaderLines = {}): string {
  const { text } = call.honest;
  return honestHead(call, { "Content-Length": lengthOf(text), ...headers }) + text;
}

/** Valid HTTP, then the end of the connection. */
export function answer(call: Struck, status: number, body: Bytes, headers: HeaderLines = {}): void {
  const bodiless = status === 204 || status === 205 || status === 304;
  const bytes = bodiless ? "" : body;
  call.socket.write(
    head(status, {
      "Content-Type": JSON_TYPE,
      ...(!bodiless && { "Content-Length": lengthOf(bytes) }),
      Connection: "close",
      ...headers,
    }),
  );
  call.socket.end(bytes);
}

/** Valid HTTP with another body. Default: the correct status. */
export function says(
  body: (text: string, call: Struck) => Bytes,
  headers: HeaderLines = {},
  status?: number,
): Play {
  return (call) => answer(call, status ?? call.honest.status, body(call.honest.text, call), headers);
}

/** The correct answer with other headers, which may be wrong. */
export function under(headers: HeaderLines | ((call: Struck) => HeaderLines)): Play {
  return (call) => {
    const all = typeof headers === "function" ? headers(call) : headers;
    call.socket.end(honestBytes(call, { Connection: "close", ...all }));
  };
}

/** These bytes, then the end of the connection. */
export function thenEnd(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    call.socket.end(bytes(call));
  };
}

/** These bytes, then a reset, after enough time for them to arrive. */
export function thenReset(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    const { socket } = call;
    socket.write(bytes(call), () => {
      const timer = setTimeout(() => socket.resetAndDestroy(), 10);
      socket.once("close", () => clearTimeout(timer));
    });
  };
}

/** These bytes, then nothing more; the connection stays open. */
export function thenNothing(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    call.socket.write(bytes(call));
  };
}

/** `first` immediately and the rest one byte at a time. */
export function dripping(first: (call: Struck) => string, rest: (call: Struck) => string): Play {
  return (call) => {
    const { socket } = call;
    const bytes = Buffer.from(rest(call));
    let at = 0;
    socket.write(first(call));
    const timer = setInterval(() => {
      socket.write(bytes.subarray(at, at + 1));
      at += 1;
      if (at >= bytes.length) {
        clearInterval(timer);
        socket.end();
      }
    }, call.ms);
    socket.once("close", () => clearInterval(timer));
  };
}

const CHUNK_BYTES = 64 * 1024;

/** `first`, then `unit` repeatedly, as fast as it is read, up to `bytes` in total. */
export function flood(first: (call: Struck) => string, unit: string, bytes: number): Play {
  const chunk = unit.repeat(Math.ceil(CHUNK_BYTES / unit.length));
  return (call) => {
    const { socket } = call;
    let sent = 0;
    const more = (): void => {
      while (sent < bytes) {
        if (socket.destroyed) return;
        sent += chunk.length;
        if (!socket.write(chunk)) return;
      }
      socket.end();
    };
    socket.write(first(call));
    socket.on("drain", more);
    more();
  };
}

/** The head of the correct answer with chunked encoding, then `body`, which has to contain its chunk sizes. */
export function chunked(body: (text: string) => string): Play {
  return thenEnd(
    (call) =>
      honestHead(call, { "Transfer-Encoding": "chunked", Connection: "close" }) + body(call.honest.text),
  );
}

/** One chunk of a chunked body. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
