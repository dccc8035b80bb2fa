/** Formats a result as tables that fit a terminal. */
import type { Finding } from "./findings.js";
import type { CallReport, Result } from "./result.js";

interface Column<Row> {
  readonly title: string;
  readonly width: number;
  readonly text: (row: Row) => string;
}

const CALLS: readonly Column<CallReport>[] = [
  { title: "call", width: 30, text: ({ request }) => request },
  { title: "question", width: 38, text: ({ asked }) => asked },
  { title: "status", width: 6, text: ({ status }) => (status === null ? "-" : String(status)) },
  {
    title: "the service",
    width: 40,
    text: ({ outcome, detail, unexpected, limitFields }) =>
      [
        outcome,
        detail,
        unexpected.length > 0 && `not expected: ${unexpected.join(", ")}`,
        limitFields.length > 0 && `limit fields: ${limitFields.join(", ")}`,
      ]
        .filter((part) => typeof part === "string")
        .join(": "),
  },
];

const POINTS: readonly Column<Finding>[] = [
  { title: "point", width: 19, text: ({ point, section }) => `§${section} ${point}` },
  { title: "left open", width: 32, text: ({ about }) => about },
  { title: "assumed", width: 10, text: ({ assumed }) => String(assumed) },
  { title: "seen", width: 50, text: seenText },
  { title: "copes", width: 5, text: ({ copes }) => (copes === null ? "-" : copes ? "yes" : "NO") },
];

const VERDICTS: Readonly<Record<Result["verdict"], string>> = {
  copes: "The service copes with everything that was seen.",
  fails: "The service cannot handle something that was seen.",
  incomplete: "The service copes with everything that was seen, but not every call was answered.",
};

export function tableOf({ upstream, verdict, calls, points }: Result): string {
  return [
    `First contact with ${upstream}`,
    "",
    ...linesOf(CALLS, calls),
    "",
    ...linesOf(POINTS, points),
    "",
    VERDICTS[verdict],
  ].join("\n");
}

function seenText({ seen, how, fits }: Finding): string {
  if (seen === null) return `not seen; would be shown by ${how}`;
  return `${seen} (${fits.length === 0 ? "the sandbox has no such setting" : fits.join(" or ")})`;
}

function linesOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, index) => text.padEnd(columns[index]?.width ?? 0))
      .join("  ")
      .trimEnd();
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ width }) => "-".repeat(width))),
    ...rows.flatMap((row) => {
      const cells = columns.map(({ text, width }) => wrapped(text(row), width));
      const height = Math.max(...cells.map(({ length }) => length));
      return Array.from({ length: height }, (_, at) => line(cells.map((cell) => cell[at] ?? "")));
    }),
  ];
}

/** Breaks text at spaces into lines of at most `width`; a longer word gets a line of its own. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let open = "";
  for (const word of text.split(" ")) {
    const longer = open === "" ? word : `${open} ${word}`;
    if (longer.length > width && open !== "") {
      lines.push(open);
      open = word;
    } else {
      open = longer;
    }
  }
  return [...lines, open];
}
