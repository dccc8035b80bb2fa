/** Facts in a file: loading returns what was saved for the same upstream, or nothing. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { createSavedFile, type SavedFile } from "../../src/saved-file.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, temporaryFolder } from "../support/service.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let source: string;
let log: string[];
let file: SavedFile<readonly string[]>;
let clock: FakeClock;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "state", "words.json");
  source = "here";
  log = [];
  clock = new FakeClock();
  const shape = z.array(z.string());
  file = createSavedFile({ path, shape, source: () => source, clock, log: recordingLog(log) });
});
afterEach(() => {
  folder.remove();
});

const logged = (event: string): boolean =>
  log.join().includes(`"${event}"`) && log.join().includes('"words.json"');

describe("a file of facts", () => {
  test("returns what was saved last, and can be read only by its owner", async () => {
    expect(await file.load()).toBeNull();
    file.save(["one"]);
    file.save(["one", "two"]);
    await file.saved();
    expect(await file.load()).toEqual(["one", "two"]);
    expect(statSync(path).mode & 0o077).toBe(0);
    expect(log).toEqual([]);
  });

  test("of another upstream or credential is ignored", async () => {
    file.save(["one"]);
    await file.saved();
    source = "there";
    expect([await file.load(), logged("saved.foreign")]).toEqual([null, true]);
  });

  test.each(["", "{", "[]", "null", '{"source":"here"}', '{"source":"here","data":[1]}', '{"data":["one"]}'])(
    "that contains %j is ignored",
    async (text) => {
      file.save([]);
      await file.saved();
      writeFileSync(path, text);
      expect([await file.load(), logged("saved.unreadable")]).toEqual([null, true]);
    },
  );

  test("that can't be written only causes a log line, which names the system's reason", async () => {
    writeFileSync(dirname(path), "a file");
    file.save(["one"]);
    await file.saved();
    expect(await file.load()).toBeNull();
    expect(log.map((line) => z.looseObject({ event: z.string() }).parse(JSON.parse(line)))).toMatchObject([
      { event: "saved.failed", file: "words.json", reason: "EEXIST" },
    ]);
  });

  test("that couldn't be written is written within seconds after the folder is usable again, and logged once", async () => {
    writeFileSync(dirname(path), "a file");
    file.save(["one"]);
    await file.saved();
    await clock.advance(60_000);
    file.save(["two"]);
    await file.saved();
    // However many saves have failed, one attempt is pending.
    expect(clock.pending).toBe(1);
    rmSync(dirname(path));
    await clock.advance(10_000);
    await file.saved();
    expect(await file.load()).toEqual(["two"]);
    expect([log.length, clock.pending]).toEqual([1, 0]);
  });

  test("that exists but can't be read is ignored, and staff can see it", async () => {
    mkdirSync(path, { recursive: true });
    expect([await file.load(), logged("saved.unreadable")]).toEqual([null, true]);
  });
});
