/**
 * What an HTTP response means for the call that caused it: an answer, a rate limit, a refused credential, "not managed", or a rejection.
 * Anything that can't be read with certainty is thrown as an error that contains nothing of its text.
 */
import type { DomainName } from "../domain-name.js";
import { decodeEnvelope } from "./contract.js";
import type { Credential } from "./credentials.js";
import { upstreamFailed } from "./failures.js";
import type { Operation } from "./vocabulary.js";
import { meaningOf } from "./refusal.js";
import { retryAfterMs } from "./retry-after.js";
import type { Unexpected } from "./unexpected.js";
import type { Fields } from "./fields.js";
import type { UpstreamResponse } from "./transport.js";

export type Reply =
  /** `beside`: what stands in the envelope beside the data. */
  | { readonly kind: "answer"; readonly data: unknown; readonly beside: Fields }
  /** The domain isn't managed by the reseller. With 403 it may also mean that the credential is refused. */
  | { readonly kind: "absent"; readonly status: number }
  /** The credential is refused. */
  | { readonly kind: "refused"; readonly status: number }
  /** The upstream works, but not for this request; `how` completes "The registry service …". */
  | { readonly kind: "rejected"; readonly how: string }
  | { readonly kind: "limited"; readonly pauseMs: number };

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
  readonly onAnswer?: ((answer: UpstreamResponse) => void) | undefined;
}

export type ReplyReader = (response: UpstreamResponse, call: SentCall) => Reply;

export function createReplyReader({ unexpected, nowMs, onAnswer }: ReplyReaderSettings): ReplyReader {
  return (response, { operation, name, credential }) => {
    const { status, headers, body } = response;
    const hidden = [
      credential.key,
      credential.secret,
      ...(name ? [name.ascii, name.unicode, name.label] : []),
    ];
    onAnswer?.(response);
    if (status === 200 && "json" in body && successFlagOf(body.json) === true) {
      unexpected.inAnswer(operation, body.json, hidden);
      return { kind: "answer", ...decodeEnvelope(body.json) };
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
        return { kind: "limited", pauseMs: retryAfterMs(retryAfter, sentAt(headers["date"]) ?? nowMs()) };
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
        return { kind: "answer", ...decodeEnvelope(body.json) };
      default:
        return meaning satisfies never;
    }
  };
}

/** The upstream's own time, so that a wait until a date doesn't depend on the difference between the two clocks. */
function sentAt(date: unknown): number | null {
  const sentMs = typeof date === "string" ? Date.parse(date) : NaN;
  return Number.isNaN(sentMs) ? null : sentMs;
}

function successFlagOf(body: unknown): unknown {
  return typeof body === "object" && body !== null && "success" in body ? body.success : undefined;
}
