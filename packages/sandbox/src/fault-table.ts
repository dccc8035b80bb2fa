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
  patched,
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
type OnConnect = "refuse" | "reset" | "end";

export interface Fault {
  readonly name: string;
  readonly what: string;
  readonly play: Play | OnConnect;
}

type Row = readonly [what: string, play: Play | OnConnect];
type Rows = Readonly<Record<string, Row>>;
/** Answers with another body. */
type Lies = Readonly<Record<string, readonly [what: string, body: (text: string, call: Struck) => string]>>;

/** Makes one or more rows for each item. */
function rowsOf<Item, Made>(items: readonly Item[], make: (item: Item) => Readonly<Record<string, Made>>) {
  return Object.fromEntries(items.flatMap((item) => Object.entries(make(item))));
}

const MIB = 1024 * 1024;

/** How much of the correct answer has been sent when the fault happens. */
const STAGES: readonly (readonly [name: string, what: string, sent: (call: Struck) => string])[] = [
  ["before-head", "before the status line", () => ""],
  ["in-head", "in the middle of the headers", (call) => honestBytes(call).slice(0, 40)],
  ["after-head", "after the headers", headOf],
  ["in-body", "in the middle of the body", (call) => honestBytes(call).slice(0, headOf(call).length + 15)],
];

function headOf(call: Struck): string {
  const bytes = honestBytes(call);
  return bytes.slice(0, bytes.indexOf("\r\n\r\n") + 4);
}

function once(make: () => Buffer): () => Buffer {
  let made: Buffer | undefined;
  return () => (made ??= make());
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

const CONNECTION: Rows = {
  "connection-refused": ["The listener is closed until the fault is cleared.", "refuse"],
  "reset-on-accept": ["The connection is reset as soon as it is accepted.", "reset"],
  "end-on-accept": ["The connection is closed as soon as it is accepted.", "end"],
  ...rowsOf(STAGES, ([stage, what, sent]): Rows => ({
    [`reset-${stage}`]: [`The connection is reset ${what}.`, thenReset(sent)],
    [`end-${stage}`]: [`The connection is closed properly ${what}.`, thenEnd(sent)],
    [`silence-${stage}`]: [`Nothing more is sent ${what}.`, thenNothing(sent)],
  })),
};

/** Fails the first call, answers the second one, and so on. */
function everySecond(fail: Play): Play {
  return (call) => (call.nth % 2 === 1 ? fail(call) : call.honestly());
}

const TIME: Rows = {
  slow: [
    "The honest answer, `ms` later.",
    (call) => {
      const timer = setTimeout(call.honestly, call.ms);
      call.socket.once("close", () => clearTimeout(timer));
    },
  ],
  "drip-head": [
    "The honest answer from its status line on, a byte every `ms`.",
    dripping(() => "", honestBytes),
  ],
  "drip-body": ["The honest body, a byte every `ms`.", dripping(headOf, (call) => call.honest.text)],
  "drip-spaces": [
    "White space before the honest body, a byte every `ms` for a million bytes.",
    dripping(
      (call) => headOf(call).replace(/Content-Length: \d+\r\n/, ""),
      (call) => " ".repeat(1_000_000) + call.honest.text,
    ),
  ],
  flapping: [
    "Every second call is answered with 503, the first one among them.",
    everySecond((call) => answer(call, 503, BAIT)),
  ],
  "flapping-reset": [
    "Every second call is reset, the first one among them.",
    everySecond(({ socket }) => socket.resetAndDestroy()),
  ],
};

function lengths(length: string): Play {
  return under({ "Content-Length": length });
}

function replaced(from: string | RegExp, to: string): Play {
  return respoken((bytes) => bytes.replace(from, to));
}

function sized(size: string): Play {
  return chunked((text) => `${size}\r\n${text}\r\n0\r\n\r\n`);
}

function respoken(change: (bytes: string) => string): Play {
  return thenEnd((call) => change(honestBytes(call, { Connection: "close" })));
}

const INTERIM = `${head(102, {})}${head(103, { Link: `</${BAIT}>; rel=preload` })}`;

const FRAMING: Rows = {
  truncated: [
    "Content-Length is longer than the body, and the connection ends.",
    thenEnd((call) => honestBytes(call, { "Content-Length": String(call.honest.text.length + 100) })),
  ],
  "length-short": [
    "Content-Length is shorter than the body, so that bytes are left over on a connection that stays open.",
    thenNothing((call) =>
      honestBytes(call, { "Content-Length": String(call.honest.text.length - 10), ...keepAlive }),
    ),
  ],
  "length-zero": ["Content-Length is 0, and a body follows.", lengths("0")],
  "length-negative": ["Content-Length is -1.", lengths("-1")],
  "length-word": ["Content-Length is a word.", lengths(BAIT)],
  "length-huge": ["Content-Length is 2^64.", lengths("18446744073709551616")],
  "length-list": ["Content-Length is a list of two.", lengths("2, 300")],
  "length-twice": [
    "There are two Content-Lengths, which differ.",
    replaced("Content-Length:", "content-length: 2\r\nContent-Length:"),
  ],
  "length-and-chunks": [
    "The body has both a Content-Length and chunks.",
    thenEnd((call) => {
      const headers = { "Transfer-Encoding": "chunked", Connection: "close" };
      return honestBytes(call, headers).replace(call.honest.text, `${chunk(call.honest.text)}0\r\n\r\n`);
    }),
  ],
  "length-none": [
    "The body has no length and ends with the connection: valid, and the honest answer.",
    replaced(/Content-Length: \d+\r\n/, ""),
  ],
  "left-over-bytes": [
    "Bytes that aren't HTTP follow the honest answer on a connection that stays open.",
    thenNothing((call) => honestBytes(call, keepAlive) + BAIT),
  ],
  "left-over-answer": [
    "A forged answer follows the honest one immediately, on a connection that stays open.",
    thenNothing((call) => honestBytes(call, keepAlive) + forgedBytes(call)),
  ],
  "left-over-answer-later": [
    "A forged answer follows the honest one 5 ms later, on a connection that stays open.",
    (call) => {
      const { socket } = call;
      socket.write(honestBytes(call, keepAlive), () => {
        setTimeout(() => {
          if (socket.writable) socket.write(forgedBytes(call));
        }, 5).unref();
      });
    },
  ],
  "left-over-flood": [
    "Forged answers follow the honest one endlessly, on a connection that stays open.",
    (call) => flood(() => honestBytes(call, keepAlive), forgedBytes(call), 8 * MIB)(call),
  ],
  "chunk-size-word": ["A chunk's size is a word.", sized("size")],
  "chunk-size-negative": ["A chunk's size is negative.", sized("-5")],
  "chunk-size-huge": ["A chunk's size is 2^68.", sized("100000000000000000")],
  "chunk-size-short": ["A chunk is longer than its size.", sized("5")],
  "chunk-size-long": ["A chunk is shorter than its size, and the connection ends.", sized("ffff")],
  "chunk-last-missing": ["There is no last chunk, and the connection ends.", chunked(chunk)],
  "chunk-extension-huge": [
    "A chunk has an extension of 1 MB.",
    chunked((text) => `${text.length.toString(16)};${"x".repeat(MIB)}\r\n${text}\r\n0\r\n\r\n`),
  ],
  "chunk-bytes": [
    "Every byte is a chunk: valid, and the honest answer.",
    chunked((text) => `${Array.from(text, chunk).join("")}0\r\n\r\n`),
  ],
  "chunk-trailers": [
    "Trailers follow the last chunk, among them a Content-Length and a status: valid, and the honest answer.",
    chunked((text) => `${chunk(text)}0\r\nContent-Length: 2\r\nX-Status: ${BAIT}\r\n\r\n`),
  ],
  "continue-flood": [
    "100 Continue again and again, for 2 MB.",
    flood(() => "", "HTTP/1.1 100 Continue\r\n\r\n", 2 * MIB),
  ],
  "interim-answers": [
    "102 and 103 before the honest answer: valid, and the honest answer.",
    respoken((bytes) => INTERIM + bytes),
  ],
  "switching-protocols": [
    "101 with an upgrade that wasn't requested.",
    thenNothing(() => head(101, { Connection: "Upgrade", Upgrade: BAIT })),
  ],
  "switching-then-answer": [
    "101, and then the honest answer in the other protocol.",
    thenNothing((call) => head(101, { Connection: "Upgrade", Upgrade: BAIT }) + honestBytes(call)),
  ],
  "no-http": ["The greeting of another protocol.", thenEnd(() => `SSH-2.0-${BAIT}\r\n\r\n`)],
  "no-head": ["The body without status line and headers.", thenEnd((call) => call.honest.text)],
  "version-9": ["HTTP/9.9.", replaced("HTTP/1.1", "HTTP/9.9")],
  "version-1-0": ["HTTP/1.0: valid, and the honest answer.", replaced("HTTP/1.1", "HTTP/1.0")],
  "status-line-word": ["The status is a word.", replaced(/^HTTP\/1.1 \d+/, "HTTP/1.1 OK")],
  "status-line-long": ["The status has four digits.", replaced(/^HTTP\/1.1 (\d+)/, "HTTP/1.1 $11")],
  "bare-line-feeds": ["Lines end with LF alone.", respoken((bytes) => bytes.replaceAll("\r\n", "\n"))],
};

const HEADERS: Rows = {
  "header-huge": ["One header has 100 kB.", under({ "X-Bait": BAIT.repeat(8000) })],
  "header-endless": ["One header has 64 MB.", flood(() => `HTTP/1.1 200 OK\r\nX-Bait: `, BAIT, 64 * MIB)],
  "headers-many": [
    "There are 5000 headers.",
    under(Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`X-${index}`, BAIT]))),
  ],
  "headers-endless": [
    "Header lines again and again, for 64 MB.",
    flood(() => `HTTP/1.1 200 OK\r\n`, `X-Bait: ${BAIT}\r\n`, 64 * MIB),
  ],
  "header-without-colon": ["A header line has no colon.", replaced("\r\n", `\r\n${BAIT}\r\n`)],
  "header-nul": ["A header holds a NUL.", under({ "X-Bait": `${BAIT}\0` })],
  "header-folded": [
    "A header continues on the next line.",
    under({ "X-Bait": `${BAIT}\r\n X-Forged: ${BAIT}` }),
  ],
  "header-space": [
    "There is white space between a header's name and its colon.",
    replaced("Content-Length:", "Content-Length :"),
  ],
  "set-cookie": ["Set-Cookie with the honest answer.", under({ "Set-Cookie": `session=${BAIT}` })],
  "credential-in-headers": [
    "The credential comes back in headers of the honest answer.",
    under(({ request: { key, secret } }) => ({
      "X-Service-Key": key,
      "X-Service-Secret": secret,
      "Set-Cookie": `secret=${secret}`,
      "Retry-After": secret,
    })),
  ],
  "headers-that-act": [
    "Headers that instruct browsers or proxies, with the honest answer.",
    under({
      "Access-Control-Allow-Origin": "*",
      "Cache-Control": "public, max-age=31536000",
      "Clear-Site-Data": '"*"',
      ETag: `"${BAIT}"`,
      Refresh: `0; url=http://${BAIT}/`,
      "Strict-Transport-Security": "max-age=0",
      "WWW-Authenticate": `Basic realm="${BAIT}"`,
      "X-Request-Id": BAIT,
    }),
  ],
  "content-type-html": ["The honest answer is declared as HTML.", under({ "Content-Type": "text/html" })],
  "content-type-none": ["The honest answer has no Content-Type.", replaced(/Content-Type: .*\r\n/, "")],
  "content-type-charset": [
    "The honest answer is declared as UTF-7.",
    under({ "Content-Type": "application/json; charset=utf-7" }),
  ],
};

const HTML = `<!doctype html><title>${BAIT}</title><h1>${BAIT}</h1><pre>at ${BAIT} (/srv/app.js:1:1)</pre>`;

function coded(coding: string, body: (text: string) => Uint8Array | string): Play {
  return says(body, { "Content-Encoding": coding });
}

const BODIES: Rows = {
  ...rowsOf([200, 404, 500, 502, 503], (code): Rows => ({
    [`html-${code}`]: [
      `An HTML page with status ${code}.`,
      says(() => HTML, { "Content-Type": "text/html" }, code),
    ],
  })),
  "text-200": ["Plain text with status 200.", says(() => BAIT, { "Content-Type": "text/plain" })],
  "xml-200": ["XML with status 200.", says(() => `<data>${BAIT}</data>`, { "Content-Type": "text/xml" })],
  "body-empty": ["No body.", says(() => "")],
  "body-white-space": ["White space alone.", says(() => " \r\n\t")],
  "body-null": ["The JSON value null.", says(() => "null")],
  "body-true": ["The JSON value true.", says(() => "true")],
  "body-number": ["A JSON number.", says(() => "1.00")],
  "body-string": ["The honest JSON as a JSON string.", says((text) => JSON.stringify(text))],
  "body-list": ["A list that holds the honest answer.", says((text) => `[${text}]`)],
  "json-truncated": ["Truncated JSON with its correct length.", says((text) => text.slice(0, -5))],
  "json-and-more": ["Text after the JSON.", says((text) => `${text}${BAIT}`)],
  "json-twice": ["The JSON twice.", says((text) => text + text)],
  "json-forged-too": ["The JSON, followed by a forged one.", says((text) => `${text}\n${forged(text)}`)],
  "json-comment": ["JSON with a comment.", says((text) => `/* ${BAIT} */${text}`)],
  "json-trailing-comma": ["JSON with an extra comma.", says((text) => text.replace(/\}$/, ",}"))],
  "json-single-quotes": ["JSON with single quotes.", says((text) => text.replaceAll('"', "'"))],
  "json-prefix": [
    "JSON after a prefix that prevents its inclusion as a script.",
    says((text) => `)]}',\n${text}`),
  ],
  "utf8-bad": [
    "JSON with bytes that aren't UTF-8.",
    says((text) => Buffer.from(text.replace('"data":', '"note":"\u00ff\u00c0\u0080","data":'), "latin1")),
  ],
  "utf8-overlong": [
    "JSON with an overlong encoding of a quote.",
    says((text) => Buffer.from(text.replace('"data":', '"note":"\u00c0\u00a2","data":'), "latin1")),
  ],
  "utf8-bom": ["A byte order mark before the honest JSON.", says((text) => `\ufeff${text}`)],
  utf16: ["JSON in UTF-16.", says((text) => Buffer.from(`\ufeff${text}`, "utf16le"))],
  "gzip-honest": ["The honest answer in gzip, although it wasn't requested.", coded("gzip", gzipSync)],
  "gzip-none": ["Content-Encoding is gzip, but the body isn't.", coded("gzip", (text) => text)],
  "gzip-truncated": ["Truncated gzip data.", coded("gzip", (text) => gzipSync(text).subarray(0, -9))],
  "gzip-unsaid": ["gzip data without a Content-Encoding.", says((text) => gzipSync(text))],
  "gzip-twice": ["gzip within gzip.", coded("gzip, gzip", (text) => gzipSync(gzipSync(text)))],
  "coding-unknown": ["An unknown content coding.", coded(BAIT, (text) => text)],
  "gzip-bomb": ["64 MiB of white space in gzip.", coded("gzip", BOMBS.gzip)],
  "deflate-bomb": ["64 MiB of white space in deflate.", coded("deflate", BOMBS.deflate)],
  "brotli-bomb": ["64 MiB of white space in brotli.", coded("br", BOMBS.br)],
  "body-50-mb": [
    "A body of 50 MB with its correct length.",
    flood(() => head(200, { "Content-Length": String(50 * MIB) }), "x", 50 * MIB),
  ],
  "body-50-mb-unsaid": ["A body of 50 MB without a length.", flood(() => head(200, {}), "x", 50 * MIB)],
  "body-50-mb-error": ["A body of 50 MB with status 500.", flood(() => head(500, {}), "x", 50 * MIB)],
  "body-50-mb-chunks": [
    "A body of 50 MB in chunks.",
    flood(() => head(200, { "Transfer-Encoding": "chunked" }), chunk("x".repeat(1000)), 50 * MIB),
  ],
};

function redirect(code: number, to: (call: Struck) => string): Play {
  return (call) => answer(call, code, forged(call.honest.text), { Location: to(call) });
}

const REDIRECTS: Rows = {
  ...rowsOf([301, 302, 303, 307, 308], (code): Rows => ({
    [`redirect-${code}-elsewhere`]: [
      `A ${code} to another host (\`elsewhere\`).`,
      redirect(code, ({ elsewhere, request }) => elsewhere + request.path),
    ],
    [`redirect-${code}-itself`]: [`A ${code} to itself.`, redirect(code, ({ request }) => request.path)],
  })),
  "redirect-302-credential": [
    "A 302 to another host, with the credential in the address.",
    redirect(302, ({ elsewhere, request }) => `${elsewhere}/?key=${request.key}&secret=${request.secret}`),
  ],
  "redirect-307-private": ["A 307 to a private address.", redirect(307, () => "http://10.0.0.1/")],
  "redirect-308-metadata": [
    "A 308 to a cloud's metadata.",
    redirect(308, () => "http://169.254.169.254/latest/meta-data/"),
  ],
  "redirect-302-file": ["A 302 to a file.", redirect(302, () => "file:///etc/passwd")],
  "redirect-302-relative": ["A 302 to another operation.", redirect(302, () => "/api/v1/account/balance")],
  "redirect-302-nonsense": ["A 302 to no address at all.", redirect(302, () => `http://[${BAIT}`)],
  "redirect-302-user": [
    "A 302 to itself, with a user in the address.",
    redirect(302, ({ request }) => `http://user:${BAIT}@${request.host}${request.path}`),
  ],
};

const STATUSES = [
  201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 304, 305, 306, 400, 401, 402, 403, 404, 405, 406, 407,
  408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451,
  499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 524, 525, 530, 598, 599, 600, 999,
] as const;

function limit(retryAfter: string): Play {
  return says(() => BAIT, { "Retry-After": retryAfter }, 429);
}

const ANSWERS: Rows = {
  ...rowsOf(STATUSES, (code): Rows => ({
    [`status-${code}`]: [
      `Status ${code} with the honest body.`,
      says((text) => text, { "X-Bait": BAIT, "Set-Cookie": `session=${BAIT}` }, code),
    ],
  })),
  "limit-zero": ["A 429 whose Retry-After is 0.", limit("0")],
  "limit-negative": ["A 429 whose Retry-After is negative.", limit("-1")],
  "limit-word": ["A 429 whose Retry-After is a word.", limit(BAIT)],
  "limit-endless": ["A 429 whose Retry-After is absurdly long.", limit("9".repeat(30))],
  "limit-exponent": ["A 429 whose Retry-After is a number with an exponent.", limit("1e12")],
};

const right = (available: boolean): string => (available ? '"available"' : '"taken"');

const CHECKS: Lies = {
  "available-flipped": [
    "`available` is the opposite of the status.",
    flag((available) => String(!available)),
  ],
  "available-word": ["`available` is a text.", flag((available) => `"${available}"`)],
  "available-number": ["`available` is 1 or 0.", flag((available) => (available ? "1" : "0"))],
  "available-null": ["`available` is null.", flag(() => "null")],
  "available-list": ["`available` is a list.", flag((available) => `[${available}]`)],
  "available-missing": ["There is no `available`.", without("available")],
  "status-flipped": ["The status is the opposite of `available`.", status((available) => right(!available))],
  "status-unknown": ["The status is unknown.", status(() => '"unknown"')],
  "status-pending": ["The status is pending.", status(() => '"pending"')],
  "status-error": ["The status is error.", status(() => '"error"')],
  "status-empty": ["The status is an empty text.", status(() => '""')],
  "status-null": ["The status is null.", status(() => "null")],
  "status-number": ["The status is a number.", status(() => "1")],
  "status-list": ["The status is a list of both.", status(() => '["available","taken"]')],
  "status-missing": [
    "A check has no status.",
    (text) => (/"available":/.test(text) ? without("status")(text) : text),
  ],
  "available-without-price": ["An available name has no price.", availableWithoutPrice],
  "taken-with-price": ["A taken name has a price.", takenWithPrice],
};

/** What takes the place of every amount, as JSON. */
const AMOUNTS = {
  null: "null",
  zero: '"0.00"',
  "zero-number": "0",
  negative: '"-20.21"',
  "minus-zero": '"-0.00"',
  "three-decimals": '"20.215"',
  "one-decimal": '"20.2"',
  "no-decimals": '"20"',
  exponent: '"2.021e1"',
  "exponent-number": "2.02101e1",
  nan: '"NaN"',
  "nan-number": "NaN",
  infinity: '"Infinity"',
  "infinity-number": "1e999",
  huge: `"${"9".repeat(40)}.00"`,
  "huge-number": "1e300",
  "tiny-number": "1e-300",
  float: "20.209999999999997",
  empty: '""',
  space: '" 20.21"',
  plus: '"+20.21"',
  comma: '"20,21"',
  thousands: '"1,020.21"',
  "leading-zeros": '"0020.21"',
  hexadecimal: '"0x14"',
  "arabic-digits": '"٢٠.٢١"',
  "wide-digits": '"２０.２１"',
  "with-currency": '"USD 20.21"',
  "line-feed": '"20.21\\n"',
  word: '"free"',
  boolean: "true",
  list: '["20.21"]',
  object: '{"amount":"20.21"}',
  long: `"${"1".repeat(100_000)}.00"`,
};

/** What takes the place of every currency, as JSON. */
const CURRENCIES = {
  other: '"EUR"',
  unknown: '"QQQ"',
  none: '"XXX"',
  "lower-case": '"usd"',
  symbol: '"$"',
  empty: '""',
  null: "null",
  number: "840",
  prototype: '"__proto__"',
  list: '["USD","EUR"]',
};

const MONEY: Lies = {
  ...rowsOf(Object.entries(AMOUNTS), ([how, json]): Lies => ({
    [`price-${how}`]: [`Every amount is ${json.length > 60 ? "very long" : json}.`, amounts(json)],
  })),
  "price-missing": ["There are no amounts.", without("amount")],
  "price-and-another": ["Every price has further, different amounts under synonymous names.", secondPrice],
  ...rowsOf(Object.entries(CURRENCIES), ([how, json]): Lies => ({
    [`currency-${how}`]: [`Every currency is ${json}.`, currencies(json)],
  })),
  "currency-missing": ["There is no currency.", without("currency")],
};

const SUBJECTS: Lies = {
  "name-other": ["The answer is for another name.", name(() => `"${BAIT}.af"`)],
  "name-below": ["The answer is for a name below the one asked for.", name((asked) => `"www.${asked}"`)],
  "name-above": ["The answer is for the TLD.", name((asked) => `"${asked.replace(/^[^.]+\./, "")}"`)],
  "name-cyrillic": [
    "A letter of the name is a Cyrillic one that looks the same.",
    name((asked) => `"${asked.replace("a", "\u0430")}"`),
  ],
  "name-null": ["The name is null.", name(() => "null")],
  "name-list": ["The name is a list.", name((asked) => `["${asked}"]`)],
  "name-upper-case": [
    "The name is in upper case, which is still the same name.",
    name((asked) => `"${asked.toUpperCase()}"`),
  ],
  "name-root-dot": [
    "The name ends with a dot, which is still the same name.",
    name((asked) => `"${asked}."`),
  ],
  "name-nul": ["A NUL follows the name.", name((asked) => `"${asked}\\u0000"`)],
  "term-other-tld": ["The quote is for another TLD.", echo("tld", `".${BAIT}"`)],
  "term-other-action": ["The quote is for another action.", echo("action", '"restoration"')],
  "term-other-years": ["The quote is for another number of years.", echo("years", "7")],
  "term-years-word": ["The quote's years are a word.", echo("years", '"one"')],
  "term-years-fraction": ["The quote's years are a fraction.", echo("years", "1.5")],
};

/** These fields take the place of `success`. */
function success(fields: string): (text: string) => string {
  return (text) => text.replace('"success":true', fields);
}

const SHAPES: Lies = {
  patched: ["The setting's `patch` is merged into the honest data (RFC 7396).", patched],
  "success-false": ["success is false, with the honest data.", success('"success":false')],
  "success-word": ["success is a text.", success('"success":"true"')],
  "success-number": ["success is 1.", success('"success":1')],
  "success-missing": ["There is no success.", without("success")],
  "success-twice": ["success appears twice, true and false.", success('"success":true,"success":false')],
  "error-too": ["An error along with the honest data.", success(`"success":true,"error":{"code":"${BAIT}"}`)],
  "data-missing": ["There is no data.", () => '{"success":true}'],
  "data-null": ["data is null.", data(() => "null")],
  "data-empty": ["data is an empty object.", data(() => "{}")],
  "data-list": ["data is a list that contains the honest data.", data((honest) => `[${honest}]`)],
  "data-string": ["data is JSON in a JSON string.", data((honest) => JSON.stringify(honest))],
  "data-number": ["data is a number.", data(() => "20.21")],
  "data-wrapped": ["data is nested in another data.", data((honest) => `{"data":${honest}}`)],
  "leaves-null": ["Every value is null.", leaves(() => "null")],
  "leaves-numbers": ["Every value is a number.", leaves(() => "20.21")],
  "leaves-texts": ["Every value is a text.", leaves((honest) => `"${honest.replaceAll('"', "")}"`)],
  "leaves-true": ["Every value is true.", leaves(() => "true")],
  "leaves-lists": ["Every value is in a list.", leaves((honest) => `[${honest}]`)],
  "leaves-objects": ["Every value is an object.", leaves((honest) => `{"value":${honest}}`)],
  prototype: ["The honest data is only in a key __proto__.", inPrototype],
  "prototype-too": ["Keys __proto__ with false data along with the honest data.", pollution],
  "keys-twice-lie-first": ["Decisive keys appear twice, the false value first.", twice({ lie: "first" })],
  "keys-twice-lie-last": ["Decisive keys appear twice, the false value last.", twice({ lie: "last" })],
  "amounts-twice-lie-last": [
    "Every amount appears twice, the false one last.",
    twice({ lie: "last", amountsAlone: true }),
  ],
  "amounts-alike-lie-first": [
    "A false amount precedes every amount, under the key in another case.",
    twice({ lie: "first", amountsAlone: true, spell: (key) => key.toUpperCase() }),
  ],
  "keys-alike-lie-first": [
    "False values precede the honest ones, under the keys in another case.",
    twice({ lie: "first", spell: (key) => key.toUpperCase() }),
  ],
  "keys-alike-lie-last": [
    "False values follow the honest ones, under the keys in another case.",
    twice({ lie: "last", spell: (key) => key.toUpperCase() }),
  ],
  "keys-spaced-lie-first": [
    "False values precede the honest ones, under keys with a space.",
    twice({ lie: "first", spell: (key) => key.replace(/"$/, ' "') }),
  ],
  "keys-escaped-lie-last": [
    "False values follow the honest ones, under keys written with escapes.",
    twice({
      lie: "last",
      spell: (key) =>
        key.replace(/^"(.)/, (_all, first: string) => `"\\u00${first.charCodeAt(0).toString(16)}`),
    }),
  ],
  "nested-lists": ["data is 100,000 nested lists.", data(() => "[".repeat(100_000) + "]".repeat(100_000))],
  "nested-lists-open": [
    "data is 100,000 nested lists that are never closed.",
    data(() => "[".repeat(100_000)),
  ],
  "nested-objects": [
    "The honest data is in 50,000 nested objects.",
    data((honest) => '{"data":'.repeat(50_000) + honest + "}".repeat(50_000)),
  ],
  "nested-domains": [
    "The honest data is in 50,000 nested objects with the key domains.",
    data((honest) => '{"domains":'.repeat(50_000) + honest + "}".repeat(50_000)),
  ],
  "list-million": ["data is a list of a million numbers, 2 MB.", data(() => `[${"0,".repeat(999_999)}0]`)],
  "list-long": ["data is a list of 400,000 numbers.", data(() => `[${"0,".repeat(399_999)}0]`)],
  "list-of-names": [
    "data is a list of 50,000 names.",
    data(() => `[${`"${BAIT}.af",`.repeat(49_999)}"${BAIT}.af"]`),
  ],
  "list-of-anything": [
    "data is a list of all sorts of values.",
    data((honest) => `[null,0,"",[],{},true,${honest}]`),
  ],
  "keys-many": [
    "data has 50,000 keys before the honest ones.",
    data((honest) =>
      honest.replace("{", `{${Array.from({ length: 50_000 }, (_, index) => `"k${index}":0,`).join("")}`),
    ),
  ],
  "dates-impossible": ["Every date is the 99th of the 99th month.", dates('"2027-99-99T99:99:99Z"')],
  "dates-number": ["Every date is a huge number.", dates("1e308")],
  "dates-word": ["Every date is a word.", dates(`"${BAIT}"`)],
};

const SCRIPT = `<script src=//${BAIT}></script><img src=x onerror=alert(1)>`;

const TEXTS: Lies = {
  scripts: ["Every text is a script tag.", texts(() => `"${SCRIPT}"`)],
  "scripts-amid": ["A script tag in every free text.", amidTexts(SCRIPT)],
  "controls-amid": [
    "Control characters in every free text.",
    amidTexts(String.raw`${BAIT}\u0000\u0007\u001b[2J\u009b`),
  ],
  "line-feeds-amid": [
    "Forged log lines in every free text.",
    amidTexts(String.raw`\n{\"level\":\"error\",\"event\":\"${BAIT}\"}\r\n`),
  ],
  "bidi-amid": [
    "Characters that change the writing direction in every free text.",
    amidTexts(String.raw`\u202e${BAIT}\u2066\u200f`),
  ],
  "surrogates-amid": ["Lone surrogates in every free text.", amidTexts(String.raw`${BAIT}\ud800`)],
  "long-amid": ["100 kB in every free text.", amidTexts(BAIT.repeat(1000))],
  "templates-amid": ["Template expressions in every free text.", amidTexts(`\${7*7}{{7*7}}%s%n${BAIT}`)],
  "paths-amid": ["Paths in every free text.", amidTexts(`/../../etc/passwd#${BAIT}`)],
  "credential-amid": [
    "The credential in every free text.",
    amidTexts(({ request: { key, secret } }) => `${key} ${secret}`),
  ],
  "credential-alone": [
    "Every text is the credential.",
    (text, { request }) => texts(() => `"${request.secret}"`)(text),
  ],
  "stack-amid": [
    "A stack trace in every free text.",
    amidTexts(String.raw`${BAIT}\n    at Object.<anonymous> (/srv/app/node_modules/${BAIT}/index.js:1:1)`),
  ],
};

const LIES: Lies = { ...CHECKS, ...MONEY, ...SUBJECTS, ...SHAPES, ...TEXTS };
const ROWS: Rows = {
  ...CONNECTION,
  ...TIME,
  ...FRAMING,
  ...HEADERS,
  ...BODIES,
  ...REDIRECTS,
  ...ANSWERS,
  ...rowsOf(Object.entries(LIES), ([name, [what, body]]): Rows => ({ [name]: [what, says(body)] })),
};

export const FAULTS: ReadonlyMap<string, Fault> = new Map(
  Object.entries(ROWS).map(([name, [what, play]]) => [name, { name, what, play }]),
);
