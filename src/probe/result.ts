/** What a first contact comes to: a verdict, the calls, the findings, and the sandbox's settings that look the same. */
import { all, type Finding, findings, isUnderstood, limitFieldsOf } from "./findings.js";
import type { Contact, Heard } from "./contact.js";
import { nameShown } from "./shapes.js";

export interface CallReport {
  readonly operation: string;
  readonly request: string;
  readonly asked: string;
  readonly status: number | null;
  /** Of the body. */
  readonly mediaType: string | null;
  /** Names of fields that tell of a limit. */
  readonly limitFields: readonly string[];
  readonly outcome: "understood" | "not understood" | "limited" | "shut out" | "no answer";
  /** The service's own words where it has none to give. */
  readonly detail: string | null;
}

export interface Result {
  readonly upstream: string;
  /** `fails`: something seen cannot be handled; `incomplete`: all that was seen can, but not every call was answered. */
  readonly verdict: "copes" | "fails" | "incomplete";
  readonly calls: readonly CallReport[];
  readonly points: readonly Finding[];
  /** For the sandbox: what was seen, of several settings that fit the first. */
  readonly shapes: Readonly<Record<string, string | number>>;
}

export function resultOf(contact: Contact, upstream: string): Result {
  const calls = all(contact).map((heard) => callOf(heard, contact));
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

function callOf(heard: Heard<unknown>, { isOwn }: Contact): CallReport {
  const { operation, request, asked, answer } = heard;
  const type = answer?.headers["content-type"];
  const mediaType = typeof type === "string" ? (/^[a-z]+\/[a-z.+-]+/i.exec(type)?.[0] ?? null) : null;
  const isLost = operation === "domain" && isOwn && isUnderstood(heard) && heard.outcome.value === null;
  return {
    operation,
    request,
    asked,
    status: answer?.status ?? null,
    mediaType,
    limitFields: answer === null ? [] : limitFieldsOf(answer.headers).map(nameShown),
    outcome: isLost ? "not understood" : outcomeOf(heard),
    detail: isLost
      ? "The account's own domain was taken for one that it does not manage."
      : "code" in heard.outcome
        ? heard.outcome.detail
        : null,
  };
}

function outcomeOf(heard: Heard<unknown>): CallReport["outcome"] {
  if (isUnderstood(heard)) return "understood";
  const { answer } = heard;
  if (answer?.kind === "limit") return "limited";
  if (answer?.kind === "credential" || answer?.kind === "access") return "shut out";
  // A body that cannot be read at all is an answer too.
  const isAnswered =
    answer !== null || ("code" in heard.outcome && heard.outcome.code === "upstream_contract");
  return isAnswered ? "not understood" : "no answer";
}
