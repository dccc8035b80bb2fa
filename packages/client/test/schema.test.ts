/** The types of the client package match the current OpenAPI document, and visitors' types are separate from staff types. */
import { expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { partOf } from "../part.js";
import { openApiDocument } from "../../../src/wire/document.js";

const typesIn = (name: string): string => readFileSync(new URL(`../src/${name}.ts`, import.meta.url), "utf8");

test.each([
  ["schema", ["visitors", "customers"]],
  ["staff-schema", ["staff"]],
])(
  "%s is generated from the current document (if not: npm run build && npm run generate -w packages/client)",
  (name, tags) => {
    const part = JSON.stringify(partOf(openApiDocument({ version: "0" }), tags));
    expect(/^\/\/ sha256: ([0-9a-f]{64})$/m.exec(typesIn(name))?.[1]).toBe(
      createHash("sha256").update(part).digest("hex"),
    );
  },
);

test("the types that a website installs contain nothing about staff", () => {
  expect(typesIn("schema")).not.toMatch(/\/v1\/staff|wholesale|Overview|margin/);
});
