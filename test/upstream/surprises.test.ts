/** What the upstream says that nobody expected: seen, counted, told as a shape, and never as a value. */
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import type { Operation } from "../../src/upstream/operation.js";
import { createSurprises, type Surprises } from "../../src/upstream/surprises.js";
import { parseWrittenJson } from "../../src/upstream/written-json.js";

let clock: FakeClock;
let lines: string[];
let surprises: Surprises;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  surprises = createSurprises(clock, recordingLog(lines));
});

function answer(operation: Operation, data: unknown, beside: object = {}): string[] {
  const body = parseWrittenJson(JSON.stringify({ success: true, data, ...beside }));
  surprises.inAnswer(operation, body, ["the-key", "the-secret", "kabul.af", "kabul"]);
  return surprises.list().map(({ what }) => what);
}

function error(body: unknown): string[] {
  surprises.inError("check", body, ["the-key", "the-secret", "kabul.af", "kabul"]);
  return surprises.list().map(({ what }) => what);
}

describe("what is documented", () => {
  test.each<[Operation, unknown]>([
    [
      "check",
      {
        domain: "kabul.af",
        status: "available",
        available: true,
        pricing: { amount: "1.00", currency: "USD" },
      },
    ],
    ["check", { domain: "kabul.af", status: "taken", available: false, pricing: null }],
    ["quote", { tld: ".af", action: "renewal", years: 2, pricing: { amount: "1.00", currency: "USD" } }],
    [
      "domains",
      {
        domains: [
          { domain: "a.af", status: "active", ExpiryDate: "2027-01-01", name_servers: { ns1: "x.y" } },
        ],
      },
    ],
    ["domain", { domain: "a.af", status: ["clientTransferProhibited"], auto_renew: true, ns: ["x.y"] }],
    [
      "balance",
      { account_number: "R", balance: "1.00", currency: "USD", credit_limit: "0.00", active_domains: 1 },
    ],
    ["tier", { tier: { name: "Silver" }, next_tier: { name: "Gold" }, domains_needed: 3 }],
  ])("is no surprise: %s %j", (operation, data) => {
    expect(answer(operation, data)).toEqual([]);
  });

  test("every spelling that is read is known", () => {
    const text = readFileSync(new URL("../../src/upstream/contract.ts", import.meta.url), "utf8");
    // The lists of spellings stand in calls that find fields, or in constants for them.
    const lists = text.match(
      /(?:pick|found|layersOf|pricesUnder|documented)\([^;]*?\)|(?:TERMS|TOTALS|UNITS|spellings|needed) = \[[^\]]*\]|\["[a-z_]+"\]|of \[[^\]]*\]/g,
    );
    const spellings = new Set(lists?.flatMap((list) => list.match(/(?<=")[a-z_]+(?=")/g) ?? []));
    // Under nameservers, where names are free.
    for (const name of ["host", "hostname", "nameserver", "server"]) spellings.delete(name);
    // Not of an operation's data: the envelope's, and what we keep ourselves.
    for (const name of ["success", "wholesale"]) spellings.delete(name);
    expect(spellings.size).toBeGreaterThan(80);
    const operations: Operation[] = ["check", "quote", "domains", "domain", "balance", "tier"];
    const unknown = [...spellings].filter((name) =>
      operations.every((operation) => {
        surprises = createSurprises(clock, recordingLog([]));
        return answer(operation, { [name]: 1 }).length > 0;
      }),
    );
    expect(unknown).toEqual([]);
  });
});

describe("what is new", () => {
  test("is told with its path and kind of JSON, without its value", () => {
    const data = {
      domains: [
        { domain: "a.af", status: "active", registrar: "Marrow Ltd", price: 1.5 },
        { domain: "b.af", status: "active", registrar: "Marrow Ltd", contact: { email: "x@marrow.af" } },
      ],
    };
    const meta = { api_version: 3, links: ["https://marrow.af/"], paging: null };
    expect(answer("domains", data, meta).sort()).toEqual([
      "api_version (number)",
      "data.domains[].contact (object)",
      "data.domains[].price (number)",
      "data.domains[].registrar (string)",
      "links (array)",
      "paging (null)",
    ]);
    expect(JSON.stringify([surprises.list(), lines])).not.toMatch(/marrow/i);
  });

  test("is counted at every answer and logged once", async () => {
    for (let n = 0; n < 3; n += 1) {
      answer("tier", { tier: "Silver", badge: "x" });
      await clock.advance(1000);
    }
    answer("tier", { tier: "Silver", badge: 7 });
    const firstSeenMs = Date.UTC(2026, 2, 20);
    expect(surprises.list()).toEqual([
      { operation: "tier", what: "data.badge (string)", count: 3, firstSeenMs },
      { operation: "tier", what: "data.badge (number)", count: 1, firstSeenMs: firstSeenMs + 3000 },
    ]);
    expect(surprises.totals()).toEqual({ tier: 4 });
    expect(lines).toHaveLength(2);
  });

  test.each([
    ["reserved", 'data.status "reserved"'],
    ["in-quarantine", 'data.status "in-quarantine"'],
    ["Held for Mr Marrow", "data.status (string)"],
    ["RESERVED", "data.status (string)"],
    ["kabul", "data.status (string)"],
    ["the-key", "data.status (string)"],
    ["prefix-the-secret", "data.status (string)"],
    ["x".repeat(60), "data.status (string)"],
  ])("status word %j is told as %s", (status, what) => {
    expect(answer("check", { domain: "kabul.af", status, available: false })).toEqual([what]);
  });

  test.each<[unknown, string[]]>([
    [{ success: false, error: { code: "quarantined", message: "Mr Marrow" } }, ['error.code "quarantined"']],
    [{ error: "quarantined", message: "Mr Marrow" }, ['error "quarantined"']],
    [{ errors: [{ code: 1007, detail: "Mr Marrow" }] }, ["errors[].code (number)"]],
    [{ type: "https://marrow.af/e/1", status: 422 }, ["type (string)"]],
    [{ error: { code: "kabul.af" } }, ["error.code (string)"]],
    [{ error: { code: "the-secret" } }, ["error.code (string)"]],
    [{ message: "Mr Marrow", data: { code: "marrow" } }, []],
    [null, []],
    ["marrow", []],
  ])("error %j is told as %j", (body, told) => {
    expect(error(body)).toEqual(told);
  });

  test("names of fields that could be data are not told", () => {
    const data = { "mr@marrow.af": 1, kabul: 1, "the-key": 1, "a b": 1, ["x".repeat(60)]: 1, "7": 1 };
    expect(answer("balance", data)).toEqual(["data.* (number)"]);
  });

  test("is listed up to fifty, and counted beyond", () => {
    const names = "abcdefghijklmnopqrstuvwxyz".split("").flatMap((a) => ["x", "y", "z"].map((b) => a + b));
    for (const name of names) answer("tier", { tier: "Silver", [name]: 1 });
    expect(surprises.list()).toHaveLength(50);
    expect(lines).toHaveLength(50);
    expect(surprises.totals()).toEqual({ tier: names.length });
  });

  test("keeps nobody busy: a huge or deep answer is looked at in part", () => {
    const list = Array.from({ length: 200_000 }, () => ({ domain: "a.af", x: 1 }));
    expect(answer("domains", list)).toEqual(["data[].x (number)"]);
    let deep: unknown = 1;
    for (let n = 0; n < 1000; n += 1) deep = { domain: deep };
    expect(answer("domains", deep)).toHaveLength(1);
  });
});
