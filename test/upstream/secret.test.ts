/** Secret files that are changed or swapped while the service runs. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { fileSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";

let directory = "";
let path = "";
let clock = new FakeClock();

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "secret-"));
  path = join(directory, "secret");
  clock = new FakeClock();
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe("a secret", () => {
  test.each([
    ["first\n", "first"],
    ["first\r\n", "first"],
    ["first", "first"],
  ])("from a file containing %j is %j", (text, value) => {
    writeFileSync(path, text);
    expect(fileSecret(path, clock).current()).toBe(value);
  });

  test("is updated within a second after its file has changed, and the file isn't read on every use", async () => {
    writeFileSync(path, "first\n");
    const secret = fileSecret(path, clock);
    writeFileSync(path, "second\n");
    expect(secret.current()).toBe("first");
    await clock.advance(1000);
    expect(secret.current()).toBe("second");
    writeFileSync(path, "third\n");
    await clock.advance(999);
    expect(secret.current()).toBe("second");
    await clock.advance(1);
    expect(secret.current()).toBe("third");
  });

  test("behind a symbolic link is updated when the link is swapped", async () => {
    writeFileSync(join(directory, "one"), "first");
    writeFileSync(join(directory, "two"), "second");
    symlinkSync("one", path);
    const secret = fileSecret(path, clock);
    symlinkSync("two", join(directory, "swap"));
    renameSync(join(directory, "swap"), path);
    await clock.advance(1000);
    expect(secret.current()).toBe("second");
  });
});
