/** How the sandbox's shapes are chosen: in the configuration, at startup or over the control port. Invalid choices are rejected with a reason. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { parseWorld } from "../src/config.js";
import { OPEN_POINTS, openPoints } from "../src/open-points.js";
import { PRESET_NAMES, ShapeFault, shapeSettings } from "../src/presets.js";
import type { Sandbox } from "../src/sandbox.js";
import { plainShapes } from "../../../test/support/plain-shapes.js";
import { call, closeAfterEach, dataOf, post, start } from "./client.js";

const CONFIG = readFileSync(new URL("../../../config/sandbox.yaml", import.meta.url), "utf8");
closeAfterEach();

const quote = (sandbox: Sandbox, body: object = { tld: ".af", action: "restore", years: 1 }) =>
  post(sandbox, "/pricing", body);

describe("the table of open points", () => {
  test("lists the documented setting of each switch first", () => {
    const first = Object.fromEntries(openPoints().map(({ name, point }) => [name, point.settings[0]]));
    expect(shapeSettings({})).toEqual(first);
    expect(shapeSettings({ preset: "documented" })).toEqual(first);
  });
});

describe("a choice", () => {
  test("can override settings of a preset, with numbers as strings or not", () => {
    const rails = shapeSettings({ preset: "rails" });
    expect(shapeSettings({ preset: "rails", limitStatus: 403 })).toEqual({ ...rails, limitStatus: 403 });
    expect(shapeSettings({ preset: "rails", limitStatus: "403" })).toEqual({ ...rails, limitStatus: 403 });
    expect(shapeSettings({ takenPricing: null })).toEqual(shapeSettings({}));
  });

  test.each<[string, unknown, RegExp]>([
    [
      "a preset named like a member of every object",
      { preset: "constructor" },
      /^preset: there is no "constructor"; allowed: documented, rails, .*legacy$/,
    ],
    [
      "an unknown switch",
      { limit: 403 },
      /^there is no switch "limit"; allowed: envelope, takenStatus, .*limitStatus/,
    ],
    ["a switch named like a member of every object", { toString: 1 }, /^there is no switch "toString"/],
    [
      "an unknown setting",
      { limitStatus: 404 },
      /^limitStatus: there is no setting 404; allowed: 429, 403, 503, 200$/,
    ],
    ["a list as a setting", { limitStatus: [429] }, /^limitStatus: there is no setting \[429\]/],
    ["a string", "rails", /^shapes must be a mapping/],
  ])("of %s is rejected with the reason", (_what, choice, sentence) => {
    expect(() => shapeSettings(choice)).toThrow(ShapeFault);
    expect(() => shapeSettings(choice)).toThrow(sentence);
  });

  test("with several faults is rejected with all of them", () => {
    expect(() => shapeSettings({ preset: "x", y: 1, retryAfter: "z" })).toThrow(
      /there is no "x".*\n.*no switch "y".*\nretryAfter: there is no setting "z"/,
    );
  });
});

describe("the configuration", () => {
  const withShapes = (line: string) => parseWorld(CONFIG.replace(/^shapes: .*$/m, line));

  test("selects the shapes, and mentions every preset", () => {
    const plain = { ok: true, world: { shapes: shapeSettings({}) } };
    expect([parseWorld(CONFIG), withShapes("")]).toMatchObject([plain, plain]);
    for (const preset of PRESET_NAMES) expect(CONFIG).toContain(preset);
    const chosen = { preset: "rails", limitStatus: 403 } as const;
    expect(withShapes("shapes: { preset: rails, limitStatus: 403 }")).toMatchObject({
      world: { shapes: shapeSettings(chosen) },
    });
  });

  test("with an unknown switch or setting is rejected with its path", () => {
    expect(withShapes("shapes: { limitStatus: 418, wrong: 1 }")).toEqual({
      ok: false,
      faults: [
        expect.stringMatching(/^shapes: there is no switch "wrong"; allowed: /),
        expect.stringMatching(/^shapes: limitStatus: there is no setting 418; allowed: 429, /),
      ],
    });
  });
});

describe("a running sandbox", () => {
  test("applies a new choice from the next answer on, with defaults for what it doesn't name", async () => {
    const sandbox = await start({ shapes: { preset: "rails", quoteAmount: "number", quoteEcho: "none" } });
    expect(dataOf(await quote(sandbox))).toEqual({ amount: 78.96, currency: "USD" });
    sandbox.control.setShapes({ quoteFields: "unit" });
    expect(dataOf(await quote(sandbox))).toMatchObject({ years: 1, unit_price: "78.96" });
    expect(sandbox.control.shapes()).toEqual(shapeSettings({ quoteFields: "unit" }));
    sandbox.control.setShapes({ quoteAmount: "padded-number", quoteEcho: "none" });
    sandbox.control.setPrice("demo", { tld: ".af", action: "restore", years: 1, amountCents: 8400 });
    expect((await quote(sandbox)).text).toBe(
      '{"success":true,"data":{"pricing":{"amount":84.00,"currency":"USD"}}}',
    );
  });

  test("plays custom shapes until others are chosen", async () => {
    const custom = { ...plainShapes, quote: () => ({ status: 200, headers: {}, body: { custom: true } }) };
    const sandbox = await start({ shapes: custom });
    expect((await quote(sandbox)).json).toEqual({ custom: true });
    sandbox.control.setShapes({});
    expect((await quote(sandbox)).json).toMatchObject({ success: true });
  });

  test("shows the choice and the table on the control port, and changes the choice there", async () => {
    const sandbox = await start();
    const shown = await call("GET", `${sandbox.controlUrl}/shapes`);
    expect(shown.json).toMatchObject({
      shapes: { limitStatus: 429 },
      presets: PRESET_NAMES,
      switches: openPoints().map(({ name }) => ({ name, point: OPEN_POINTS[name] })),
    });
    const body = { preset: "dotnet", quoteYears: "required" } as const;
    const changed = await call("PUT", `${sandbox.controlUrl}/shapes`, { body });
    expect([changed.status, changed.json]).toEqual([200, shapeSettings(body)]);
    expect((await quote(sandbox, { tld: ".af", action: "restore" })).status).toBe(400);
  });

  test("rejects an invalid choice on the control port without changing anything", async () => {
    const sandbox = await start({ shapes: { preset: "rails" } });
    for (const body of [{ limitStatus: 418 }, { preset: "cobol" }, []]) {
      const reply = await call("PUT", `${sandbox.controlUrl}/shapes`, { body });
      expect(reply.status).toBe(422);
      expect(reply.text).toMatch(/allowed: |expected record/);
    }
    expect(sandbox.control.shapes()).toEqual(shapeSettings({ preset: "rails" }));
  });
});

test("the years of a check are optional, required, limited or ignored", async () => {
  const sandbox = await start();
  for (const [checkYears, years, expected] of [
    ["optional", undefined, "20.21"],
    ["optional", 7, "128.87"],
    ["required", undefined, 422],
    ["required", 2, "39.39"],
    ["bounded", 5, "93.25"],
    ["bounded", 6, 422],
    ["ignored", 3, "20.21"],
    ["ignored", "three", 422],
  ] as const) {
    sandbox.control.setShapes({ checkYears });
    const reply = await post(sandbox, "/domains/check", { domain: "kabul.af", years });
    const seen = reply.status === 200 ? dataOf(reply)["pricing"] : reply.status;
    const price = typeof expected === "number" ? expected : { amount: expected, currency: "USD" };
    expect([checkYears, years, seen]).toEqual([checkYears, years, price]);
  }
});
