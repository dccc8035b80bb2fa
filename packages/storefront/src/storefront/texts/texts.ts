/** What every language has besides its texts, and the words for problems. */
import type { ProblemCode, StorefrontProblem } from "../../../../client/src/client.js";

export type Language = "en" | "fa" | "ps";

export interface Base {
  readonly language: Language;
  readonly direction: "ltr" | "rtl";
  /** For numbers, amounts and dates. Browsers without Pashto use Dari, which has the same digits and calendar. */
  readonly locale: string;
  readonly problems: Readonly<Partial<Record<ProblemCode, Explanation>>> & { readonly other: Explanation };
  /** The advice if the service names a wait that is longer than about a minute. */
  readonly inMinutes: string;
  /** Why the service rejects a name, by the start of its message. Some contain a character or the TLDs sold. `other`: for an unknown message. */
  readonly reasons: Readonly<Record<Reason, string | ((named: string) => string)>> & {
    readonly other: (message: string) => string;
  };
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

type Reason = (typeof REASONS)[number];
export const REASONS = [
  "is missing",
  "is empty",
  "is too long",
  "isn't a valid domain name",
  "contains",
  "has an empty part",
  "has a misplaced hyphen",
  "is only an ending",
  "has an ending that isn't sold here",
  "needs an ending",
  "must be one name directly before the ending",
  "must be a domain name, not an e-mail address",
  "must be one of",
  "no name of this label",
  "can't be registered",
] as const;

/** What is wrong and what to do about it. */
export function wordsFor(texts: Base, problem: StorefrontProblem): string {
  const [field] = problem.errors;
  if (problem.code === "invalid_request" && field) return reasonFor(texts, field.message);
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
export function reasonFor({ reasons }: Base, message: string): string {
  const known = REASONS.find((reason) => message.startsWith(reason));
  if (known === undefined) return reasons.other(message);
  const words = reasons[known];
  const [, character, endings] = /^contains (.*), which|sold under (.*)$/u.exec(message) ?? [];
  return typeof words === "string" ? words : words(character ?? endings ?? "");
}
