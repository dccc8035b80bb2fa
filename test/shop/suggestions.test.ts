/** Suggestions for a taken name are valid names, never the taken one, and never cost a call that a visitor could use. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type DomainName, nameOf, parseDomainName } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import type { Affixes } from "../../src/retail/price-file/retail-config.js";
import type { VisitorAsk } from "../../src/shop/names.js";
import type { Availability, AvailabilityService } from "../../src/shop/availability.js";
import { createSuggestions, SUGGESTING_MS, variantsOf } from "../../src/shop/suggestions.js";
import { FakeClock } from "../support/fake-clock.js";
import { answered } from "./answers.js";
import { recordingLog } from "../support/service.js";

const TLDS = [".af", ".com.af"];

function named(text: string): DomainName {
  return parseDomainName(text, TLDS, "domain");
}

function variants(text: string, affixes: Partial<Affixes>): string[] {
  return variantsOf(named(text), { prefixes: [], suffixes: [], most: 20, ...affixes }).map(
    ({ unicode }) => unicode,
  );
}

describe("the variants of a name", () => {
  test("are under its own TLD, alternate prefixes and suffixes, and are at most as many as configured", () => {
    const affixes = { prefixes: ["my", "get", "zama"], suffixes: ["-af", "online"] };
    expect(variants("kabul.com.af", affixes)).toEqual([
      "mykabul.com.af",
      "kabul-af.com.af",
      "getkabul.com.af",
      "kabulonline.com.af",
      "zamakabul.com.af",
    ]);
    expect(variants("kabul.af", { ...affixes, most: 3 })).toEqual([
      "mykabul.af",
      "kabul-af.af",
      "getkabul.af",
    ]);
  });

  test("keep to one writing direction", () => {
    const affixes = { prefixes: ["my"], suffixes: ["آنلاین"] };
    expect(variants("کابل.af", affixes)).toEqual(["کابلآنلاین.af"]);
    expect(variants("kabul.af", affixes)).toEqual(["mykabul.af"]);
  });

  test("skip names that are too long, reserved or duplicates", () => {
    expect(variants(`${"k".repeat(62)}.af`, { suffixes: ["ab", "c"] })).toEqual([`${"k".repeat(62)}c.af`]);
    expect(variants("om.af", { prefixes: ["c"] })).toEqual([]);
    expect(variants("aa.af", { prefixes: ["a"], suffixes: ["a"] })).toEqual(["aaa.af"]);
    // UTS 46 removes this invisible character.
    expect(variants("kabul.af", { prefixes: ["\u00AD"] })).toEqual([]);
  });

  test("are valid names for any name and any affixes", () => {
    const of = (letters: string) =>
      fc.string({ unit: fc.constantFrom(...letters.split("")), minLength: 1, maxLength: 8 });
    const oneScript = fc.oneof(of("abzé9"), of("اکبآ"), of("中文字"));
    const anything = of("aاZ9-०ß\u200c\u0301\u00ad./@ ");
    const lists = fc.array(fc.oneof(oneScript, anything), { minLength: 2, maxLength: 4 });
    let made = 0;
    fc.assert(
      fc.property(
        oneScript,
        fc.constantFrom(...TLDS),
        lists,
        lists,
        fc.integer({ min: 1, max: 8 }),
        (label, tld, prefixes, suffixes, most) => {
          const name = nameOf(label, tld);
          if (name === null) return;
          const found = variantsOf(name, { prefixes, suffixes, most });
          made += found.length;
          for (const variant of found) {
            expect(parseDomainName(variant.unicode, [tld], "domain")).toEqual(variant);
            expect(parseDomainName(variant.ascii, [tld], "domain")).toEqual(variant);
            expect(variant.tld).toBe(tld);
          }
          const all = [name, ...found].map(({ ascii }) => ascii);
          expect(new Set(all).size).toBe(all.length);
          expect(found.length).toBeLessThanOrEqual(most);
        },
      ),
      { numRuns: 200 },
    );
    expect(made).toBeGreaterThan(100);
  });
});

describe("suggesting", () => {
  const affixes: Affixes = { prefixes: ["a", "b", "c", "d"], suffixes: [], most: 20 };
  const signal = new AbortController().signal;
  const taken = { name: named("kabul.af"), years: 1 };

  /** Suggests names while look-ups answer as given, and records the suggestions and the asks. */
  function suggesting(
    lookUp: (ask: VisitorAsk, label: string) => Promise<Availability["status"]>,
    hasSpare = true,
  ) {
    const clock = new FakeClock();
    const asks: VisitorAsk[] = [];
    const suggested: string[] = [];
    const availability: Pick<AvailabilityService, "lookUp"> = {
      async lookUp(ask, name, years) {
        asks.push(ask);
        return answered({ name, years }, await lookUp(ask, name.label));
      },
    };
    const suggestions = createSuggestions({
      affixes,
      takes: () => true,
      availability,
      hasSpare: () => hasSpare,
      clock,
      log: recordingLog([]),
    });
    let charged = 0;
    const ask: VisitorAsk = {
      lane: "exact",
      client: "visitor",
      waitUntilAt: 8000,
      signal,
      spend: () => {
        charged += 1;
      },
    };
    const finished = suggestions.suggest(suggestions.variantsOf(taken), ask, ({ name }) => {
      suggested.push(name.label);
    });
    return { clock, asks, suggested, finished, charged: () => charged };
  }

  test("reports available names, and requests them in the last lane on behalf of no visitor", async () => {
    const { asks, suggested, finished, charged } = suggesting(async (ask, label) => {
      ask.spend();
      return label === "bkabul" ? "taken" : "available";
    });
    await finished;
    expect(suggested).toEqual(["akabul", "ckabul", "dkabul"]);
    expect(asks.map(({ lane, client }) => [lane, client])).toEqual(
      asks.map(() => ["suggestion", "suggestions"]),
    );
    expect(charged()).toBe(4);
  });

  test("reports only names in memory while the quota has no call to spare", async () => {
    const { suggested, finished, charged } = suggesting(async (ask, label) => {
      if (label !== "ckabul") ask.spend();
      return "available";
    }, false);
    await finished;
    expect([suggested, charged()]).toEqual([["ckabul"], 0]);
  });

  test("ends at the first failure", async () => {
    const { asks, finished } = suggesting(() => Promise.reject(new ServiceError("upstream_timeout", "slow")));
    await finished;
    expect(asks).toHaveLength(1);
  });

  test("ends after three seconds and aborts its call", async () => {
    const { clock, asks, suggested, finished } = suggesting(
      ({ signal }) =>
        new Promise((_, failed) => {
          signal.addEventListener("abort", () => {
            failed(new ServiceError("internal", "gone"));
          });
        }),
    );
    await clock.advance(SUGGESTING_MS - 1);
    expect(asks[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    await finished;
    expect([asks.length, suggested, clock.pending]).toEqual([1, [], 0]);
  });
});
