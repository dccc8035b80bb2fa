/** The pages load everything from this service, under a policy that allows nothing else. Without the demo, nothing of the storefront is served. */
import { describe, expect, it } from "@jest/globals";
import express from "express";
import request from "supertest";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import { createAccessLog, requestContext } from "../../src/http/edge/context.js";
import { addPages } from "../../src/http/pages.js";
import { problemHandler } from "../../src/http/edge/problems.js";
import { createLog } from "../../src/logger.js";
import { createMetrics } from "../../src/metrics.js";
import { NO_SHOP } from "../support/no-shop.js";

const log = createLog("error");
const withPages = (storefront: boolean) => {
  const shop = NO_SHOP;
  const app = express().use(requestContext(createAccessLog(log, createMetrics(), systemClock), systemClock));
  const retail = { shop, catalog: [] };
  const missing = addPages(app, {
    storefront,
    embed: storefront,
    checkoutUrl: null,
    demoCheckout: null,
    retail: () => retail,
  });
  return app.use(problemHandler(log, () => undefined, missing));
};

describe("the pages", () => {
  const app = withPages(true);

  it.each(["/", "/staff"])("load only from this service and have nothing inline: %s", async (path) => {
    const { text, headers } = await request(app)
      .get(path)
      .expect(200)
      .expect("content-type", "text/html; charset=utf-8")
      .expect("cache-control", "no-store");
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none';/);
    expect(headers["content-security-policy"]).not.toMatch(/unsafe|upgrade-insecure|\/\//);
    expect(text).not.toMatch(/<style|style=|<script>|\son\w+=|{{/);
    const loaded = [...text.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]+)"/g)].map(
      ([, at]) => at ?? "",
    );
    expect(loaded.length).toBeGreaterThan(1);
    for (const at of loaded) {
      expect(at).toMatch(/^\/assets\/.*\.[0-9a-f]{12}\.\w+$/);
      await request(app)
        .get(at)
        .expect(200)
        .expect("cache-control", "public, max-age=31536000, immutable")
        .expect("content-type", /^(?:text\/(?:css|javascript)|image\/svg)/);
    }
  });

  it("are sent compressed to clients that accept it, and uncompressed to others", async () => {
    const plain = await request(app).get("/").set("Accept-Encoding", "identity").expect(200);
    const small = await request(app).get("/").set("Accept-Encoding", "gzip").expect(200);
    expect(plain.headers).not.toHaveProperty("content-encoding");
    expect(small.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(small.text).toBe(plain.text);
  });

  it("have assets that are also served without a hash or with another release's, but aren't cached then", async () => {
    const plain = await request(app).get("/assets/storefront/storefront.css").expect(200);
    const other = await request(app).get("/assets/storefront/storefront.0123456789ab.css").expect(200);
    for (const { headers } of [plain, other]) expect(headers["cache-control"]).toBe("no-store");
    expect(other.text).toBe(plain.text);
  });

  it.each([
    "",
    "operator/",
    "storefront/index.html",
    "storefront/nothing.0123456789ab.css",
    ".tsbuildinfo",
    "tsconfig.json",
    "..%2f..%2fpackage.json",
    "../main.js",
  ])("include nothing else: /assets/%s isn't found", async (path) => {
    await request(app).get(`/assets/${path}`).expect(404);
  });

  it("answer HEAD and reject POST", async () => {
    await request(app).head("/").expect(200);
    await request(app).post("/").expect(405).expect("allow", "GET, HEAD, OPTIONS");
  });
});

describe("a service without the demo", () => {
  const app = withPages(false);

  it.each(["/", "/assets/storefront/index.html", "/assets/storefront/storefront.js"])(
    "doesn't serve %s",
    async (path) => {
      await request(app).get(path).expect(404);
    },
  );

  it("still serves the operator page", async () => {
    await request(app).get("/staff").expect(200);
  });
});

describe("the search element for other websites", () => {
  it("is one script that every origin may load and ask for again, until it is turned off", async () => {
    const app = withPages(true);
    const { headers } = await request(app)
      .get("/embed.js")
      .set("Origin", "https://anywhere.example")
      .expect(200)
      .expect("content-type", "text/javascript; charset=utf-8")
      .expect("access-control-allow-origin", "*")
      .expect("cache-control", "public, max-age=300");
    await request(app).get("/embed.js").set("If-None-Match", String(headers["etag"])).expect(304);
    await request(withPages(false)).get("/embed.js").expect(404);
  });

  it.each([
    ["on", {}, true],
    ["on with a live upstream", { UPSTREAM_BASE_URL: "https://upstream.example", EMBED: "on" }, true],
    ["off if it is turned off", { EMBED: "off" }, false],
  ])("is %s", (_when, env, embed) => {
    const keys = { UPSTREAM_SERVICE_KEY: "key", UPSTREAM_SERVICE_SECRET: "secret" };
    const given = "UPSTREAM_BASE_URL" in env ? { ...keys, ...env } : env;
    expect(readConfig(given, systemClock)).toMatchObject({ ok: true, config: { embed } });
  });
});

describe("the demo setting", () => {
  const live = {
    UPSTREAM_BASE_URL: "https://upstream.example",
    UPSTREAM_SERVICE_KEY: "key",
    UPSTREAM_SERVICE_SECRET: "secret",
  };

  it.each([
    ["on in sandbox mode", {}, true],
    ["off with a live upstream", live, false],
    ["on if it is turned on", { ...live, DEMO_STOREFRONT: "on" }, true],
    ["off if it is turned off", { DEMO_STOREFRONT: "off" }, false],
  ])("is %s", (_when, env, shown) => {
    expect(readConfig(env, systemClock)).toMatchObject({ ok: true, config: { demoStorefront: shown } });
  });

  it("must be on or off", () => {
    const faults = ["DEMO_STOREFRONT: must be one of on, off"];
    expect(readConfig({ DEMO_STOREFRONT: "maybe" }, systemClock)).toEqual({ ok: false, faults });
  });
});
