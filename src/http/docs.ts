/**
 * The OpenAPI document and a page to browse it. The page needs no other host, inline script or inline style, and works on plain http. Of the
 * package that renders it, only the files listed here are served.
 */
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { type Response, Router } from "express";
import { route } from "./routes.js";

const PACKAGE_ROOT = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
const FILES = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"] as const;
/** An hour: the names stay the same when the package is updated. */
const ASSET_CACHE = "public, max-age=3600";

// helmet's own policy upgrades insecure requests, which breaks the page on a plain-http host.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

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

/** `describe` gives the document when somebody first asks for it: making it takes longer than anything else at a start. */
export function docsRouter(describe: () => object): Router {
  const router = Router({ caseSensitive: true, strict: true });
  let json: string | null = null;

  route(router, "/openapi.json", {
    GET: (_request, response) => {
      json ??= JSON.stringify(describe());
      response.set("Cache-Control", "no-store").type("json").send(json);
    },
  });
  route(router, "/docs", {
    GET: (_request, response) => {
      response.set({ "Cache-Control": "no-store", "Content-Security-Policy": PAGE_POLICY });
      response.type("html").send(PAGE);
    },
  });
  router.get("/docs/assets/init.js", (_request, response) => {
    asAsset(response).type("js").send(INIT);
  });
  for (const file of FILES) {
    router.get(`/docs/assets/${file}`, (_request, response, next) => {
      asAsset(response).sendFile(file, { root: PACKAGE_ROOT, cacheControl: false }, (error?: Error) => {
        // A reader who leaves midway is no fault.
        if (error && !response.headersSent) next(error);
      });
    });
  }
  return router;
}

function asAsset(response: Response): Response {
  return response.set("Cache-Control", ASSET_CACHE);
}
