/** The probe's result: a verdict, the calls, the findings, and the sandbox settings that behave the same. */
import { all, type CallResult, type Contact, isUnderstood } from "./contact.js";
import { type Finding, findings, limitFieldsOf } from "./findings.js";
import { nameShown } from "./shapes.js";

export interface CallReport {
  readonly operation: string;
  readonly request: string;
  readonly asked: string;
  readonly status: number | null;
  /** The media type of the body. */
  readonly mediaType: string | null;
  /** Names of response headers that describe a rate limit. */
  readonly limitFields: readonly string[];
  readonly outcome: "understood" | "not understood" | "rate limited" | "access denied" | "no answer";
  /** What the service noticed in the answer without understanding it. */
  readonly unexpected: readonly string[];
  /** The service's error, or null if it understood the answer. */
  readonly detail: string | null;
}

export interface Result {
  readonly upstream: string;
  /** `fails`: something that was seen can't be handled. `incomplete`: everything seen can be, but not every call was answered. */
  readonly verdict: "copes" | "fails" | "incomplete";
  readonly calls: readonly CallReport[];
  readonly points: readonly Finding[];
  /** Sandbox settings that reproduce what was seen; the first where several fit. */
  readonly shapes: Readonly<Record<string, string | number>>;
}

export function resultOf(contact: Contact, upstream: string): Result {
  const calls = all(contact).map((call) => reportOf(call, contact));
  const points = findings(contact);
  const fails =
    points.some(({ copes }) => copes === false) || calls.some(({ outcome }) => outcome === "not understood");
  const isComplete = calls.every(({ outcome }) => outcome === "understood");
  const shapes = points.flatMap(({ point, fits: [first] }): [string, string | number][] =>
    first === undefined ? [] : [[point, first]],
  );
  return {
    upstream,
    verdict: fails ? "fails" : isComplete ? "copes" : "incomplete",
    calls,
    points,
    shapes: Object.fromEntries(shapes),
  };
}

function reportOf(call: CallResult<unknown>, { isOwn, unexpected }: Contact): CallReport {
  const { operation, request, asked, answer } = call;
  const type = answer?.headers["content-type"];
  const mediaType = typeof type === "string" ? (/^[a-z]+\/[a-z.+-]+/i.exec(type)?.[0] ?? null) : null;
  const isLost = operation === "domain" && isOwn && isUnderstood(call) && call.outcome.value === null;
  return {
    operation,
    request,
    asked,
    status: answer?.status ?? null,
    mediaType,
    limitFields: answer === null ? [] : limitFieldsOf(answer.headers).map(nameShown),
    unexpected: unexpected.flatMap((one) => (one.operation === operation ? [one.what] : [])),
    outcome: isLost ? "not understood" : outcomeOf(call),
    detail: isLost
      ? "One of the account's own domains was read as not managed."
      : "code" in call.outcome
        ? call.outcome.detail
        : null,
  };
}

function outcomeOf(call: CallResult<unknown>): CallReport["outcome"] {
  if (isUnderstood(call)) return "understood";
  const { answer } = call;
  if (answer?.kind === "limit") return "rate limited";
  if (answer?.kind === "credential" || answer?.kind === "access") return "access denied";
  // A body that can't be read is an answer, too.
  const isAnswered = answer !== null || ("code" in call.outcome && call.outcome.code === "upstream_contract");
  return isAnswered ? "not understood" : "no answer";
}
