/** The documents of JSONTestSuite, read from its archive. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

export interface JsonDocument {
  /** `y_…` must parse, `n_…` must not, `i_…` may. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

const BLOCK = 512;

export function jsonSuite(): JsonDocument[] {
  const archive = new URL("../../corpora/JSONTestSuite-test_parsing.tar.gz", import.meta.url);
  const tar = gunzipSync(readFileSync(archive));
  const documents: JsonDocument[] = [];
  for (let at = 0; at + BLOCK <= tar.length;) {
    const path = textAt(tar, at, 100);
    const size = Number.parseInt(textAt(tar, at + 124, 12), 8) || 0;
    const start = at + BLOCK;
    const name = /^test_parsing\/([yni]_.+\.json)$/.exec(path)?.[1];
    if (name !== undefined) documents.push({ name, bytes: tar.subarray(start, start + size) });
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
  return documents;
}

function textAt(bytes: Buffer, at: number, length: number): string {
  return bytes.toString("latin1", at, at + length).replace(/\0.*$/s, "");
}
