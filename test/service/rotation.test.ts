/** Credentials that change under load: no visitor loses an answer, each credential pays for its own calls, and none is told. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { z } from "zod";
import type { Credential } from "../../src/sandbox/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, type Service, startService, temporaryFolder, until } from "../support/service.js";

/** Where the service reads a credential, and how it gets there. */
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

/** Two files in a folder behind a link, which is swapped, as orchestrators do it. */
function bySwap(folder: string): Files {
  let version = 0;
  const link = join(folder, "current");
  return {
    key: join(link, "key"),
    secret: join(link, "secret"),
    write({ key, secret }) {
      version += 1;
      const target = join(folder, `version-${version}`);
      mkdirSync(target);
      writeFileSync(join(target, "key"), key);
      writeFileSync(join(target, "secret"), secret);
      symlinkSync(target, `${link}-fresh`);
      renameSync(`${link}-fresh`, link);
    },
  };
}

interface Scene {
  readonly service: Service;
  readonly clock: FakeClock;
  readonly active: Files;
  readonly standby: Files;
}

async function withFiles(
  make: (folder: string) => Files,
  withStandby: boolean,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const within = (name: string): string => {
    const path = join(folder.path, name);
    mkdirSync(path);
    return path;
  };
  const active = make(within("active"));
  const standby = make(within("standby"));
  const service = await startService({
    clock,
    env: (sandbox) => {
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
    },
  });
  try {
    await act({ service, clock, active, standby });
  } finally {
    await service.close();
    folder.remove();
  }
}

function statsOf({ sandbox }: Service, key: string) {
  const stats = sandbox.stats().credentials.find((one) => one.key === key);
  if (stats === undefined) throw new Error("there is no such credential");
  return stats;
}

let asked = 0;

/** Six visitors who ask for names that nobody knows, one after the other, until they are told to stop; the answer is their statuses. */
function load({ service, clock }: Scene): { stop(): Promise<readonly number[]> } {
  const statuses: number[] = [];
  const over = new AbortController();
  const visitor = async (): Promise<void> => {
    while (!over.signal.aborted) {
      asked += 1;
      const { status } = await service.ask(`/v1/availability?domain=name-${asked}.af`);
      statuses.push(status);
      await clock.advance(20);
    }
  };
  const visitors = Promise.all(Array.from({ length: 6 }, visitor));
  return {
    async stop() {
      over.abort();
      await visitors;
      return statuses;
    },
  };
}

const overview = z.object({
  quota: z.object({ used: z.number() }),
  credentials: z.array(z.object({ role: z.string(), fingerprint: z.string(), refused: z.boolean() })),
});

async function overviewOf(service: Service) {
  return overview.parse((await service.ask("/v1/staff/overview", { headers: bearer("read") })).body);
}

test.each([
  ["by content", byContent, false],
  ["by content, and revoked at once", byContent, true],
  ["by symlink swap", bySwap, false],
  ["by symlink swap, and revoked at once", bySwap, true],
])("a credential that is rotated under load, %s, fails no visitor", (_how, make, isAtOnce) =>
  withFiles(make, false, async (scene) => {
    const { service, active } = scene;
    const old = service.sandbox.credential();
    const before = await overviewOf(service);
    const visitors = load(scene);
    await until(() => statsOf(service, old.key).accepted > 60, "the load on the old one");
    const fresh = service.sandbox.control.rotate(old.key);
    active.write(fresh);
    if (!isAtOnce) await until(() => statsOf(service, fresh.key).accepted > 20, "the overlap");
    service.sandbox.control.revoke(old.key);
    const { accepted } = statsOf(service, old.key);
    await until(() => statsOf(service, fresh.key).accepted > 60, "the load on the new one");
    const statuses = await visitors.stop();
    expect(statuses.length).toBeGreaterThan(50);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);

    // The old one has seen the calls that were under way, and no more.
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

test("two files that are written a while apart fail no visitor either", () =>
  withFiles(byContent, false, async (scene) => {
    const { service, clock, active } = scene;
    const old = service.sandbox.credential();
    const visitors = load(scene);
    await until(() => statsOf(service, old.key).accepted > 60, "the load on the old one");
    const fresh = service.sandbox.control.rotate(old.key);
    writeFileSync(active.key, fresh.key);
    await until(() => statsOf(service, fresh.key).refused > 0, "a call with half of it");
    await clock.advance(3000);
    writeFileSync(active.secret, fresh.secret);
    await until(() => statsOf(service, fresh.key).accepted > 20, "the load on the new one");
    expect((await visitors.stop()).filter((status) => status !== 200)).toEqual([]);
    expect(statsOf(service, fresh.key).refused).toBe(1);
  }));

test("the standby takes over under load, is replaced itself, and each pays from a ledger of its own", () =>
  withFiles(byContent, true, async (scene) => {
    const { service, standby } = scene;
    const { key } = service.sandbox.credential();
    const keyOfStandby = service.sandbox.stats().credentials.at(-1)?.key ?? "";
    const visitors = load(scene);
    await until(() => statsOf(service, key).accepted > 60, "the load on the active one");
    service.sandbox.control.revoke(key);
    await until(() => statsOf(service, keyOfStandby).accepted > 40, "the load on the standby");
    const fresh = service.sandbox.control.rotate(keyOfStandby);
    standby.write(fresh);
    await until(() => statsOf(service, fresh.key).accepted > 40, "the load on the new standby");
    expect((await visitors.stop()).filter((status) => status !== 200)).toEqual([]);
    const { quota, credentials } = await overviewOf(service);
    expect(credentials).toMatchObject([
      { role: "active", refused: true },
      { role: "standby", refused: false },
    ]);
    expect(quota.used).toBe(statsOf(service, fresh.key).accepted);
    expect((await service.ask("/health")).status).toBe(200);
  }));

test("a key that is replaced while nobody asks leaves the overview and the history as they were until it is used", () =>
  withFiles(byContent, false, async ({ service, clock, active }) => {
    const old = service.sandbox.credential();
    await clock.advance(6_000);
    await until(() => service.calls("GET /api/v1/account/tier") === 1, "the first look at the tier");
    await clock.advance(53_500);
    const calls = service.calls();
    active.write(service.sandbox.control.rotate(old.key));
    // The history looks at the overview once a minute.
    await clock.advance(1_000);
    expect((await overviewOf(service)).quota.used).toBeGreaterThan(0);
    expect(service.calls()).toBe(calls);
  }));
