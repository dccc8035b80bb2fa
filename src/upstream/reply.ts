/**
 * What an HTTP response means for the call that caused it: an answer, a rate limit, a refused credential, "not managed", or a rejection.
 * Anything that can't be read with certainty is thrown as an error that contains nothing of its text.
 */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { DomainName } from "../domain-name.js";
import type { ServiceError } from "../errors.js";
import { decodeEnvelope } from "./contract.js";
import { echoes } from "./credential-echo.js";
import type { Credential } from "./credentials.js";
import { notUnderstood, upstreamFailed } from "./failures.js";
import type { Operation } from "./vocabulary.js";
import { meaningOf } from "./refusal.js";
import { retryAfterMs } from "./retry-after.js";
import type { Unexpected } from "./unexpected.js";
import { MAX_BODY_BYTES, type UpstreamResponse } from "./transport.js";
import { parseWrittenJson, RepeatedFieldError } from "./written-json.js";

export type Reply =
  | { readonly kind: "answer"; readonly data: unknown }
  /** The domain isn't managed by the reseller. With 403 it may also mean that the credential is refused. */
  | { readonly kind: "absent"; readonly status: number }
  /** The credential is refused. */
  | { readonly kind: "refused"; readonly status: number }
  /** The upstream works, but not for this request; `how` completes "The registry service …". */
  | { readonly kind: "rejected"; readonly how: string }
  | { readonly kind: "limited"; readonly pauseMs: number };

/** A response before it is interpreted. Its text may be cut off. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: { readonly json: unknown } | { readonly text: string };
}

/** What was asked, and with which credential. */
interface SentCall {
  readonly operation: Operation;
  /** Null if it isn't about one name. */
  readonly name: DomainName | null;
  readonly credential: Credential;
}

interface ReplyReaderSettings {
  readonly unexpected: Pick<Unexpected, "inAnswer" | "inError">;
  /** Now, for a Retry-After date from an upstream that sends no date of its own. */
  readonly nowMs: () => number;
  readonly onAnswer?: ((answer: RawAnswer) => void) | undefined;
}

export type ReplyReader = (response: UpstreamResponse, call: SentCall) => Promise<Reply>;

export function createReplyReader({ unexpected, nowMs, onAnswer }: ReplyReaderSettings): ReplyReader {
  return async ({ status, headers, data }, { operation, name, credential }) => {
    const hidden = [
      credential.key,
      credential.secret,
      ...(name ? [name.ascii, name.unicode, name.label] : []),
    ];
    const bytes = await inflated(data, headers["content-encoding"]).catch((error: unknown) => {
      if (status === 200) throw error;
      return new Uint8Array();
    });
    const body = bodyOf(bytes);
    onAnswer?.({ status, headers, body });
    if (status === 200 && "json" in body && successFlagOf(body.json) === true) {
      // The requested name is exempt: rejecting it would confirm that a visitor guessed the credential.
      if (echoes(bytes, credential, name?.ascii)) throw notUnderstood("it repeats the credential");
      unexpected.inAnswer(operation, body.json, hidden);
      return { kind: "answer", data: decodeEnvelope(body.json) };
    }
    const retryAfter: unknown = headers["retry-after"];
    const meaning = meaningOf({
      status,
      hasRetryAfter: retryAfter !== undefined,
      body: "json" in body ? body.json : body.text,
      isRecord: operation === "domain",
      asked: name,
    });
    switch (meaning) {
      case "limit":
        return { kind: "limited", pauseMs: retryAfterMs(retryAfter, sentAtMs(headers["date"]) ?? nowMs()) };
      case "credential":
        return { kind: "refused", status };
      case "absent":
        return { kind: "absent", status };
      case "failure":
        if ("json" in body) unexpected.inError(operation, body.json, hidden);
        if (status >= 400 && status < 500) return { kind: "rejected", how: "answered with an error" };
        if (status !== 200) throw upstreamFailed("answered with an error");
        if (!("json" in body)) throw body.fault;
        if (successFlagOf(body.json) === false) return { kind: "rejected", how: "refused the request" };
        return { kind: "answer", data: decodeEnvelope(body.json) };
      default:
        return meaning satisfies never;
    }
  };
}

/** The upstream's own time, so that a wait until a date doesn't depend on the difference between the two clocks. */
function sentAtMs(date: unknown): number | null {
  const sentMs = typeof date === "string" ? Date.parse(date) : NaN;
  return Number.isNaN(sentMs) ? null : sentMs;
}

const INFLATE = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

/** The body's bytes. Inflates them, up to the size limit, if the upstream compressed them although it was asked not to. */
async function inflated(body: unknown, encoding: unknown): Promise<Uint8Array> {
  if (!(body instanceof Uint8Array)) throw unreadable();
  const coding = typeof encoding === "string" ? encoding.toLowerCase() : "identity";
  if (coding === "" || coding === "identity") return body;
  if (coding !== "gzip" && coding !== "deflate" && coding !== "br") throw unreadable();
  try {
    return await INFLATE[coding](body, { maxOutputLength: MAX_BODY_BYTES });
  } catch {
    throw unreadable();
  }
}

/** How much of a body that isn't JSON is searched for the words of an error. */
const MAX_TEXT_BYTES = 4096;

/** The body as JSON; otherwise its text, and the reason why it can't be read. */
function bodyOf(
  bytes: Uint8Array,
): { readonly json: unknown } | { readonly text: string; readonly fault: ServiceError } {
  try {
    return { json: parseWrittenJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) };
  } catch (error) {
    const fault =
      error instanceof RepeatedFieldError ? notUnderstood("a field that appears twice") : unreadable();
    return { text: new TextDecoder().decode(bytes.subarray(0, MAX_TEXT_BYTES)), fault };
  }
}

function unreadable(): ServiceError {
  return notUnderstood("its body");
}

function successFlagOf(body: unknown): unknown {
  return typeof body === "object" && body !== null && "success" in body ? body.success : undefined;
}
