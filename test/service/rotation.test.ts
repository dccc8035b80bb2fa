/** Rotates credentials under load: no request fails, each credential has its own ledger, and none appears in the log. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { historyShape } from "../../src/wire/overview.js";
import type { Credential } from "../../packages/sandbox/src/sandbox.js";
import type { FakeClock } from "../support/fake-clock.js";
import { SMALL_SHOP } from "../support/retail.js";
import {
  bearer,
  callsOf,
  PRICING,
  type Service,
  type ServiceOptions,
  temporaryFolder,
  until,
  withService,
} from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { type OpenedShop, openShop } from "../shop/opened-shop.js";
import { renewal, shopAt } from "../shop/shop.js";

/** The files from which the service reads a credential, and how they are replaced. */
interface Files {
  readonly key: string;
  readonly secret: string;
  write(credential: Credential): void;
}

/** Two files whose content is replaced, one after the other. */
function byContent(folder: string): Files {
  const files = { key: join(folder, "key"), secret: join(folder, "secret") };
  return {
    ...files,
    write({ key, secret }) {
      writeFileSync(files.key, `${key}\n`);
      writeFileSync(files.secret, `${secret}\n`);
    },
  };
}

interface Scene {
  readonly service: Service;
  readonly clock: FakeClock;
  readonly active: Files;
  readonly standby: Files;
}

async function withFiles(withStandby: boolean, act: (scene: Scene) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const within = (name: string): string => {
    const path = join(folder.path, name);
    mkdirSync(path);
    return path;
  };
  const active = byContent(within("active"));
  const standby = byContent(within("standby"));
  const env: ServiceOptions["env"] = (sandbox) => {
    const given = sandbox.credential();
    active.write(given);
    if (withStandby) standby.write(sandbox.control.rotate(given.key));
    return {
      UPSTREAM_BASE_URL: sandbox.url,
      UPSTREAM_SERVICE_KEY_FILE: active.key,
      UPSTREAM_SERVICE_SECRET_FILE: active.secret,
      ...(withStandby && {
        UPSTREAM_STANDBY_KEY_FILE: standby.key,
        UPSTREAM_STANDBY_SECRET_FILE: standby.secret,
      }),
      QUOTA_COLD_START: "assume-free",
      STATE_DIR: within("state"),
    };
  };
  await withService({ retail: SMALL_SHOP, env }, (service, clock) =>
    act({ service, clock, active, standby }),
  );
  folder.remove();
}

function statsOf({ sandbox }: Service, key: string) {
  const stats = sandbox.stats().credentials.find((one) => one.key === key);
  if (stats === undefined) throw new Error("the sandbox doesn't know this credential");
  return stats;
}

let names = 0;

/** Starts six visitors who request one new name after another. `stop` resolves with the statuses that they got. */
function load({ service, clock }: Scene): { stop(): Promise<readonly number[]> } {
  const statuses: number[] = [];
  const stopping = new AbortController();
  const visitor = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      names += 1;
      const { status } = await service.ask(`/v1/availability?domain=name-${names}.af`);
      statuses.push(status);
      await clock.advance(20);
    }
  };
  const visitors = Promise.all(Array.from({ length: 6 }, visitor));
  return {
    async stop() {
      stopping.abort();
      await visitors;
      return statuses;
    },
  };
}

test.each<[string, (scene: Scene, old: Credential) => Promise<Credential>]>([
  [
    "with the old one revoked at once",
    async ({ service, active }, old) => {
      const fresh = service.sandbox.control.rotate(old.key);
      active.write(fresh);
      return fresh;
    },
  ],
  [
    "with both valid for a while",
    async ({ service, active }, old) => {
      const fresh = service.sandbox.control.rotate(old.key);
      active.write(fresh);
      await until(() => statsOf(service, fresh.key).accepted > 6, "the use of both credentials");
      return fresh;
    },
  ],
  [
    "with a pause between writing the two files",
    async ({ service, clock, active }, old) => {
      const fresh = service.sandbox.control.rotate(old.key);
      writeFileSync(active.key, fresh.key);
      await until(
        () => statsOf(service, fresh.key).refused > 0,
        "a call with the new key and the old secret",
      );
      await clock.advance(3000);
      writeFileSync(active.secret, fresh.secret);
      await until(() => statsOf(service, fresh.key).accepted > 6, "the load on the new credential");
      expect(statsOf(service, fresh.key).refused).toBe(1);
      return fresh;
    },
  ],
])("a credential rotated under load, %s, fails no request", (_how, rotate) =>
  withFiles(false, async (scene) => {
    const { service } = scene;
    const old = service.sandbox.credential();
    const before = await overviewOf(service);
    const visitors = load(scene);
    await until(() => statsOf(service, old.key).accepted > 6, "the load on the old credential");
    const fresh = await rotate(scene, old);
    service.sandbox.control.revoke(old.key);
    const { accepted } = statsOf(service, old.key);
    await until(() => statsOf(service, fresh.key).accepted > 6, "the load on the new credential");
    const statuses = await visitors.stop();
    expect(statuses.length).toBeGreaterThan(10);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);

    // The old credential got the calls that were in flight, and no more.
    expect(statsOf(service, old.key).accepted).toBe(accepted);
    expect(statsOf(service, old.key).refused).toBeLessThanOrEqual(6);
    const after = await overviewOf(service);
    expect(after.credentials).toMatchObject([{ role: "active", refused: false }]);
    expect(after.credentials[0]?.fingerprint).not.toBe(before.credentials[0]?.fingerprint);
    const written = service.log.join("\n");
    for (const secret of [old.key, old.secret, fresh.key, fresh.secret])
      expect(written).not.toContain(secret);
  }),
);

test("the standby takes over under load and is rotated itself, and each credential has its own ledger", () =>
  withFiles(true, async (scene) => {
    const { service, standby } = scene;
    const { key } = service.sandbox.credential();
    const keyOfStandby = service.sandbox.stats().credentials.at(-1)?.key ?? "";
    const visitors = load(scene);
    await until(() => statsOf(service, key).accepted > 6, "the load on the active credential");
    service.sandbox.control.revoke(key);
    await until(() => statsOf(service, keyOfStandby).accepted > 6, "the load on the standby");
    const fresh = service.sandbox.control.rotate(keyOfStandby);
    standby.write(fresh);
    await until(() => statsOf(service, fresh.key).accepted > 6, "the load on the new standby");
    expect((await visitors.stop()).filter((status) => status !== 200)).toEqual([]);
    const { quota, credentials } = await overviewOf(service);
    expect(credentials).toMatchObject([
      { role: "active", refused: true },
      { role: "standby", refused: false },
    ]);
    expect(quota.used).toBe(statsOf(service, fresh.key).accepted);
    expect((await service.ask("/health")).status).toBe(200);
  }));

test("a key replaced while idle doesn't affect the quota in the overview and the history until it is used", () =>
  withFiles(false, async ({ service, clock, active }) => {
    const old = service.sandbox.credential();
    await clock.advance(6_000);
    await until(() => service.calls("GET /api/v1/account/tier") === 1, "the first tier request");
    await clock.advance(51_000);
    const before = await overviewOf(service);
    const calls = service.calls();
    expect(before.quota.used).toBe(calls);
    const fresh = service.sandbox.control.rotate(old.key);
    active.write(fresh);
    await clock.advance(2_000);
    const after = await overviewOf(service);
    expect(after.quota).toEqual(before.quota);
    // The service has noticed the new key.
    expect(after.credentials).toHaveLength(2);
    // The history samples the overview once a minute.
    await clock.advance(1_000);
    const history = await service.ask("/v1/staff/history", { headers: bearer("read") });
    expect(historyShape.parse(history.body).used).toEqual([0, calls]);
    expect(service.calls()).toBe(calls);

    expect((await service.ask("/v1/availability?domain=asked-after-rotation.af")).status).toBe(200);
    expect(statsOf(service, fresh.key).accepted).toBe(1);
    expect((await overviewOf(service)).quota.used).toBe(1);

    // Revoked before its file is replaced, it is tried once, and the next one is used without a restart.
    const next = service.sandbox.control.rotate(fresh.key, { revokeOld: true });
    for (let n = 0; n < 5; n += 1)
      expect((await service.ask(`/v1/availability?domain=asked-in-between-${n}.af`)).status).toBe(502);
    expect(statsOf(service, fresh.key).refused).toBe(1);
    active.write(next);
    await clock.advance(5_000);
    expect((await service.ask("/v1/availability?domain=asked-at-last.af")).status).toBe(200);
  }));

describe("after a restart", () => {
  const TIER = "GET /api/v1/account/tier";
  const RESELLERS = `
rateLimit: { limit: 1000, windowMs: 60000 }
nameservers: [ns1.example.af]
tiers: [{ name: Silver, fromDomains: 0, discountPercent: 0 }]
priceLists: { USD: { .af: { registration: ["17.31"], renewal: ["20.00"], transfer: [], restore: [] } } }
names: { takenPercent: 0 }
resellers:
  - { id: demo, accountNumber: RS-1, currency: USD, tier: Silver, balance: "1.00", creditLimit: "0.00", credentials: [{ key: shop-demo-key, secret: shop-demo-secret }] }
  - { id: other, accountNumber: RS-2, currency: USD, tier: Silver, balance: "1.00", creditLimit: "0.00", credentials: [{ key: other-demo-key, secret: other-demo-secret }] }
`;
  type Restarts = OpenedShop & { readonly active: Files };

  async function withRestarts(act: (scene: Restarts) => Promise<void>): Promise<void> {
    const folder = temporaryFolder();
    const active = byContent(folder.path);
    const opened = await openShop({
      world: RESELLERS,
      retail: SMALL_SHOP,
      env: (sandbox) => {
        active.write(sandbox.credential());
        return {
          UPSTREAM_BASE_URL: sandbox.url,
          UPSTREAM_SERVICE_KEY_FILE: active.key,
          UPSTREAM_SERVICE_SECRET_FILE: active.secret,
        };
      },
    });
    opened.sandbox.control.setPrice("other", { tld: ".af", action: "renewal", years: 1, amountCents: 3000 });
    try {
      await act({ ...opened, active });
    } finally {
      await opened.close();
      folder.remove();
    }
  }

  async function untilTier({ clock, sandbox }: Restarts): Promise<void> {
    const before = callsOf(sandbox, TIER);
    await until(async () => {
      await clock.advance(100);
      return callsOf(sandbox, TIER) > before;
    }, "the tier request");
  }

  test.each(["idle", "with a visitor"])(
    "with another reseller's credential, no price learned with the one before is used (rotated %s)",
    (how) =>
      withRestarts(async (scene) => {
        const { clock, sandbox, active, start } = scene;
        const before = await start();
        await untilTier(scene);
        const old = await shopAt(before).quote("renewal");
        active.write(sandbox.credential("other"));
        await clock.advance(2_000);
        if (how !== "idle") await shopAt(before).availability("kabul.af");
        await before.close();

        const after = await start({ warm: false });
        try {
          await untilTier(scene);
          await after.ask("/livez");
          const [shown, { signed }] = [
            await shopAt(after).quote("renewal"),
            await shopAt(after).cart(renewal("kabul.af")),
          ];
          expect([old.price.amount, shown.price.amount]).toEqual(["25.00", "37.50"]);
          expect(signed).toEqual(["kabul.af renewal 37.50"]);
        } finally {
          await after.close();
        }
      }),
  );

  test("prices learned with a rotated credential are known", () =>
    withRestarts(async ({ clock, sandbox, active, start }) => {
      const before = await start();
      active.write(sandbox.control.rotate(sandbox.credential().key));
      await clock.advance(2_000);
      await shopAt(before).availability("kabul.af");
      const asked = callsOf(sandbox, PRICING);
      await until(async () => {
        await clock.advance(60_000);
        return callsOf(sandbox, PRICING) === asked + 2;
      }, "the refresh of the prices");
      await before.close();
      sandbox.control.setFault("quote", { fault: "status-500" });
      const after = await start({ warm: false });
      try {
        expect((await after.ask("/v1/prices")).text.match(/"price"/g)).toHaveLength(2);
      } finally {
        await after.close();
      }
    }));
});
