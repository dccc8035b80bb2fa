/** Parses the YAML of the price file, before any of it is interpreted. */
import { type Document, isScalar, LineCounter, parseDocument, visit } from "yaml";

/** The maximum file size. The time to parse a hostile file grows with the square of its size. */
export const MAX_CONFIG_BYTES = 64 * 1024;

type YamlResult =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly faults: readonly string[] };

/** The parsed value, or all syntax faults with line and column. A repeated key is a fault. */
export function readYaml(text: string): YamlResult {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return { ok: false, faults: ["is larger than 64 kB"] };
  if (text.includes("\uFFFD")) return { ok: false, faults: ["isn't written in UTF-8"] };
  const lineCounter = new LineCounter();
  // The library would compare every pair of keys in a mapping, and search the text again for the position of each error.
  const document = parseDocument(text, { lineCounter, uniqueKeys: false, prettyErrors: false });
  const errors = [
    ...document.errors.map(({ message, pos }) => ({ message, at: pos[0] })),
    ...repeatedKeys(document),
  ];
  if (errors.length > 0) {
    const faults = errors.map(({ message, at }) => {
      const { line, col } = lineCounter.linePos(at);
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

function repeatedKeys(document: Document.Parsed): { readonly message: string; readonly at: number }[] {
  const repeated: { readonly message: string; readonly at: number }[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value))
          repeated.push({ message: "Map keys must be unique", at: key.range?.[0] ?? 0 });
        seen.add(key.value);
      }
    },
  });
  return repeated;
}
