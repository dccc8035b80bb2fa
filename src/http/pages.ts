/**
 * The demo storefront at `/` and the operator page at `/staff`, with what they load from `/assets/`. Every file is read once, at the
 * start; nothing else can be had. The pages need no other host, no inline script and no inline style.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type Request, type Response, Router } from "express";
import { ServiceError } from "../errors.js";
import { ROOT } from "../root.js";
import { route } from "./routes.js";
import { type StaticFile, staticFile } from "./static-files.js";

const PAGES = fileURLToPath(new URL("dist/pages/", ROOT));

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

// helmet's own policy upgrades insecure requests, which breaks the pages on a plain-http host.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** `storefront`: whether the demo page is shown; its files are not there either when it is not. */
export function pageRoutes({ storefront }: { readonly storefront: boolean }): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const files = readFiles((path) => storefront || !path.startsWith("storefront/"));

  async function send(request: Request, response: Response, path: string): Promise<void> {
    const file = files.get(path);
    if (file === undefined) throw new ServiceError("not_found", "There is nothing under this address.");
    return file.send(request, response);
  }
  function page(path: string, name: string): void {
    route(router, path, {
      GET: (request, response) => {
        response.set("Content-Security-Policy", PAGE_POLICY);
        return send(request, response, `${name}/index.html`);
      },
    });
  }

  if (storefront) page("/", "storefront");
  page("/staff", "operator");
  route(router, "/assets/*path", {
    GET: (request, response) => send(request, response, [request.params["path"]].flat().join("/")),
  });
  return router;
}

function readFiles(wanted: (path: string) => boolean): ReadonlyMap<string, StaticFile> {
  const files = new Map<string, StaticFile>();
  for (const name of readdirSync(PAGES, { recursive: true, encoding: "utf8" })) {
    const path = name.split(sep).join("/");
    const type = TYPES[extname(path)];
    if (type !== undefined && wanted(path))
      files.set(path, staticFile(readFileSync(join(PAGES, name)), { type, cacheControl: "no-store" }));
  }
  return files;
}
