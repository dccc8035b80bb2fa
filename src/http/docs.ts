/**
 * The OpenAPI document and a page to browse it. The page needs no other host, inline script or inline style, and works on plain http; only
 * the files named here are served.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IRouter } from "express";
import { ROOT } from "../root.js";
import { type AssetFile, createAssets } from "./assets.js";
import { pageSender } from "./pages.js";
import { route } from "./routes.js";
import { JSON_TYPE } from "./edge/answers.js";
import { type StaticFile, staticFile } from "./edge/static-files.js";

const FILES = fileURLToPath(new URL("dist/docs/", ROOT));
const TYPES = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
/** An hour: these names stay the same when the package is updated. */
const UNHASHED_CACHE = "public, max-age=3600";

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Storefront service: interface</title>
    <link rel="icon" href="/docs/assets/favicon-32x32.png">
    <link rel="stylesheet" href="/docs/assets/swagger-ui.css">
  </head>
  <body>
    <noscript>This page needs JavaScript. The document itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <main id="docs"></main>
    <script src="/docs/assets/swagger-ui-bundle.js"></script>
    <script src="/docs/assets/init.js"></script>
  </body>
</html>
`;

// Without validatorUrl: null, the page would send the document's address to an external validator.
const INIT = `"use strict";
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
`;

/** `describe` resolves with the document. Everything is prepared on first request, because that takes longer than the rest of startup. */
export function addDocs(router: IRouter, describe: () => Promise<object>): void {
  const assets = createAssets(assetFiles, { prefix: "/docs/assets/", otherwise: UNHASHED_CACHE });
  let page: StaticFile | null = null;
  let document: StaticFile | null = null;

  route(router, "/openapi.json", {
    GET: async (request, response) => {
      document ??= staticFile(JSON.stringify(await describe()), {
        type: JSON_TYPE,
        cacheControl: "no-store",
      });
      return document(request, response);
    },
  });
  route(router, "/docs", {
    GET: (request, response) => {
      page ??= pageSender(
        staticFile(assets.linkedIn(PAGE), { type: "text/html; charset=utf-8", cacheControl: "no-store" }),
        { pictures: ["data:"] },
      );
      return page(request, response);
    },
  });
  assets.serve(router);
}

function assetFiles(): ReadonlyMap<string, AssetFile> {
  return new Map([
    ["init.js", { type: TYPES.js, content: INIT }],
    ["swagger-ui.css", { type: TYPES.css, content: bundled("swagger-ui.css") }],
    ["swagger-ui-bundle.js", { type: TYPES.js, content: bundled("swagger-ui-bundle.js") }],
    ["favicon-32x32.png", { type: "image/png", content: bundled("favicon-32x32.png") }],
  ]);
}

function bundled(file: string): Buffer {
  return readFileSync(join(FILES, file));
}
