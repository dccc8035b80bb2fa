/**
 * The pages load everything from this service, under a policy that allows nothing else, and follow the retail config. Without the demo, nothing
 * of the storefront is served.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { RETAIL } from "../support/retail.js";
import { type Answer, problemOf, type Service, startService, temporaryFolder } from "../support/service.js";

const NAVIGATION = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

const folder = temporaryFolder();
const file = join(folder.path, "retail.yaml");
const clock = new FakeClock();
let service: Service;
beforeAll(async () => {
  writeFileSync(file, RETAIL);
  service = await startService({ clock, env: { RETAIL_CONFIG: file } });
});
afterAll(async () => {
  await service.close();
  folder.remove();
});

describe("the pages", () => {
  test.each(["/", "/staff", "/docs"])(
    "load only from this service and have nothing inline: %s",
    async (path) => {
      const { status, text, headers } = await service.ask(path);
      expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
      expect(headers["cache-control"]).toBe("no-store");
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none';/);
      expect(headers["content-security-policy"]).not.toMatch(/unsafe|upgrade-insecure|\/\//);
      expect(text).not.toMatch(/<style|style=|<script>|\son\w+=|{{/);
      const loaded = [...text.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]+)"/g)].map(
        ([, at = ""]) => at,
      );
      expect(loaded.length).toBeGreaterThan(1);
      for (const at of loaded) {
        expect(at).toMatch(/^\/(?:docs\/)?assets\//);
        const asset = await service.ask(at);
        expect([at, asset.status]).toEqual([at, 200]);
        expect(asset.headers["content-type"]).toMatch(
          /^(?:text\/(?:css|javascript)|application\/javascript|image\/)/,
        );
        expect(asset.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
      }
    },
  );

  test("are sent compressed to clients that accept it, and uncompressed to others", async () => {
    const plain = await service.ask("/");
    const small = await service.ask("/", { headers: { "Accept-Encoding": "gzip" } });
    expect(plain.headers).not.toHaveProperty("content-encoding");
    expect(small.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(small.text).toBe(plain.text);
  });

  test("have assets that are also served without a hash or with another release's, but aren't cached then", async () => {
    const plain = await service.ask("/assets/storefront/storefront.css");
    const other = await service.ask("/assets/storefront/storefront.0123456789ab.css");
    for (const { status, headers } of [plain, other])
      expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(other.text).toBe(plain.text);
  });

  test.each([
    "/assets/",
    "/assets/operator/",
    "/assets/storefront/index.html",
    "/assets/storefront/nothing.0123456789ab.css",
    "/assets/tsconfig.json",
    "/assets/..%2f..%2fpackage.json",
    "/assets/../main.js",
    "/docs/assets/",
    "/docs/assets/swagger-initializer.js",
    "/docs/assets/index.html",
    "/docs/assets/package.json",
  ])("include nothing else: %s isn't found", async (path) => {
    expect((await service.ask(path)).status).toBe(404);
  });

  test("about the API show the unchanged document, and ask no other host to validate it", async () => {
    const { headers, body } = await service.ask("/openapi.json");
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(body).toEqual(JSON.parse(JSON.stringify(openApiDocument({ version: "1.2.3" }))));
    const { text } = await service.ask("/docs/assets/init.js");
    expect(text).toMatch(/^(?!.*\/\/).*validatorUrl: null/s);
  });

  test("have their icon where browsers look for it by default", async () => {
    const { status, headers } = await service.ask("/favicon.ico");
    expect([status, headers["content-type"]]).toEqual([200, "image/x-icon"]);
    expect(headers["cache-control"]).toBe("no-store");
  });
});

describe("the shop on the page", () => {
  const shopIn = ({ text }: Answer): unknown => {
    const [, json = ""] = /<script id="shop" type="application\/json">(.*?)<\/script>/s.exec(text) ?? [];
    return z.record(z.string(), z.unknown()).parse(JSON.parse(json));
  };
  const write = async (text: string): Promise<void> => {
    writeFileSync(file, text);
    await clock.advance(1_500);
  };
  const save = (shop: string): Promise<void> => write(RETAIL.replace(/^shop:.*$/m, `shop: ${shop}`));
  afterEach(() => write(RETAIL));

  test("says who runs it as soon as the file says so, and its logo may be loaded", async () => {
    const first = await service.ask("/");
    expect(shopIn(first)).toMatchObject({ name: null, logo: null, sells: false });
    expect(first.text).toContain('tlds=".af,.com.af,.net.af,.org.af"');
    await save('{ name: "</script>Names", logo: https://cdn.example.af/logo.svg }');
    const page = await service.ask("/");
    expect(shopIn(page)).toMatchObject({
      name: { ps: "</script>Names" },
      logo: "https://cdn.example.af/logo.svg",
    });
    expect(page.headers["content-security-policy"]).toContain("img-src 'self' https://cdn.example.af;");
  });

  test("doesn't change with a faulty section, and the log says where the fault is", async () => {
    const before = shopIn(await service.ask("/"));
    await save("{ links: { terms: 'javascript:alert(1)' } }");
    expect(shopIn(await service.ask("/"))).toEqual(before);
    expect(service.log.find((line) => line.includes("retail.config.rejected"))).toContain("shop.links.terms");
  });
});

describe("an address without a page", () => {
  test("is an HTML page for browsers", async () => {
    for (const path of ["/nothing", "/staff/x", "/assets/nothing.js"]) {
      const { status, headers, text } = await service.ask(path, { headers: NAVIGATION });
      expect([path, status, headers["content-type"]]).toEqual([path, 404, "text/html; charset=utf-8"]);
      expect(headers["cache-control"]).toBe("no-store");
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none';/);
      expect(text).toContain("There is no page at this address.");
      expect(headers).not.toHaveProperty("etag");
    }
  });

  test("is a problem document for API clients", async () => {
    for (const [path, headers] of [
      ["/nothing", { Accept: "*/*" }],
      ["/nothing", { Accept: "application/json" }],
      ["/v1/nothing", NAVIGATION],
      ["/problems/nothing", NAVIGATION],
    ] as const)
      expect(problemOf(await service.ask(path, { headers })).code).toBe("not_found");
  });
});

describe("the search element for other websites and the demo", () => {
  test("are there in sandbox mode: every origin may load the element and ask for it again", async () => {
    const ask = (headers: Readonly<Record<string, string>>) => service.ask("/embed.js", { headers });
    const { status, headers } = await ask({ Origin: "https://anywhere.example" });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "access-control-allow-origin": "*",
      "cache-control": "public, max-age=300",
    });
    expect((await ask({ "If-None-Match": headers["etag"] ?? "" })).status).toBe(304);
  });

  test("aren't there once they are turned off, unlike the operator page", async () => {
    const env = { DEMO_STOREFRONT: "off", EMBED: "off" };
    const bare = await startService({ clock: new FakeClock(), env, warm: false });
    try {
      for (const path of ["/", "/embed.js", "/assets/storefront/storefront.js"])
        expect([path, (await bare.ask(path)).status]).toEqual([path, 404]);
      expect((await bare.ask("/staff")).status).toBe(200);
    } finally {
      await bare.close();
    }
  });

  test("are on by default, but the demo isn't with a live upstream", () => {
    const live = {
      UPSTREAM_BASE_URL: "https://upstream.example",
      UPSTREAM_SERVICE_KEY: "key",
      UPSTREAM_SERVICE_SECRET: "secret",
    };
    for (const [env, embed, demoStorefront] of [
      [{}, true, true],
      [live, true, false],
      [{ ...live, DEMO_STOREFRONT: "on" }, true, true],
    ] as const)
      expect(readConfig(env, systemClock)).toMatchObject({ ok: true, config: { embed, demoStorefront } });
    const faults = ["DEMO_STOREFRONT: must be one of on, off"];
    expect(readConfig({ DEMO_STOREFRONT: "maybe" }, systemClock)).toEqual({ ok: false, faults });
  });
});
