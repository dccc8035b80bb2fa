/** Every fault of the environment and the files is reported in one attempt to start. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { parseWorld } from "../../packages/sandbox/src/config.js";
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

const LIVE = {
  UPSTREAM_BASE_URL: "https://registry.example",
  UPSTREAM_SERVICE_KEY: "key",
  UPSTREAM_SERVICE_SECRET: "secret",
};

function faultsOf(env: Environment): readonly string[] {
  const result = readConfig(env, systemClock, parseWorld);
  return result.ok ? [] : result.faults;
}

const settingsIn = (faults: readonly string[]): string[] =>
  faults.map((fault) => fault.slice(0, fault.indexOf(":")));

const shipped = (name: string): string =>
  readFileSync(new URL(`../../config/${name}`, import.meta.url), "utf8");

let files = 0;
function file(text: string): string {
  const path = join(folder, String((files += 1)));
  writeFileSync(path, text);
  return path;
}

test("the package's own files have no faults", () => {
  expect(faultsOf({})).toEqual([]);
});

test("faults in the environment and in all files are reported together, each of them", () => {
  const faults = faultsOf({
    PORT: "80a",
    STAFF_TOKENS: "me:nothash:read",
    RETAIL_CONFIG: file(shipped("retail.yaml").replace("currency:", "courrency:")),
    CACHE_CONFIG: file(shipped("cache.yaml").replace("usableMs: 60000", "usableMs: 60001")),
    SANDBOX_CONFIG: file(
      shipped("sandbox.yaml")
        .replace("takenPercent: ", "takenPercent: 1")
        .replace("nameservers:", "nameserver:"),
    ),
    PROMISE_PRIVATE_KEY: "no key",
  });
  expect(new Set(settingsIn(faults))).toEqual(
    new Set([
      "PORT",
      "STAFF_TOKENS",
      "RETAIL_CONFIG",
      "CACHE_CONFIG",
      "SANDBOX_CONFIG",
      "PROMISE_PRIVATE_KEY",
    ]),
  );
  expect(settingsIn(faults).filter((name) => name === "SANDBOX_CONFIG")).toHaveLength(3);
});

test("a malformed half of a credential is reported besides the missing one", () => {
  for (const role of ["SERVICE", "STANDBY"])
    for (const [given, missing] of [
      ["KEY", "SECRET"],
      ["SECRET", "KEY"],
    ]) {
      const halves = { [`UPSTREAM_${role}_${given}`]: "two words", [`UPSTREAM_${role}_${missing}`]: "" };
      expect(settingsIn(faultsOf({ ...LIVE, ...halves })).toSorted()).toEqual([
        `UPSTREAM_${role}_KEY`,
        `UPSTREAM_${role}_SECRET`,
      ]);
    }
});

test("a SANDBOX_CONFIG isn't read where there is no sandbox", () => {
  expect(faultsOf({ ...LIVE, SANDBOX_CONFIG: join(folder, "absent.yaml") })).toEqual([]);
});

const CONTACT = "SECURITY_CONTACT: must begin with";
const HOST = "HOST: must be an IP address or a host name";
test.each<[Record<string, string>, string]>([
  [{ HOST: "not a host" }, HOST],
  [{ HOST: "300.0.0.1:80" }, HOST],
  [{ HOST: "http://localhost" }, HOST],
  [{ NODE_ENV: "production", ...LIVE, UPSTREAM_BASE_URL: "http://registry.example" }, "UPSTREAM_BASE_URL: "],
  [{ ...LIVE, UPSTREAM_BASE_URL: "ftp://registry.example" }, "UPSTREAM_BASE_URL: "],
  [{ CHECKOUT_URL: "pay.example.af" }, "CHECKOUT_URL: must be an http or https URL"],
  [{ CHECKOUT_URL: "javascript:alert(1)" }, "CHECKOUT_URL: must be an http or https URL"],
  [{ CHECKOUT_URL: "https://user@pay.example.af" }, "CHECKOUT_URL: must not contain credentials"],
  [{ SECURITY_CONTACT: "security@example.af" }, CONTACT],
  [{ SECURITY_CONTACT: "http://example.af/security" }, CONTACT],
  [{ SECURITY_CONTACT: "mailto:" }, CONTACT],
  [{ SECURITY_CONTACT: "https://a b" }, CONTACT],
  [{ DEMO_STOREFRONT: "maybe" }, "DEMO_STOREFRONT: must be one of on, off"],
  [{ STAFF_TOKENS_FILE: "/absent" }, "STAFF_TOKENS_FILE: names a file that doesn't exist"],
  [{ CACHE_CONFIG: "/absent" }, "CACHE_CONFIG: names a file that doesn't exist"],
  [{ SANDBOX_CONFIG: "/absent" }, "SANDBOX_CONFIG: names a file that doesn't exist"],
])("%j has this fault alone: %s", (env, fault) => {
  expect(faultsOf(env)).toEqual([expect.stringContaining(fault)]);
});

test.each(["0.0.0.0", "::", "localhost", "shop-1.example.af", "fe80::1%eth0"])(
  "%j is a host to listen on",
  (host) => {
    expect(faultsOf({ HOST: host })).toEqual([]);
  },
);

test("a secret must be given by value or by file, not both, and its file must not be empty", () => {
  const both = { ...LIVE, UPSTREAM_SERVICE_KEY_FILE: file("from the file") };
  expect(settingsIn(faultsOf(both))).toEqual(["UPSTREAM_SERVICE_KEY"]);
  expect(faultsOf({ PROMISE_PRIVATE_KEY_FILE: file("") })).toEqual([
    "PROMISE_PRIVATE_KEY_FILE: must name a regular file that isn't empty",
  ]);
});

test("each entry of CORS_ORIGINS that isn't an exact origin is reported by its position", () => {
  const origins = "https://a.af, https://b.af/, https://*.c.af, http://localhost:5173, *";
  const exact = "must be an exact origin such as https://www.example.af, without a path or wildcard";
  expect(faultsOf({ CORS_ORIGINS: origins })).toEqual(
    [2, 3, 5].map((position) => `CORS_ORIGINS: entry ${position} ${exact}`),
  );
});

test.each([
  ["CACHE_CONFIG", "a: [", /^CACHE_CONFIG: is not valid YAML/],
  ["CACHE_CONFIG", "{}", /^CACHE_CONFIG: availability: /],
  ["CACHE_CONFIG", "7", /^CACHE_CONFIG: Invalid input/],
  ["SANDBOX_CONFIG", "a: [\n", /^SANDBOX_CONFIG: not YAML: .* at line \d, column \d$/],
])("a file of %s that contains %j is reported", (name, text, fault) => {
  expect(faultsOf({ [name]: file(text) })[0]).toMatch(fault);
});

test("each fault of a cache file is reported with its path", () => {
  const text = shipped("cache.yaml")
    .replaceAll(/entries: \d+/g, "entries: 0")
    .replace("tier:", "teer:");
  const faults = faultsOf({ CACHE_CONFIG: file(text) });
  expect(faults.map((fault) => fault.split(": ").slice(0, 2).join(": ")).toSorted()).toEqual([
    "CACHE_CONFIG: Unrecognized key",
    "CACHE_CONFIG: account.entries",
    "CACHE_CONFIG: availability.entries",
    "CACHE_CONFIG: prices.entries",
    "CACHE_CONFIG: tier",
  ]);
});

test.each([
  [{}, { demoStorefront: true, embed: true }],
  [LIVE, { demoStorefront: false, embed: true }],
  [{ ...LIVE, DEMO_STOREFRONT: "on" }, { demoStorefront: true }],
  [
    { DEMO_STOREFRONT: "off", EMBED: "off" },
    { demoStorefront: false, embed: false },
  ],
])("with %j the demo page and the search element are as in %j", (env, config) => {
  expect(readConfig(env, systemClock)).toMatchObject({ ok: true, config });
});
