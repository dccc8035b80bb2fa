/** Sends bytes over a plain socket, and parses the answers one by one, as a strict client does. */
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Exchange {
  /** Whether to end this side after the last piece. */
  readonly end?: boolean;
  /** Waits for a 100 Continue before each piece but the first, as clients do that send `Expect`. */
  readonly invited?: boolean;
}

/** Writes `sent`, one piece per turn of the event loop, and reads until the server closes the connection. */
export function exchange(
  port: number,
  sent: string | readonly string[],
  { end = false, invited = false }: Exchange = {},
): Promise<string> {
  return new Promise((done, failed) => {
    const socket: Socket = connect(port, "127.0.0.1");
    let text = "";
    let invitations = 0;
    let onInvitation = (): void => {};
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (!invited || text.split("HTTP/1.1 100 ").length - 1 === invitations) return;
      invitations += 1;
      onInvitation();
    });
    socket.once("error", failed);
    socket.once("close", () => {
      done(text);
    });
    const write = (pieces: readonly string[]): void => {
      const [first, ...others] = pieces;
      if (first === undefined) {
        if (end) socket.end();
        return;
      }
      socket.write(first, "latin1");
      if (!invited || others.length === 0) setImmediate(write, others);
      else
        onInvitation = () => {
          write(others);
        };
    };
    socket.once("connect", () => {
      write([sent].flat());
    });
  });
}

/** Parses a stream of answers. `methods` are those of the requests, because answers to HEAD have no body. Throws if anything isn't an answer. */
export function answersIn(text: string, methods: readonly string[] = []): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  while (rest !== "") {
    const headEnd = rest.indexOf("\r\n\r\n");
    const [statusLine = "", ...fields] = rest.slice(0, Math.max(0, headEnd)).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    if (headEnd === -1 || Number.isNaN(status)) throw new Error(`not an answer: ${rest.slice(0, 200)}`);
    const headers: Record<string, string> = {};
    for (const field of fields) {
      const [, name = "", value = ""] = /^([^:]+): *(.*)$/.exec(field) ?? [];
      headers[name.toLowerCase()] = value;
    }
    rest = rest.slice(headEnd + 4);
    const isHead = status >= 200 && methods[answers.filter((one) => one.status >= 200).length] === "HEAD";
    let body = "";
    if (status >= 200 && status !== 204 && status !== 304 && !isHead) {
      if (headers["transfer-encoding"] === "chunked") [body, rest] = unchunked(rest);
      else {
        const length = Number(headers["content-length"] ?? NaN);
        if (Number.isNaN(length) || rest.length < length)
          throw new Error(`the answer is cut off: ${statusLine}`);
        [body, rest] = [rest.slice(0, length), rest.slice(length)];
      }
    }
    answers.push({ status, headers, body });
  }
  return answers;
}

function unchunked(text: string): [body: string, rest: string] {
  let body = "";
  let rest = text;
  for (;;) {
    const [line = "", size = ""] = /^([\da-f]+)\r\n/i.exec(rest) ?? [];
    if (size === "") throw new Error(`not a chunk: ${rest.slice(0, 100)}`);
    const bytes = parseInt(size, 16);
    body += rest.slice(line.length, line.length + bytes);
    rest = rest.slice(line.length + bytes + 2);
    if (bytes === 0) return [body, rest];
  }
}

export function get(path: string, fields: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ Host: "a", ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

export const CLOSE = { Connection: "close" };
