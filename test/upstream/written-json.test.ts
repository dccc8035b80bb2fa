/** A JSON parser that keeps numbers as they were written and rejects contradictory duplicate fields. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  parseWrittenJson,
  RepeatedFieldError,
  unwritten,
  WrittenNumber,
} from "../../src/upstream/written-json.js";

/** The value with every number as JavaScript parses it. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || value instanceof WrittenNumber) return unwritten(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

function fieldsOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

describe("a number", () => {
  test.each([
    "20.20",
    "84.00",
    "0.10",
    "-1.5",
    "1e2",
    "1.25E-3",
    "20.2149999999999999999",
    "12345678901234567890.01",
  ])("%s keeps its digits", (text) => {
    expect(parseWrittenJson(`{"amount": ${text}}`)).toEqual({ amount: new WrittenNumber(text) });
    expect(parseWrittenJson(`[${text},"${text}"]`)).toEqual([new WrittenNumber(text), text]);
    expect(parseWrittenJson(text)).toEqual(new WrittenNumber(text));
  });

  test.each(["0", "84", "-7", "1803902400"])("%s without a fraction is an ordinary number", (text) => {
    expect(parseWrittenJson(`[${text}, 0.5]`)).toEqual([Number(text), new WrittenNumber("0.5")]);
  });

  test("inside a string or a field name stays part of it", () => {
    const text = '{"a \\"1.5": "say \\\\", "1.5": "\\"2.5\\": 3.5", "x": [1.5]}';
    expect(parseWrittenJson(text)).toEqual({
      'a "1.5': "say \\",
      "1.5": '"2.5": 3.5',
      x: [new WrittenNumber("1.5")],
    });
  });
});

test("a string is never read as a number, whatever it contains", () => {
  for (const text of ["1.5", "\u00001.5", '"1.5"', "1e3", ":", "{", "\\", '\\"1.5'])
    expect(parseWrittenJson(JSON.stringify({ [text]: text, x: 1 }).replace(":1}", ":0.5}"))).toEqual({
      [text]: text,
      x: new WrittenNumber("0.5"),
    });
});

test("literals such as true aren't taken for numbers with an exponent", () => {
  expect(parseWrittenJson("[true,false,null,1e0]")).toEqual([true, false, null, new WrittenNumber("1e0")]);
});

test("fields with any name keep their numbers, and nothing is read from a prototype", () => {
  const value = parseWrittenJson('{"__proto__":1.5,"2":0.5,"1":[2.5],"constructor":{"__proto__":3.5}}');
  expect(fieldsOf(value)).toEqual([
    ["1", [new WrittenNumber("2.5")]],
    ["2", new WrittenNumber("0.5")],
    ["__proto__", new WrittenNumber("1.5")],
    ["constructor", JSON.parse('{"__proto__":{"text":"3.5"}}')],
  ]);
});

describe("an object", () => {
  const fields = (count: number, value: string): string =>
    `{${Array.from({ length: count }, (_, index) => `"k${index}":${value}`).join(",")}}`;

  test.each(["0", "0.5", '"a"', "{}"])("with 200 fields such as %s is accepted", (value) => {
    expect(fieldsOf(parseWrittenJson(fields(200, value)))).toHaveLength(200);
  });

  test.each(["0", "0.5", '"a"', "{}"])("with more fields such as %s is rejected at any depth", (value) => {
    const many = fields(201, value);
    for (const text of [many, `[1,${many}]`, `{"data":{"x":${many}}}`])
      expect(() => parseWrittenJson(text)).toThrow(RangeError);
  });
});

test.each(["0", "0.5"])("a value that is nested too deeply is rejected (%s)", (value) => {
  const text = "[".repeat(100_000) + value + "]".repeat(100_000);
  expect(() => parseWrittenJson(text)).toThrow(RangeError);
});

test("any JSON is parsed as JavaScript parses it, except that digits are kept", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 1, "\t"), (text, space) => {
      const value: unknown = JSON.parse(text);
      expect(plain(parseWrittenJson(JSON.stringify(value, null, space)))).toEqual(value);
    }),
    { numRuns: 200 },
  );
});

test.each(["", "{", "[1.5,]", "01.5", "1.", ".5", "{'a':1}", '"\u0001"', "NaN"])("%j isn't JSON", (text) => {
  expect(() => parseWrittenJson(text)).toThrow(SyntaxError);
});

test.each([
  '{"amount":"1.00","amount":"9.00"}',
  '{"amount":1.00,"amount":1.0}',
  '{"a":[{"b":{"c":1 , "c" :2}}]}',
  '{"amount":1.00,"\\u0061mount":9.00}',
  '{"":1,"":2}',
  '{"__proto__":1,"__proto__":2}',
])("%s is rejected because one field has two values", (text) => {
  expect(() => parseWrittenJson(text)).toThrow(RepeatedFieldError);
});

test("a field that appears twice with the same value is accepted", () => {
  expect(parseWrittenJson('{"amount":"1.00","amount":"1.00"}')).toEqual({ amount: "1.00" });
});

test("field names that repeat in other objects, or that every object inherits, are accepted", () => {
  const text = '[{"a":1,"b":{"a":2}},{"a":"a: a"},{"__proto__":{"a":1},"constructor":1}]';
  expect(JSON.stringify(parseWrittenJson(text))).toBe(text);
});
