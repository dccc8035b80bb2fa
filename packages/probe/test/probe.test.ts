/** The probe against the sandbox, and against an upstream that the sandbox can't play: it reports correctly what it saw, and reveals nothing private. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { createServer } from "node:http";
import { systemClock } from "../../../src/clock.js";
import { type Config, readConfig } from "../../../src/config/env.js";
import { probe } from "../../../src/probe/probe.js";
import { fixedSecret } from "../../../src/secret.js";
import { OPEN_POINTS, openPoints, type Switch } from "../../sandbox/src/open-points.js";
import { PRESET_NAMES, type ShapeChoice, shapeSettings } from "../../sandbox/src/presets.js";
import { type Credential, type Sandbox, startSandbox } from "../../sandbox/src/sandbox.js";
import { type Result, tableOf } from "../src/result.js";
import { join } from "node:path";
import { describeWithRedis, type RedisServer, startRedis } from "../../../test/support/redis.js";
import { startService, temporaryFolder, until } from "../../../test/support/service.js";
import { upstreamAt } from "../../../test/support/upstream.js";
import { authHeaders, call } from "../../sandbox/test/client.js";

const WIDE = { limit: 1_000_000, windowMs: 60_000 };

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ rateLimit: WIDE });
});
afterEach(() => {
  sandbox.control.setRateLimit(WIDE);
});
afterAll(() => sandbox.close());

function config(env: Readonly<Record<string, string>> = {}): Config {
  const read = readConfig(env, systemClock);
  if (!read.ok) throw new Error(read.faults.join("\n"));
  return read.config;
}

const CONFIG = config();
const sourceOf = ({ key, secret }: Credential) => ({ key: fixedSecret(key), secret: fixedSecret(secret) });

/** What the answers to the resellers contain, and what the probe asks about. */
const PRIVATE = new RegExp(
  [
    "RS-|1843|500\\.00|25210|312|39\\.39|19\\.7|3939|1970|USD|EUR|Bronze|Silver|Gold|Platinum|20\\d\\d|sandbox-dns|hosting",
    "khyber|bamyan|herat|pamir|saffron|lapis|kabul|noor|balkh|aryana|hindukush|bazaar|client-|wien|teppich|storefront-|nic\\.",
  ].join("|"),
);

/** Probes the sandbox with these shapes and a credential that hasn't been used before. */
async function probeWith(
  shapes: ShapeChoice,
  reseller = "demo",
  settings = CONFIG,
  prepare?: (credential: Credential) => void,
) {
  sandbox.control.setShapes(shapes);
  const credential = sandbox.control.createCredential(reseller);
  prepare?.(credential);
  const upstream = { baseUrl: sandbox.url, active: sourceOf(credential) };
  const result = await probe(settings, upstream, true);
  const printed = JSON.stringify(result) + tableOf(result);
  expect(printed).not.toMatch(PRIVATE);
  for (const word of [credential.key, credential.secret]) expect(printed).not.toContain(word);
  const stats = sandbox.stats().credentials.find(({ key }) => key === credential.key);
  return { result, stats };
}

function pointOf({ points }: Result, name: string): Result["points"][number] {
  const found = points.find(({ point }) => point === name);
  if (found === undefined) throw new Error(`the result doesn't contain ${name}`);
  return found;
}

const unseen = ({ points }: Result) => points.flatMap(({ point, seen }) => (seen === null ? [point] : []));

test.each(PRESET_NAMES)(
  "with the preset %s, makes each call once, copes, and says how the sandbox can play the same",
  async (preset) => {
    const { result, stats } = await probeWith({ preset });
    expect(stats?.byRoute).toEqual({
      "GET /api/v1/account/balance": 1,
      "GET /api/v1/account/tier": 1,
      "GET /api/v1/domains": 1,
      "GET /api/v1/domains/{domain}": 1,
      "POST /api/v1/domains/check": 1,
      "POST /api/v1/pricing": 1,
    });
    const set = shapeSettings({ preset });
    for (const { point, seen, how, fits, copes } of result.points) {
      expect([point, how === null, copes]).toEqual([point, seen !== null, seen === null ? null : true]);
      if (seen !== null) expect([point, fits.includes(set[point])]).toEqual([point, true]);
    }
    expect(result.verdict).toBe("copes");
    expect((await probeWith(shapeSettings(result.shapes))).result).toEqual(result);
  },
);

/** Shown by the tests below. */
const NEEDS_MORE: readonly Switch[] = [
  "topTier",
  "restoreRenewal",
  "quoteYears",
  "credentialStatus",
  "accessStatus",
  "inputStatus",
  "limitStatus",
  "retryAfter",
  "limitFields",
];
const WITH: Partial<Record<Switch, ShapeChoice>> = {
  recordWrapper: { listItems: "brief" },
  checkYears: { checkEcho: "years" },
};
const SAME: Readonly<Record<string, readonly string[]>> = {
  "quoteAmount number": ["number", "padded-number"],
  "quoteAmount padded-number": ["number", "padded-number"],
  "quoteAmount minor-units": ["minor-units", "number"],
  "checkYears optional": ["optional", "required", "bounded"],
  "checkYears required": ["optional", "required", "bounded"],
  "checkYears bounded": ["optional", "required", "bounded"],
};
const CANNOT_COPE = new Set([
  "quoteFields unit",
  "quoteFields per-year",
  "quoteAmount minor-units",
  "checkYears ignored",
]);

/** Each shows whatever the others are. */
const TOGETHER = [
  "envelope",
  "takenStatus",
  "takenPricing",
  "checkEcho",
  "recordFields",
  "dates",
  "autoRenew",
  "nameservers",
  "statusWords",
  "tierFields",
  "quoteEcho",
  "listWrapper",
  "listOrder",
  "listPaging",
] as const satisfies readonly Switch[];

test("recognizes each setting of what every answer shows", async () => {
  const most = Math.max(...TOGETHER.map((name) => OPEN_POINTS[name].settings.length));
  for (let nth = 0; nth < most; nth += 1) {
    const chosen = TOGETHER.map((name) => {
      const { settings } = OPEN_POINTS[name];
      return [name, settings[nth % settings.length]] as const;
    });
    const { result } = await probeWith(shapeSettings(Object.fromEntries(chosen)));
    for (const [name, setting] of chosen)
      expect(pointOf(result, name)).toMatchObject({ point: name, fits: [setting], copes: true });
    expect(result.verdict).toBe("copes");
  }
});

const APART = new Set<Switch>([...NEEDS_MORE, ...TOGETHER]);

test.each(openPoints().filter(({ name }) => !APART.has(name)))(
  "recognizes each setting of $name",
  async ({ name, point: { settings } }) => {
    for (const setting of settings) {
      const { result } = await probeWith({ ...WITH[name], [name]: setting });
      const key = `${name} ${setting}`;
      const copes = !CANNOT_COPE.has(key);
      expect(pointOf(result, name)).toMatchObject({ point: name, fits: SAME[key] ?? [setting], copes });
      expect(result.verdict).toBe(copes ? "copes" : "fails");
    }
  },
);

test("reports what no answer showed as not seen", async () => {
  const errors = ["errorFields", "errorFlag", "errorCodes"] as const;
  const { result } = await probeWith({});
  expect(unseen(result).sort()).toEqual([...NEEDS_MORE, "checkYears", "recordWrapper"].sort());
  // One of the account's own names is requested, so there is no error.
  const brief = (await probeWith({ listItems: "brief" })).result;
  expect(unseen(brief).sort()).toEqual([...NEEDS_MORE, "checkYears", "notManaged", ...errors].sort());
  const only = (await probeWith({ notManaged: "nothing" })).result;
  expect(unseen(only)).toEqual(expect.arrayContaining([...errors]));
});

test.each(OPEN_POINTS.topTier.settings)(
  "recognizes that at the top tier the next one is %s",
  async (topTier) => {
    const { result } = await probeWith({ topTier }, "big");
    expect(pointOf(result, "topTier")).toMatchObject({ fits: [topTier], copes: true });
  },
);

test("reports a price in a currency without a rate as one that the service can't handle", async () => {
  const { result } = await probeWith({}, "euro");
  expect(result.verdict).toBe("fails");
  expect(pointOf(result, "quoteFields")).toMatchObject({ fits: ["nested"], copes: false });
});

describe("a refusal", () => {
  test.each([
    [429, "seconds", "none"],
    [403, "date", "x-ratelimit"],
    [503, "milliseconds", "ratelimit"],
    [200, "absurd", "none"],
    [429, "absent", "none"],
  ] as const)(
    "by a rate limit with status %i, Retry-After in %s and fields %s is recognized, and nothing is repeated",
    async (limitStatus, retryAfter, limitFields) => {
      sandbox.control.setRateLimit({ limit: 1, windowMs: 30_000 });
      const shapes = { limitStatus, retryAfter, limitFields };
      const { result, stats } = await probeWith(shapes, "demo", config({ UPSTREAM_RATE_WINDOW_MS: "200" }));
      expect(result.verdict).toBe("incomplete");
      // Only that operation may be limited; once a second one is refused too, none is asked any more.
      expect(result.calls.map(({ outcome }) => outcome)).toEqual([
        "understood",
        "rate limited",
        "rate limited",
        "no answer",
        "no answer",
        "no answer",
      ]);
      expect(stats?.byRoute).toEqual({ "GET /api/v1/domains": 1 });
      for (const [name, setting] of Object.entries(shapes))
        expect(pointOf(result, name)).toMatchObject({ fits: [setting], copes: true });
    },
  );

  test.each([
    ...OPEN_POINTS.credentialStatus.settings.map((setting) => ["credentialStatus", setting] as const),
    ...OPEN_POINTS.accessStatus.settings.map((setting) => ["accessStatus", setting] as const),
  ])("of the credential is recognized by %s %s, after one call", async (name, setting) => {
    const { result, stats } = await probeWith({ [name]: setting }, "demo", CONFIG, ({ key }) => {
      if (name === "credentialStatus") sandbox.control.revoke(key);
      else sandbox.control.setAllowlist(key, ["192.0.2.1"]);
    });
    expect(result.verdict).toBe("incomplete");
    expect(pointOf(result, name)).toMatchObject({ fits: [setting], copes: true });
    expect(result.calls[0]?.outcome).toBe("access denied");
    expect(new Set(result.calls.slice(1).map(({ outcome }) => outcome))).toEqual(new Set(["no answer"]));
    expect(stats?.refused).toBe(1);
  });

  test.each(OPEN_POINTS.inputStatus.settings)("of a term with status %i is reported", async (inputStatus) => {
    const catalog = [{ tld: ".gov.af", scripts: ["latin"] as const, years: { registration: [2] } }];
    const sold = { ...CONFIG, retail: { ...CONFIG.retail, catalog } };
    const { result } = await probeWith({ inputStatus }, "demo", sold);
    expect(result.verdict).toBe("fails");
    expect(pointOf(result, "inputStatus")).toMatchObject({ fits: [inputStatus], copes: true });
    expect(result.calls.filter(({ outcome }) => outcome !== "understood")).toMatchObject([
      { operation: "quote", outcome: "not understood", status: inputStatus },
    ]);
  });
});

describe("an upstream with personal data where only machine-readable values are expected", () => {
  const KEY = "a-key-that-is-echoed";
  const PERSONAL =
    /khyber|ahmad|karimi|RS-100482|secret-host|example\.org|2027|2019|03\/01|88\.12|88|412|silver|a-key/i;
  const success = (data: unknown, beside: object = {}) => JSON.stringify({ success: true, data, ...beside });
  const RECORD = {
    domain: "khyber.af",
    status: "held for Ahmad Karimi",
    expires_at: "03/01/2027",
    registered_at: "2019-03-14",
    auto_renew: "Ahmad",
    nameservers: [{ "ns1.secret-host.af": true }],
    owner: "karimi@example.org",
  };
  const LIST = { notes: ["Ahmad Karimi called"], domains: [RECORD], "RS-100482": { "khyber.af": 1 } };
  const TAKEN = { domain: "khyber.af", available: false, status: "registered by Ahmad Karimi" };
  const ANSWERS: Readonly<Record<string, readonly [status: number, body: string]>> = {
    "/api/v1/domains": [200, success(LIST, { "khyber.af": "x" })],
    "/api/v1/domains/storefront-probe.af": [
      404,
      JSON.stringify({ error: { code: "Khyber is not yours Ahmad", message: KEY } }),
    ],
    "/api/v1/domains/check": [200, success({ ...TAKEN, pricing: { amount: "88.12", "khyber.af": 1 } })],
    "/api/v1/pricing": [200, success({ "khyber.af": { total: "88.12 USD", price: 88.12, per: "ahmad" } })],
    "/api/v1/account/balance": [200, "<html>RS-100482: 412.00</html>"],
    "/api/v1/account/tier": [200, success({ level: "Silver", "khyber.af": 3 })],
  };
  const server = createServer((request, response) => {
    const [status, body] = ANSWERS[request.url ?? ""] ?? [500, ""];
    response.writeHead(status, { "Content-Type": "application/json", "X-RateLimit-Remaining": "412" });
    response.end(body);
  });
  afterAll(() => new Promise((done) => server.close(done)));

  let result: Result;
  beforeAll(async () => {
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("the server has no port");
    const upstream = {
      baseUrl: `http://127.0.0.1:${address.port}`,
      active: sourceOf({ key: KEY, secret: "a-secret" }),
    };
    result = await probe(CONFIG, upstream, true);
  });

  test("is reported as far as the service can't read it, in words that reveal nothing", () => {
    expect(JSON.stringify(result) + tableOf(result)).not.toMatch(PERSONAL);
    expect(result.verdict).toBe("fails");
    expect(result.calls.map(({ operation, outcome }) => [operation, outcome])).toEqual([
      ["domains", "understood"],
      ["domain", "understood"],
      ["check", "not understood"],
      ["quote", "not understood"],
      ["balance", "not understood"],
      ["tier", "not understood"],
    ]);
    expect(tableOf(result)).toMatch(/quoteFields .* NO$/m);
    expect(tableOf(result)).toContain("cannot handle something that was seen");
  });

  test.each<[Switch, string, readonly (string | number)[], boolean]>([
    ["dates", "text 99/99/9999, text 9999-99-99", [], false],
    ["autoRenew", "text a", [], false],
    ["nameservers", "list of objects with (not a field name)", [], false],
    ["recordFields", "domain, status, expires_at, registered_at, auto_renew, nameservers", ["at"], false],
    ["listWrapper", "domains", ["domains"], true],
    ["listPaging", "(not a field name), notes", [], true],
    ["quoteFields", "(not a field name).price, per text a", [], false],
    ["takenPricing", "object with (not a field name), amount", [], false],
    ["envelope", "(not a field name)", [], true],
    ["errorFields", "error.code, error.message", ["nested"], true],
    ["errorCodes", "text a a a a a", [], true],
  ])("shows of %s: %s", (name, seen, fits, copes) => {
    expect(pointOf(result, name)).toMatchObject({ seen, fits, copes });
    expect(result.shapes[name]).toBe(fits[0]);
  });
});

describe("beside a service, within one budget,", () => {
  type Environment = Readonly<Record<string, string>>;

  let sandbox: Sandbox;
  let folder: ReturnType<typeof temporaryFolder>;

  const LIMIT = 8;
  const WINDOW_MS = 600;
  /** The probe calls it, and the service without visitors doesn't. */
  const PROBED = "GET /api/v1/domains/{domain}";

  beforeEach(async () => {
    folder = temporaryFolder();
    sandbox = await startSandbox({ rateLimit: { limit: LIMIT, windowMs: WINDOW_MS } });
  });
  afterEach(async () => {
    await sandbox.close();
    folder.remove();
  });

  const envWith = (more: Environment): Environment => ({
    ...upstreamAt(sandbox),
    STATE_DIR: join(folder.path, "state"),
    UPSTREAM_RATE_LIMIT: String(LIMIT),
    UPSTREAM_RATE_HEADROOM: "2",
    UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
    ...more,
  });

  async function probeLive(more: Environment = {}): Promise<Result> {
    const live = config(envWith(more));
    if (live.upstream === null) throw new Error("the settings have no upstream");
    return probe(live, live.upstream);
  }

  const serve = (env: Environment) =>
    startService({ clock: systemClock, at: sandbox, warm: false, env: envWith(env) });

  const usage = () => sandbox.stats().credentials[0];

  async function untilServed(service: Awaited<ReturnType<typeof serve>>): Promise<void> {
    const before = usage()?.accepted ?? 0;
    await until(() => (usage()?.accepted ?? 0) > before, "a call of the service");
    await service.close();
  }

  /** The probe is refused while a service runs. It goes on within what the service has left once it has stopped, and leaves the rest to the next one. */
  async function expectOneAtATime(env: Environment): Promise<void> {
    const service = await serve(env);
    try {
      await expect(probeLive(env)).rejects.toThrow(/^A running service .* Stop it first\.$/);
      expect(usage()?.byRoute).not.toHaveProperty([PROBED]);
    } finally {
      await untilServed(service);
    }
    expect((await probeLive(env)).verdict).toBe("copes");
    await untilServed(await serve(env));
    expect(usage()).toMatchObject({ byRoute: { [PROBED]: 1 }, rejected429: 0 });
  }

  test("without a record the probe waits until a window that others may have spent is over", async () => {
    const headers = authHeaders(sandbox.credential());
    const others = Array.from({ length: LIMIT - 2 }, () =>
      call("GET", `${sandbox.url}/api/v1/account/balance`, { headers }),
    );
    await Promise.all(others);
    expect((await probeLive()).verdict).toBe("copes");
    expect(usage()).toMatchObject({ accepted: LIMIT - 2 + 6, rejected429: 0 });
  });

  test("the probe makes no call while a running service holds the ledger, and says why", async () => {
    await expectOneAtATime({ QUOTA_COLD_START: "assume-free" });
  });

  describeWithRedis("with Redis the probe makes no call", () => {
    let server: RedisServer;
    beforeEach(async () => {
      server = await startRedis();
    });
    afterEach(() => server.close());

    test("while a running service is the owner", async () => {
      await expectOneAtATime({ REDIS_URL: server.url, QUOTA_COLD_START: "assume-free" });
    });

    test("while Redis doesn't answer", async () => {
      await server.kill();
      const after = systemClock.after.bind(systemClock);
      const faster = jest.spyOn(systemClock, "after").mockImplementation((ms, run) => after(ms / 10, run));
      const refused = probeLive({ REDIS_URL: server.url }).finally(() => faster.mockRestore());
      await expect(refused).rejects.toThrow(/^REDIS_URL is set, but Redis can.t be reached/);
      expect(usage()?.accepted).toBe(0);
    });
  });
});
