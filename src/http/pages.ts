/**
 * The demo storefront at `/` and the operator page at `/staff`, with what they load from `/assets/`. Every file is read once, at the
 * start; nothing else can be had. The pages need no other host, no inline script and no inline style, and send forms to the checkout alone.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type Request, type Response, Router } from "express";
import { ServiceError } from "../errors.js";
import { ROOT } from "../root.js";
import { CHECKOUT_PATH, type CheckoutView, type DemoCheckout } from "./checkout.js";
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
function policy(checkoutUrl: string | null): string {
  const checkout =
    checkoutUrl === null ? "'none'" : checkoutUrl.startsWith("/") ? "'self'" : new URL(checkoutUrl).origin;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    `form-action ${checkout}`,
    "frame-ancestors 'none'",
  ].join("; ");
}

export interface PageSettings {
  /** Whether the demo page is shown; its files are not there either when it is not. */
  readonly storefront: boolean;
  /** Where the demo page posts a signed cart; null: nowhere. */
  readonly checkoutUrl: string | null;
  /** Null: there is no checkout here. */
  readonly demoCheckout: DemoCheckout | null;
}

export function pageRoutes({ storefront, checkoutUrl, demoCheckout }: PageSettings): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const contentSecurityPolicy = policy(checkoutUrl);
  const files = readFiles((path) =>
    path.startsWith("storefront/") ? storefront : !path.startsWith("checkout/") || demoCheckout !== null,
  );
  const shop = files.get("storefront/index.html");
  if (shop) files.set("storefront/index.html", filled(shop, inAttribute(checkoutUrl ?? "")));
  const served = new Map([...files].map(([path, file]) => [path, toServe(file)] as const));

  async function send(request: Request, response: Response, file: StaticFile | undefined): Promise<void> {
    if (file === undefined) throw new ServiceError("not_found", "There is nothing under this address.");
    return file.send(request, response);
  }
  function sendPage(request: Request, response: Response, file: StaticFile | undefined): Promise<void> {
    response.set("Content-Security-Policy", contentSecurityPolicy);
    return send(request, response, file);
  }
  function page(path: string, name: string): void {
    route(router, path, {
      GET: (request, response) => sendPage(request, response, served.get(`${name}/index.html`)),
    });
  }

  if (storefront) page("/", "storefront");
  page("/staff", "operator");
  if (demoCheckout !== null) {
    const show = (request: Request, response: Response, view: CheckoutView): Promise<void> => {
      const status = view.kind === "good" || view.kind === "nothing" ? 200 : 400;
      const file = files.get("checkout/index.html");
      return sendPage(request, response, file && toServe(filled(file, asData(view)), status));
    };
    route(router, CHECKOUT_PATH, {
      GET: (request, response) => show(request, response, { kind: "nothing" }),
      FORM: async (request, response) => show(request, response, await demoCheckout(request.body)),
    });
  }
  route(router, "/assets/*path", {
    GET: (request, response) =>
      send(request, response, served.get([request.params["path"]].flat().join("/"))),
  });
  return router;
}

interface PageFile {
  readonly type: string;
  readonly plain: string | Buffer;
}

function toServe({ type, plain }: PageFile, status = 200): StaticFile {
  return staticFile(plain, { type, status, cacheControl: "no-store" });
}

function readFiles(wanted: (path: string) => boolean): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const name of readdirSync(PAGES, { recursive: true, encoding: "utf8" })) {
    const path = name.split(sep).join("/");
    const type = TYPES[extname(path)];
    if (type !== undefined && wanted(path)) files.set(path, { type, plain: readFileSync(join(PAGES, name)) });
  }
  return files;
}

/** The page with this in the place that it leaves open. */
function filled({ type, plain }: PageFile, text: string): PageFile {
  return { type, plain: plain.toString("utf8").replace("{{}}", () => text) };
}

function inAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
}

/** As JSON in a script element, which nothing in it may end. */
function asData(value: object): string {
  return JSON.stringify(value).replaceAll("<", String.raw`\u003c`);
}
