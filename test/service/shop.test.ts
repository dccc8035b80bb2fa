/** The shop details on the page, which follow the retail config, and what browsers get for addresses without a page. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
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

function shopIn({ text }: Answer): unknown {
  const [, json = ""] = /<script id="shop" type="application\/json">(.*?)<\/script>/s.exec(text) ?? [];
  return z.record(z.string(), z.unknown()).parse(JSON.parse(json));
}

test("the page shows who runs the shop as soon as the file says so, and may load the shop's logo", async () => {
  const first = await service.ask("/");
  expect(shopIn(first)).toMatchObject({ name: null, logo: null, sells: false });
  expect(first.text).toContain('tlds=".af,.com.af,.net.af,.org.af"');
  const shop = 'shop: { name: "</script>Names", logo: https://cdn.example.af/logo.svg }';
  writeFileSync(file, RETAIL.replace(/^shop:.*$/m, shop));
  await clock.advance(1_500);
  const page = await service.ask("/");
  expect(shopIn(page)).toMatchObject({
    name: { ps: "</script>Names" },
    logo: "https://cdn.example.af/logo.svg",
  });
  expect(page.headers["content-security-policy"]).toContain("img-src 'self' https://cdn.example.af;");
});

test("a faulty section changes nothing, and the log says where it is", async () => {
  const before = shopIn(await service.ask("/"));
  writeFileSync(file, RETAIL.replace(/^shop:.*$/m, "shop: { links: { terms: 'javascript:alert(1)' } }"));
  await clock.advance(1_500);
  expect(shopIn(await service.ask("/"))).toEqual(before);
  expect(service.log.find((line) => line.includes("retail.config.rejected"))).toContain("shop.links.terms");
});

test.each(["/nothing", "/staff/x", "/assets/nothing.js"])(
  "a browser that opens %s gets an HTML page",
  async (path) => {
    const { status, headers, text } = await service.ask(path, { headers: NAVIGATION });
    expect([status, headers["content-type"], headers["cache-control"]]).toEqual([
      404,
      "text/html; charset=utf-8",
      "no-store",
    ]);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none';/);
    expect(text).toContain("There is no page at this address.");
    expect(headers).not.toHaveProperty("etag");
  },
);

test.each([
  ["/nothing", {}],
  ["/nothing", { Accept: "*/*" }],
  ["/nothing", { Accept: "application/json" }],
  ["/v1/nothing", NAVIGATION],
  ["/problems/nothing", NAVIGATION],
])("an API client that requests %s gets a problem document", async (path, headers) => {
  expect(problemOf(await service.ask(path, { headers })).code).toBe("not_found");
});

test("the icon is where browsers look for it by default", async () => {
  const { status, headers } = await service.ask("/favicon.ico");
  expect([status, headers["content-type"], headers["cache-control"]]).toEqual([
    200,
    "image/x-icon",
    "no-store",
  ]);
});
