/**
 * What a fault can do to one answer, in raw bytes: nothing made here keeps the rules of HTTP unless it says so. Whatever an answer
 * starts (timers, floods) ends with its socket.
 */
import type { Socket } from "node:net";

/** Stands in every text that a fault makes up, so that whoever passes one on can be found out. */
export const BAIT = "bait-6b1f93";

/** One call that a fault has struck. */
export interface Struck {
  readonly socket: Socket;
  /** What would have been answered. */
  readonly honest: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  };
  readonly request: {
    /** As it was asked for. */
    readonly path: string;
    readonly host: string;
    readonly key: string;
    readonly secret: string;
  };
  /** Whether the answer is for one name, which a wrong answer can replace. */
  readonly ofOneName: boolean;
  /** 1 for the first call that this setting has struck. */
  readonly nth: number;
  readonly ms: number;
  /** Where a redirect to another host leads. */
  readonly elsewhere: string;
  /** Sends the honest answer in the ordinary way. */
  honestly(): void;
}

export type Play = (call: Struck) => void;
type Bytes = string | Uint8Array;
export type HeaderLines = Readonly<Record<string, string>>;

const JSON_TYPE = "application/json; charset=utf-8";

/** A status line and header lines, down to the empty one. */
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

/** The honest answer with its true length, except for what `headers` says. */
export function honestBytes(call: Struck, headers: HeaderLines = {}): string {
  const { text } = call.honest;
  return honestHead(call, { "Content-Length": lengthOf(text), ...headers }) + text;
}

/** Correct HTTP, and the end of the connection. */
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

/** Correct HTTP with the honest status and another body. */
export function says(body: (text: string, call: Struck) => Bytes, headers: HeaderLines = {}): Play {
  return (call) => {
    answer(call, call.honest.status, body(call.honest.text, call), headers);
  };
}

/** The honest answer under other headers; a header may lie. */
export function under(headers: HeaderLines | ((call: Struck) => HeaderLines)): Play {
  return (call) => {
    const all = typeof headers === "function" ? headers(call) : headers;
    call.socket.end(honestBytes(call, { Connection: "close", ...all }));
  };
}

/** These bytes, and then the end of the connection. */
export function thenEnd(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    call.socket.end(bytes(call));
  };
}

/** These bytes, and then a reset, once they have had the time to arrive. */
export function thenReset(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    const { socket } = call;
    socket.write(bytes(call), () => {
      const timer = setTimeout(() => socket.resetAndDestroy(), 10);
      socket.once("close", () => {
        clearTimeout(timer);
      });
    });
  };
}

/** These bytes, and then nothing more; the connection stays. */
export function thenNothing(bytes: (call: Struck) => Bytes): Play {
  return (call) => {
    call.socket.write(bytes(call));
  };
}

/** `first` at once and the rest a byte at a time. */
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
    socket.once("close", () => {
      clearInterval(timer);
    });
  };
}

const CHUNK_BYTES = 64 * 1024;

/** `first`, and then `unit` again and again as fast as it is read, for `bytes` in all. */
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

/** The head of the honest answer, sent in chunks, and then `body`, which has to bring its own chunk sizes. */
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
