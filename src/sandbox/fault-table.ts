/** Every fault that the sandbox can play, by name. The control port and the tests read this list. */
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import {
  amidTexts,
  amounts,
  availableWithoutPrice,
  currencies,
  data,
  dates,
  echo,
  flag,
  forged,
  inPrototype,
  leaves,
  name,
  pollution,
  secondPrice,
  status,
  takenWithPrice,
  texts,
  twice,
  without,
} from "./fault-values.js";
import {
  answer,
  BAIT,
  chunk,
  chunked,
  dripping,
  flood,
  head,
  honestBytes,
  type Play,
  says,
  type Struck,
  thenEnd,
  thenNothing,
  thenReset,
  under,
} from "./fault-wire.js";

/** What happens to a connection before anything is read from it. Such a call never arrives, so it isn't counted. */
export type OnConnect = "refuse" | "reset" | "end";

export interface Fault {
  readonly name: string;
  readonly what: string;
  readonly play: Play | OnConnect;
}

const MIB = 1024 * 1024;

/** How much of the correct answer has been sent when the fault happens. */
const STAGES: readonly (readonly [name: string, what: string, sent: (call: Struck) => string])[] = [
  ["before-head", "before the status line", () => ""],
  ["in-head", "in the middle of the headers", (call) => honestBytes(call).slice(0, 40)],
  ["after-head", "after the headers", (call) => headOf(call)],
  ["in-body", "in the middle of the body", (call) => honestBytes(call).slice(0, headOf(call).length + 15)],
];

function headOf(call: Struck): string {
  const bytes = honestBytes(call);
  return bytes.slice(0, bytes.indexOf("\r\n\r\n") + 4);
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** Spaces, any number of which is valid JSON. */
const spaces = (): Buffer => Buffer.alloc(64 * MIB, " ");
const BOMBS = {
  gzip: once(() => gzipSync(spaces(), { level: 1 })),
  deflate: once(() => deflateSync(spaces(), { level: 1 })),
  br: once(() => brotliCompressSync(spaces(), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
};

/** A second complete answer, for clients that read on. */
function forgedBytes(call: Struck): string {
  return honestBytes({ ...call, honest: { ...call.honest, text: forged(call.honest.text) } }, keepAlive);
}

const keepAlive = { Connection: "keep-alive", "Keep-Alive": "timeout=600" };

const CONNECTION: readonly Fault[] = [
  { name: "connection-refused", what: "The listener is closed until the fault is cleared.", play: "refuse" },
  { name: "reset-on-accept", what: "The connection is reset as soon as it is accepted.", play: "reset" },
  { name: "end-on-accept", what: "The connection is closed as soon as it is accepted.", play: "end" },
  ...STAGES.flatMap(([stage, what, sent]) => [
    { name: `reset-${stage}`, what: `The connection is reset ${what}.`, play: thenReset(sent) },
    { name: `end-${stage}`, what: `The connection is closed properly ${what}.`, play: thenEnd(sent) },
    { name: `silence-${stage}`, what: `Nothing more is sent ${what}.`, play: thenNothing(sent) },
  ]),
];

const TIME: readonly Fault[] = [
  {
    name: "slow",
    what: "The honest answer, `ms` later.",
    play: (call) => {
      const timer = setTimeout(() => {
        call.honestly();
      }, call.ms);
      call.socket.once("close", () => {
        clearTimeout(timer);
      });
    },
  },
  {
    name: "drip-head",
    what: "The honest answer from its status line on, a byte every `ms`.",
    play: dripping(() => "", honestBytes),
  },
  {
    name: "drip-body",
    what: "The honest body, a byte every `ms`.",
    play: dripping(headOf, (call) => call.honest.text),
  },
  {
    name: "drip-spaces",
    what: "White space before the honest body, a byte every `ms` for a million bytes.",
    play: dripping(
      (call) => headOf(call).replace(/Content-Length: \d+\r\n/, ""),
      (call) => " ".repeat(1_000_000) + call.honest.text,
    ),
  },
  {
    name: "flapping",
    what: "Every second call is answered with 503, the first one among them.",
    play: (call) => {
      if (call.nth % 2 === 1) answer(call, 503, BAIT);
      else call.honestly();
    },
  },
  {
    name: "flapping-reset",
    what: "Every second call is reset, the first one among them.",
    play: (call) => {
      if (call.nth % 2 === 1) call.socket.resetAndDestroy();
      else call.honestly();
    },
  },
];

function lengths(length: string): Play {
  return under({ "Content-Length": length });
}

function respoken(change: (bytes: string) => string): Play {
  return thenEnd((call) => change(honestBytes(call, { Connection: "close" })));
}

const INTERIM = `${head(102, {})}${head(103, { Link: `</${BAIT}>; rel=preload` })}`;

const FRAMING: readonly Fault[] = [
  {
    name: "truncated",
    what: "Content-Length is longer than the body, and the connection ends.",
    play: (call) => {
      call.socket.end(honestBytes(call, { "Content-Length": String(call.honest.text.length + 100) }));
    },
  },
  {
    name: "length-short",
    what: "Content-Length is shorter than the body, so that bytes are left over on a connection that stays open.",
    play: thenNothing((call) =>
      honestBytes(call, { "Content-Length": String(call.honest.text.length - 10), ...keepAlive }),
    ),
  },
  { name: "length-zero", what: "Content-Length is 0, and a body follows.", play: lengths("0") },
  { name: "length-negative", what: "Content-Length is -1.", play: lengths("-1") },
  { name: "length-word", what: "Content-Length is a word.", play: lengths(BAIT) },
  { name: "length-huge", what: "Content-Length is 2^64.", play: lengths("18446744073709551616") },
  { name: "length-list", what: "Content-Length is a list of two.", play: lengths("2, 300") },
  {
    name: "length-twice",
    what: "There are two Content-Lengths, which differ.",
    play: respoken((bytes) => bytes.replace("Content-Length:", "content-length: 2\r\nContent-Length:")),
  },
  {
    name: "length-and-chunks",
    what: "The body has both a Content-Length and chunks.",
    play: thenEnd((call) => {
      const headers = { "Transfer-Encoding": "chunked", Connection: "close" };
      return honestBytes(call, headers).replace(call.honest.text, `${chunk(call.honest.text)}0\r\n\r\n`);
    }),
  },
  {
    name: "length-none",
    what: "The body has no length and ends with the connection: allowed, and true.",
    play: respoken((bytes) => bytes.replace(/Content-Length: \d+\r\n/, "")),
  },
  {
    name: "left-over-bytes",
    what: "Bytes that aren't HTTP follow the honest answer on a connection that stays open.",
    play: thenNothing((call) => honestBytes(call, keepAlive) + BAIT),
  },
  {
    name: "left-over-answer",
    what: "A forged answer follows the honest one immediately, on a connection that stays open.",
    play: thenNothing((call) => honestBytes(call, keepAlive) + forgedBytes(call)),
  },
  {
    name: "left-over-answer-later",
    what: "A forged answer follows the honest one 5 ms later, on a connection that stays open.",
    play: (call) => {
      const { socket } = call;
      socket.write(honestBytes(call, keepAlive), () => {
        setTimeout(() => {
          if (socket.writable) socket.write(forgedBytes(call));
        }, 5).unref();
      });
    },
  },
  {
    name: "left-over-flood",
    what: "Forged answers follow the honest one endlessly, on a connection that stays open.",
    play: (call) => {
      flood((struck) => honestBytes(struck, keepAlive), forgedBytes(call), 8 * MIB)(call);
    },
  },
  {
    name: "chunk-size-word",
    what: "A chunk's size is a word.",
    play: chunked((text) => `size\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-size-negative",
    what: "A chunk's size is negative.",
    play: chunked((text) => `-5\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-size-huge",
    what: "A chunk's size is 2^68.",
    play: chunked((text) => `100000000000000000\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-size-short",
    what: "A chunk is longer than its size.",
    play: chunked((text) => `5\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-size-long",
    what: "A chunk is shorter than its size, and the connection ends.",
    play: chunked((text) => `ffff\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-last-missing",
    what: "There is no last chunk, and the connection ends.",
    play: chunked(chunk),
  },
  {
    name: "chunk-extension-huge",
    what: "A chunk has an extension of 1 MB.",
    play: chunked((text) => `${text.length.toString(16)};${"x".repeat(MIB)}\r\n${text}\r\n0\r\n\r\n`),
  },
  {
    name: "chunk-bytes",
    what: "Every byte is a chunk: allowed, and true.",
    play: chunked((text) => `${Array.from(text, chunk).join("")}0\r\n\r\n`),
  },
  {
    name: "chunk-trailers",
    what: "Trailers follow the last chunk, among them a Content-Length and a status: allowed, and true.",
    play: chunked((text) => `${chunk(text)}0\r\nContent-Length: 2\r\nX-Status: ${BAIT}\r\n\r\n`),
  },
  {
    name: "continue-flood",
    what: "100 Continue again and again, for 2 MB.",
    play: flood(() => "", "HTTP/1.1 100 Continue\r\n\r\n", 2 * MIB),
  },
  {
    name: "interim-answers",
    what: "102 and 103 before the honest answer: allowed, and true.",
    play: respoken((bytes) => INTERIM + bytes),
  },
  {
    name: "switching-protocols",
    what: "101 with an upgrade that wasn't requested.",
    play: thenNothing(() => head(101, { Connection: "Upgrade", Upgrade: BAIT })),
  },
  {
    name: "switching-then-answer",
    what: "101, and then the honest answer in the other protocol.",
    play: thenNothing((call) => head(101, { Connection: "Upgrade", Upgrade: BAIT }) + honestBytes(call)),
  },
  {
    name: "no-http",
    what: "The greeting of another protocol.",
    play: thenEnd(() => `SSH-2.0-${BAIT}\r\n\r\n`),
  },
  {
    name: "no-head",
    what: "The body without status line and headers.",
    play: thenEnd((call) => call.honest.text),
  },
  { name: "version-9", what: "HTTP/9.9.", play: respoken((bytes) => bytes.replace("HTTP/1.1", "HTTP/9.9")) },
  {
    name: "version-1-0",
    what: "HTTP/1.0: allowed, and true.",
    play: respoken((bytes) => bytes.replace("HTTP/1.1", "HTTP/1.0")),
  },
  {
    name: "status-line-word",
    what: "The status is a word.",
    play: respoken((bytes) => bytes.replace(/^HTTP\/1.1 \d+/, "HTTP/1.1 OK")),
  },
  {
    name: "status-line-long",
    what: "The status has four digits.",
    play: respoken((bytes) => bytes.replace(/^HTTP\/1.1 (\d+)/, "HTTP/1.1 $11")),
  },
  {
    name: "bare-line-feeds",
    what: "Lines end with LF alone.",
    play: respoken((bytes) => bytes.replaceAll("\r\n", "\n")),
  },
];

const HEADERS: readonly Fault[] = [
  {
    name: "header-huge",
    what: "One header has 100 kB.",
    play: under({ "X-Bait": BAIT.repeat(8000) }),
  },
  {
    name: "header-endless",
    what: "One header has 64 MB.",
    play: flood(() => `HTTP/1.1 200 OK\r\nX-Bait: `, BAIT, 64 * MIB),
  },
  {
    name: "headers-many",
    what: "There are 5000 headers.",
    play: under(Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`X-${index}`, BAIT]))),
  },
  {
    name: "headers-endless",
    what: "Header lines again and again, for 64 MB.",
    play: flood(() => `HTTP/1.1 200 OK\r\n`, `X-Bait: ${BAIT}\r\n`, 64 * MIB),
  },
  {
    name: "header-without-colon",
    what: "A header line has no colon.",
    play: respoken((bytes) => bytes.replace("\r\n", `\r\n${BAIT}\r\n`)),
  },
  { name: "header-nul", what: "A header holds a NUL.", play: under({ "X-Bait": `${BAIT}\0` }) },
  {
    name: "header-folded",
    what: "A header continues on the next line.",
    play: under({ "X-Bait": `${BAIT}\r\n X-Forged: ${BAIT}` }),
  },
  {
    name: "header-space",
    what: "There is white space between a header's name and its colon.",
    play: respoken((bytes) => bytes.replace("Content-Length:", "Content-Length :")),
  },
  {
    name: "set-cookie",
    what: "Set-Cookie with the honest answer.",
    play: under({ "Set-Cookie": `session=${BAIT}` }),
  },
  {
    name: "credential-in-headers",
    what: "The credential comes back in headers of the honest answer.",
    play: under(({ request: { key, secret } }) => ({
      "X-Service-Key": key,
      "X-Service-Secret": secret,
      "Set-Cookie": `secret=${secret}`,
      "Retry-After": secret,
    })),
  },
  {
    name: "headers-that-act",
    what: "Headers that instruct browsers or proxies, with the honest answer.",
    play: under({
      "Access-Control-Allow-Origin": "*",
      "Cache-Control": "public, max-age=31536000",
      "Clear-Site-Data": '"*"',
      ETag: `"${BAIT}"`,
      Refresh: `0; url=http://${BAIT}/`,
      "Strict-Transport-Security": "max-age=0",
      "WWW-Authenticate": `Basic realm="${BAIT}"`,
      "X-Request-Id": BAIT,
    }),
  },
  {
    name: "content-type-html",
    what: "The honest answer is declared as HTML.",
    play: under({ "Content-Type": "text/html" }),
  },
  {
    name: "content-type-none",
    what: "The honest answer has no Content-Type.",
    play: respoken((bytes) => bytes.replace(/Content-Type: .*\r\n/, "")),
  },
  {
    name: "content-type-charset",
    what: "The honest answer is declared as UTF-7.",
    play: under({ "Content-Type": "application/json; charset=utf-7" }),
  },
];

function html(code: number): Fault {
  return {
    name: `html-${code}`,
    what: `An HTML page with status ${code}.`,
    play: (call) => {
      const page = `<!doctype html><title>${BAIT}</title><h1>${BAIT}</h1><pre>at ${BAIT} (/srv/app.js:1:1)</pre>`;
      answer(call, code, page, { "Content-Type": "text/html" });
    },
  };
}

function coded(coding: string, body: (text: string) => Uint8Array | string): Play {
  return says(body, { "Content-Encoding": coding });
}

const BODIES: readonly Fault[] = [
  ...[200, 404, 500, 502, 503].map(html),
  {
    name: "text-200",
    what: "Plain text with status 200.",
    play: says(() => BAIT, { "Content-Type": "text/plain" }),
  },
  {
    name: "xml-200",
    what: "XML with status 200.",
    play: says(() => `<data>${BAIT}</data>`, { "Content-Type": "text/xml" }),
  },
  { name: "body-empty", what: "No body.", play: says(() => "") },
  { name: "body-white-space", what: "White space alone.", play: says(() => " \r\n\t") },
  { name: "body-null", what: "The JSON value null.", play: says(() => "null") },
  { name: "body-true", what: "The JSON value true.", play: says(() => "true") },
  { name: "body-number", what: "A JSON number.", play: says(() => "1.00") },
  {
    name: "body-string",
    what: "The honest JSON as a JSON string.",
    play: says((text) => JSON.stringify(text)),
  },
  { name: "body-list", what: "A list that holds the honest answer.", play: says((text) => `[${text}]`) },
  {
    name: "json-truncated",
    what: "Truncated JSON with its correct length.",
    play: says((text) => text.slice(0, -5)),
  },
  { name: "json-and-more", what: "Text after the JSON.", play: says((text) => `${text}${BAIT}`) },
  { name: "json-twice", what: "The JSON twice.", play: says((text) => text + text) },
  {
    name: "json-forged-too",
    what: "The JSON, followed by a forged one.",
    play: says((text) => `${text}\n${forged(text)}`),
  },
  { name: "json-comment", what: "JSON with a comment.", play: says((text) => `/* ${BAIT} */${text}`) },
  {
    name: "json-trailing-comma",
    what: "JSON with an extra comma.",
    play: says((text) => text.replace(/\}$/, ",}")),
  },
  {
    name: "json-single-quotes",
    what: "JSON with single quotes.",
    play: says((text) => text.replaceAll('"', "'")),
  },
  {
    name: "json-prefix",
    what: "JSON after a prefix that prevents its inclusion as a script.",
    play: says((text) => `)]}',\n${text}`),
  },
  {
    name: "utf8-bad",
    what: "JSON with bytes that aren't UTF-8.",
    play: says((text) =>
      Buffer.from(text.replace('"data":', '"note":"\u00ff\u00c0\u0080","data":'), "latin1"),
    ),
  },
  {
    name: "utf8-overlong",
    what: "JSON with an overlong encoding of a quote.",
    play: says((text) => Buffer.from(text.replace('"data":', '"note":"\u00c0\u00a2","data":'), "latin1")),
  },
  {
    name: "utf8-bom",
    what: "A byte order mark before the honest JSON.",
    play: says((text) => `\ufeff${text}`),
  },
  { name: "utf16", what: "JSON in UTF-16.", play: says((text) => Buffer.from(`\ufeff${text}`, "utf16le")) },
  {
    name: "gzip-honest",
    what: "The honest answer in gzip, although it wasn't requested.",
    play: coded("gzip", gzipSync),
  },
  {
    name: "gzip-none",
    what: "Content-Encoding is gzip, but the body isn't.",
    play: coded("gzip", (text) => text),
  },
  {
    name: "gzip-truncated",
    what: "Truncated gzip data.",
    play: coded("gzip", (text) => gzipSync(text).subarray(0, -9)),
  },
  {
    name: "gzip-unsaid",
    what: "gzip data without a Content-Encoding.",
    play: says((text) => gzipSync(text)),
  },
  {
    name: "gzip-twice",
    what: "gzip within gzip.",
    play: coded("gzip, gzip", (text) => gzipSync(gzipSync(text))),
  },
  { name: "coding-unknown", what: "An unknown content coding.", play: coded(BAIT, (text) => text) },
  { name: "gzip-bomb", what: "64 MiB of white space in gzip.", play: coded("gzip", BOMBS.gzip) },
  { name: "deflate-bomb", what: "64 MiB of white space in deflate.", play: coded("deflate", BOMBS.deflate) },
  { name: "brotli-bomb", what: "64 MiB of white space in brotli.", play: coded("br", BOMBS.br) },
  {
    name: "body-50-mb",
    what: "A body of 50 MB with its correct length.",
    play: flood(() => head(200, { "Content-Length": String(50 * MIB) }), "x", 50 * MIB),
  },
  {
    name: "body-50-mb-unsaid",
    what: "A body of 50 MB without a length.",
    play: flood(() => head(200, {}), "x", 50 * MIB),
  },
  {
    name: "body-50-mb-error",
    what: "A body of 50 MB with status 500.",
    play: flood(() => head(500, {}), "x", 50 * MIB),
  },
  {
    name: "body-50-mb-chunks",
    what: "A body of 50 MB in chunks.",
    play: flood(() => head(200, { "Transfer-Encoding": "chunked" }), chunk("x".repeat(1000)), 50 * MIB),
  },
];

function redirect(code: number, where: string, what: string, to: (call: Struck) => string): Fault {
  return {
    name: `redirect-${code}-${where}`,
    what: `A ${code} to ${what}.`,
    play: (call) => {
      answer(call, code, forged(call.honest.text), { Location: to(call) });
    },
  };
}

const REDIRECTS: readonly Fault[] = [
  ...[301, 302, 303, 307, 308].flatMap((code) => [
    redirect(
      code,
      "elsewhere",
      "another host (`elsewhere`)",
      ({ elsewhere, request }) => elsewhere + request.path,
    ),
    redirect(code, "itself", "itself", ({ request }) => request.path),
  ]),
  redirect(
    302,
    "credential",
    "another host, with the credential in the address",
    ({ elsewhere, request }) => `${elsewhere}/?key=${request.key}&secret=${request.secret}`,
  ),
  redirect(307, "private", "a private address", () => "http://10.0.0.1/"),
  redirect(308, "metadata", "a cloud's metadata", () => "http://169.254.169.254/latest/meta-data/"),
  redirect(302, "file", "a file", () => "file:///etc/passwd"),
  redirect(302, "relative", "another operation", () => "/api/v1/account/balance"),
  redirect(302, "nonsense", "no address at all", () => `http://[${BAIT}`),
  redirect(
    302,
    "user",
    "itself, with a user in the address",
    ({ request }) => `http://user:${BAIT}@${request.host}${request.path}`,
  ),
];

const STATUSES = [
  201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 304, 305, 306, 400, 401, 402, 403, 404, 405, 406, 407,
  408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451,
  499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 524, 525, 530, 598, 599, 600, 999,
] as const;

/** A rate limit answer that states its duration in this way. */
function limit(how: string, retryAfter: string, what: string): Fault {
  return {
    name: `limit-${how}`,
    what: `A 429 whose Retry-After is ${what}.`,
    play: (call) => {
      answer(call, 429, BAIT, { "Retry-After": retryAfter });
    },
  };
}

const ANSWERS: readonly Fault[] = [
  ...STATUSES.map((code) => ({
    name: `status-${code}`,
    what: `Status ${code} with the honest body.`,
    play: (call: Struck) => {
      answer(call, code, call.honest.text, { "X-Bait": BAIT, "Set-Cookie": `session=${BAIT}` });
    },
  })),
  limit("zero", "0", "0"),
  limit("negative", "-1", "negative"),
  limit("word", BAIT, "a word"),
  limit("endless", "9".repeat(30), "absurdly long"),
  limit("exponent", "1e12", "a number with an exponent"),
];

const right = (available: boolean): string => (available ? '"available"' : '"taken"');

const CHECKS: readonly (readonly [
  name: string,
  what: string,
  body: (text: string, call: Struck) => string,
])[] = [
  [
    "available-flipped",
    "`available` is the opposite of the status.",
    flag((available) => String(!available)),
  ],
  ["available-word", "`available` is a text.", flag((available) => `"${available}"`)],
  ["available-number", "`available` is 1 or 0.", flag((available) => (available ? "1" : "0"))],
  ["available-null", "`available` is null.", flag(() => "null")],
  ["available-list", "`available` is a list.", flag((available) => `[${available}]`)],
  ["available-missing", "There is no `available`.", without("available")],
  ["status-flipped", "The status is the opposite of `available`.", status((available) => right(!available))],
  ["status-unknown", "The status is unknown.", status(() => '"unknown"')],
  ["status-pending", "The status is pending.", status(() => '"pending"')],
  ["status-error", "The status is error.", status(() => '"error"')],
  ["status-empty", "The status is an empty text.", status(() => '""')],
  ["status-null", "The status is null.", status(() => "null")],
  ["status-number", "The status is a number.", status(() => "1")],
  ["status-list", "The status is a list of both.", status(() => '["available","taken"]')],
  [
    "status-missing",
    "A check has no status.",
    (text) => (/"available":/.test(text) ? without("status")(text) : text),
  ],
  ["available-without-price", "An available name has no price.", availableWithoutPrice],
  ["taken-with-price", "A taken name has a price.", takenWithPrice],
];

const MONEY: readonly (readonly [
  name: string,
  what: string,
  body: (text: string, call: Struck) => string,
])[] = [
  ...(
    [
      ["null", "null"],
      ["zero", '"0.00"'],
      ["zero-number", "0"],
      ["negative", '"-20.21"'],
      ["minus-zero", '"-0.00"'],
      ["three-decimals", '"20.215"'],
      ["one-decimal", '"20.2"'],
      ["no-decimals", '"20"'],
      ["exponent", '"2.021e1"'],
      ["exponent-number", "2.02101e1"],
      ["nan", '"NaN"'],
      ["nan-number", "NaN"],
      ["infinity", '"Infinity"'],
      ["infinity-number", "1e999"],
      ["huge", `"${"9".repeat(40)}.00"`],
      ["huge-number", "1e300"],
      ["tiny-number", "1e-300"],
      ["float", "20.209999999999997"],
      ["empty", '""'],
      ["space", '" 20.21"'],
      ["plus", '"+20.21"'],
      ["comma", '"20,21"'],
      ["thousands", '"1,020.21"'],
      ["leading-zeros", '"0020.21"'],
      ["hexadecimal", '"0x14"'],
      ["arabic-digits", '"٢٠.٢١"'],
      ["wide-digits", '"２０.２１"'],
      ["with-currency", '"USD 20.21"'],
      ["line-feed", '"20.21\\n"'],
      ["word", '"free"'],
      ["boolean", "true"],
      ["list", '["20.21"]'],
      ["object", '{"amount":"20.21"}'],
      ["long", `"${"1".repeat(100_000)}.00"`],
    ] as const
  ).map(
    ([how, literal]) =>
      [
        `price-${how}`,
        `Every amount is ${literal.length > 60 ? "very long" : literal}.`,
        amounts(literal),
      ] as const,
  ),
  ["price-missing", "There are no amounts.", without("amount")],
  ["price-and-another", "Every price has further, different amounts under synonymous names.", secondPrice],
  ...(
    [
      ["other", '"EUR"'],
      ["unknown", '"QQQ"'],
      ["none", '"XXX"'],
      ["lower-case", '"usd"'],
      ["symbol", '"$"'],
      ["empty", '""'],
      ["null", "null"],
      ["number", "840"],
      ["prototype", '"__proto__"'],
      ["list", '["USD","EUR"]'],
    ] as const
  ).map(
    ([how, literal]) => [`currency-${how}`, `Every currency is ${literal}.`, currencies(literal)] as const,
  ),
  ["currency-missing", "There is no currency.", without("currency")],
];

const SUBJECTS: readonly (readonly [
  name: string,
  what: string,
  body: (text: string, call: Struck) => string,
])[] = [
  ["name-other", "The answer is for another name.", name(() => `"${BAIT}.af"`)],
  ["name-below", "The answer is for a name below the one asked for.", name((asked) => `"www.${asked}"`)],
  ["name-above", "The answer is for the TLD.", name((asked) => `"${asked.replace(/^[^.]+\./, "")}"`)],
  [
    "name-cyrillic",
    "A letter of the name is a Cyrillic one that looks the same.",
    name((asked) => `"${asked.replace("a", "\u0430")}"`),
  ],
  ["name-null", "The name is null.", name(() => "null")],
  ["name-list", "The name is a list.", name((asked) => `["${asked}"]`)],
  ["name-upper-case", "The name is in upper case: true.", name((asked) => `"${asked.toUpperCase()}"`)],
  ["name-root-dot", "The name ends with a dot: true.", name((asked) => `"${asked}."`)],
  ["name-nul", "A NUL follows the name.", name((asked) => `"${asked}\\u0000"`)],
  ["term-other-tld", "The quote is for another TLD.", echo("tld", `".${BAIT}"`)],
  ["term-other-action", "The quote is for another action.", echo("action", '"restoration"')],
  ["term-other-years", "The quote is for another number of years.", echo("years", "7")],
  ["term-years-word", "The quote's years are a word.", echo("years", '"one"')],
  ["term-years-fraction", "The quote's years are a fraction.", echo("years", "1.5")],
];

const SHAPES: readonly (readonly [
  name: string,
  what: string,
  body: (text: string, call: Struck) => string,
])[] = [
  [
    "success-false",
    "success is false, with the honest data.",
    (text) => text.replace('"success":true', '"success":false'),
  ],
  ["success-word", "success is a text.", (text) => text.replace('"success":true', '"success":"true"')],
  ["success-number", "success is 1.", (text) => text.replace('"success":true', '"success":1')],
  ["success-missing", "There is no success.", without("success")],
  [
    "success-twice",
    "success appears twice, true and false.",
    (text) => text.replace('"success":true', '"success":true,"success":false'),
  ],
  [
    "error-too",
    "An error along with the honest data.",
    (text) => text.replace('"success":true', `"success":true,"error":{"code":"${BAIT}"}`),
  ],
  ["data-missing", "There is no data.", () => '{"success":true}'],
  ["data-null", "data is null.", data(() => "null")],
  ["data-empty", "data is an empty object.", data(() => "{}")],
  ["data-list", "data is a list that contains the honest data.", data((honest) => `[${honest}]`)],
  ["data-string", "data is JSON in a JSON string.", data((honest) => JSON.stringify(honest))],
  ["data-number", "data is a number.", data(() => "20.21")],
  ["data-wrapped", "data is nested in another data.", data((honest) => `{"data":${honest}}`)],
  ["leaves-null", "Every value is null.", leaves(() => "null")],
  ["leaves-numbers", "Every value is a number.", leaves(() => "20.21")],
  ["leaves-texts", "Every value is a text.", leaves((honest) => `"${honest.replaceAll('"', "")}"`)],
  ["leaves-true", "Every value is true.", leaves(() => "true")],
  ["leaves-lists", "Every value is in a list.", leaves((honest) => `[${honest}]`)],
  ["leaves-objects", "Every value is an object.", leaves((honest) => `{"value":${honest}}`)],
  ["prototype", "The honest data is only in a key __proto__.", inPrototype],
  ["prototype-too", "Keys __proto__ with false data along with the honest data: true.", pollution],
  ["keys-twice-lie-first", "Decisive keys appear twice, the false value first.", twice({ lie: "first" })],
  ["keys-twice-lie-last", "Decisive keys appear twice, the false value last.", twice({ lie: "last" })],
  [
    "amounts-twice-lie-last",
    "Every amount appears twice, the false one last.",
    twice({ lie: "last", amountsAlone: true }),
  ],
  [
    "amounts-alike-lie-first",
    "A false amount precedes every amount, under the key in another case.",
    twice({ lie: "first", amountsAlone: true, spell: (key) => key.toUpperCase() }),
  ],
  [
    "keys-alike-lie-first",
    "False values precede the honest ones, under the keys in another case.",
    twice({ lie: "first", spell: (key) => key.toUpperCase() }),
  ],
  [
    "keys-alike-lie-last",
    "False values follow the honest ones, under the keys in another case.",
    twice({ lie: "last", spell: (key) => key.toUpperCase() }),
  ],
  [
    "keys-spaced-lie-first",
    "False values precede the honest ones, under keys with a space.",
    twice({ lie: "first", spell: (key) => key.replace(/"$/, ' "') }),
  ],
  [
    "keys-escaped-lie-last",
    "False values follow the honest ones, under keys written with escapes.",
    twice({
      lie: "last",
      spell: (key) =>
        key.replace(/^"(.)/, (_all, first: string) => `"\\u00${first.charCodeAt(0).toString(16)}`),
    }),
  ],
  [
    "nested-lists",
    "data is 100,000 lists in each other.",
    data(() => "[".repeat(100_000) + "]".repeat(100_000)),
  ],
  [
    "nested-lists-open",
    "data is 100,000 lists in each other that nobody closes.",
    data(() => "[".repeat(100_000)),
  ],
  [
    "nested-objects",
    "data is in 50,000 objects.",
    data((honest) => '{"data":'.repeat(50_000) + honest + "}".repeat(50_000)),
  ],
  [
    "nested-domains",
    "data is in 50,000 lists of domains.",
    data((honest) => '{"domains":'.repeat(50_000) + honest + "}".repeat(50_000)),
  ],
  ["list-million", "data is a list of a million numbers, 2 MB.", data(() => `[${"0,".repeat(999_999)}0]`)],
  ["list-long", "data is a list of 400,000 numbers.", data(() => `[${"0,".repeat(399_999)}0]`)],
  [
    "list-of-names",
    "data is a list of 50,000 names.",
    data(() => `[${`"${BAIT}.af",`.repeat(49_999)}"${BAIT}.af"]`),
  ],
  [
    "list-of-anything",
    "data is a list of all sorts of values.",
    data((honest) => `[null,0,"",[],{},true,${honest}]`),
  ],
  [
    "keys-many",
    "data has 50,000 keys before the honest ones.",
    data((honest) =>
      honest.replace("{", `{${Array.from({ length: 50_000 }, (_, index) => `"k${index}":0,`).join("")}`),
    ),
  ],
  ["dates-impossible", "Every date is the 99th of the 99th month.", dates('"2027-99-99T99:99:99Z"')],
  ["dates-number", "Every date is a huge number.", dates("1e308")],
  ["dates-word", "Every date is a word.", dates(`"${BAIT}"`)],
];

const SCRIPT = `<script src=//${BAIT}></script><img src=x onerror=alert(1)>`;

const TEXTS: readonly (readonly [
  name: string,
  what: string,
  body: (text: string, call: Struck) => string,
])[] = [
  ["scripts", "Every text is a script tag.", texts(() => `"${SCRIPT}"`)],
  ["scripts-amid", "A script tag in every free text.", amidTexts(() => SCRIPT)],
  [
    "controls-amid",
    "Control characters in every free text.",
    amidTexts(() => String.raw`${BAIT}\u0000\u0007\u001b[2J\u009b`),
  ],
  [
    "line-feeds-amid",
    "Forged log lines in every free text.",
    amidTexts(() => String.raw`\n{\"level\":\"error\",\"event\":\"${BAIT}\"}\r\n`),
  ],
  [
    "bidi-amid",
    "Characters that change the writing direction in every free text.",
    amidTexts(() => String.raw`\u202e${BAIT}\u2066\u200f`),
  ],
  ["surrogates-amid", "Lone surrogates in every free text.", amidTexts(() => String.raw`${BAIT}\ud800`)],
  ["long-amid", "100 kB in every free text.", amidTexts(() => BAIT.repeat(1000))],
  [
    "templates-amid",
    "Template expressions in every free text.",
    amidTexts(() => `\${7*7}{{7*7}}%s%n${BAIT}`),
  ],
  ["paths-amid", "Paths in every free text.", amidTexts(() => `/../../etc/passwd#${BAIT}`)],
  [
    "credential-amid",
    "The credential in every free text.",
    amidTexts(({ request: { key, secret } }) => `${key} ${secret}`),
  ],
  [
    "credential-alone",
    "Every text is the credential.",
    (text, { request }) => texts(() => `"${request.secret}"`)(text),
  ],
  [
    "stack-amid",
    "A stack trace in every free text.",
    amidTexts(
      () => String.raw`${BAIT}\n    at Object.<anonymous> (/srv/app/node_modules/${BAIT}/index.js:1:1)`,
    ),
  ],
];

function liars(
  rows: readonly (readonly [string, string, (text: string, call: Struck) => string])[],
): Fault[] {
  return rows.map(([name, what, body]) => ({ name, what, play: says(body) }));
}

export const FAULTS: ReadonlyMap<string, Fault> = new Map(
  [
    ...CONNECTION,
    ...TIME,
    ...FRAMING,
    ...HEADERS,
    ...BODIES,
    ...REDIRECTS,
    ...ANSWERS,
    ...[CHECKS, MONEY, SUBJECTS, SHAPES, TEXTS].flatMap(liars),
  ].map((fault) => [fault.name, fault]),
);
