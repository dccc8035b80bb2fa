/** The rows of the result list: one for each name, with its answer or the reason why there is none yet. */
import type { Availability } from "../../../client/src/client.js";
import type { SearchState } from "../../../client/src/search-as-you-type.js";
import { rowsFor } from "./query.js";
import type { Texts } from "./texts/en.js";

/** A row without an answer; `failed`: why, in the language that is shown, and whether the name can be checked again. */
type Unanswered =
  | { readonly state: "typing" | "looking" }
  | { readonly state: "failed"; readonly why: (texts: Texts) => string; readonly isOpen: boolean };

export type Row = {
  readonly label: string;
  readonly tld: string;
  readonly isExact: boolean;
} & (Unanswered | { readonly state: "known"; readonly result: Availability });

/** The row for an answer. */
export function rowOf(result: Availability, isExact = false): Row {
  const label = result.unicodeName.slice(0, -result.tld.length);
  return { label, tld: result.tld, isExact, state: "known", result };
}

/** The row for a name of a list. */
export function rowWithout(name: string, sold: readonly string[], why: Unanswered): Row {
  const { label, tlds } = rowsFor(name, sold);
  return { label, tld: tlds[0] ?? "", isExact: false, ...why };
}

/** The rows of a search: the TLDs sold, the exact name first, then the results under other TLDs. Without a name there are none. */
export function rowsOf({ phase, query, results, problem }: SearchState, sold: readonly string[]): Row[] {
  if (query === null || problem?.code === "invalid_request") return [];
  const { label, tlds } = rowsFor(query.q, sold);
  const unanswered = ((): Unanswered => {
    if (phase === "typing") return { state: "typing" };
    // No result: the label isn't sold under this TLD.
    if (phase === "done") return { state: "failed", why: ({ notOffered }) => notOffered, isOpen: false };
    if (phase === "failed") return { state: "failed", why: ({ unknown }) => unknown, isOpen: true };
    return { state: "looking" };
  })();
  const rows = tlds.map((tld, at): Row => {
    const result = results.find((one) => one.tld === tld);
    const isAnswer = result !== undefined && (result.status !== "unknown" || phase !== "typing");
    return isAnswer ? rowOf(result, at === 0) : { label, tld, isExact: at === 0, ...unanswered };
  });
  const others = results.filter(({ tld }) => !tlds.includes(tld));
  return [...rows, ...others.map((result) => rowOf(result))];
}

export function hasUnknown(rows: readonly Row[]): boolean {
  return rows.some((row) =>
    row.state === "known" ? row.result.status === "unknown" : row.state === "failed" && row.isOpen,
  );
}

/** The answer for the exact name if it is known. */
export function knownExact([exact]: readonly Row[]): Availability | null {
  return exact?.state === "known" && exact.isExact && exact.result.status !== "unknown" ? exact.result : null;
}
