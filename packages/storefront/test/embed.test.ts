/** The search element on somebody else's website, in a real browser: one line of HTML, a strict policy, and whatever stylesheet that website has. */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { z } from "zod";
import { checkPromise } from "../../../src/retail/promise-check.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { CHECK, type Service, startService } from "../../../test/support/service.js";
import {
  DESKTOP,
  describeWithBrowser,
  PHONE,
  startBrowser,
  STARTING_MS,
  type Visit,
  visit,
} from "../../../test/browser/browser.js";
import { CUT } from "../../../test/browser/looks.js";
import {
  cartIs,
  confirm,
  done,
  enter,
  focusedId,
  moveTo,
  read,
  row,
  searchFor,
  status,
  texts,
} from "../../../test/browser/storefront.js";
import { fa } from "../src/embed/texts/fa.js";
import { startWebsite, type WebPage, type Website } from "../../../test/browser/website.js";

/** Colours change at once. */
const AT_ONCE = { reducedMotion: "reduce" } as const;
const ONE_LINE = "<af-domain-search></af-domain-search>";
const KEPT = z.object({
  promise: z.string(),
  validUntil: z.string(),
  total: z.array(z.object({ amount: z.string(), currency: z.string() })),
});

/** Resets everything, also on the element itself, and has sizes, directions and colours that nobody wants. */
const HOSTILE = `
  html { font-size: 5px; }
  * { all: unset !important; color: red !important; font: 40px serif !important; letter-spacing: 9px !important;
    text-align: right !important; text-transform: uppercase !important; }
  button, input, .card, .name, #root, #query { display: none !important; }
`;

/** How every part of the element looks and where it is. */
const LOOKS = `all("#root, #root *").map((part) => {
  const { color, backgroundColor, fontSize, fontFamily, letterSpacing, textTransform, display } = getComputedStyle(part);
  const { x, width, height } = part.getBoundingClientRect();
  return [part.id || part.className, color, backgroundColor, fontSize, fontFamily, letterSpacing, textTransform,
    display, Math.round(x), Math.round(width), Math.round(height)].join(" ");
})`;

describeWithBrowser("the search element on another website", () => {
  const clock = new FakeClock();
  let service: Service;
  let website: Website;
  let browser: Browser;
  let visits: Visit[] = [];

  beforeAll(async () => {
    website = await startWebsite(() => service.url);
    service = await startService({ clock, env: { CORS_ORIGINS: website.url } });
    browser = await startBrowser();
  }, STARTING_MS);
  afterAll(async () => {
    await browser.close();
    await service.close();
    await website.close();
  }, STARTING_MS);
  afterEach(async () => {
    for (const { close } of visits) await close();
    const faults = visits.flatMap((one) => one.faults);
    visits = [];
    expect(faults).toEqual([]);
  });

  async function open(shown: WebPage, options: BrowserContextOptions = DESKTOP): Promise<Visit> {
    website.show(shown);
    const opened = await visit(browser, website.url, options, service.url);
    visits.push(opened);
    const { page } = opened;
    await page.clock.setSystemTime(clock.now());
    await page.addInitScript(`
      globalThis.told = [];
      for (const name of ["af-search", "af-cart", "af-confirmed"])
        addEventListener(name, (event) => {
          told.push({ name, detail: event.detail });
          if (globalThis.prevented === name) event.preventDefault();
        });`);
    await page.goto("/");
    await page.locator("#terms label").first().waitFor();
    return opened;
  }
  const told = (page: Page, name: string): Promise<unknown> =>
    page.evaluate(`told.filter((one) => one.name === "${name}").map(({ detail }) => detail)`);

  test.each([
    ["fa", 'lang="fa-AF" dir="rtl"', "", PHONE, "dark", "رفتن به پرداخت"],
    ["ps", 'lang="ps" dir="rtl"', "", DESKTOP, "light", "تادیې ته ورشئ"],
    [
      "English on a page from right to left",
      'lang="fa" dir="rtl"',
      'lang="en"',
      DESKTOP,
      "light",
      "Go to checkout",
    ],
  ] as const)(
    "leads from a word to a promise by keyboard alone: %s",
    async (name, root, attributes, size, colorScheme, goOn) => {
      const body = `<af-domain-search ${attributes} checkout="SERVICE/checkout"></af-domain-search>`;
      const { page, axe, picture } = await open({ body, root }, { ...size, colorScheme });
      await moveTo(page, "query");
      await page.keyboard.type("kabul");
      await page.keyboard.press("Enter");
      await done(page);
      await moveTo(page, "add-kabul.af");
      await page.keyboard.press("Enter");
      await moveTo(page, "cart-confirm");
      await page.keyboard.press("Enter");
      await cartIs(page, "confirmed");
      expect(await read(page.locator("#cart-go-on"))).toBe(goOn);
      expect(await focusedId(page)).toBe("cart-go-on");
      expect(await told(page, "af-search")).toEqual([{ q: "kabul" }]);
      expect(await told(page, "af-cart")).toEqual([
        { items: [{ domain: "kabul.af", action: "registration", years: 1 }] },
      ]);
      const [kept] = z.tuple([KEPT]).parse(await told(page, "af-confirmed"));
      expect(kept.total).toEqual([{ amount: "26.99", currency: "USD" }]);
      const keys = z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })) });
      const { body: jwks } = await service.ask("/.well-known/jwks.json");
      expect(await checkPromise(kept.promise, keys.parse(jwks), clock.now())).toMatchObject({
        ok: true,
        validUntilMs: Date.parse(kept.validUntil),
        lines: [{ domain: "kabul.af", price: kept.total[0] }],
      });
      await picture(`embed-${name.replaceAll(" ", "-")}`);
      expect(await axe()).toEqual([]);
      expect(await page.evaluate(CUT)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
      await page.keyboard.press("Enter");
      await page.waitForURL(`${service.url}/checkout`);
      await page.locator("#lines tr").first().waitFor();
      await page.evaluate("globalThis.watched ??= { violations: [] }");
    },
  );

  test("looks the same whatever stylesheet the website has, and takes colours, fonts and the looks of its parts from it where these are meant for it", async () => {
    const plain = "* { margin: 0 } h1 { display: none }";
    const { page, picture } = await open({ body: ONE_LINE, css: plain }, { ...PHONE, ...AT_ONCE });
    const wear = async (css: string, name: string): Promise<void> => {
      website.show({ body: ONE_LINE, css });
      await page.evaluate(`new Promise((worn) => {
        const sheet = document.querySelector("link[rel=stylesheet]");
        sheet.onload = worn;
        sheet.href = "/page.css?${name}";
      })`);
    };
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    await page.locator("#query").focus();
    await wear(plain, "plain");
    const before = await page.evaluate(LOOKS);
    await wear(HOSTILE, "hostile");
    await picture("embed-hostile");
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).color")).toBe(
      "rgb(255, 0, 0)",
    );
    expect(await page.evaluate(LOOKS)).toEqual(before);
    await wear(
      `af-domain-search { --accent: rgb(1, 2, 3); --font: monospace }
      af-domain-search::part(search) { border-radius: 0; text-transform: uppercase }`,
      "meant",
    );
    const looks = `(({ backgroundColor, fontFamily, borderRadius, textTransform }) =>
      [backgroundColor, fontFamily, borderRadius, textTransform])(getComputedStyle(one("#search > button")))`;
    expect(await page.evaluate(looks)).toEqual(["rgb(1, 2, 3)", "monospace", "0px", "uppercase"]);
  });

  test("can be there twice, be taken away and put back, and be in a dialog", async () => {
    const body = `<af-domain-search id="left"></af-domain-search><dialog>
      <af-domain-search id="right" tlds="com.af .org.af" years="2" q="kandahar"></af-domain-search></dialog>`;
    const { page } = await open({ body });
    const left = page.locator("#left");
    const right = page.locator("#right");
    const names = (where: "#left" | "#right"): Promise<string[]> => texts(page, `${where} .name .domain`);
    await page.evaluate(`document.querySelector("dialog").showModal()`);
    await right.locator('#search-status[data-kind="done"]').waitFor();
    expect(await names("#right")).toEqual(["kandahar.com.af", "kandahar.org.af"]);
    expect(await texts(page, "#right .names .price")).toEqual([
      "$22.992 years · $11.50 a year",
      "$19.992 years · $10.00 a year",
    ]);
    expect((await right.boundingBox())?.width).toBeGreaterThan(500);
    await right.locator(".name button").first().click();
    await page.keyboard.press("Escape");
    await left.locator("#query").fill("kabul");
    await page.keyboard.press("Enter");
    await left.locator('#search-status[data-kind="done"]').waitFor();
    expect(await names("#left")).toEqual(["kabul.af", "kabul.com.af", "kabul.net.af", "kabul.org.af"]);
    expect(await names("#right")).toEqual(["kandahar.com.af", "kandahar.org.af"]);
    expect(await texts(page, "#left .item .domain")).toEqual(["kandahar.com.af"]);

    await page.evaluate(`(() => {
      const left = document.querySelector("#left");
      left.remove();
      document.querySelector("main").append(left);
    })()`);
    await left.locator('#search-status[data-kind="done"]').waitFor();
    expect(await names("#left")).toEqual(["kabul.af", "kabul.com.af", "kabul.net.af", "kabul.org.af"]);
    await left.locator("[data-remove]").click();
    expect(await right.locator(".item").count()).toBe(0);
    await page.evaluate(`document.querySelector("#left").setAttribute("q", "balkh")`);
    await left.locator('.name.exact[data-domain="balkh.af"]').waitFor();
    await page.evaluate(`document.querySelector("#left").setAttribute("lang", "ps")`);
    await left.getByRole("button", { name: "لټون" }).waitFor();
  });

  test("lets the website take over a search, the cart and the checkout", async () => {
    // Without what is asked of memory alone while the visitor is typing.
    const asked: string[] = [];
    const body = `<af-domain-search checkout="/buy"></af-domain-search>`;
    const { page } = await open({ body, root: 'lang="ps" dir="rtl"' });
    expect(await read(page.locator("#search > button"))).toBe("لټون");
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (!searchParams.has("only")) asked.push(pathname);
    });
    const prevent = (name: string) => page.evaluate(`globalThis.prevented = "${name}"`);
    for (const text of ["kabul", "kabul, herat"]) {
      await prevent("af-search");
      await enter(page, text);
      await page.waitForTimeout(300);
      expect(asked).not.toContain(text === "kabul" ? "/v1/search" : "/v1/availability");
      asked.length = 0;
    }
    expect(await told(page, "af-search")).toEqual([{ q: "kabul" }, { q: "kabul, herat" }]);
    await prevent("af-cart");
    await searchFor(page, "kabul");
    await row(page, "kabul.af").locator("button").press("Enter");
    expect(await page.locator(".item").count()).toBe(0);
    await prevent("af-confirmed");
    await row(page, "kabul.af").locator("button").press("Enter");
    await confirm(page, "confirmed");
    expect(await page.locator("#cart-go-on").isVisible()).toBe(false);
    await prevent("nothing");
    await page.locator("#cart-confirm").press("Enter");
    await page.locator("#cart-go-on").waitFor();
    expect(await page.locator("#cart-checkout").getAttribute("action")).toBe("/buy");
    expect(await told(page, "af-confirmed")).toHaveLength(2);
  });

  test("says plainly, and in detail on the console, that the service doesn't allow the website", async () => {
    website.show({ body: ONE_LINE, root: 'lang="fa"' });
    const context = await browser.newContext({ baseURL: website.url.replace("127.0.0.1", "localhost") });
    const page = await context.newPage();
    const said: string[] = [];
    page.on("console", (message) => {
      if (message.text().includes("af-domain-search")) said.push(message.text());
    });
    await page.clock.install();
    await page.goto("/");
    await page.getByText(fa.notAllowed).first().waitFor();
    await enter(page, "kabul");
    await page.clock.runFor(1_500);
    expect(await read(status(page))).toBe(fa.notAllowed);
    expect(said).toEqual([
      `<af-domain-search>: ${service.url} doesn't let this page read its answers. Add ${new URL(page.url()).origin} to its setting CORS_ORIGINS.`,
    ]);
    await context.close();
  });

  test("isn't needed: the client's plain page says of no name that nobody has checked that it isn't available", async () => {
    const example = new URL("../../client/examples/browser/", import.meta.url);
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("main.js", example))],
      alias: { "af-storefront-client": fileURLToPath(new URL("../../src/index.ts", example)) },
      bundle: true,
      write: false,
      format: "esm",
    });
    const script = (outputFiles[0]?.text ?? "").replace("https://names.example.af", service.url);
    const opened = await visit(browser, service.url, PHONE);
    visits.push(opened);
    const { page } = opened;
    await page.route("**/example/", (route) =>
      route.fulfill({ body: readFileSync(new URL("index.html", example), "utf8"), contentType: "text/html" }),
    );
    await page.route("**/example/main.js", (route) =>
      route.fulfill({ body: script, contentType: "text/javascript" }),
    );
    await page.clock.install();
    await page.goto("/example/");
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 1_000);
    const before = service.calls(CHECK);
    await page.locator("#query").pressSequentially("greentea");
    await page.clock.runFor(500);
    const results = page.locator("#results li");
    await results.nth(3).waitFor();
    expect(service.calls(CHECK)).toBe(before);
    for (const text of await results.allInnerTexts()) expect(text).not.toContain("not available");
    await page.keyboard.press("Enter");
    await page.getByText("greentea.af: 26.99 USD").waitFor();
  });

  test("is one script of at most 30 kB that every origin may load", async () => {
    const { headers, text } = await service.ask("/embed.js");
    expect(headers).toMatchObject({
      "access-control-allow-origin": "*",
      "cross-origin-resource-policy": "cross-origin",
      "cache-control": "public, max-age=300",
    });
    expect(text).not.toMatch(/\bimport\s*[("'{*]/);
    for (const compress of [gzipSync, brotliCompressSync])
      expect(compress(text).length).toBeLessThanOrEqual(30_000);
  });
});
