/** Anything outside the vocabulary is counted and shown by its shape, never by its value. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import type { Operation } from "../../src/upstream/vocabulary.js";
import { createUnexpected, type Unexpected } from "../../src/upstream/unexpected.js";
import { AVAILABLE } from "./support/bench.js";
import { parseJson } from "../../src/upstream/body.js";

let clock: FakeClock;
let lines: string[];
let unexpected: Unexpected;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  unexpected = createUnexpected(clock, recordingLog(lines));
});

function answer(operation: Operation, data: unknown, beside: object = {}): string[] {
  const body = parseJson(JSON.stringify({ success: true, data, ...beside }));
  unexpected.inAnswer(operation, body, ["the-key", "the-secret", "kabul.af", "kabul"]);
  return unexpected.list().map(({ what }) => what);
}

function error(body: unknown): string[] {
  unexpected.inError("check", body, ["the-key", "the-secret", "kabul.af", "kabul"]);
  return unexpected.list().map(({ what }) => what);
}

describe("documented fields and usual spellings", () => {
  test.each<[Operation, unknown]>([
    ["check", AVAILABLE],
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
  ])("aren't reported: %s %j", (operation, data) => {
    expect(answer(operation, data)).toEqual([]);
  });
});

describe("unknown content", () => {
  test("is shown with its path and JSON type, without its value", () => {
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
    expect(JSON.stringify([unexpected.list(), lines])).not.toMatch(/marrow/i);
  });

  test("is counted for each answer and logged once", async () => {
    for (let n = 0; n < 3; n += 1) {
      answer("tier", { tier: "Silver", badge: "x" });
      await clock.advance(1000);
    }
    answer("tier", { tier: "Silver", badge: 7 });
    const firstSeenMs = Date.UTC(2026, 2, 20);
    expect(unexpected.list()).toEqual([
      { operation: "tier", what: "data.badge (string)", count: 3, firstSeenMs },
      { operation: "tier", what: "data.badge (number)", count: 1, firstSeenMs: firstSeenMs + 3000 },
    ]);
    expect(unexpected.totals()).toEqual({ tier: 4 });
    expect(lines).toHaveLength(2);
  });

  test.each([
    ["sleeping", 'data.status "sleeping"'],
    ["Held for Mr Marrow", "data.status (string)"],
    ["SLEEPING", "data.status (string)"],
    ["kabul", "data.status (string)"],
  ])("such as the status %j is shown as %s", (status, what) => {
    expect(answer("check", { domain: "kabul.af", status, available: false })).toEqual([what]);
  });

  test.each<[unknown, string[]]>([
    [{ success: false, error: { code: "quarantined", message: "Mr Marrow" } }, ['error.code "quarantined"']],
    [{ errors: [{ code: 1007, detail: "Mr Marrow" }] }, ["errors[].code (number)"]],
    [{ error: { code: "the-secret" } }, ["error.code (string)"]],
    [{ message: "Mr Marrow", data: { code: "marrow" } }, []],
  ])("in the error %j is shown as %j", (body, shown) => {
    expect(error(body)).toEqual(shown);
  });

  test("is listed up to 50 times, and only counted beyond that", () => {
    const names = "abcdefghijklmnopqrstuvwxyz".split("").flatMap((a) => ["x", "y", "z"].map((b) => a + b));
    for (const name of names) answer("tier", { tier: "Silver", [name]: 1 });
    expect(unexpected.list()).toHaveLength(50);
    expect(lines).toHaveLength(50);
    expect(unexpected.totals()).toEqual({ tier: names.length });
  });
});
