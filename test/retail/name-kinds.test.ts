/** What is remembered of premium names over a restart. `test/shop/prices-change.test.ts` tests what visitors see of it. */
import { expect, test } from "@jest/globals";
import { join } from "node:path";
import { parseDomainName } from "../../src/domain-name.js";
import { createNameKinds, savedNames } from "../../src/retail/name-kinds.js";
import { createSavedFile } from "../../src/saved-file.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, temporaryFolder } from "../support/service.js";

const DAY_MS = 24 * 3_600_000;
const [gold, silver] = ["gold.af", "silver.af"].map((name) => parseDomainName(name, [".af"], "domain"));
if (gold === undefined || silver === undefined) throw new Error("these are names");

test("after a restart a name is what it was decided to be last, and no longer premium when that is 30 days ago", async () => {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const file = createSavedFile({
    path: join(folder.path, "names.json"),
    shape: savedNames.unwrap(),
    source: () => "here",
    clock,
    log: recordingLog([]),
  });
  const start = () => createNameKinds({ max: 100, file, clock, onChange: () => undefined });
  const before = start();
  for (const name of [gold, silver]) before.note(name, { kind: "premium", askedAt: clock.monotonic() });
  before.note(silver, { kind: "ordinary", askedAt: clock.monotonic() + 1 });
  await file.saved();

  const after = start();
  await after.restore();
  expect([gold, silver].map(after.of)).toEqual(["premium", "ordinary"]);
  await clock.advance(30 * DAY_MS + 1);
  expect(after.of(gold)).toBe("ordinary");
  await file.saved();
  folder.remove();
});
