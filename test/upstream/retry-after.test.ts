/** Retry-After is parsed strictly by its grammar, and the result is clamped. */
import { describe, expect, test } from "@jest/globals";
import { retryAfterMs } from "../../src/upstream/retry-after.js";

const NOW = Date.UTC(2026, 2, 20, 12);

describe("Retry-After", () => {
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
