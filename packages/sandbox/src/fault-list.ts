/** Every fault that the sandbox can play, in a few kinds: one or two for each class of what can go wrong. */
import { gzipSync } from "node:zlib";
import {
  amidTexts,
  amounts,
  check,
  data,
  dataText,
  dates,
  forged,
  freePrice,
  leaves,
  type Lie,
  patched,
  pollution,
  secondPrice,
  subject,
  twice,
  without,
} from "./fault-lies.js";
import { BAIT, bytesOf, drip, ENDINGS, flood, type Play, raw, says, type Struck } from "./fault-wire.js";

/** What happens to a connection before anything is read from it. Such a call never arrives, so it isn't counted. */
type OnConnect = "reset" | "end";
type Plays = Readonly<Record<string, Play | OnConnect>>;

const MIB = 1024 * 1024;
const keepAlive = { Connection: "keep-alive", "Keep-Alive": "timeout=600" };
const bodyAt = (bytes: Buffer): number => bytes.indexOf("\r\n\r\n") + 4;

/** Sends nothing, or the correct answer up to a place in its body. */
function cuts(ending: keyof typeof ENDINGS): Plays {
  return {
    [`${ending}-before-head`]: raw(() => Buffer.of(), ending),
    [`${ending}-in-body`]: raw((call) => bytesOf(call).subarray(0, bodyAt(bytesOf(call)) + 15), ending),
  };
}

const CONNECTION: Plays = {
  "reset-on-accept": "reset",
  "end-on-accept": "end",
  ...cuts("reset"),
  ...cuts("end"),
  ...cuts("silence"),
};

const TIME: Plays = {
  slow: (call) => {
    const timer = setTimeout(call.honestly, call.ms);
    call.socket.once("close", () => clearTimeout(timer));
  },
  "drip-body": drip(bodyAt),
};

const FRAMING: Plays = {
  "length-long": says((text) => ({ headers: { "Content-Length": String(text.length + 100) } })),
  /** Bytes are left over on a connection that stays open. */
  "length-short": raw((call) => {
    const length = String(call.honest.text.length - 10);
    return bytesOf(call, { headers: { ...keepAlive, "Content-Length": length } });
  }, "silence"),
  "length-and-chunks": says((text) => ({
    headers: { "Transfer-Encoding": "chunked" },
    body: `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`,
  })),
  /** A forged answer follows the correct one, on a connection that stays open. */
  "left-over-answer": raw((call) => {
    const body = forged(call.honest.text, call);
    return Buffer.concat([{}, { body }].map((one) => bytesOf(call, { headers: keepAlive, ...one })));
  }, "silence"),
  "continue-flood": flood("", "HTTP/1.1 100 Continue\r\n\r\n", MIB / 4),
  /** Then the correct answer, in the other protocol. */
  "switching-protocols": raw((call) => {
    const head = `HTTP/1.1 101 ${BAIT}\r\nConnection: Upgrade\r\nUpgrade: ${BAIT}\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), bytesOf(call)]);
  }, "silence"),
  "no-http": raw(() => Buffer.from(`SSH-2.0-${BAIT}\r\n\r\n`)),
};

const HEADERS: Plays = {
  "headers-endless": flood("HTTP/1.1 200 OK\r\n", `X-Bait: ${BAIT}\r\n`, 64 * MIB),
  "credential-in-headers": says((_text, { request: { key, secret } }) => ({
    headers: { "X-Service-Key": key, "Set-Cookie": `secret=${secret}`, "Retry-After": secret },
  })),
  /** They instruct browsers or proxies. */
  "headers-that-act": says({
    headers: {
      "Access-Control-Allow-Origin": "*",
      "Cache-Control": "public, max-age=31536000",
      "Clear-Site-Data": '"*"',
      ETag: `"${BAIT}"`,
      Refresh: `0; url=http://${BAIT}/`,
      "Set-Cookie": `session=${BAIT}`,
      "Strict-Transport-Security": "max-age=0",
      "X-Request-Id": BAIT,
    },
  }),
  "content-type-html": says({ headers: { "Content-Type": "text/html" } }),
};

function html(status: number): Play {
  const body = `<!doctype html><title>${BAIT}</title><pre>at ${BAIT} (/srv/node_modules/app.js:1:1)</pre>`;
  return says({ status, headers: { "Content-Type": "text/html" }, body });
}

function gzipped(body: (text: string) => string | Uint8Array): Play {
  return says((text) => ({ headers: { "Content-Encoding": "gzip" }, body: body(text) }));
}

let bombBytes: Uint8Array | undefined;
/** 64 MiB of white space, any amount of which is valid JSON. */
const bomb = (): Uint8Array => (bombBytes ??= gzipSync(Buffer.alloc(64 * MIB, " "), { level: 1 }));

const BODIES: Plays = {
  "html-200": html(200),
  "html-502": html(502),
  "body-empty": says({ body: "" }),
  "json-truncated": says((text) => ({ body: text.slice(0, -5) })),
  "json-forged-too": says((text, call) => ({ body: `${text}\n${forged(text, call)}` })),
  "utf8-bad": says((text) => ({ body: Buffer.from(text.replace("{", '{"note":"ÿÀ\u0080",'), "latin1") })),
  "gzip-honest": gzipped((text) => gzipSync(text)),
  "gzip-truncated": gzipped((text) => gzipSync(text).subarray(0, -9)),
  "gzip-bomb": gzipped(bomb),
  "body-50-mb": flood(`HTTP/1.1 200 OK\r\nContent-Length: ${50 * MIB}\r\n\r\n`, "x", 50 * MIB),
};

function redirect(status: number, to: (call: Struck) => string): Play {
  return says((text, call) => ({ status, headers: { Location: to(call) }, body: forged(text, call) }));
}
const elsewhere = ({ elsewhere: host, request }: Struck): string => host + request.path;

const REDIRECTS: Plays = {
  "redirect-302": redirect(302, elsewhere),
  "redirect-308": redirect(308, elsewhere),
  "redirect-credential": redirect(302, (call) => `${elsewhere(call)}?secret=${call.request.secret}`),
};

/** With the correct body. */
function status(code: number): Plays {
  return { [`status-${code}`]: says({ status: code, headers: { "Set-Cookie": `session=${BAIT}` } }) };
}

function limit(retryAfter: string): Play {
  return says({ status: 429, headers: { "Retry-After": retryAfter }, body: BAIT });
}

const STATUSES: Plays = {
  ...status(204),
  ...status(401),
  ...status(403),
  ...status(404),
  ...status(422),
  ...status(500),
  ...status(503),
  ...status(999),
  "limit-zero": limit("0"),
  "limit-endless": limit("9".repeat(30)),
};

/** Correct HTTP with another body. */
function lies(untrue: Readonly<Record<string, Lie>>): Plays {
  return Object.fromEntries(
    Object.entries(untrue).map(([name, lie]) => [name, says((text, call) => ({ body: lie(text, call) }))]),
  );
}

const CHECKS = lies({
  "available-flipped": check(({ available, ...others }) => ({ ...others, available: !available })),
  "status-unknown": check((honest) => ({ ...honest, status: "unknown" })),
  "available-without-price": check((honest) => ({ ...honest, pricing: null })),
  "taken-with-price": check((honest) => (honest.available ? honest : { ...honest, pricing: freePrice })),
  "premium-sign": check((honest) => ({ ...honest, premium: true })),
});

const MONEY = lies({
  "price-null": amounts("null"),
  "price-zero": amounts('"0.00"'),
  "price-negative": amounts('"-20.21"'),
  "price-three-decimals": amounts('"20.215"'),
  "price-exponent": amounts('"2.021e1"'),
  "price-huge": amounts(`"${"9".repeat(40)}.00"`),
  "price-number": amounts("20.209999999999997"),
  "price-and-another": secondPrice,
  "currency-other": (text) => text.replace(/(?<="currency":)"USD"/g, '"EUR"'),
  "currency-missing": without("currency"),
});

const SUBJECTS = lies({
  "name-other": subject("domain", () => `${BAIT}.af`),
  /** A Cyrillic letter that looks the same. */
  "name-cyrillic": subject("domain", (asked) => String(asked).replace("a", "а")),
  "term-other-tld": subject("tld", () => `.${BAIT}`),
  "term-other-years": subject("years", () => 7),
});

const SHAPES = lies({
  patched,
  "success-false": (text) => text.replace('"success":true', '"success":false'),
  "success-missing": without("success"),
  "error-too": (text) => text.replace("{", `{"error":{"code":"${BAIT}"},`),
  "data-null": data(() => null),
  "data-number": data(() => 20.21),
  "leaves-texts": data(leaves(String)),
  "prototype-too": pollution,
  "keys-twice": twice((key, honest, wrong) => `${key}:${honest},${key}:${wrong}`),
  "keys-alike": twice((key, honest, wrong) => `${key.toUpperCase()}:${wrong},${key}:${honest}`),
  "nested-lists": dataText(() => "[".repeat(100_000) + "]".repeat(100_000)),
  "list-million": dataText(() => `[${"0,".repeat(999_999)}0]`),
  "dates-impossible": dates('"2027-99-99T99:99:99Z"'),
});

const TEXTS = lies({
  "scripts-amid": amidTexts(() => `<script src=//${BAIT}></script>`),
  "controls-amid": amidTexts(() => `${BAIT}\u0000\u0007\u001b[2J\u009b\r\n{"event":"${BAIT}"}\r\n`),
  "bidi-amid": amidTexts(() => `\u202e${BAIT}\u2066\u200f`),
  "credential-amid": amidTexts(({ request: { key, secret } }) => `${key} ${secret}`),
});

const KINDS: Readonly<Record<string, Plays>> = {
  "the connection": CONNECTION,
  time: TIME,
  "the framing of HTTP": FRAMING,
  headers: HEADERS,
  "the body's format": BODIES,
  redirects: REDIRECTS,
  "the status, with the correct body": STATUSES,
  "lies about availability": CHECKS,
  "lies about prices": MONEY,
  "lies about what was asked": SUBJECTS,
  "the shape of the JSON": SHAPES,
  "texts that do harm": TEXTS,
};

export interface Fault {
  readonly name: string;
  /** What is wrong. */
  readonly kind: string;
  readonly play: Play | OnConnect;
}

export const FAULTS: ReadonlyMap<string, Fault> = new Map(
  Object.entries(KINDS).flatMap(([kind, plays]) =>
    Object.entries(plays).map(([name, play]) => [name, { name, kind, play }]),
  ),
);
