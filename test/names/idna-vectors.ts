/** The UTS 46 conformance vectors, reduced to non-transitional ToASCII. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

export interface IdnaVector {
  readonly source: string;
  readonly ascii: string;
  readonly unicode: string;
  /** Status codes; none means valid. */
  readonly errors: readonly string[];
}

function unescaped(text: string): string {
  if (text === '""') return "";
  return text
    .replaceAll(/\\x\{([0-9A-F]+)\}/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replaceAll(/\\u([0-9A-F]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

export function idnaVectors(): IdnaVector[] {
  const file = gunzipSync(readFileSync(new URL("../corpora/IdnaTestV2.txt.gz", import.meta.url))).toString();
  return file
    .split("\n")
    .map((line) => line.replace(/#.*$/, ""))
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [source = "", unicode = "", unicodeStatus = "", ascii = "", asciiStatus = ""] = line
        .split(";")
        .map((column) => column.replaceAll(/^[ \t]+|[ \t]+$/g, ""));
      return {
        source: unescaped(source),
        ascii: unescaped(ascii || unicode || source),
        unicode: unescaped(unicode || source),
        errors: (asciiStatus || unicodeStatus).match(/[A-Z]\d(?:_\d)?/g) ?? [],
      };
    });
}
