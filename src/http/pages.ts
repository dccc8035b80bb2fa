/**
 * The demo storefront at `/` and the operator page at `/staff`, with what they load from `/assets/`. Every file is read once, at the
 * start; nothing else can be had. The pages need no other host, no inline script and no inline style, and send forms to the checkout alone.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type Request, type Response, Router } from "express";
import { ROOT } from "../root.js";
import { type AssetFile, createAssets } from "./assets.js";
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
  const pages = ["operator", ...(storefront ? ["storefront"] : []), ...(demoCheckout ? ["checkout"] : [])];
  const isShown = (path: string): boolean =>
    !path.includes("/") || pages.some((page) => path.startsWith(`${page}/`));
  const files = readFiles(isShown);
  const isPage = (path: string): boolean => path.endsWith(".html");
  const assets = createAssets(new Map([...files].filter(([path]) => !isPage(path))), {
    prefix: "/assets/",
    otherwise: "no-store",
  });

  /** The page, with this in the place that it leaves open. */
  function pageOf(name: string, text = "", status = 200): StaticFile {
    const file = files.get(`${name}/index.html`);
    if (file === undefined) throw new Error(`there is no page ${name} in dist; run npm run build`);
    const html = assets.linkedIn(file.content.toString("utf8")).replace("{{}}", () => text);
    const headers = { "Content-Security-Policy": contentSecurityPolicy };
    return staticFile(html, { type: file.type, status, cacheControl: "no-store", headers });
  }
  function page(path: string, file: StaticFile): void {
    route(router, path, { GET: (request, response) => file.send(request, response) });
  }

  if (storefront) page("/", pageOf("storefront", inAttribute(checkoutUrl ?? "")));
  page("/staff", pageOf("operator"));
  if (demoCheckout !== null) {
    const show = (request: Request, response: Response, view: CheckoutView): Promise<void> => {
      const status = view.kind === "good" || view.kind === "nothing" ? 200 : 400;
      return pageOf("checkout", asData(view), status).send(request, response);
    };
    route(router, CHECKOUT_PATH, {
      GET: (request, response) => show(request, response, { kind: "nothing" }),
      FORM: async (request, response) => show(request, response, await demoCheckout(request.body)),
    });
  }
  assets.serve(router);
  return router;
}

function readFiles(wanted: (path: string) => boolean): Map<string, AssetFile> {
  const files = new Map<string, AssetFile>();
  for (const name of readdirSync(PAGES, { recursive: true, encoding: "utf8" })) {
    const path = name.split(sep).join("/");
    const type = TYPES[extname(path)];
    if (type !== undefined && wanted(path))
      files.set(path, { type, content: readFileSync(join(PAGES, name)) });
  }
  return files;
}

function inAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
}

/** As JSON in a script element, which nothing in it may end. */
function asData(value: object): string {
  return JSON.stringify(value).replaceAll("<", String.raw`\u003c`);
}
