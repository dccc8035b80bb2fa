/** Parses the YAML of the price file, before any of it is interpreted. */
import { LineCounter, parseDocument } from "yaml";

/** The maximum file size. The time to parse a hostile file grows with the square of its size. */
export const MAX_CONFIG_BYTES = 64 * 1024;

type YamlResult =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly faults: readonly string[] };

/** The parsed value, or all syntax faults with line and column. A repeated key is a fault. */
export function readYaml(text: string): YamlResult {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return { ok: false, faults: ["is larger than 64 kB"] };
  if (text.includes("\uFFFD")) return { ok: false, faults: ["isn't written in UTF-8"] };
  const lineCounter = new LineCounter();
  // The library's pretty errors quote the text.
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ message, pos }) => {
      const { line, col } = lineCounter.linePos(pos[0]);
      return `${message} at line ${line}, column ${col}`;
    });
    return { ok: false, faults };
  }
  try {
    return { ok: true, value: document.toJS() };
  } catch {
    return { ok: false, faults: ["has an alias that cannot be resolved"] };
  }
}
