/** The types of the client package are those of today's document, and visitors' types are apart from those of staff. */
import { expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { partOf } from "../../client/part.js";
import { openApiDocument } from "../../src/http/openapi.js";

const typesIn = (name: string): string =>
  readFileSync(new URL(`../../client/src/${name}.ts`, import.meta.url), "utf8");

test.each([
  ["schema", ["visitors", "customers"]],
  ["staff-schema", ["staff"]],
])(
  "%s is made from this document (if not: npm run build && cd client && npm ci && npm run generate)",
  (name, tags) => {
    const part = JSON.stringify(partOf(openApiDocument({ version: "0" }), tags));
    expect(/^\/\/ sha256: ([0-9a-f]{64})$/m.exec(typesIn(name))?.[1]).toBe(
      createHash("sha256").update(part).digest("hex"),
    );
  },
);

test("what a website installs says nothing of staff", () => {
  expect(typesIn("schema")).not.toMatch(/\/v1\/staff|wholesale|Overview|margin/);
});
