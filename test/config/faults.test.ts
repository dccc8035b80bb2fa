/** Every fault of the environment, the prices and the cache times is reported in one attempt to start. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import type { Environment } from "../../src/config/settings.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "config-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function faultsOf(env: Environment): readonly string[] {
  const result = readConfig(env, systemClock);
  return result.ok ? [] : result.faults;
}

/** A copy of the package's own file in which `from` is replaced. */
function edited(name: string, from: string, to: string): string {
  const text = readFileSync(new URL(`../../config/${name}`, import.meta.url), "utf8");
  if (!text.includes(from)) throw new Error(`${name} doesn't contain ${from}`);
  const path = join(folder, name);
  writeFileSync(path, text.replace(from, to));
  return path;
}

function yaml(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("the package's own files have no faults", () => {
  expect(faultsOf({})).toEqual([]);
});

test("a malformed half of a credential is reported besides the missing one", () => {
  for (const role of ["SERVICE", "STANDBY"])
    for (const [given, missing] of [
      ["KEY", "SECRET"],
      ["SECRET", "KEY"],
    ]) {
      const names = faultsOf({
        UPSTREAM_BASE_URL: "https://registry.example",
        UPSTREAM_SERVICE_KEY: "key",
        UPSTREAM_SERVICE_SECRET: "secret",
        [`UPSTREAM_${role}_${given}`]: "two words",
        [`UPSTREAM_${role}_${missing}`]: "",
      }).map((fault) => fault.slice(0, fault.indexOf(":")));
      expect(names.toSorted()).toEqual([`UPSTREAM_${role}_KEY`, `UPSTREAM_${role}_SECRET`]);
    }
});

test("a SANDBOX_CONFIG that can't be read is reported together with other faults, unless there is no sandbox", () => {
  const missing = { SANDBOX_CONFIG: join(folder, "no-sandbox.yaml"), PORT: "no" };
  expect(faultsOf(missing)).toEqual([
    expect.stringMatching(/^PORT: /),
    "SANDBOX_CONFIG: names a file that doesn't exist",
  ]);
  expect(faultsOf({ ...missing, UPSTREAM_BASE_URL: "https://upstream.example" })).not.toContain(
    "SANDBOX_CONFIG: names a file that doesn't exist",
  );
});

test.each(["not a host", "a..b", "300.0.0.1:80", "http://localhost", "*"])(
  "%j isn't a host to listen on",
  (host) => {
    expect(faultsOf({ HOST: host })).toEqual(["HOST: must be an IP address or a host name"]);
  },
);

test.each(["0.0.0.0", "::", "127.0.0.1", "localhost", "shop-1.example.af", "fe80::1%eth0"])(
  "%j is a host to listen on",
  (host) => {
    expect(faultsOf({ HOST: host })).toEqual([]);
  },
);

test("each entry of CORS_ORIGINS that isn't an exact origin is reported by its position", () => {
  const origins = "https://a.af, https://b.af/, https://*.c.af, http://localhost:5173, *";
  expect(faultsOf({ CORS_ORIGINS: origins })).toEqual(
    [2, 3, 5].map(
      (position) =>
        `CORS_ORIGINS: entry ${position} must be an exact origin such as https://www.example.af, without a path or wildcard`,
    ),
  );
});

test("faults in the environment and in both files are reported together", () => {
  const names = faultsOf({
    PORT: "80a",
    UPSTREAM_BASE_URL: "ftp://registry.example",
    CORS_ORIGINS: "https://www.example.af/",
    RETAIL_CONFIG: edited("retail.yaml", "currency:", "courrency:"),
    CACHE_CONFIG: edited("cache.yaml", "usableMs: 60000", "usableMs: 60001"),
    PROMISE_PRIVATE_KEY: "no key",
  }).map((fault) => fault.slice(0, fault.indexOf(":")));
  expect(new Set(names)).toEqual(
    new Set([
      "PORT",
      "UPSTREAM_BASE_URL",
      "UPSTREAM_SERVICE_KEY",
      "UPSTREAM_SERVICE_SECRET",
      "CORS_ORIGINS",
      "RETAIL_CONFIG",
      "CACHE_CONFIG",
      "PROMISE_PRIVATE_KEY",
    ]),
  );
});

test.each<[string, string, string]>([
  ["isn't YAML", "a: [", "CACHE_CONFIG: is not valid YAML"],
  ["lacks a group", "{}", "CACHE_CONFIG: availability: "],
  ["isn't an object", "7", "CACHE_CONFIG: Invalid input"],
])("a cache file that %s is reported", (_what, text, fault) => {
  const faults = faultsOf({ CACHE_CONFIG: yaml("broken.yaml", text) });
  expect(faults[0]?.startsWith(fault)).toBe(true);
});

test("each fault of a cache file is reported with its path", () => {
  const text = readFileSync(new URL("../../config/cache.yaml", import.meta.url), "utf8");
  const faults = faultsOf({
    CACHE_CONFIG: yaml(
      "several.yaml",
      text.replaceAll(/entries: \d+/g, "entries: 0").replace("tier:", "teer:"),
    ),
  });
  expect(faults.map((fault) => fault.split(": ").slice(0, 2).join(": ")).sort()).toEqual([
    "CACHE_CONFIG: Unrecognized key",
    "CACHE_CONFIG: account.entries",
    "CACHE_CONFIG: availability.entries",
    "CACHE_CONFIG: prices.entries",
    "CACHE_CONFIG: tier",
  ]);
});

test("a file that doesn't exist is reported together with other faults", () => {
  expect(faultsOf({ CACHE_CONFIG: join(folder, "absent.yaml"), PORT: "x" })).toEqual([
    "PORT: must be a whole number from 0 to 65535",
    "CACHE_CONFIG: names a file that doesn't exist",
  ]);
});
