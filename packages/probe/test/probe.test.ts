/** The probe against the sandbox with every preset and every single setting: it reports correctly what it saw, and reveals nothing private. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { systemClock } from "../../../src/clock.js";
import { type Config, readConfig } from "../../../src/config/env.js";
import { probe } from "../../../src/probe/probe.js";
import type { Result } from "../src/result.js";
import { tableOf } from "../src/table.js";
import { openPoints, type ShapeSettings, type Switch } from "../../sandbox/src/open-points.js";
import { PRESET_NAMES, type ShapeChoice, shapeSettings } from "../../sandbox/src/presets.js";
import { type Credential, type Sandbox, startSandbox } from "../../sandbox/src/sandbox.js";
import { fixedSecret } from "../../../src/secret.js";

const WIDE = { limit: 1_000_000, windowMs: 60_000 };
const ENDPOINTS = [
  "GET /api/v1/account/balance",
  "GET /api/v1/account/tier",
  "GET /api/v1/domains",
  "GET /api/v1/domains/{domain}",
  "POST /api/v1/domains/check",
  "POST /api/v1/pricing",
];

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ rateLimit: WIDE });
});
afterAll(() => sandbox.close());

function config(env: Readonly<Record<string, string>> = {}): Config {
  const read = readConfig(env, systemClock);
  if (!read.ok) throw new Error(read.faults.join("\n"));
  return read.config;
}

const SHIPPED = config();

/** Probes with a credential that hasn't been used before. */
async function probeAs(
  reseller = "demo",
  settings: { readonly config?: Config; readonly prepare?: (credential: Credential) => void } = {},
): Promise<{ result: Result; routes: Readonly<Record<string, number>>; credential: Credential }> {
  const credential = sandbox.control.createCredential(reseller);
  settings.prepare?.(credential);
  const result = await probe({
    config: settings.config ?? SHIPPED,
    upstream: {
      baseUrl: sandbox.url,
      active: { key: fixedSecret(credential.key), secret: fixedSecret(credential.secret) },
    },
    live: null,
    clock: systemClock,
  });
  const stats = sandbox.stats().credentials.find(({ key }) => key === credential.key);
  if (!stats?.revoked) sandbox.control.revoke(credential.key);
  return { result, routes: stats?.byRoute ?? {}, credential };
}

type Fits = Readonly<Record<Switch, readonly (string | number)[] | null>>;

/** What six calls for the demo reseller can show about these settings at most; null: nothing. */
function visible(set: ShapeSettings): Fits {
  const isWhole = set.listItems === "records" || set.listItems === "wrapped";
  const isRefused = isWhole && [404, 403, "refusal-in-200"].includes(set.notManaged);
  const isJson = isRefused && set.errorFields !== "text";
  // 39.39 for two years, so 19.70 for one.
  const hasUnit = ["unit", "unit-and-total", "per-year"].includes(set.quoteFields);
  const isFraction = set.quoteAmount === "number" || set.quoteAmount === "padded-number";
  return {
    envelope: [set.envelope],
    takenStatus: [set.takenStatus],
    takenPricing: [set.takenPricing],
    checkEcho: [set.checkEcho],
    recordFields: [set.recordFields],
    recordWrapper: isWhole ? null : [set.recordWrapper],
    dates: [set.dates],
    autoRenew: [set.autoRenew],
    nameservers: [set.nameservers],
    tierFields: [set.tierFields],
    topTier: null,
    quoteFields: [set.quoteFields],
    quoteAmount: isFraction
      ? hasUnit
        ? [set.quoteAmount]
        : ["number", "padded-number"]
      : set.quoteAmount === "minor-units"
        ? ["minor-units", "number"]
        : [set.quoteAmount],
    quoteEcho: [set.quoteEcho],
    statusWords: [set.statusWords],
    checkYears:
      set.checkEcho === "none"
        ? null
        : set.checkYears === "ignored"
          ? ["ignored"]
          : ["optional", "required", "bounded"],
    quoteYears: null,
    listWrapper: [set.listWrapper],
    listItems: [set.listItems],
    // Only complete records contain the registration date.
    listOrder: isWhole || set.listOrder === "name" ? [set.listOrder] : ["given", "newest"],
    listPaging: [set.listPaging],
    notManaged: isWhole ? [set.notManaged] : null,
    errorFields: isRefused ? [set.errorFields] : null,
    errorFlag: isJson ? [set.errorFlag] : null,
    // The single word "forbidden" is the same in both spellings.
    errorCodes: !isJson
      ? null
      : set.notManaged === 403 && ["snake", "kebab"].includes(set.errorCodes)
        ? ["snake", "kebab"]
        : [set.errorCodes],
    credentialStatus: null,
    accessStatus: null,
    inputStatus: null,
    limitStatus: null,
    retryAfter: null,
    restoreRenewal: null,
    limitFields: null,
  };
}

/** The points that the service can't handle. */
function failing(set: ShapeSettings): Switch[] {
  const isDoubtful = ["unit", "per-year"].includes(set.quoteFields) || set.quoteAmount === "minor-units";
  const quote: Switch[] = isDoubtful ? ["quoteFields", "quoteAmount", "quoteEcho"] : [];
  return set.checkEcho === "years" && set.checkYears === "ignored" ? [...quote, "checkYears"] : quote;
}

function fitsOf({ points }: Result): unknown {
  return Object.fromEntries(points.map(({ point, seen, fits }) => [point, seen === null ? null : fits]));
}

function pointOf({ points }: Result, name: Switch): Result["points"][number] {
  const found = points.find(({ point }) => point === name);
  if (found === undefined) throw new Error(`the probe result doesn't contain ${name}`);
  return found;
}

const world = z.object({
  resellers: z.array(
    z.object({
      accountNumber: z.string(),
      balance: z.string(),
      creditLimit: z.string(),
      domains: z.array(z.object({ name: z.string(), registered: z.string() })).default([]),
    }),
  ),
  tiers: z.array(z.object({ name: z.string() })),
});
const { resellers, tiers } = world.parse(
  parse(readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8")),
);
/** What the answers to the demo reseller contain, and what the probe itself asked about. */
const PRIVATE = [
  ...resellers.flatMap(({ accountNumber, balance, creditLimit, domains }) => [
    accountNumber,
    balance,
    creditLimit === "0.00" ? balance : creditLimit,
    ...domains.flatMap(({ name, registered }) => [name.split(".")[0] ?? name, registered]),
  ]),
  ...tiers.map(({ name }) => name),
  "39.39",
  "19.7",
  "3939",
  "1970",
  "sandbox-dns",
  "pamir-hosting",
  "storefront-probe",
  "USD",
];

function expectNothingRevealed(text: string, credential: Credential): void {
  for (const word of [credential.key, credential.secret, ...PRIVATE])
    expect([word, text.includes(word)]).toEqual([word, false]);
}

async function expectCorrect(choice: ShapeChoice): Promise<void> {
  const set = sandbox.control.setShapes(choice);
  const { result, routes, credential } = await probeAs();
  expect(fitsOf(result)).toEqual(visible(set));
  expect(result.points.filter(({ copes }) => copes === false).map(({ point }) => point)).toEqual(
    openPoints()
      .map(({ name }) => name)
      .filter((name) => failing(set).includes(name)),
  );
  for (const { seen, how, copes } of result.points) {
    expect([seen === null, copes === null]).toEqual([how !== null, how !== null]);
  }
  expect(result.verdict).toBe(failing(set).length === 0 ? "copes" : "fails");
  expect(routes).toEqual(Object.fromEntries(ENDPOINTS.map((route) => [route, 1])));
  expectNothingRevealed(JSON.stringify(result) + tableOf(result), credential);

  sandbox.control.setShapes(shapeSettings(result.shapes));
  const again = await probeAs();
  expect(again.result).toEqual(result);
}

describe("the probe's result", () => {
  test.each(PRESET_NAMES)(
    "is complete, correct and replayable by the sandbox with the preset %s",
    async (preset) => {
      await expectCorrect({ preset });
    },
  );

  const alone = openPoints().flatMap(({ name: point, point: { settings } }) =>
    settings.slice(1).map((setting) => ({ point, setting })),
  );
  test.each(alone)(
    "is complete, correct and replayable by the sandbox with $point: $setting",
    async ({ point, setting }) => {
      await expectCorrect(shapeSettings({ [point]: setting }));
    },
  );
});

describe("the probe", () => {
  const shortWindow = (): Config => config({ UPSTREAM_RATE_WINDOW_MS: "200" });

  const limits = (["limitStatus", "retryAfter", "limitFields"] as const).flatMap((point) =>
    openPoints()
      .filter(({ name }) => name === point)
      .flatMap(({ point: { settings } }) => settings.map((setting) => ({ point, setting }))),
  );
  test.each(limits)(
    "recognizes a rate limit with $point: $setting, and doesn't repeat the call",
    async (one) => {
      const set = sandbox.control.setShapes(shapeSettings({ [one.point]: one.setting }));
      sandbox.control.setRateLimit({ limit: 1, windowMs: 30_000 });
      try {
        const { result, routes, credential } = await probeAs("demo", { config: shortWindow() });
        expect(result.verdict).toBe("incomplete");
        expect(result.calls.map(({ outcome }) => outcome)).toEqual([
          "understood",
          "rate limited",
          // Only that operation may be limited; once a second one is refused too, none is asked any more.
          "rate limited",
          "no answer",
          "no answer",
          "no answer",
        ]);
        expect(routes).toEqual({ "GET /api/v1/domains": 1 });
        for (const name of ["limitStatus", "retryAfter", "limitFields"] as const)
          expect(pointOf(result, name)).toMatchObject({ fits: [set[name]], copes: true });
        expectNothingRevealed(JSON.stringify(result) + tableOf(result), credential);
      } finally {
        sandbox.control.setRateLimit(WIDE);
      }
    },
  );

  const refusals = (["credentialStatus", "accessStatus"] as const).flatMap((point) =>
    openPoints()
      .filter(({ name }) => name === point)
      .flatMap(({ point: { settings } }) => settings.map((setting) => ({ point, setting }))),
  );
  test.each(refusals)("tries a refused credential once, and recognizes $point: $setting", async (one) => {
    sandbox.control.setShapes(shapeSettings({ [one.point]: one.setting }));
    const { result, credential } = await probeAs("demo", {
      prepare: ({ key }) => {
        if (one.point === "credentialStatus") sandbox.control.revoke(key);
        else sandbox.control.setAllowlist(key, ["192.0.2.1"]);
      },
    });
    expect(result.verdict).toBe("incomplete");
    expect(pointOf(result, one.point)).toMatchObject({ fits: [one.setting], copes: true });
    expect(result.calls.map(({ outcome }) => outcome)).toEqual([
      "access denied",
      ...Array.from({ length: 5 }, () => "no answer"),
    ]);
    expect(sandbox.stats().credentials.find(({ key }) => key === credential.key)?.refused).toBe(1);
  });

  test.each([422, 400, 200])(
    "reports a term that the upstream doesn't offer, and recognizes inputStatus: %i",
    async (setting) => {
      sandbox.control.setShapes(shapeSettings({ inputStatus: setting }));
      const retail = {
        ...SHIPPED.retail,
        catalog: [{ tld: ".gov.af", scripts: ["latin"] as const, years: { registration: [2] } }],
      };
      const { result } = await probeAs("demo", { config: { ...SHIPPED, retail } });
      expect(result.verdict).toBe("fails");
      expect(pointOf(result, "inputStatus")).toMatchObject({ fits: [setting], copes: true });
      expect(result.calls.filter(({ outcome }) => outcome !== "understood")).toMatchObject([
        { operation: "quote", outcome: "not understood", status: setting },
      ]);
    },
  );

  test("reports a price in a currency without a rate as one that the service can't handle", async () => {
    sandbox.control.setShapes({});
    const { result } = await probeAs("euro");
    expect(result.verdict).toBe("fails");
    expect(pointOf(result, "quoteFields")).toMatchObject({ fits: ["nested"], copes: false });
    // Two names can be in any order by chance.
    expect(pointOf(result, "listOrder").fits).toContain("given");
  });

  test.each(openPoints().flatMap(({ name, point }) => (name === "topTier" ? [...point.settings] : [])))(
    "recognizes that at the top tier the next one is %s",
    async (setting) => {
      sandbox.control.setShapes(shapeSettings({ topTier: setting }));
      const { result } = await probeAs("big");
      expect(pointOf(result, "topTier")).toMatchObject({ fits: [setting], copes: true });
      // A hundred numbered names from one day fit every order.
      expect(pointOf(result, "listOrder").fits).toEqual(["given", "name", "newest"]);
    },
  );
});
