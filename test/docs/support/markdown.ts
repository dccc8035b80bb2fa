/** Reads the README and the pages in docs/: links, headings, code blocks and tables. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Paths relative to the root of the project. */
export const PAGES: readonly string[] = [
  "README.md",
  "CHANGELOG.md",
  "packages/client/README.md",
  ...readdirSync(`${ROOT}docs`)
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** `UPDATE_DOCS=1` retakes the picture. */
export const UPDATES = process.env["UPDATE_DOCS"] === "1";

export function read(page: string): string {
  return readFileSync(`${ROOT}${page}`, "utf8");
}

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm;

export interface Block {
  readonly language: string;
  readonly code: string;
}

export function blocksOf(text: string): Block[] {
  return [...text.matchAll(FENCE)].map(([, language = "", code = ""]) => ({ language, code }));
}

export function prose(text: string): string {
  return text.replaceAll(FENCE, "");
}

/** The anchors that GitHub gives to the headings of a page. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of prose(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The rows of the table whose header starts with these columns, without the header. */
export function tableOf(text: string, ...columns: readonly string[]): string[][] {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => {
    const cells = cellsOf(line);
    return columns.every((column, index) => cells[index] === column);
  });
  if (start < 0) throw new Error(`no table has the columns ${columns.join(", ")}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, length < 0 ? undefined : start + length).map(cellsOf);
}

function cellsOf(line: string): string[] {
  if (!line.startsWith("|")) return [];
  return line
    .slice(1, line.lastIndexOf("|"))
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}
