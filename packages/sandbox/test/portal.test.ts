/** What changes while the API runs: credentials, access, tiers, prices, names and orders, also later; and single answers that are delayed. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Sandbox } from "../src/sandbox.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import {
  balance,
  call,
  closeAfterEach,
  credentialShape,
  dataOf,
  failureOf,
  get,
  portal,
  post,
  start,
} from "./client.js";

const TERM = { tld: ".af", action: "registration", years: 1 } as const;
const usd = (amount: string) => ({ amount, currency: "USD" });

closeAfterEach();

let clock: FakeClock;
let sandbox: Sandbox;
beforeEach(async () => {
  clock = new FakeClock();
  sandbox = await start({
    rateLimit: { limit: 1000, windowMs: 60_000 },
    now: () => clock.monotonic(),
    after: (delayMs, run) => clock.after(delayMs, run),
  });
});
const checked = async (domain: string) => dataOf(await post(sandbox, "/domains/check", { domain }));
const quoted = async (term: object = TERM, as = sandbox.credential()) =>
  dataOf(await post(sandbox, "/pricing", term, as))["pricing"];

const silver = usd("20.21");
const gold = usd("18.92");

describe("credentials", () => {
  test("are created while the sandbox runs, and only for a reseller that exists and has API access", async () => {
    const reply = await portal(sandbox, "POST", "/credentials", { reseller: "euro" });
    expect(reply.status).toBe(201);
    const fresh = credentialShape.parse(reply.json);
    expect(dataOf(await balance(sandbox, fresh))).toMatchObject({
      account_number: "RS-100733",
      currency: "EUR",
    });
    expect((await portal(sandbox, "POST", "/credentials", { reseller: "nobody" })).status).toBe(404);
    expect((await portal(sandbox, "POST", "/credentials", { reseller: "locked" })).status).toBe(409);
  });

  test("overlap after a rotation until the old one is revoked", async () => {
    const old = sandbox.control.createCredential("demo");
    const reply = await portal(sandbox, "POST", `/credentials/${old.key}/rotate`);
    const fresh = credentialShape.parse(reply.json);
    expect((await balance(sandbox, old)).status).toBe(200);
    expect((await balance(sandbox, fresh)).status).toBe(200);
    expect((await portal(sandbox, "DELETE", `/credentials/${old.key}`)).status).toBe(200);
    expect(failureOf(await balance(sandbox, old))).toBe("401 credentials_revoked");
    expect((await balance(sandbox, fresh)).status).toBe(200);
  });

  test("don't overlap when the rotation revokes the old one, and a revoked one can't be rotated", async () => {
    const old = sandbox.control.createCredential("demo");
    await portal(sandbox, "POST", `/credentials/${old.key}/rotate`, { revokeOld: true });
    expect(failureOf(await balance(sandbox, old))).toBe("401 credentials_revoked");
    expect((await portal(sandbox, "POST", `/credentials/${old.key}/rotate`)).status).toBe(409);
  });

  test("that are revoked aren't reported as such to a caller with a wrong secret", async () => {
    const { key } = sandbox.control.createCredential("demo");
    sandbox.control.revoke(key);
    expect(failureOf(await balance(sandbox, { key, secret: "wrong" }))).toBe("401 invalid_credentials");
  });

  test("are random on each start unless the configuration specifies them", async () => {
    const [one, two] = [await start(), await start()];
    expect(one.credential("big").secret).not.toBe(two.credential("big").secret);
    expect(one.credential()).toEqual(two.credential("demo"));
    expect(() => one.credential("nobody")).toThrow("nobody");
  });

  test("show their secret once, at creation", async () => {
    const { key, secret } = sandbox.control.createCredential("demo");
    const stats = await portal(sandbox, "GET", "/stats");
    expect(stats.text).toContain(key);
    expect(stats.text).not.toContain(secret);
  });

  test("have their own allowlist, which a rotation copies and an empty list removes", async () => {
    const old = sandbox.control.createCredential("demo");
    const path = `/credentials/${old.key}/allowlist`;
    expect(
      (await portal(sandbox, "PUT", path, { addresses: ["192.0.2.0/24", "2001:db8::/32"] })).status,
    ).toBe(200);
    expect(failureOf(await balance(sandbox, old))).toBe("403 ip_not_allowed");
    expect(failureOf(await balance(sandbox, sandbox.control.rotate(old.key)))).toBe("403 ip_not_allowed");
    await portal(sandbox, "PUT", path, { addresses: ["127.0.0.1"] });
    expect((await balance(sandbox, old)).status).toBe(200);
    sandbox.control.setAllowlist(old.key, ["192.0.2.1"]);
    sandbox.control.setAllowlist(old.key, []);
    expect((await balance(sandbox, old)).status).toBe(200);
    expect((await portal(sandbox, "PUT", path, { addresses: ["10.0.0.0/33"] })).status).toBe(422);
  });
});

describe("the account", () => {
  test("is refused while its API access is disabled", async () => {
    expect(failureOf(await balance(sandbox, sandbox.credential("locked")))).toBe("403 api_access_disabled");
    await portal(sandbox, "PUT", "/resellers/locked/api-access", { enabled: true });
    expect((await balance(sandbox, sandbox.credential("locked"))).status).toBe(200);
  });

  test.each(["emailVerified", "twoFactor", null])(
    "has no new or rotated credentials while API access is off, or can't be turned on without %s",
    async (step) => {
      const { key } = sandbox.control.createCredential("euro");
      const turn = (enabled: boolean) => portal(sandbox, "PUT", "/resellers/euro/api-access", { enabled });
      const rotate = () => portal(sandbox, "POST", `/credentials/${key}/rotate`);
      const secure = async (isSet: boolean): Promise<void> => {
        if (step !== null) await portal(sandbox, "PUT", "/resellers/euro/security", { [step]: isSet });
      };
      await turn(false);
      await secure(false);
      if (step !== null) expect((await turn(true)).status).toBe(409);
      expect((await portal(sandbox, "POST", "/credentials", { reseller: "euro" })).status).toBe(409);
      expect((await rotate()).status).toBe(409);
      await secure(true);
      expect((await turn(true)).status).toBe(200);
      expect((await balance(sandbox, credentialShape.parse((await rotate()).json))).status).toBe(200);
    },
  );

  test("pays the price of its tier, exact to the cent and not proportional to the years", async () => {
    expect([await quoted(), await quoted({ ...TERM, years: 2 })]).toEqual([silver, usd("39.39")]);
    await portal(sandbox, "PUT", "/resellers/demo/tier", { tier: "Gold" });
    expect(await quoted()).toEqual(gold);
    expect(dataOf(await get(sandbox, "/account/tier"))).toEqual({
      current_tier: "Gold",
      next_tier: "Platinum",
      domains_needed: 90,
    });
    expect((await portal(sandbox, "PUT", "/resellers/demo/tier", { tier: "Tin" })).status).toBe(422);
  });

  test("pays an overridden price in quotes and checks, and no other account does", async () => {
    const price = { ...TERM, amount: "7.77" };
    expect((await portal(sandbox, "PUT", "/resellers/demo/prices", price)).status).toBe(200);
    expect([await quoted(), (await checked("kabul.af"))["pricing"]]).toEqual([usd("7.77"), usd("7.77")]);
    expect(await quoted(TERM, sandbox.credential("euro"))).toEqual({ amount: "19.90", currency: "EUR" });
    for (const wrong of [
      { ...price, tld: ".gov.af" },
      { ...price, amount: 7.77 },
    ])
      expect((await portal(sandbox, "PUT", "/resellers/demo/prices", wrong)).status).toBe(422);
  });
});

describe("the control server", () => {
  test("isn't reachable through the API, nor the API through it", async () => {
    expect((await call("GET", `${sandbox.url}/stats`)).status).toBe(404);
    expect((await portal(sandbox, "GET", "/api/v1/domains")).status).toBe(404);
    expect((await start({ controlPort: null })).controlUrl).toBeNull();
  });

  test("rejects invalid bodies with an error in JSON", async () => {
    for (const body of ["{", {}, { reseller: "demo", more: 1 }, []]) {
      const reply = await portal(sandbox, "POST", "/credentials", body);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(z.object({ error: z.string() }).safeParse(reply.json).success).toBe(true);
    }
  });
});

describe("a change", () => {
  test("of the tier changes every price, except one that was set, which returns to the tier's price when unset", async () => {
    sandbox.control.setPrice("demo", { ...TERM, amountCents: 2250 });
    sandbox.control.setTier("demo", "Gold");
    expect([await quoted(), await quoted({ ...TERM, years: 2 })]).toEqual([usd("22.50"), usd("36.87")]);
    sandbox.control.setPrice("demo", { ...TERM, amountCents: null });
    expect(await quoted()).toEqual(gold);
  });
});

describe("a held answer", () => {
  test("that is decided on arrival says what was true then, before a later change", async () => {
    const hold = sandbox.control.hold({ operation: "check", calls: 1 });
    const late = checked("kabul.af");
    const held = await hold.caught();
    sandbox.control.setTaken("kabul.af", true);
    expect((await checked("kabul.af"))["available"]).toBe(false);
    held.release();
    expect((await late)["available"]).toBe(true);
  });

  test("that is decided on release says what is true then", async () => {
    const hold = sandbox.control.hold({ operation: "check", calls: 1, decided: "on-release" });
    const slow = checked("kabul.af");
    const held = await hold.caught();
    sandbox.control.setTaken("kabul.af", true);
    held.release();
    expect((await slow)["available"]).toBe(false);
  });

  test("that is held by latency waits on the sandbox's clock", async () => {
    sandbox.control.setBehaviour({ afterMs: 60_000 });
    let isAnswered = false;
    const slow = quoted().then(() => (isAnswered = true));
    while (sandbox.stats().credentials[0]?.accepted === 0) await clock.advance(0);
    expect(isAnswered).toBe(false);
    await clock.advance(60_000);
    expect(await slow).toBe(true);
  });
});

describe("the control port", () => {
  test("carries out an order later, as the registry's queue does, and drops one that has become impossible", async () => {
    const order = { domain: "kabul.af", action: "registration", years: 1 };
    for (const afterMs of [1000, 2000])
      expect((await portal(sandbox, "POST", "/orders", { ...order, afterMs })).status).toBe(201);
    const { balance } = dataOf(await get(sandbox, "/account/balance"));
    await clock.advance(999);
    expect((await checked("kabul.af"))["available"]).toBe(true);
    await clock.advance(1);
    expect((await checked("kabul.af"))["available"]).toBe(false);
    await clock.advance(1000);
    const after = dataOf(await get(sandbox, "/account/balance"))["balance"];
    expect(Number(balance) - Number(after)).toBeCloseTo(20.21);
    expect((await portal(sandbox, "POST", "/orders", order)).status).toBe(409);
    const stranger = { ...order, reseller: "nobody", afterMs: 1 };
    expect((await portal(sandbox, "POST", "/orders", stranger)).status).toBe(404);
  });

  test("changes a name and a price immediately", async () => {
    await portal(sandbox, "PUT", "/names/google.af", { taken: false, premium: { USD: "900.00" } });
    expect(await checked("google.af")).toMatchObject({ available: true, pricing: usd("900.00") });
    await portal(sandbox, "PUT", "/names/google.af", { taken: true });
    expect(await checked("google.af")).toMatchObject({ available: false, pricing: null });
    await portal(sandbox, "PUT", "/names/google.af", { taken: false });
    await portal(sandbox, "PUT", "/names/google.af", { premium: null });
    expect((await checked("google.af"))["pricing"]).toEqual(silver);
    await portal(sandbox, "PUT", "/resellers/demo/prices", { ...TERM, amount: "7.77" });
    await portal(sandbox, "PUT", "/resellers/demo/prices", { ...TERM, amount: null });
    expect(await quoted()).toEqual(silver);
  });
});
