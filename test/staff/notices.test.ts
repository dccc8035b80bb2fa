/** Notices say what staff need and no more, and each reaches the receiver at least once, in order, whatever it does. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { execFile, spawn } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import * as incidents from "./incidents.js";
import { inScene } from "./incidents.js";
import type { FakeClock } from "../support/fake-clock.js";
import { blocksOf, read } from "../docs/support/markdown.js";
import { freePort } from "../support/free-port.js";
import { type Service, temporaryFolder, until } from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { pass, Receiver, SECRET } from "./receiver.js";
import { registration } from "../shop/shop.js";
import { HOUR_MS, say, Shop } from "./signing-shop.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

async function longPass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= HOUR_MS / 3) {
    await clock.leap(HOUR_MS / 3);
    await pass(clock, 10_000);
  }
}

let receiver: Receiver;
beforeEach(async () => {
  receiver = new Receiver();
  await receiver.open();
});
afterEach(() => receiver.close());

const noticesOf = async (service: Service) => (await overviewOf(service)).notices;

test("a notice says what is wrong and what to do, with amounts only if NOTIFY_DETAILS=full", () =>
  inScene({ env: { ...receiver.env, NOTIFY_DETAILS: "full" } }, async (scene) => {
    await incidents.marginLost.cause(scene);
    await pass(scene.clock, 15_000);
    const notice = receiver.taken.find(({ kind }) => kind === "margin");
    // Without this setting, no notice has an amount: test/staff/alarms.
    expect(notice?.text).toMatch(
      /^1 signed promise has fallen below the minimum price\. Margin lost: \d+\.\d\d USD\.$/,
    );
    expect(notice?.details).toMatchObject({
      level: "bad",
      todo: expect.stringMatching(/^They must be honoured/),
    });
    expect(receiver.headers[0]).toMatchObject({
      "content-type": "application/json",
      date: expect.stringMatching(/ GMT$/),
    });
  }));

test("a receiver gets each notice, in order for each kind: after an hour in which it is down, answers 500, redirects, hangs or breaks off; only after a day it isn't tried any more, and staff see it", () =>
  inScene({ env: receiver.env }, async (on) => {
    /** The proxy alarm begins and ends. */
    const proxyAlarm = async (): Promise<void> => {
      await incidents.unknownProxy.cause(on);
      await pass(on.clock, 15_000);
      await incidents.unknownProxy.cure(on);
      await pass(on.clock, 75_000);
    };
    const { port } = receiver;
    await receiver.close();
    await proxyAlarm();
    await proxyAlarm();
    await longPass(on.clock, HOUR_MS);
    const waiting = await noticesOf(on.service);
    expect(waiting).toMatchObject({ on: true, waiting: 4 });
    expect(waiting.last.at(-1)).toMatchObject({ delivery: "waiting", problem: "ECONNREFUSED" });
    receiver = new Receiver();
    await receiver.open(port);
    await longPass(on.clock, 2 * HOUR_MS);
    expect(receiver.of("proxy")).toEqual(["begun", "ended", "begun", "ended"]);
    expect((await noticesOf(on.service)).last[0]).toMatchObject({ delivery: "delivered", problem: null });

    // Only this notice fails, and nothing else is held up.
    receiver.taken.length = 0;
    const accept: Receiver["answer"] = (response) => response.end();
    receiver.answer = (response, { kind }) => {
      if (kind === "proxy") response.writeHead(receiver.attempts % 2 ? 500 : 302, { Location: "/elsewhere" });
      response.end();
    };
    await incidents.unknownProxy.cause(on);
    await pass(on.clock, 15_000);
    await incidents.badPriceFile.cause(on);
    await pass(on.clock, 60_000);
    expect([receiver.of("proxy"), receiver.of("price_file")]).toEqual([[], ["begun"]]);
    receiver.answer = accept;
    await pass(on.clock, 120_000);
    expect(receiver.of("proxy")).toEqual(["begun"]);

    receiver.answer = () => {};
    await incidents.unknownProxy.cure(on);
    await pass(on.clock, 75_000);
    expect((await on.service.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    receiver.answer = accept;
    await pass(on.clock, 60_000);
    expect(receiver.of("proxy")).toEqual(["begun", "ended"]);

    const ids: string[] = [];
    receiver.answer = (response, { id, kind }) => {
      if (kind === "price_file") ids.push(id);
      if (ids.length === 1) response.destroy();
      else response.end();
    };
    await incidents.badPriceFile.cure(on);
    await pass(on.clock, 120_000);
    expect(ids).toEqual([ids[0], ids[0]]);

    receiver.answer = (response) => response.writeHead(503).end();
    await incidents.unknownProxy.cause(on);
    await pass(on.clock, 30_000);
    for (let hours = 0; hours < 26; hours += 1) {
      await on.clock.leap(HOUR_MS);
      await pass(on.clock, 5_000);
    }
    const notice = (await noticesOf(on.service)).last.find(({ kind }) => kind === "proxy");
    expect(notice).toMatchObject({ delivery: "failed", problem: "status 503" });
    expect(notice?.attempts).toBeLessThan(40);
    expect(on.service.log.join("\n")).toContain("notice.abandoned");
  }));

describe("a line", () => {
  test("that is lost, or not ordered within a day, causes one notice, also across a restart; a cancelled one causes none", async () => {
    const shop = await Shop.open("demo", receiver.env);
    const lineNotices = (): string[] =>
      receiver.taken.filter(({ kind }) => kind === "promise").map(({ state, text }) => `${state}: ${text}`);
    try {
      await shop.sign(registration("gone.af"), registration("forgotten.af"));
      const paid = await shop.sign(registration("paid.af"));
      const dropped = await shop.sign(registration("dropped.af"));
      await say(shop.service.ask, paid, { state: "ordered", reference: "7" });
      await say(shop.service.ask, dropped, { state: "cancelled" });
      await shop.pass(HOUR_MS);
      shop.sandbox.control.setTaken("gone.af", true);
      await shop.pass(8 * HOUR_MS, HOUR_MS / 2);
      const lost = "lost: gone.af (registration, 1 year) was signed, but somebody else has the name now.";
      expect(lineNotices()).toEqual([lost]);
      await shop.pass(18 * HOUR_MS, HOUR_MS / 2);
      await shop.restart();
      await shop.pass(HOUR_MS);
      expect(lineNotices().toSorted()).toEqual([
        lost,
        "unordered: forgotten.af (registration, 1 year) was signed a day ago, and hasn't been ordered.",
        "unordered: paid.af (registration, 1 year) was ordered at the checkout a day ago, but isn't seen in the account.",
      ]);
      expect(JSON.stringify(receiver.taken)).not.toMatch(/\d+\.\d\d\b/);
    } finally {
      await shop.close();
    }
  });
});

describe("the settings", () => {
  const faultsOf = (env: Record<string, string>): readonly string[] => {
    const read = readConfig(env, systemClock);
    return read.ok ? [] : read.faults;
  };
  test("take an address with https, or http to this machine, and need a secret", () => {
    const secret = { NOTIFY_SECRET: SECRET };
    for (const good of ["https://hooks.example.af/x?y=z", "http://127.0.0.1:9/x", "http://localhost/x"])
      expect(faultsOf({ NOTIFY_URL: good, ...secret })).toEqual([]);
    for (const bad of ["http://hooks.example.af/x", "ftp://example.af", "nowhere"])
      expect(faultsOf({ NOTIFY_URL: bad, ...secret })).toEqual([
        "NOTIFY_URL: must be an https URL, or http if the host is loopback",
      ]);
    expect(faultsOf({ NOTIFY_URL: "https://hooks.example.af" })).toHaveLength(1);
    expect(faultsOf({ NOTIFY_URL: "https://hooks.example.af", NOTIFY_SECRET: "short" })).toHaveLength(1);
  });
});

/** The exit code and what is printed. */
const notifyTest = (env: Record<string, string>) =>
  new Promise<string>((done) => {
    execFile(process.execPath, ["dist/staff/notify-test.js"], { cwd: ROOT, env }, (error, stdout, stderr) => {
      done(`${error?.code ?? 0} ${stdout}${stderr}`.trim());
    });
  });

test("npm run notify-test sends one, and says whether it was taken: the receiver in docs/operations.md mails it, and refuses what isn't signed", async () => {
  expect(await notifyTest({})).toBe("1 NOTIFY_URL isn't set, so no notices are sent.");
  receiver.answer = (response) => response.writeHead(404).end();
  expect(await notifyTest(receiver.env)).toBe("1 not delivered: status 404");

  const folder = temporaryFolder();
  const block = blocksOf(read("docs/operations.md")).find(({ code }) => code.includes("receiver.mjs"));
  writeFileSync(join(folder.path, "receiver.mjs"), block?.code ?? "");
  writeFileSync(join(folder.path, "sendmail"), `#!/bin/sh\n{ echo "for $1"; cat; } > ${folder.path}/mail\n`);
  chmodSync(join(folder.path, "sendmail"), 0o755);
  const port = String(await freePort());
  const env = {
    PATH: `${folder.path}:/usr/bin:/bin`,
    PORT: port,
    NOTIFY_SECRET: SECRET,
    MAIL_TO: "staff@example.af",
  };
  const program = spawn(process.execPath, [join(folder.path, "receiver.mjs")], { env, stdio: "inherit" });
  const url = `http://127.0.0.1:${port}/`;
  try {
    await until(async () => (await fetch(url).catch(() => null)) !== null, "the receiver");
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(403);
    expect(await notifyTest({ NOTIFY_URL: url, NOTIFY_SECRET: SECRET })).toBe("0 delivered");
    const mail = readFileSync(join(folder.path, "mail"), "utf8");
    expect(mail).toMatch(
      /^for staff@example\.af\nTo: staff@example\.af\nSubject: \[storefront\] test test\n\nThis is a test/,
    );
  } finally {
    program.kill();
    folder.remove();
  }
});
