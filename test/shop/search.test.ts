/** A search with retries reports every name, even if others fail. Suggestions for a taken name are valid names, never the taken one, and never cost a call that a visitor could use. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { pause } from "../../src/clock.js";
import { type DomainName, nameOf, parseDomainName } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import type { Affixes } from "../../src/retail/price-file/retail-config.js";
import type { Availability, AvailabilityService } from "../../src/shop/availability.js";
import type { VisitorAsk } from "../../src/shop/names.js";
import { search, type SearchedName, searchWithRetries } from "../../src/shop/search.js";
import { createSuggestions, SUGGESTING_MS, variantsOf } from "../../src/shop/suggestions.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

/** The ask of a visitor who has just come. */
const ASK: VisitorAsk = {
  lane: "search",
  client: "visitor",
  waitUntilAt: 8_000,
  signal: new AbortController().signal,
  spend: () => undefined,
};

/** An answer without a price, which never expires. */
function answered(
  { name, years }: Pick<Availability, "name" | "years">,
  status: Availability["status"],
): Availability {
  const noPrices = { kind: "ordinary", price: null, renewal: null } as const;
  return {
    name,
    years,
    status,
    ...noPrices,
    asOfMs: 0,
    stale: false,
    showUntilAt: Infinity,
    sameUntilAt: -Infinity,
  };
}

const names = ["a", "b", "c"].flatMap((label): SearchedName[] => {
  const name = nameOf(label, ".af");
  return name === null ? [] : [{ name, years: 1 }];
});

/** Searches for three names: `a` and `c` are known, and `b` answers as given. */
function searching(b: (ask: VisitorAsk) => Promise<never>) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const results: [string, string, number?][] = [];
  const asks: VisitorAsk[] = [];
  const availability: Pick<AvailabilityService, "lookUp"> = {
    async lookUp(ask, name, years) {
      asks.push(ask);
      if (name.label === "b") return b(ask);
      return answered({ name, years }, "taken");
    },
  };
  const finished = searchWithRetries(
    names,
    {
      availability,
      askFor: () => ({ ...ASK, signal: stop.signal, waitUntilAt: clock.monotonic() + 8_000 }),
      retryForMs: 30_000,
      signal: stop.signal,
      clock,
    },
    ({ name }, result) => {
      results.push(
        result.status === "unknown"
          ? [name.label, result.status, result.retryAfterMs]
          : [name.label, result.status],
      );
    },
  );
  return { clock, stop, results, asks, finished };
}

const OTHERS = [
  ["a", "taken"],
  ["c", "taken"],
];

test("an internal error leaves its name unknown, and rejects once every other name is reported", async () => {
  const fault = new TypeError("a bug");
  const { results, finished } = searching(() => Promise.reject(fault));
  await expect(finished).rejects.toBe(fault);
  expect(results).toEqual(expect.arrayContaining([...OTHERS, ["b", "unknown", expect.any(Number)]]));
  expect(results).toHaveLength(3);
});

test("a name that the upstream fails to answer is unknown immediately", async () => {
  const { results, finished } = searching(() => Promise.reject(new ServiceError("upstream_timeout", "slow")));
  await finished;
  expect(results).toContainEqual(["b", "unknown", 5_000]);
});

test("a refused name is retried at the given second, and never after the time for retries", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 12_345 });
  const { clock, results, asks, finished } = searching(() => Promise.reject(refusal));
  const waits = () => asks.slice(3).map(({ waitUntilAt }) => waitUntilAt);
  await clock.advance(12_999);
  expect([results, waits()]).toEqual([OTHERS, []]);
  await clock.advance(1);
  expect(waits()).toEqual([21_000]);
  await clock.advance(13_000);
  await finished;
  expect(waits()).toEqual([21_000, 30_000]);
  expect(results[2]).toEqual(["b", "unknown", 12_345]);
});

test("a name still waiting when the search is aborted is reported with the rest of its wait", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 20_000 });
  const { clock, stop, results, finished } = searching(() => Promise.reject(refusal));
  await clock.advance(5_000);
  stop.abort();
  await finished;
  expect([results[2], clock.pending]).toEqual([["b", "unknown", 15_000], 0]);
});

test("a reserved call that wasn't claimed while another name was waited for isn't promised any more", async () => {
  const clock = new FakeClock();
  const refused = new ServiceError("quota_exhausted", "later", { retryAfterMs: 9_000, kept: true });
  const [a, b] = names;
  if (a === undefined || b === undefined) throw new Error("a name is missing");
  const finished = search(
    [a, b],
    {
      lookUp: async (_, { label }) => {
        if (label === "b") await pause(clock, 11_000, ASK.signal);
        throw refused;
      },
      asOfNow: (answer) => answer,
    },
    () => ASK,
    clock,
  );
  await clock.advance(11_000);
  expect((await finished).results).toMatchObject([
    { retryAfterMs: 1, kept: false },
    { retryAfterMs: 9_000, kept: true },
  ]);
});

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
    const ask: VisitorAsk = { ...ASK, lane: "exact", spend: () => void (charged += 1) };
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
