/**
 * Sends strings of the Big List of Naughty Strings and the IDNA test vectors through every parameter of every route. They must cause only
 * documented error codes, never a 5xx, and never an upstream call for an invalid name. `test/names` sends the parser all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { validateHeaderValue } from "node:http";
import { z } from "zod";
import { parseDomainName, parseSearchTerm } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { idnaVectors } from "../names/idna-vectors.js";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Answer,
  bearer,
  problemOf,
  type Question,
  type Service,
  startService,
} from "../support/service.js";

const SOLD = [".af", ".com.af", ".net.af", ".org.af"];
const NAUGHTY = z
  .array(z.string())
  .parse(JSON.parse(readFileSync(new URL("../corpora/blns.json", import.meta.url), "utf8")));

/** UTF-8 can't encode a lone surrogate. */
function isSendable(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

const VECTORS = idnaVectors()
  .map(({ source }) => source)
  .filter(isSendable);
const IDNA = VECTORS.filter((_text, index) => index % 100 === 0);
const STRINGS = [...NAUGHTY, ...IDNA, ...IDNA.map((source) => `${source}.af`)];

/** Each place gets a part of the strings, and each string goes to some of the places. */
const partFor = (place: number, strings: readonly string[], parts: number): string[] =>
  strings.filter((_text, index) => (index + place) % parts === 0);

const CONCURRENCY = 16;

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
  // Loads everything that the valid parts of the requests below need, so that a hostile string must have caused any further call.
  for (const years of [1, 2, 3]) await service.ask(`/v1/search?q=kabul&years=${years}`);
  await service.ask("/v1/staff/domains", { headers: bearer("read") });
});
afterAll(() => service.close());

function accepted(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid_request") return false;
    throw error;
  }
}
const isName = (text: string): boolean => accepted(() => parseDomainName(text, SOLD, "domain"));
const isTerm = (text: string): boolean => accepted(() => parseSearchTerm(text, SOLD, "q"));

type ToRequest = (text: string) => readonly [string, Question?];

/** Sends a request with each string. Returns the responses that were neither a success nor a documented 4xx problem. */
async function faultsOf(strings: readonly string[], toRequest: ToRequest): Promise<string[]> {
  const todo = [...strings];
  const faults: string[] = [];
  const check = (text: string, answer: Answer): void => {
    if (answer.status < 300) return;
    try {
      const { code, status } = problemOf(answer);
      if (status >= 500) faults.push(`${JSON.stringify(text)}: ${code}`);
    } catch (error) {
      faults.push(`${JSON.stringify(text)}: ${String(error)}`);
    }
  };
  const worker = async (): Promise<void> => {
    for (let text = todo.shift(); text !== undefined; text = todo.shift())
      check(text, await service.ask(...toRequest(text)));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return faults;
}

const enc = encodeURIComponent;
const post = (body: unknown): Question => ({ method: "POST", body });
const cartWith = (domain: unknown, action: unknown = "renewal", years: unknown = 1) => ({
  items: [{ domain, action, years }],
});

describe("a hostile string used as a name", () => {
  const places: readonly (readonly [string, (text: string) => boolean, ToRequest])[] = [
    ["domain parameter of availability", isName, (text) => [`/v1/availability?domain=${enc(text)}`]],
    ["q parameter of search", isTerm, (text) => [`/v1/search?q=${enc(text)}`]],
    ["domain of a cart item", isName, (text) => ["/v1/quotes", post(cartWith(text, "registration"))]],
    [
      "path of a staff domain",
      isName,
      (text) => [`/v1/staff/domains/${enc(text)}`, { headers: bearer("read") }],
    ],
  ];

  test.each(places.map((place, at) => [...place, at] as const))(
    "in the %s makes no call if it isn't valid",
    async (place, isValid, toRequest, at) => {
      const strings = partFor(at, STRINGS, places.length).filter(
        // With an empty path segment, the path is that of the list.
        (text) => !isValid(text) && !(place.startsWith("path") && text === ""),
      );
      expect(strings.length).toBeGreaterThan(100);
      const calls = service.calls();
      expect(await faultsOf(strings, toRequest)).toEqual([]);
      expect(service.calls()).toBe(calls);
    },
  );

  test("is answered with at most one call if it is valid", async () => {
    const valid = VECTORS.map((source) => `${source}.af`).filter(isName);
    const names = valid.filter((_text, index) => index % Math.floor(valid.length / 60) === 0);
    const different = new Set(names.map((text) => parseDomainName(text, SOLD, "domain").ascii));
    expect(different.size).toBeGreaterThan(20);
    const calls = service.calls();
    expect(await faultsOf(names, (text) => [`/v1/availability?domain=${enc(text)}`])).toEqual([]);
    expect(service.calls() - calls).toBeLessThanOrEqual(different.size);
    const terms = STRINGS.filter(isTerm).slice(0, 40);
    expect(await faultsOf(terms, (text) => [`/v1/search?q=${enc(text)}`])).toEqual([]);
  });
});

describe("a hostile string used elsewhere", () => {
  const sendable = (text: string): boolean => {
    try {
      validateHeaderValue("x-any", text);
      return true;
    } catch {
      return false;
    }
  };
  const header =
    (name: string, path = "/v1/prices"): ToRequest =>
    (text) => [path, { headers: { [name]: sendable(text) ? text : enc(text) } }];

  const places: Readonly<Record<string, ToRequest>> = {
    "years of availability": (text) => [`/v1/availability?domain=kabul.af&years=${enc(text)}`],
    "tlds of search": (text) => [`/v1/search?q=kabul&tlds=${enc(text)}`],
    "years of search": (text) => [`/v1/search?q=kabul&years=${enc(text)}`],
    "tld of prices": (text) => [`/v1/prices?tld=${enc(text)}`],
    "action of prices": (text) => [`/v1/prices?action=${enc(text)}`],
    "years of prices": (text) => [`/v1/prices?years=${enc(text)}`],
    "tld of quotes": (text) => [`/v1/quotes?action=renewal&tld=${enc(text)}`],
    "action of quotes": (text) => [`/v1/quotes?tld=.af&action=${enc(text)}`],
    "years of quotes": (text) => [`/v1/quotes?tld=.af&action=renewal&years=${enc(text)}`],
    "a parameter's name": (text) => [`/v1/availability?domain=kabul.af&${enc(text)}=1`],
    "a whole query": (text) => [`/v1/prices?${enc(text)}`],
    "a path": (text) => [`/${enc(text)}`],
    "a problem's code": (text) => [`/problems/${enc(text)}`],
    "action of a cart": (text) => ["/v1/quotes", post(cartWith("kabul.af", text))],
    "years of a cart": (text) => ["/v1/quotes", post(cartWith("kabul.af", "renewal", text))],
    "a field of a cart": (text) => ["/v1/quotes", post({ [text]: text, items: [{ [text]: text }] })],
    "a whole body": (text) => ["/v1/quotes", post(text)],
    "the pool to purge": (text) => [
      "/v1/staff/cache/purge",
      { method: "POST", headers: bearer("operate"), body: { what: text } },
    ],
    "x-request-id": header("x-request-id"),
    Accept: header("accept"),
    Authorization: header("authorization", "/v1/staff/balance"),
    "a bearer token": (text) => ["/metrics", { headers: { Authorization: `Bearer ${enc(text)}` } }],
    Origin: header("origin"),
    "If-None-Match": header("if-none-match"),
    "Content-Type": (text) => [
      "/v1/quotes",
      { method: "POST", headers: { "Content-Type": sendable(text) ? text : enc(text) }, body: "{}" },
    ],
  };

  test.each(Object.entries(places).map(([place, toRequest], at) => [place, toRequest, at] as const))(
    "as %s breaks nothing and makes no call",
    async (_place, toRequest, at) => {
      const calls = service.calls();
      const strings = partFor(at, NAUGHTY.filter(isSendable), 16);
      expect(strings.length).toBeGreaterThan(30);
      expect(await faultsOf(strings, toRequest)).toEqual([]);
      expect(service.calls()).toBe(calls);
    },
  );
});

test("none of these requests logged an error", () => {
  expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
