/** Changes while the API runs: credentials are created and revoked, and access, tiers and prices change. */
import { describe, expect, it } from "@jest/globals";
import { z } from "zod";
import type { Sandbox } from "../src/sandbox.js";
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

closeAfterEach();

async function priceOf(sandbox: Sandbox, years = 1, as = sandbox.credential()): Promise<unknown> {
  return dataOf(await post(sandbox, "/pricing", { tld: ".af", action: "registration", years }, as))[
    "pricing"
  ];
}

describe("credentials", () => {
  it("are created while the sandbox runs, and only for a reseller that exists and has API access", async () => {
    const sandbox = await start();
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

  it("overlap after a rotation until the old one is revoked", async () => {
    const sandbox = await start();
    const old = sandbox.control.createCredential("demo");
    const reply = await portal(sandbox, "POST", `/credentials/${old.key}/rotate`);
    const fresh = credentialShape.parse(reply.json);
    expect((await balance(sandbox, old)).status).toBe(200);
    expect((await balance(sandbox, fresh)).status).toBe(200);
    expect((await portal(sandbox, "DELETE", `/credentials/${old.key}`)).status).toBe(200);
    expect(failureOf(await balance(sandbox, old))).toBe("401 credentials_revoked");
    expect((await balance(sandbox, fresh)).status).toBe(200);
  });

  it("don't overlap when the rotation revokes the old one, and a revoked one can't be rotated", async () => {
    const sandbox = await start();
    const old = sandbox.control.createCredential("demo");
    await portal(sandbox, "POST", `/credentials/${old.key}/rotate`, { revokeOld: true });
    expect(failureOf(await balance(sandbox, old))).toBe("401 credentials_revoked");
    expect((await portal(sandbox, "POST", `/credentials/${old.key}/rotate`)).status).toBe(409);
  });

  it("that are revoked aren't reported as such to a caller with a wrong secret", async () => {
    const sandbox = await start();
    const { key } = sandbox.control.createCredential("demo");
    sandbox.control.revoke(key);
    expect(failureOf(await balance(sandbox, { key, secret: "wrong" }))).toBe("401 invalid_credentials");
  });

  it("are random on each start unless the configuration specifies them", async () => {
    const [one, two] = [await start(), await start()];
    expect(one.credential("big").secret).not.toBe(two.credential("big").secret);
    expect(one.credential()).toEqual(two.credential("demo"));
    expect(() => one.credential("nobody")).toThrow("nobody");
  });

  it("have their own allowlist, which a rotation copies and an empty list removes", async () => {
    const sandbox = await start();
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
  it("is refused while its API access is disabled", async () => {
    const sandbox = await start();
    expect(failureOf(await balance(sandbox, sandbox.credential("locked")))).toBe("403 api_access_disabled");
    await portal(sandbox, "PUT", "/resellers/locked/api-access", { enabled: true });
    expect((await balance(sandbox, sandbox.credential("locked"))).status).toBe(200);
  });

  it("pays the price of its tier, exact to the cent and not proportional to the years", async () => {
    const sandbox = await start();
    expect(await priceOf(sandbox)).toEqual({ amount: "20.21", currency: "USD" });
    expect(await priceOf(sandbox, 2)).toEqual({ amount: "39.39", currency: "USD" });
    await portal(sandbox, "PUT", "/resellers/demo/tier", { tier: "Gold" });
    expect(await priceOf(sandbox)).toEqual({ amount: "18.92", currency: "USD" });
    expect(dataOf(await get(sandbox, "/account/tier"))).toEqual({
      current_tier: "Gold",
      next_tier: "Platinum",
      domains_needed: 90,
    });
    expect((await portal(sandbox, "PUT", "/resellers/demo/tier", { tier: "Tin" })).status).toBe(422);
  });

  it("pays an overridden price in quotes and checks, and no other account does", async () => {
    const sandbox = await start();
    const price = { tld: ".af", action: "registration", years: 1, amount: "7.77" };
    expect((await portal(sandbox, "PUT", "/resellers/demo/prices", price)).status).toBe(200);
    expect(await priceOf(sandbox)).toEqual({ amount: "7.77", currency: "USD" });
    const check = dataOf(await post(sandbox, "/domains/check", { domain: "kabul.af" }));
    expect(check["pricing"]).toEqual({ amount: "7.77", currency: "USD" });
    expect(await priceOf(sandbox, 1, sandbox.credential("euro"))).toEqual({
      amount: "19.90",
      currency: "EUR",
    });
    const wrong = { ...price, tld: ".gov.af" };
    expect((await portal(sandbox, "PUT", "/resellers/demo/prices", wrong)).status).toBe(422);
    expect((await portal(sandbox, "PUT", "/resellers/demo/prices", { ...price, amount: 7.77 })).status).toBe(
      422,
    );
  });
});

describe("the control server", () => {
  it("isn't reachable through the API, nor the API through it", async () => {
    const sandbox = await start();
    expect((await call("GET", `${sandbox.url}/stats`)).status).toBe(404);
    expect((await portal(sandbox, "GET", "/api/v1/domains")).status).toBe(404);
    expect((await start({ controlPort: null })).controlUrl).toBeNull();
  });

  it("rejects invalid bodies with an error in JSON", async () => {
    const sandbox = await start();
    for (const body of ["{", {}, { reseller: "demo", more: 1 }, []]) {
      const reply = await portal(sandbox, "POST", "/credentials", body);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(z.object({ error: z.string() }).safeParse(reply.json).success).toBe(true);
    }
  });
});
