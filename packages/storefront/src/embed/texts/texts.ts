/** What every language has besides its texts, and the words for problems. */
import type { FieldError, ProblemCode, StorefrontProblem } from "../../../../client/src/client.js";

export type Language = "en" | "fa" | "ps";

export interface Base {
  readonly language: Language;
  readonly direction: "ltr" | "rtl";
  /** For numbers, amounts and dates. Browsers without Pashto use Dari, which has the same digits and calendar. */
  readonly locale: string;
  readonly problems: Readonly<Partial<Record<ProblemCode, Explanation>>> & { readonly other: Explanation };
  /** The advice if the service names a wait that is longer than about a minute. */
  readonly inMinutes: string;
  /** Why the service rejects a name. */
  readonly reasons: Readonly<
    Record<"required" | "too_long" | "character" | "script" | "term" | "other", string> &
      Record<"not_a_name" | "not_sold", (endings: string) => string>
  >;
}

/** What is wrong, and what to do about it unless the page does it by itself. */
type Explanation = readonly [cause: string, advice: string];
interface Problem {
  readonly code: ProblemCode;
  readonly status?: number;
  readonly retryAfter?: number | undefined;
}

/** A wait for quota is at most a minute, or a sixth more after a start. Only a pause of the registry is longer. */
const ABOUT_A_MINUTE_S = 70;

/** What is wrong and what to do about it. `sold`: the TLDs sold; empty while they are unknown. */
export function wordsFor(texts: Base, problem: StorefrontProblem, sold: readonly string[]): string {
  const [field] = problem.errors;
  if (problem.code === "invalid_request" && field) return reasonFor(texts, field, sold);
  return adviceFor(texts, problem) ?? texts.problems.other.join(" ");
}

/** The same for any problem but that of a name; undefined if this page doesn't know its code. */
export function adviceFor(texts: Base, problem: Problem): string | undefined {
  const known = explanationOf(texts, problem);
  const { retryAfter = 0 } = problem;
  return known && `${known[0]} ${retryAfter > ABOUT_A_MINUTE_S ? texts.inMinutes : known[1]}`;
}

/** What is wrong, without advice: the page tries again by itself. */
export function causeOf(texts: Base, problem: Problem): string {
  return (explanationOf(texts, problem) ?? texts.problems.other)[0];
}

function explanationOf({ problems }: Base, { code, status = 0 }: Problem): Explanation | undefined {
  // A proxy answered, so the visitor's own connection works.
  return problems[code === "unreachable" && status >= 500 ? "internal" : code];
}

/** Why the service rejects a name. */
export function reasonFor(
  { reasons }: Base,
  { field, reason }: Pick<FieldError, "field" | "reason">,
  sold: readonly string[],
): string {
  if (reason === "not_sold" && /(?:^|\.)(?:years|action)$/.test(field)) return reasons.term;
  if (reason === "not_sold" || reason === "not_a_name") return reasons[reason](sold.join(", "));
  const isKnown =
    reason === "required" || reason === "too_long" || reason === "character" || reason === "script";
  return reasons[isKnown ? reason : "other"];
}
