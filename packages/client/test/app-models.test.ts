/** App developers can generate models from the OpenAPI document. */
import { expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { InputData, JSONSchemaInput, quicktype } from "quicktype-core";
import { z } from "zod";
import { partOf } from "../part.js";
import { openApiDocument } from "../../../src/http/openapi.js";
import { temporaryFolder } from "../../../test/support/service.js";
import { succeeds, testWithTool } from "../../../test/support/tools.js";

const { schemas } = z
  .object({ components: z.object({ schemas: z.record(z.string(), z.unknown()) }) })
  .parse(partOf(openApiDocument({ version: "0" }), ["visitors", "customers"])).components;

/** The visitors' and customers' models in this language. */
async function modelsIn(lang: "kotlin" | "swift", rendererOptions: Record<string, boolean> = {}) {
  const schema = JSON.stringify({ definitions: schemas }).replaceAll(
    "#/components/schemas/",
    "#/definitions/",
  );
  const uris = Object.keys(schemas).map((name) => `Models#/definitions/${name}`);
  const input = new JSONSchemaInput(undefined);
  await input.addSource({ name: "Models", uris, schema, isConverted: true });
  const inputData = new InputData();
  inputData.addInput(input);
  const { lines } = await quicktype({ inputData, lang, rendererOptions });
  return lines.join("\n");
}

testWithTool("kotlinc")("the generated Kotlin models compile", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "Models.kt");
  writeFileSync(file, await modelsIn("kotlin", { "just-types": true }));
  succeeds("kotlinc", file, "-nowarn", "-d", join(folder.path, "classes"));
  folder.remove();
});

test("every model has a Swift type with its name", async () => {
  const swift = await modelsIn("swift");
  const types = [...swift.matchAll(/^struct (\w+): Codable \{$/gm)].map(([, name]) => name);
  expect(types).toEqual(expect.arrayContaining(Object.keys(schemas)));
});
