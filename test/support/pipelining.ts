/** Sequences of requests on one connection. Each request must get the same answer as when it is sent alone. */
import { connect, type Socket } from "node:net";
import { answersIn, type RawAnswer } from "./raw.js";

export interface Sent {
  readonly method: string;
  readonly bytes: string;
}

function request(method: string, path: string, fields: readonly string[] = [], body = ""): Sent {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: shop.example", ...fields, "", body];
  return { method, bytes: lines.join("\r\n") };
}

const CART = '{"items":[{"domain":"herat.af","action":"registration","years":1}]}';
const KNOWN_CART =
  '{"items":[{"domain":"herat.af","action":"renewal"},{"domain":"kabul.af","action":"transfer"}]}';
const LENGTH = `Content-Length: ${CART.length}`;
const JSON_TYPE = "Content-Type: application/json";
const CHUNKED = CART.replaceAll(/.{1,20}/g, (part) => `${part.length.toString(16)};x=y\r\n${part}\r\n`);

/** Every kind of request that is answered without the upstream, or from memory after the first time. */
const FIXED: readonly Sent[] = [
  request("GET", "/v1/availability?domain=herat.af"),
  request("GET", "/v1/availability?domain=khyber.af", ["Accept: application/json"]),
  request("GET", "/v1/availability?domain=-.af"),
  request("GET", "/v1/availability?domain=herat.af&x=1", ["Origin: https://www.example.af"]),
  request("GET", "/v1/search?q=herat&tlds=.af"),
  request("GET", "/v1/prices"),
  request("GET", "/v1/prices?tld=.af", ["If-None-Match: *", "Cache-Control: no-cache"]),
  request("GET", "/v1/quotes?tld=.af&action=renewal"),
  request("GET", "/v1/staff/tier"),
  request("GET", "/livez"),
  request("GET", "/livez", ["Expect: a miracle"]),
  request("GET", "/openapi.json"),
  request("GET", "/docs/assets/init.js", ["Accept-Encoding: gzip"]),
  request("GET", "/nothing/here"),
  request("GET", "http://shop.example/livez"),
  request("GET", "/livez", ["Content-Length: 5"], "GET /"),
  request("GET", "/v1/prices", ["Content-Length: 21"], "GET /evil HTTP/1.1\r\n\r"),
  request("HEAD", "/v1/prices"),
  request("HEAD", "/v1/availability?domain=herat.af"),
  request("OPTIONS", "/v1/prices", ["Origin: https://www.example.af", "Access-Control-Request-Method: GET"]),
  request("PUT", "/v1/prices", ["Content-Length: 3"], "abc"),
  request("POST", "/v1/quotes", [JSON_TYPE, LENGTH], CART),
  request("POST", "/v1/quotes", [JSON_TYPE, `Content-Length: ${KNOWN_CART.length}`], KNOWN_CART),
  request(
    "POST",
    "/v1/quotes",
    [JSON_TYPE, "Transfer-Encoding: chunked"],
    `${CHUNKED}0\r\nTrailer: x\r\n\r\n`,
  ),
  request("POST", "/v1/quotes", [JSON_TYPE, "Content-Length: 1"], "{"),
  request("POST", "/v1/quotes", ["Content-Type: text/plain", "Content-Length: 2"], "{}"),
  { method: "GET", bytes: "GET /livez HTTP/1.1\r\n\r\n" },
  { method: "GET", bytes: "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" },
];

/** After their answer the connection is closed, or they aren't requests, so nothing after them is answered. */
const ENDS: readonly Sent[] = [
  request("GET", "/livez", ["Connection: Upgrade", "Upgrade: websocket"]),
  request("GET", "/livez", ["Connection: close"]),
  { method: "", bytes: "no request at all\r\n\r\n" },
  { method: "", bytes: "GET /livez HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n" },
  {
    method: "",
    bytes: `GET /livez HTTP/1.1\r\nHost: a\r\nLong: ${"x".repeat(17_000)}\r\n\r\n`,
  },
  { method: "CONNECT", bytes: "CONNECT a.example:1 HTTP/1.1\r\nHost: a.example:1\r\n\r\n" },
  request("POST", "/v1/quotes", [JSON_TYPE, "Transfer-Encoding: chunked"], '5\r\n{"ite\r\nnot a size\r\n'),
];

export interface Sequence {
  readonly sent: readonly Sent[];
  /** The length of the pieces in which it is sent. */
  readonly pieceBytes: number;
}

/** One for each end, with a new name, whose answer is slow, and the other requests in several orders. `only` leaves out requests. */
export function sequences(only: (sent: Sent) => boolean = () => true): Sequence[] {
  const usual = FIXED.filter(only);
  return ENDS.filter(only).map((end, nth) => {
    const from = nth * 4;
    const fixed = [...usual.slice(from), ...usual.slice(0, from)];
    const slow = request("GET", `/v1/availability?domain=slow-${nth}.af`);
    return { sent: [...fixed.slice(0, 4), slow, ...fixed.slice(4, 16), end], pieceBytes: 61 * (nth + 1) };
  });
}

/** Sends a sequence and returns all answers until the server closes the connection. */
export async function play(port: number, { sent, pieceBytes }: Sequence): Promise<RawAnswer[]> {
  const bytes = sent.map((one) => one.bytes).join("");
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) =>
    bytes.slice(at * pieceBytes, (at + 1) * pieceBytes),
  );
  const text = await talk(port, pieces, () => false);
  return finalAnswers(
    text,
    sent.map(({ method }) => method),
  );
}

/** Sends a request on its own connection and returns the answer. */
export async function playAlone(port: number, { method, bytes }: Sent): Promise<RawAnswer> {
  const text = await talk(port, [bytes], (received) => isWhole(received, method));
  const [answer, ...others] = finalAnswers(text, [method]);
  if (answer === undefined || others.length > 0) throw new Error(`expected one answer: ${text}`);
  return answer;
}

/** The answer without what differs between any two requests. */
export function comparable({ status, headers, body }: RawAnswer): unknown {
  const {
    date: _date,
    connection: _connection,
    "keep-alive": _keepAlive,
    ratelimit: _left,
    "ratelimit-policy": _policy,
    ...rest
  } = headers;
  return {
    status,
    headers: { ...rest, "x-request-id": "x-request-id" in rest },
    body: body.replace(/"requestId":"[^"]+"/, "").replace(/"promise":"[^"]+"/, ""),
  };
}

function finalAnswers(text: string, methods: readonly string[]): RawAnswer[] {
  return answersIn(text, methods).filter(({ status }) => status >= 200);
}

function isWhole(text: string, method: string): boolean {
  try {
    return finalAnswers(text, [method]).length > 0;
  } catch {
    return false;
  }
}

function talk(port: number, pieces: readonly string[], isEnough: (text: string) => boolean): Promise<string> {
  return new Promise((done, failed) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (part: string) => {
      text += part;
      if (isEnough(text)) socket.destroy();
    });
    // The connection may be closed before everything after the last answered request has been sent.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "ECONNRESET") failed(error);
    });
    socket.once("close", () => {
      done(text);
    });
    const write = ([first, ...others]: readonly string[]): void => {
      if (first === undefined) return;
      socket.write(first, "latin1");
      if (others.length > 0) setImmediate(write, others);
    };
    write(pieces);
  });
}
