/**
 * The interface that the client is made for: the document of the built service, without the version that says nothing of its shape.
 * Started by itself it prints the document.
 */
import { createHash } from "node:crypto";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../dist/http/openapi.js";

export const text = JSON.stringify(openApiDocument({ version: "0" }));
export const digest = createHash("sha256").update(text).digest("hex");

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(text);
