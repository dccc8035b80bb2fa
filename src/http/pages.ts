/**
 * The demo storefront at `/` and the operator page at `/staff`, with their assets under `/assets/`, and the search element for other websites. All
 * files are read at startup; no other is served. The pages need no other host, no inline script and no inline style, and submit forms only to the checkout.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { IRouter, Request, Response } from "express";
import helmet from "helmet";
import { ROOT } from "../root.js";
import { type AssetFile, createAssets } from "./assets.js";
import type { RetailConfig } from "../retail/price-file/retail-config.js";
import type { PageData } from "../wire/pages.js";
import { CHECKOUT_PATH, type DemoCheckout } from "./checkout.js";
import { formBody, route } from "./routes.js";
import { type StaticFile, staticFile } from "./edge/static-files.js";

const PAGES = fileURLToPath(new URL("dist/pages/", ROOT));

const JAVASCRIPT = "text/javascript; charset=utf-8";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": JAVASCRIPT,
  ".svg": "image/svg+xml",
};

interface PageSources {
  /** Additional sources of images. */
  readonly pictures?: readonly string[];
  /** Where the page may post forms. */
  readonly forms?: string;
}

/** Sends a page under a Content-Security-Policy of its own. helmet's default one upgrades insecure requests, which breaks pages on a plain-http host. */
export function pageSender(
  file: StaticFile,
  { pictures = [], forms = "'none'" }: PageSources = {},
): StaticFile {
  const setPolicy = helmet.contentSecurityPolicy({
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: [...new Set(["'self'", ...pictures])],
      connectSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: [forms],
      frameAncestors: ["'none'"],
    },
  });
  return async (request, response) => {
    await new Promise<void>((set) => {
      setPolicy(request, response, () => {
        set();
      });
    });
    await file(request, response);
  };
}

function sourceOf(address: string): string {
  return address.startsWith("/") ? "'self'" : new URL(address).origin;
}

/** Added to the 404 page if the storefront is served. */
const START = '<p><a class="button" href="/">Home · خانه · کور</a></p>';

interface PageSettings {
  /** Whether the demo storefront and its files are served. */
  readonly storefront: boolean;
  /** Whether any website may load the search element. */
  readonly embed: boolean;
  /** Where the demo page posts a signed cart; null: nowhere. */
  readonly checkoutUrl: string | null;
  /** Null: the demo checkout isn't served. */
  readonly demoCheckout: DemoCheckout | null;
  /** The shop's identity and what it sells; a new object whenever either changes. */
  readonly retail: () => Pick<RetailConfig, "shop" | "catalog">;
}

/** Adds the pages; returns the 404 page for browsers. */
export function addPages(router: IRouter, settings: PageSettings): StaticFile {
  const { storefront, embed, demoCheckout } = settings;
  const shown = [
    "operator",
    "missing",
    ...(storefront ? ["storefront"] : []),
    ...(demoCheckout ? ["checkout"] : []),
  ];
  const files = readFiles((path) => !path.includes("/") || shown.some((page) => path.startsWith(`${page}/`)));
  const assets = createAssets(() => new Map([...files].filter(([path]) => !path.endsWith(".html"))), {
    prefix: "/assets/",
    otherwise: "no-store",
  });

  function pageOf(name: string, { fill = {}, sources = {}, status = 200 }: PageOptions = {}): StaticFile {
    const file = files.get(`${name}/index.html`);
    if (file === undefined) throw new Error(`there is no page ${name} in dist; run npm run build`);
    const html = assets
      .linkedIn(file.content.toString("utf8"))
      .replace(/\{\{(\w+)\}\}/g, (_slot, slot: string) => fill[slot] ?? "");
    return pageSender(staticFile(html, { type: file.type, status, cacheControl: "no-store" }), sources);
  }

  if (storefront) addStorefront(router, pageOf, settings);
  route(router, "/staff", { GET: pageOf("operator") });
  if (demoCheckout !== null) addCheckout(router, pageOf, demoCheckout);
  if (embed) addEmbed(router);
  const icon = readFileSync(join(PAGES, "favicon.ico"));
  route(router, "/favicon.ico", {
    GET: staticFile(icon, { type: "image/x-icon", cacheControl: "no-store" }),
  });
  assets.serve(router);
  return pageOf("missing", { fill: { start: storefront ? START : "" }, status: 404 });
}

interface PageOptions {
  /** What its `{{slots}}` are filled with. */
  readonly fill?: Readonly<Record<string, string>>;
  readonly sources?: PageSources;
  readonly status?: number;
}
type PageOf = (name: string, options?: PageOptions) => StaticFile;

function addStorefront(
  router: IRouter,
  pageOf: PageOf,
  { checkoutUrl, demoCheckout, retail }: PageSettings,
): void {
  const storefrontOf = ({ shop, catalog }: ReturnType<PageSettings["retail"]>): StaticFile =>
    pageOf("storefront", {
      fill: {
        checkout: inAttribute(checkoutUrl ?? ""),
        tlds: catalog.flatMap(({ tld, years }) => (years.registration === undefined ? [] : tld)).join(","),
        ...embedded("shop", { ...shop, sells: checkoutUrl !== null && demoCheckout === null }),
      },
      sources: {
        ...(shop.logo !== null && { pictures: [sourceOf(shop.logo)] }),
        ...(checkoutUrl !== null && { forms: sourceOf(checkoutUrl) }),
      },
    });
  let shown = retail();
  let page = storefrontOf(shown);
  route(router, "/", {
    GET: (request, response) => {
      if (shown !== retail()) page = storefrontOf((shown = retail()));
      return page(request, response);
    },
  });
}

function addCheckout(router: IRouter, pageOf: PageOf, demoCheckout: DemoCheckout): void {
  const show = (request: Request, response: Response, view: PageData["view"]): Promise<void> => {
    const status = view.kind === "good" || view.kind === "nothing" ? 200 : 400;
    return pageOf("checkout", { fill: embedded("view", view), status })(request, response);
  };
  route(router, CHECKOUT_PATH, {
    GET: (request, response) => show(request, response, { kind: "nothing" }),
    body: formBody,
    POST: async (request, response) => show(request, response, await demoCheckout(request.body)),
  });
}

/** One address for good, so it is asked for again after five minutes. */
function addEmbed(router: IRouter): void {
  const script = staticFile(readFileSync(join(PAGES, "embed/embed.js")), {
    type: JAVASCRIPT,
    cacheControl: "public, max-age=300",
  });
  route(router, "/embed.js", {
    GET: (request, response) => script(request, response.set("Access-Control-Allow-Origin", "*")),
  });
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

/** JSON that is safe in a script element, because it can't contain the end tag. */
function embedded<K extends keyof PageData>(id: K, data: PageData[K]): Readonly<Record<string, string>> {
  return { [id]: JSON.stringify(data).replaceAll("<", String.raw`\u003c`) };
}
