/** The types of the client package are those of today's document. */
import { expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { openApiDocument } from "../../src/http/openapi.js";

test("the client's types are made from this document (if not: npm run build && cd client && npm ci && npm run generate)", () => {
  const types = readFileSync(new URL("../../client/src/schema.ts", import.meta.url), "utf8");
  const document = JSON.stringify(openApiDocument({ version: "0" }));
  expect(/^\/\/ sha256: ([0-9a-f]{64})$/m.exec(types)?.[1]).toBe(
    createHash("sha256").update(document).digest("hex"),
  );
});
