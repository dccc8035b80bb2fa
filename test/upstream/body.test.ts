/** Bodies are read strictly: numbers as they were written, no contradictory fields, and nothing that isn't JSON in UTF-8. */
import { readFileSync } from "node:fs";
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import { parseJson, readBody, WrittenNumber } from "../../src/upstream/body.js";

const MISREAD = expect.objectContaining({ fault: expect.objectContaining({ code: "upstream_contract" }) });

/** A document of JSONTestSuite, read from its archive. */
interface JsonDocument {
  /** `y_…` must parse, `n_…` must not, `i_…` may. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

const BLOCK = 512;

function jsonSuite(): JsonDocument[] {
  const archive = new URL("../corpora/JSONTestSuite-test_parsing.tar.gz", import.meta.url);
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

describe("a number", () => {
  test.each(["84.00", "1.25E-3", "20.2149999999999999999"])("%s keeps its digits", (text) => {
    expect(parseJson(`{"amount": ${text}, "x": [${text}, "${text}"]}`)).toEqual({
      amount: new WrittenNumber(text),
      x: [new WrittenNumber(text), text],
    });
  });
});

test("fields with any name keep their values, and nothing is read from a prototype", () => {
  const text = '{"1":[2],"2":0,"__proto__":{"a":1},"constructor":{"__proto__":3}}';
  expect(JSON.stringify(parseJson(text))).toBe(text);
});

test("the documents of JSONTestSuite are parsed if they are valid and rejected if they aren't", () => {
  const documents = jsonSuite();
  const isRead = (bytes: Uint8Array): boolean => "json" in readBody(bytes, undefined);
  const wrong = documents.filter(
    ({ name, bytes }) =>
      (name.startsWith("y_") && !isRead(bytes)) || (name.startsWith("n_") && isRead(bytes)),
  );
  // Two different values for one field are valid JSON, but ambiguous.
  expect(wrong.map(({ name }) => name)).toEqual(["y_object_duplicated_key.json"]);
  expect(documents.length).toBe(318);
});

test("an object with more than 200 fields isn't read, at any depth", () => {
  const fields = (count: number): string =>
    `{${Array.from({ length: count }, (_, index) => `"k${index}":0.5`).join(",")}}`;
  expect(readBody(Buffer.from(fields(200)), "")).toHaveProperty("json");
  for (const text of [fields(201), `[1,${fields(201)}]`, `{"data":{"x":${fields(201)}}}`])
    expect(readBody(Buffer.from(text), "")).toEqual(MISREAD);
});

test.each([
  '{"amount":"1.00","amount":"9.00"}',
  '{"amount":1.00,"amount":1.0}',
  '{"amount":1.00,"\\u0061mount":9.00}',
])("%s is rejected because one field has two values", (text) => {
  expect(readBody(Buffer.from(text), "")).toMatchObject({
    fault: { detail: expect.stringContaining("a field that appears twice") },
  });
});

test("a field that appears twice with the same value, or in two objects, is accepted", () => {
  const text = '{"amount":"1.00","amount":"1.00","a":[{"a":1},{"a":2}]}';
  expect(readBody(Buffer.from(text), "")).toEqual({ json: { amount: "1.00", a: [{ a: 1 }, { a: 2 }] } });
});

describe("a body", () => {
  const whole = '{"success":true}';
  const bytes = Buffer.from(whole);

  test.each([
    ["identity", bytes],
    ["GZIP", gzipSync(whole)],
    ["deflate", deflateSync(whole)],
    ["br", brotliCompressSync(whole)],
  ])("with the encoding %s is read, although the request didn't accept it", (encoding, sent) => {
    expect(readBody(sent, encoding)).toEqual({ json: { success: true } });
  });

  test.each<[string, Uint8Array, string]>([
    ["HTML", Buffer.from("<html>marrow</html>"), ""],
    ["truncated JSON", bytes.subarray(0, -1), ""],
    ["no content", Buffer.from(""), ""],
    ["invalid UTF-8", Buffer.from('{"a":"kab\u00fcl"}', "latin1"), ""],
    ["100,000 nested arrays", Buffer.from("[".repeat(100_000) + "]".repeat(100_000)), ""],
    ["an unknown content coding", bytes, "marrow"],
    ["invalid gzip", bytes, "gzip"],
    ["truncated gzip", gzipSync(whole).subarray(0, -9), "gzip"],
    ["a gzip bomb", gzipSync(Buffer.alloc(300_000, 0x20)), "gzip"],
  ])("with %s isn't read", (_what, sent, encoding) => {
    expect(readBody(sent, encoding)).toEqual(MISREAD);
  });
});
