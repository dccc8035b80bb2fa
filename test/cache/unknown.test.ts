/** A key is unknown if there is no value, no load in flight, no recent failure, and no other replica that can be asked. */
import { expect, test } from "@jest/globals";
import { createPool } from "../../src/cache/cache.js";
import type { Fact } from "../../src/cache/facts.js";
import type { SharedKey } from "../../src/cache/replicas.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock } from "../support/fake-clock.js";

const clock = new FakeClock();
const asker = { signal: new AbortController().signal };
const settings = {
  entries: 10,
  freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
  failureMs: 3000,
  clock,
};

test("a key is unknown until it is requested, and again once its value or its failure is forgotten", async () => {
  const pool = createPool<string, typeof asker>(settings);
  expect(pool.isUnknown("key")).toBe(true);
  let answer = (_fact: Fact<string>): void => {};
  const asking = pool.get("key", asker, () => new Promise((done) => (answer = done)));
  expect(pool.isUnknown("key")).toBe(false);
  await Promise.resolve();
  answer({ value: "value", askedMs: clock.monotonic(), answeredMs: clock.monotonic() });
  await asking;
  expect(pool.isUnknown("key")).toBe(false);
  await clock.advance(5001);
  expect(pool.isUnknown("key")).toBe(true);
  const broken = new ServiceError("upstream_failed", "broken");
  await expect(pool.get("key", asker, () => Promise.reject(broken))).rejects.toBe(broken);
  expect(pool.isUnknown("key")).toBe(false);
  await clock.advance(3001);
  expect(pool.isUnknown("key")).toBe(true);
});

test("no key is unknown while another replica can be asked", () => {
  const key: SharedKey<string> = {
    read: async () => [],
    write: async () => [],
    claim: async () => null,
  };
  const shared = { isAvailable: () => true, at: () => key, purge: () => {}, onPurged: () => {} };
  expect(createPool<string, typeof asker>({ ...settings, shared }).isUnknown("key")).toBe(false);
  const unreachable = { ...shared, isAvailable: () => false, at: () => null };
  expect(createPool<string, typeof asker>({ ...settings, shared: unreachable }).isUnknown("key")).toBe(true);
});
