/** `GET /v1/staff/audit`: who did what, when, and with what outcome. */
import { afterEach, beforeEach, describe, expect, test, jest } from "@jest/globals";
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { createRecordFile } from "../../src/record-file.js";
import { acts as kindOfAct, createAudit } from "../../src/staff/audit.js";
import { openApiDocument } from "../../src/wire/document.js";
import { auditShape } from "../../src/wire/staff.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import {
  bearer,
  recordingLog,
  type Service,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { renewal, RETAIL, shopAt, WORLD } from "../shop/shop.js";
import { claimsOf } from "../support/promise.js";

const document = openApiDocument({ version: "1.2.3" });
const DAY_MS = 24 * 3_600_000;

async function acts(service: Service) {
  const answer = await service.ask("/v1/staff/audit", { headers: bearer("read") });
  expect(answer.status).toBe(200);
  matchesDocument(document, "get", "/v1/staff/audit", answer);
  return auditShape.parse(answer.body).acts;
}
const purge = (service: Service, what: string) =>
  service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });

describe("the audit", () => {
  let clock: FakeClock;
  let service: Service;
  let folder: ReturnType<typeof temporaryFolder>;
  const start = async (): Promise<void> => {
    const env = { STATE_DIR: join(folder.path, "state"), RETAIL_CONFIG: join(folder.path, "retail.yaml") };
    service = await startService({ clock, world: WORLD, env });
  };
  const file = () => join(folder.path, "state", "audit.jsonl");
  beforeEach(async () => {
    clock = new FakeClock();
    folder = temporaryFolder();
    writeFileSync(join(folder.path, "retail.yaml"), RETAIL);
    await start();
  });
  afterEach(async () => {
    await service.close();
    folder.remove();
  });

  test("lists purges, previews, promise look-ups, refused tokens and price changes, newest first", async () => {
    const preview = (body: string) =>
      service.ask("/v1/staff/prices/preview", {
        method: "POST",
        headers: { ...bearer("operate"), "Content-Type": "application/yaml" },
        body,
      });
    expect(await acts(service)).toEqual([]);
    await purge(service, "account");
    await clock.advance(1);
    await purge(service, "everything");
    await clock.advance(1);
    await preview(RETAIL.replace("50", "60"));
    await clock.advance(1);
    await preview("");
    await clock.advance(1);
    const { body } = await shopAt(service).post([renewal("kabul.af")]);
    const { jti } = claimsOf(z.object({ promise: z.string() }).parse(body).promise);
    await service.ask(`/v1/staff/promises/${jti}`, { headers: bearer("read") });
    await clock.advance(1);
    await service.ask("/v1/staff/promises/%3Cscript%3E", { headers: bearer("read") });
    await clock.advance(1);
    await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer guessed" } });
    await clock.advance(1);
    await service.ask("/v1/staff/tier", { headers: bearer("operate") });
    await clock.advance(1);
    writeFileSync(join(folder.path, "retail.yaml"), RETAIL.replace("50", "60"));
    await clock.advance(1_000);
    expect(
      (await acts(service)).map(({ who, what, subject, outcome }) => [who, what, subject, outcome]),
    ).toEqual([
      [null, "retail_config", expect.stringMatching(/^[0-9a-f]{12}$/), "applied"],
      ["operate", "token", "/v1/staff/tier", "forbidden"],
      [null, "token", "/v1/staff/tier", "unauthenticated"],
      ["read", "promise", null, "not_found"],
      ["read", "promise", jti, "done"],
      ["operate", "preview", "1 faults", "done"],
      ["operate", "preview", "5 changes", "done"],
      ["operate", "purge", null, "invalid_request"],
      ["operate", "purge", "account", "done"],
    ]);
    expect(service.log.filter((line) => line.includes('"event":"staff.act"'))).toHaveLength(9);
    expect(readFileSync(file(), "utf8")).not.toContain("guessed");
  });

  test("survives a restart, in a file that only its owner can read, and skips torn lines", async () => {
    await purge(service, "account");
    await until(async () => (await acts(service)).length === 1);
    await service.close();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    appendFileSync(file(), '{"id":"torn');
    await start();
    expect(await acts(service)).toEqual([
      {
        id: expect.any(String),
        when: "2026-03-20T00:00:00.000Z",
        who: "operate",
        what: "purge",
        subject: "account",
        outcome: "done",
        times: 1,
      },
    ]);
    // A torn line doesn't damage the next one.
    await purge(service, "tier");
    await service.close();
    await start();
    expect(await acts(service)).toHaveLength(2);
  });

  test("counts guessed tokens together, so that they can't push out the other acts", async () => {
    // express-rate-limit reads the machine's clock.
    const machine = jest.spyOn(Date, "now").mockImplementation(() => clock.now());
    await purge(service, "account");
    for (let times = 0; times < 100; times += 1)
      await service.ask("/v1/staff/tier", { headers: { Authorization: `Bearer guess-${times}` } });
    await clock.advance(60_000);
    expect((await acts(service)).map(({ what, times }) => [what, times])).toEqual([
      // Past the limit for wrong tokens, tokens aren't read any more.
      ["token", 30],
      ["purge", 1],
    ]);
    expect(readFileSync(file(), "utf8").trim().split("\n").length).toBeLessThan(10);
    machine.mockRestore();
  });

  test("continues in memory when its file can't be written, and the log says so, at a start before any act", async () => {
    const failures = () => service.log.filter((line) => line.includes('"event":"audit.failed"')).length;
    await purge(service, "account");
    await until(async () => (await acts(service)).length === 1);
    rmSync(file());
    mkdirSync(file());
    await purge(service, "all");
    await until(async () => (await acts(service)).length === 2);
    expect(failures()).toBe(1);
    await service.close();
    await start();
    expect(failures()).toBe(1);
  });
});

describe("the file of the audit", () => {
  const clock = new FakeClock();
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder.path, "acts.jsonl");
  });
  afterEach(() => {
    folder.remove();
  });
  const open = () =>
    createAudit(
      createRecordFile(path, kindOfAct, clock, () => {}),
      clock,
      recordingLog([]),
    );
  const done = (subject: string) => ({ who: "ops", what: "purge", outcome: "done", subject }) as const;
  const shownBy = async (audit: ReturnType<typeof open>) =>
    (await audit.last()).map(({ subject }) => subject);

  test("gets a failed write with the next act, and keeps what another process wrote", async () => {
    const [one, other] = [open(), open()];
    mkdirSync(path);
    one.note(done("account"));
    rmSync(path, { recursive: true });
    one.note(done("all"));
    other.note(done("tier"));
    expect(new Set(await shownBy(open()))).toEqual(new Set(["account", "all", "tier"]));
  });

  test("keeps acts for 30 days and no longer, of which the last 1,000 are shown", async () => {
    const audit = open();
    audit.note(done("account"));
    await clock.advance(29 * DAY_MS);
    expect(await audit.last()).toHaveLength(1);
    await clock.advance(3 * DAY_MS);
    audit.note(done("all"));
    expect(await shownBy(audit)).toEqual(["all"]);
    expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1);
    for (let times = 0; times < 1_010; times += 1) audit.note(done("prices"));
    expect(await audit.last()).toHaveLength(1_000);
  });

  test("loses no act while the wall clock is ahead, whether it was set before or after the start", async () => {
    let audit = open();
    audit.note(done("account"));
    await clock.advance(2 * DAY_MS);
    audit.note(done("tier"));
    clock.stepWall(35 * DAY_MS);
    audit.note(done("prices"));
    audit = open();
    audit.note(done("all"));
    // As old as they seem, they aren't shown.
    expect(new Set(await shownBy(audit))).toEqual(new Set(["all", "prices"]));
    clock.stepWall(-35 * DAY_MS);
    expect(new Set(await shownBy(audit))).toEqual(new Set(["account", "all", "prices", "tier"]));
  });
});
