/** What is remembered of premium names: the last decision, after a restart too. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { join } from "node:path";
import { parseDomainName } from "../../src/domain-name.js";
import { createNameKinds, type NameKinds, savedNames } from "../../src/retail/name-kinds.js";
import type { NameKind } from "../../src/retail/policy.js";
import { createSavedFile, type SavedFile } from "../../src/saved-file.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, temporaryFolder } from "../support/service.js";

const DAY_MS = 24 * 3_600_000;
const [GOLD, SILVER] = ["gold", "silver"].map((label) => parseDomainName(`${label}.af`, [".af"], "domain"));
if (GOLD === undefined || SILVER === undefined) throw new Error("these are names");

let folder: ReturnType<typeof temporaryFolder>;
let clock: FakeClock;
let file: SavedFile<{ key: string; askedAtMs: number }[]>;
let names: NameKinds;

const start = (): NameKinds => createNameKinds({ max: 100, file, clock, onChange: () => undefined });

beforeEach(() => {
  folder = temporaryFolder();
  clock = new FakeClock();
  file = createSavedFile({
    path: join(folder.path, "names.json"),
    shape: savedNames.unwrap(),
    source: () => "here",
    clock,
    log: recordingLog([]),
  });
  names = start();
});
afterEach(async () => {
  await file.saved();
  folder.remove();
});

async function restart(): Promise<void> {
  await file.saved();
  names = start();
  await names.restore();
}

const decided = (kind: NameKind, agoMs = 0, name = GOLD): void => {
  names.note(name, { kind, askedAt: clock.monotonic() - agoMs });
};

test("a name is what the last check of it showed, in whatever order the answers arrive", () => {
  decided("premium", 1_000);
  expect(names.of(GOLD)).toBe("premium");
  decided("ordinary", 2_000);
  expect(names.of(GOLD)).toBe("premium");
  decided("ordinary");
  expect(names.of(GOLD)).toBe("ordinary");
});

describe("after a restart", () => {
  test("names are still premium, until they are 30 days old", async () => {
    decided("premium");
    decided("premium", 0, SILVER);
    await restart();
    expect([GOLD, SILVER].map(names.of)).toEqual(["premium", "premium"]);
    await clock.advance(30 * DAY_MS + 1);
    expect(names.of(GOLD)).toBe("ordinary");
  });

  test("a name that became ordinary is ordinary", async () => {
    decided("premium", 1_000);
    decided("ordinary");
    await restart();
    expect(names.of(GOLD)).toBe("ordinary");
  });

  test("a name is still premium if the clock was set back, until a later check", async () => {
    decided("premium");
    clock.stepWall(-DAY_MS);
    await restart();
    expect(names.of(GOLD)).toBe("premium");
    await clock.advance(1);
    decided("ordinary");
    expect(names.of(GOLD)).toBe("ordinary");
  });
});
