/**
 * The interfaces that the client is made for: of the built service's document, the part for visitors and customers and the part for staff,
 * without the version, which says nothing of their shape. Started by itself it prints the whole document.
 */
import { createHash } from "node:crypto";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../../dist/wire/document.js";
import { partOf } from "./part.js";

const document = openApiDocument({ version: "0" });

/** By the name of the file that is generated from it. */
export const parts = Object.entries({
  schema: partOf(document, ["visitors", "customers"]),
  "staff-schema": partOf(document, ["staff"]),
}).map(([name, part]) => {
  const text = JSON.stringify(part);
  return { name, text, digest: createHash("sha256").update(text).digest("hex") };
});

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(JSON.stringify(document));
