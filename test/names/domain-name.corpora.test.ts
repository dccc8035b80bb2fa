/** Domain names tested with public vectors and strings, and with properties of random strings. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { canonicalHost, type DomainName, parseDomainName } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { idnaVectors } from "./idna-vectors.js";

const SOLD = [".af", ".com.af"];
const CANONICAL = /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.com)?\.af$/;
// Vectors with these are affected by our URL parsing, and those with surrounding white space by trimming.
const HAS_URL_PARTS = /[/?#@:]/;

/** The name, or null if it was refused with `invalid_request`. */
function tryParse(text: string, sold: readonly string[] = SOLD): DomainName | null {
  try {
    return parseDomainName(text, sold, "domain");
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid_request") return null;
    throw error;
  }
}

/** Null if the name is canonical. It compares directly, because `expect` would take most of the time here. */
function fault(name: DomainName): string | null {
  if (!CANONICAL.test(name.ascii) || name.ascii !== name.label + name.tld) return `form: ${name.ascii}`;
  const again = [tryParse(name.ascii), tryParse(name.unicode)];
  const isStable = again.every(
    (other) =>
      other?.ascii === name.ascii &&
      other.unicode === name.unicode &&
      other.label === name.label &&
      other.tld === name.tld,
  );
  return isStable ? null : `round trip: ${name.ascii}`;
}

const vectors = idnaVectors();
const plain = vectors.filter(({ source }) => !HAS_URL_PARTS.test(source) && source.trim() === source);

const hasSymbol = (label: string): boolean => /[^\p{L}\p{M}\p{Nd}\p{Join_Control}\u05F3-]/u.test(label);

describe("the UTS 46 vectors", () => {
  test("are all present, and few depend on our URL parsing or trimming", () => {
    expect(vectors.length).toBeGreaterThan(6300);
    expect(vectors.length - plain.length).toBeLessThan(150);
  });

  test("as a label under .af are accepted if the table says so, and refused if it lists an error", () => {
    const wrong: unknown[] = [];
    let accepted = 0;
    for (const { source, ascii, unicode, errors } of plain) {
      if (errors.length === 0 && ascii.includes(".")) continue;
      const name = tryParse(`${source}.af`);
      if (name !== null) accepted += 1;
      // A label with an error still has it under .af. IDNA 2008 forbids symbols, which UTS 46 permits.
      const isExpected = errors.length === 0 && !hasSymbol(unicode);
      const expected = isExpected ? `${ascii}.af` : undefined;
      if (name?.ascii !== expected) wrong.push({ source, expected, got: name?.ascii });
      const broken = name === null ? null : fault(name);
      if (broken !== null) wrong.push({ source, broken });
    }
    expect(wrong).toEqual([]);
    expect(accepted).toBeGreaterThan(50);
  });

  test("as host names keep their form if they are valid, and are rejected otherwise", () => {
    const wrong: unknown[] = [];
    for (const { source, ascii, errors } of plain) {
      const isHost = ascii.includes(".") && !/\.\d+$/.test(ascii);
      const host = canonicalHost(source);
      const isRight =
        errors.length === 0
          ? host === (isHost ? ascii : null)
          : host === null || errors.every((code) => code === "V2" || code === "A4_2");
      if (!isRight) wrong.push({ source, ascii, errors, host });
    }
    expect(wrong).toEqual([]);
  });
});

describe("any other string", () => {
  const naughty = z
    .array(z.string())
    .parse(JSON.parse(readFileSync(new URL("../corpora/blns.json", import.meta.url), "utf8")));

  test("in the Big List of Naughty Strings is refused or becomes a canonical name, alone and under a TLD", () => {
    for (const text of naughty) {
      for (const input of [text, `${text}.af`, `https://${text}.af/`, `https://kabul.af/${text}`]) {
        const name = tryParse(input);
        if (name !== null) expect(fault(name)).toBeNull();
      }
    }
  });

  test("that is accepted becomes a name that parses to itself, in A-labels and in Unicode", () => {
    const part = fc.oneof(
      fc.stringMatching(/^[A-Za-z0-9-]{1,12}$/),
      fc.string({
        unit: fc.constantFrom(...Array.from("کابلپښتودریäßıİςKſǅ。．\u200c\u200d\u00adא٠۱'")),
        maxLength: 6,
      }),
      fc.string({ unit: "binary", maxLength: 4 }),
    );
    const input = fc
      .tuple(
        fc.constantFrom("", "www.", "https://", "http://www.", "//", " "),
        part,
        fc.constantFrom(".af", ".com.af", ".AF.", "。af", "", ".de"),
        fc.constantFrom("", "/", ":80", "?x", "#x", "\n"),
      )
      .map((parts) => parts.join(""));
    let accepted = 0;
    fc.assert(
      fc.property(input, (text) => {
        const name = tryParse(text);
        if (name === null) return;
        accepted += 1;
        expect(fault(name)).toBeNull();
      }),
      { numRuns: 4000 },
    );
    expect(accepted).toBeGreaterThan(300);
  });
});
