/**
 * What a refusal means, however it is worded, and how long to wait after it. A search for a name can't inject such words into it. Retry-After is
 * parsed strictly by its grammar, and the result is clamped.
 */
import { describe, expect, test } from "@jest/globals";
import { parseDomainName } from "../../src/domain-name.js";
import { meaningOf, type Meaning, type Refusal } from "../../src/upstream/refusal.js";
import { retryAfterMs } from "../../src/upstream/retry-after.js";
import { KABUL } from "./support/bench.js";

function meaning(status: number, body: unknown, more: Partial<Refusal> = {}): Meaning {
  return meaningOf({ status, hasRetryAfter: false, body, isRecord: false, asked: KABUL, ...more });
}

const LIMITS = [
  { error: { code: "rate_limit_exceeded", message: "m" } },
  { errors: { rate: ["Too many requests"] } },
  { type: "https://errors.example/too_many_requests", title: "Slow down" },
  { message: "API call quota exhausted" },
  { Error: { Code: 429 } },
  "Request limit reached, please wait",
  "<html><h1>You are being rate limited</h1></html>",
];

describe("a rate limit", () => {
  test.each(LIMITS)("is recognized by its wording in %j", (body) => {
    for (const status of [200, 400, 403, 503, 509]) expect(meaning(status, body)).toBe("limit");
    expect(meaning(403, body, { isRecord: true })).toBe("limit");
  });

  test("is recognized in any 429, and in a 200, 403 or 503 with Retry-After", () => {
    expect(meaning(429, "credentials not found")).toBe("limit");
    for (const status of [200, 403, 503]) {
      expect(meaning(status, "", { hasRetryAfter: true })).toBe("limit");
      expect(meaning(status, "", { hasRetryAfter: true, isRecord: true })).toBe("limit");
    }
  });

  test("isn't recognized in a 500 with Retry-After, or in a message about another kind of limit", () => {
    expect(meaning(500, "", { hasRetryAfter: true })).toBe("failure");
    for (const message of [
      "years: at most 10",
      "the label's length limit of 63 is exceeded",
      "maximum years exceeded",
      "credit limit reached",
    ]) {
      expect(meaning(422, { success: false, error: { code: "validation_failed", message } })).toBe("failure");
    }
  });
});

describe("a domain that the reseller doesn't manage", () => {
  test.each([
    { error: { code: "domain_not_found" } },
    { message: "Domain is not managed by this account" },
    { detail: "not managed by these credentials" },
    { message: "The domain does not exist" },
    { error: { status: 404 } },
  ])("is recognized by %j", (body) => {
    for (const status of [200, 400, 403, 410, 422]) {
      expect(meaning(status, body, { isRecord: true })).toBe("absent");
    }
    expect(meaning(200, body)).toBe("failure");
    expect(meaning(500, body, { isRecord: true })).toBe("failure");
  });

  test("is recognized in a 404, and in a 403 without another reason", () => {
    expect(meaning(404, "", { isRecord: true })).toBe("absent");
    expect(meaning(403, { error: { code: "forbidden" } }, { isRecord: true })).toBe("absent");
    expect(meaning(403, "", { isRecord: true })).toBe("absent");
  });
});

describe("a credential", () => {
  test.each([
    { error: { code: "invalid_credentials" } },
    { code: "service-key-revoked" },
    { message: "Authentication failed" },
    { message: "API access is not enabled" },
    { message: "Your IP address is not allowed" },
    { error: { status: 401, message: "no" } },
  ])("is refused by %j", (body) => {
    for (const status of [200, 400, 401, 403]) {
      expect(meaning(status, body)).toBe("credential");
      expect(meaning(status, body, { isRecord: true })).toBe("credential");
    }
    for (const status of [422, 500, 503]) expect(meaning(status, body)).toBe("failure");
  });

  test("is refused by a 401, and by a 403 for anything but a single record", () => {
    expect(meaning(401, "")).toBe("credential");
    expect(meaning(403, "")).toBe("credential");
    expect(meaning(403, { code: "domain_not_found" })).toBe("credential");
  });
});

test("anything else is a failure", () => {
  for (const body of [
    "",
    null,
    undefined,
    429,
    [],
    {},
    { success: false },
    { data: "rate limit" },
    "<html>",
  ]) {
    for (const status of [200, 201, 204, 302, 400, 422, 500, 502, 503]) {
      expect(meaning(status, body)).toBe("failure");
    }
  }
});

test.each(["too-many-requests", "invalid-credentials", "429"])(
  "a search for %s.af doesn't change what the upstream's error means",
  (label) => {
    const asked = parseDomainName(`${label}.af`, [".af"], "domain");
    const upper = asked.ascii.toUpperCase();
    for (const text of [
      `${asked.ascii} is not a valid domain`,
      `${upper}: INVALID`,
      `The label '${label}' is reserved`,
      label,
      `https://errors.example/${asked.ascii}`,
    ]) {
      for (const status of [200, 400, 503]) {
        expect(
          meaning(status, { success: false, error: { code: "invalid", message: text } }, { asked }),
        ).toBe("failure");
        expect(meaning(status, text, { asked })).toBe("failure");
      }
    }
    expect(meaning(503, { error: { code: "rate_limit_exceeded", message: asked.ascii } }, { asked })).toBe(
      "limit",
    );
  },
);

test("an error of any size or depth is classified, but only its beginning is examined", () => {
  let deep: unknown = "rate limit";
  for (let depth = 0; depth < 50_000; depth += 1) deep = { deep };
  expect(meaning(503, deep)).toBe("failure");
  const wide = Array.from({ length: 100_000 }, () => "x".repeat(50));
  expect(meaning(503, [...wide, "rate limit"])).toBe("failure");
  expect(meaning(503, { error: { code: "rate_limited" }, wide })).toBe("limit");
  expect(meaning(503, { deep, error: { code: "rate_limited" } })).toBe("limit");
});

describe("Retry-After", () => {
  const NOW = Date.UTC(2026, 2, 20, 12);

  test.each<[unknown, number]>([
    ["5", 5000],
    ["0", 1000],
    ["301", 300_000],
    ["999999999999999", 300_000],
    ["Fri, 20 Mar 2026 12:00:45 GMT", 45_000],
    ["Fri, 20 Mar 2026 11:00:00 GMT", 1000],
    ["Fri, 20 Mar 2126 12:00:00 GMT", 300_000],
  ])("%j is %i ms", (header, ms) => {
    expect(retryAfterMs(header, NOW)).toBe(ms);
  });

  test.each<[unknown]>([
    [undefined],
    [5],
    [""],
    ["-1"],
    ["1.5"],
    ["0x10"],
    ["5 s"],
    ["soon"],
    ["2026-03-20T12:00:45Z"],
    ["Fri, 20 Mar 2026 12:00:45 +0000"],
    ["Fri, 99 Mar 2026 12:00:45 GMT"],
  ])("%j is invalid, so the wait is a minute", (header) => {
    expect(retryAfterMs(header, NOW)).toBe(60_000);
  });
});
