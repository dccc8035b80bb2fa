/** Strings that nobody here chose, through every parameter of every route: contract codes, never a 5xx, never a call for what is no name. */
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

/** A lone surrogate cannot be written in UTF-8. */
function isSendable(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

const IDNA = idnaVectors()
  .map(({ source }) => source)
  .filter(isSendable);
/** Every tenth, so that all sections of the file are touched. */
const IDNA_SAMPLE = IDNA.filter((_, index) => index % 10 === 0).flatMap((source) => [source, `${source}.af`]);

const AT_A_TIME = 16;

let service: Service;
beforeAll(async () => {
  service = await startService({
    clock: new FakeClock(),
    env: {
      UPSTREAM_RATE_LIMIT: "2000",
      CLIENT_RATE_PER_MINUTE: "1000000000",
      CLIENT_COLD_PER_MINUTE: "1000000000",
    },
  });
  // What the good parts of the questions below ask for is known, so that every call is one for a string's sake.
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

type Put = (text: string) => readonly [string, Question?];

/** Asks with every string, and tells what was not a good answer or a problem of the contract. */
async function faultsOf(strings: readonly string[], put: Put): Promise<string[]> {
  const todo = [...strings];
  const faults: string[] = [];
  const judge = (text: string, answer: Answer): void => {
    if (answer.status < 300) return;
    try {
      const { code, status } = problemOf(answer);
      if (status >= 500) faults.push(`${JSON.stringify(text)}: ${code}`);
    } catch (error) {
      faults.push(`${JSON.stringify(text)}: ${String(error)}`);
    }
  };
  const work = async (): Promise<void> => {
    for (let text = todo.shift(); text !== undefined; text = todo.shift())
      judge(text, await service.ask(...put(text)));
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return faults;
}

const enc = encodeURIComponent;
const post = (body: unknown): Question => ({ method: "POST", body });
const item = (domain: unknown, action: unknown = "renewal", years: unknown = 1) => ({
  items: [{ domain, action, years }],
});

describe("in a place for a name", () => {
  const places: readonly (readonly [string, (text: string) => boolean, Put])[] = [
    ["domain of availability", isName, (text) => [`/v1/availability?domain=${enc(text)}`]],
    ["q of search", isTerm, (text) => [`/v1/search?q=${enc(text)}`]],
    ["domain of a cart", isName, (text) => ["/v1/quotes", post(item(text, "registration"))]],
    [
      "path of a staff domain",
      isName,
      (text) => [`/v1/staff/domains/${enc(text)}`, { headers: bearer("read") }],
    ],
  ];

  test.each(places)("%s: what is no name costs no call", async (place, isGood, put) => {
    const strings = [...NAUGHTY, ...IDNA_SAMPLE].filter(
      // An empty path part is another path: the list.
      (text) => !isGood(text) && !(place.startsWith("path") && text === ""),
    );
    expect(strings.length).toBeGreaterThan(1200);
    const calls = service.calls();
    expect(await faultsOf(strings, put)).toEqual([]);
    expect(service.calls()).toBe(calls);
  });

  test("domain of availability: what is a name is answered, each with one call at most", async () => {
    const names = [...NAUGHTY, ...IDNA.map((source) => `${source}.af`)].filter(isName).slice(0, 400);
    const different = new Set(names.map((text) => parseDomainName(text, SOLD, "domain").ascii));
    expect(different.size).toBeGreaterThan(50);
    const calls = service.calls();
    expect(await faultsOf(names, (text) => [`/v1/availability?domain=${enc(text)}`])).toEqual([]);
    expect(service.calls() - calls).toBeLessThanOrEqual(different.size);
  });

  test("q of search: what is a term is answered", async () => {
    const terms = [...NAUGHTY, ...IDNA_SAMPLE.slice(0, 60)].filter(isTerm);
    expect(await faultsOf(terms, (text) => [`/v1/search?q=${enc(text)}`])).toEqual([]);
  });
});

describe("in every other place", () => {
  const sendable = (text: string): boolean => {
    try {
      validateHeaderValue("x-any", text);
      return true;
    } catch {
      return false;
    }
  };
  const header =
    (name: string, path = "/v1/prices"): Put =>
    (text) => [path, { headers: { [name]: sendable(text) ? text : enc(text) } }];

  const places: Readonly<Record<string, Put>> = {
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
    "action of a cart": (text) => ["/v1/quotes", post(item("kabul.af", text))],
    "years of a cart": (text) => ["/v1/quotes", post(item("kabul.af", "renewal", text))],
    "a field of a cart": (text) => ["/v1/quotes", post({ [text]: text, items: [{ [text]: text }] })],
    "a whole body": (text) => ["/v1/quotes", post(text)],
    "what is to be purged": (text) => [
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

  test.each(Object.entries(places))("%s: nothing breaks and nothing is asked", async (_place, put) => {
    const calls = service.calls();
    const strings = NAUGHTY.filter(isSendable);
    expect(strings.length).toBeGreaterThan(450);
    expect(await faultsOf(strings, put)).toEqual([]);
    expect(service.calls()).toBe(calls);
  });
});

test("nothing of all this was our own fault", () => {
  expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
