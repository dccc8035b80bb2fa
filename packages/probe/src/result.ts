/** The probe's result: a verdict, the calls, the findings, and the sandbox settings that behave the same; as JSON, or as a table for a terminal. */
import type { Call, Contact } from "./answers.js";
import { type Finding, findings, limitFieldsOf } from "./points.js";
import { nameShown } from "./shapes.js";

type CallReport = ReturnType<typeof reportOf>;

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
  const reports = Object.values<Call>(contact.calls).map(reportOf);
  const points = findings(contact);
  const fails =
    points.some(({ copes }) => copes === false) ||
    reports.some(({ outcome }) => outcome === "not understood");
  const isComplete = reports.every(({ outcome }) => outcome === "understood");
  return {
    upstream,
    verdict: fails ? "fails" : isComplete ? "copes" : "incomplete",
    calls: reports,
    points,
    shapes: Object.fromEntries(
      points.flatMap(({ point, fits: [first] }) => (first === undefined ? [] : [[point, first]])),
    ),
  };
}

function reportOf({ operation, request, asked, answer, unexpected, error }: Call) {
  const type = answer?.headers["content-type"];
  return {
    operation,
    request,
    asked,
    status: answer?.status ?? null,
    mediaType: typeof type === "string" ? (/^[a-z]+\/[a-z.+-]+/i.exec(type)?.[0] ?? null) : null,
    /** Names of response headers that describe a rate limit. */
    limitFields: answer === null ? [] : limitFieldsOf(answer.headers).map(nameShown),
    outcome: outcomeOf(answer, error),
    /** What the service noticed in the answer without understanding it. */
    unexpected,
    /** The service's error, or null if it understood the answer. */
    detail: error?.detail ?? null,
  };
}

function outcomeOf(answer: Call["answer"], error: Call["error"]) {
  if (error === null) return "understood";
  if (answer?.kind === "limit") return "rate limited";
  if (answer?.kind === "credential" || answer?.kind === "access") return "access denied";
  // A body that can't be read is an answer, too.
  return answer !== null || error.code === "upstream_contract" ? "not understood" : "no answer";
}

const VERDICTS: Readonly<Record<Result["verdict"], string>> = {
  copes: "The service copes with everything that was seen.",
  fails: "The service cannot handle something that was seen.",
  incomplete: "The service copes with everything that was seen, but not every call was answered.",
};

export function tableOf({ upstream, verdict, calls, points }: Result): string {
  return [
    `First contact with ${upstream}`,
    "",
    ...linesOf([30, 38, 6, 40], ["call", "question", "status", "the service"], calls.map(callRow)),
    "",
    ...linesOf([19, 32, 10, 50, 5], ["point", "left open", "assumed", "seen", "copes"], points.map(pointRow)),
    "",
    VERDICTS[verdict],
  ].join("\n");
}

function callRow({ request, asked, status, outcome, detail, unexpected, limitFields }: CallReport): string[] {
  const service = [
    outcome,
    ...(detail === null ? [] : [detail]),
    ...(unexpected.length === 0 ? [] : [`not expected: ${unexpected.join(", ")}`]),
    ...(limitFields.length === 0 ? [] : [`limit fields: ${limitFields.join(", ")}`]),
  ];
  return [request, asked, String(status ?? "-"), service.join(": ")];
}

function pointRow({ point, section, about, assumed, seen, fits, copes, how }: Finding): string[] {
  const played = fits.length === 0 ? "the sandbox has no such setting" : fits.join(" or ");
  return [
    `§${section} ${point}`,
    about,
    String(assumed),
    seen === null ? `not seen; would be shown by ${how}` : `${seen} (${played})`,
    copes === null ? "-" : copes ? "yes" : "NO",
  ];
}

/** A table whose cells are broken at spaces to fit the widths of the columns. */
function linesOf(widths: readonly number[], titles: readonly string[], rows: readonly string[][]): string[] {
  const line = (texts: readonly string[]): string =>
    widths
      .map((width, at) => (texts[at] ?? "").padEnd(width))
      .join("  ")
      .trimEnd();
  return [
    line(titles),
    line(widths.map((width) => "-".repeat(width))),
    ...rows.flatMap((row) => {
      const cells = row.map((text, at) => wrapped(text, widths[at] ?? 0));
      const height = Math.max(...cells.map(({ length }) => length));
      return Array.from({ length: height }, (_, at) => line(cells.map((cell) => cell[at] ?? "")));
    }),
  ];
}

/** A word that is longer than the width gets a line of its own. */
function wrapped(text: string, width: number): readonly string[] {
  return text.match(new RegExp(`\\S.{0,${width - 1}}(?!\\S)|\\S+`, "g")) ?? [];
}
