/**
 * Price promises over HTTP: they contain exactly what was shown, others verify them with the published key, staff can look them up,
 * the demo checkout accepts them, and the storefront posts them where `CHECKOUT_URL` says.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { transformSync } from "esbuild";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { FakeClock } from "../support/fake-clock.js";
import { SMALL_SHOP } from "../support/retail.js";
import { claimsOf, headOf, money, term } from "../support/promise.js";
import {
  type Answer,
  bearer,
  problemOf,
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
  withService,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { blocksOf, read as readPage, ROOT } from "../docs/support/markdown.js";

const run = promisify(execFile);

const cartShape = z.strictObject({
  items: z.array(
    z.strictObject({
      ...term,
      price: money.nullable(),
      status: z.string(),
      premium: z.boolean(),
      asOf: z.iso.datetime().nullable(),
    }),
  ),
  total: z.array(money),
  promise: z.string(),
  validUntil: z.iso.datetime(),
});
const keySet = z.strictObject({ keys: z.array(z.looseObject({ kid: z.string() })) });

interface CartItem {
  readonly domain: string;
  readonly action: string;
  readonly years?: number;
}

async function cartOf(service: Service, ...items: CartItem[]) {
  const answer = await service.ask("/v1/quotes", { method: "POST", body: { items } });
  expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
  return cartShape.parse(answer.body);
}

describe("a cart", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
  });
  afterAll(() => service.close());

  describe("looked up by staff", () => {
    const read = (id: string) => service.ask(`/v1/staff/promises/${id}`, { headers: bearer("read") });
    const usd = (amount: string) => ({ amount, currency: "USD" });

    test("shows what each promised price cost then and costs today", async () => {
      const cart = await cartOf(
        service,
        { domain: "kabul.af", action: "registration", years: 1 },
        { domain: "gold.af", action: "registration", years: 1 },
      );
      const { jti } = claimsOf(cart.promise);
      const answer = await read(jti);
      expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
      const line = { tld: ".af", years: 1, action: "registration", premium: false, marginLost: null };
      expect(answer.body).toEqual({
        id: jti,
        issuedAt: new Date(clock.now()).toISOString(),
        validUntil: cart.validUntil,
        items: [
          {
            ...line,
            domain: "kabul.af",
            price: usd("26.99"),
            wholesale: usd("20.21"),
            margin: usd("6.78"),
            wholesaleToday: usd("20.21"),
            marginToday: usd("6.78"),
          },
          {
            ...line,
            domain: "gold.af",
            price: usd("1667.50"),
            premium: true,
            wholesale: usd("1450.00"),
            margin: usd("217.50"),
            wholesaleToday: null,
            marginToday: null,
          },
        ],
        marginLost: [],
      });
      await clock.advance(900_000);
      expect(problemOf(await read(jti)).code).toBe("not_found");
    });

    test("requires the read scope", async () => {
      const { promise } = await cartOf(service, { domain: "khyber.af", action: "renewal", years: 1 });
      const path = `/v1/staff/promises/${claimsOf(promise).jti}`;
      expect(problemOf(await service.ask(path)).code).toBe("unauthenticated");
      expect(problemOf(await service.ask(path, { headers: bearer("operate") })).code).toBe("forbidden");
      for (const id of ["guess", "__proto__", "%00", "..%2fprices"])
        expect(problemOf(await read(id)).code).toBe("not_found");
    });
  });
});

test("a cart keeps the price of a promotion beyond the promotion's end", () => {
  const promotion =
    '{ id: nowruz, match: {}, percentOff: "10", from: 2026-03-01T00:00:00Z, to: 2026-03-20T00:00:01Z }';
  const retail = `${SMALL_SHOP}promotions: [${promotion}]\npromise: { validMs: 60000 }\n`;
  return withService({ retail }, async (service, clock) => {
    const item = { domain: "kabul.af", action: "registration", years: 1 };
    const before = await cartOf(service, item);
    await clock.advance(2000);
    const after = await cartOf(service, item);
    expect(claimsOf(before.promise).items[0]?.price).toEqual(before.items[0]?.price);
    expect(after.items[0]?.price).not.toEqual(before.items[0]?.price);
    expect(before.validUntil).toBe("2026-03-20T00:01:00.000Z");
  });
});

test("a key replaced in its file signs within a second, and the old key is published while its promises are valid; a malformed one is ignored", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "key.pem");
  writeFileSync(file, newPromiseKey());
  const env = { PROMISE_PRIVATE_KEY_FILE: file };
  await withService({ retail: SMALL_SHOP, env }, async (service, clock) => {
    const sign = () => cartOf(service, { domain: "khyber.af", action: "renewal", years: 1 });
    const published = async () =>
      keySet.parse((await service.ask("/.well-known/jwks.json")).body).keys.map(({ kid }) => kid);
    // Before the first cart.
    writeFileSync(file, "x");
    await clock.advance(5_000);
    expect(await published()).toHaveLength(1);
    const old = headOf((await sign()).promise).kid;
    expect(await published()).toEqual([old]);
    writeFileSync(file, newPromiseKey());
    await clock.advance(1000);
    const next = headOf((await sign()).promise).kid;
    expect(next).not.toBe(old);
    expect(await published()).toEqual([next, old]);
    await clock.advance(900_000 + 120_000);
    expect(await published()).toEqual([next]);
  });
  folder.remove();
});

test("with a live upstream but no key, nothing is promised, and the log says so", () =>
  withService(
    {
      retail: SMALL_SHOP,
      env: (sandbox) => ({ ...upstreamAt(sandbox), QUOTA_COLD_START: "assume-free" }),
    },
    async (service) => {
      const body = { items: [{ domain: "khyber.af", action: "renewal", years: 1 }] };
      expect((await service.ask("/v1/quotes", { method: "POST", body })).body).toMatchObject({
        total: [{ currency: "USD" }],
        promise: null,
        validUntil: null,
      });
      expect((await service.ask("/.well-known/jwks.json")).body).toEqual({ keys: [] });
      expect(service.log.some((line) => line.includes("promise.key.missing"))).toBe(true);
    },
  ));

test("a reseller's checkout verifies a promise with the TypeScript code of docs/api.md, and rejects what another key signed and altered ones", async () => {
  const folder = temporaryFolder();
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  const service = await startService({ clock: systemClock, retail: SMALL_SHOP });
  const foreign = await startService({
    clock: systemClock,
    at: service.sandbox,
    retail: SMALL_SHOP,
    warm: false,
  });
  try {
    const block = blocksOf(readPage("docs/api.md")).find(
      ({ language, code }) => language === "ts" && code.includes("jwks.json"),
    );
    const typed = `${block?.code.replaceAll("https://shop.example.af", service.url)}
      for (const promise of process.argv.slice(2))
        console.log(JSON.stringify(await promisedLines(promise).catch(() => "rejected")));`;
    const { code } = transformSync(typed, { loader: "ts", target: "es2022", format: "esm" });
    writeFileSync(join(folder.path, "checkout.mjs"), code);

    const item = { domain: "kabul.af", action: "registration", years: 1 };
    const [{ promise }, other] = [await cartOf(service, item), await cartOf(foreign, item)];
    const [head, body = "", signature] = promise.split(".");
    const forged = (from: string, to: string): string => {
      const text = Buffer.from(body, "base64url").toString("utf8");
      expect(text).toContain(from);
      return [head, Buffer.from(text.replace(from, to)).toString("base64url"), signature].join(".");
    };
    const { exp } = claimsOf(promise);
    const altered = [
      forged('"25.27"', '"15.27"'),
      forged(String(exp), String(exp + 1)),
      `${head}.${body}.`,
      "x",
    ];
    const { stdout } = await run(process.execPath, [
      join(folder.path, "checkout.mjs"),
      promise,
      other.promise,
      ...altered,
    ]);
    const [lines, ...others] = stdout
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lines).toMatchObject([{ domain: "kabul.af", price: { amount: "25.27", currency: "USD" } }]);
    expect(others).toEqual(["rejected", "rejected", "rejected", "rejected", "rejected"]);
  } finally {
    await foreign.close();
    await service.close();
    folder.remove();
  }
});

const viewShape = z.object({
  kind: z.string(),
  lines: z
    .array(z.object({ unicodeName: z.string(), years: z.int(), price: z.object({ amount: z.string() }) }))
    .optional(),
  validForMs: z.int().optional(),
});

const signCart = (service: Service, domain = "kabul.af") =>
  cartOf(service, { domain, action: "registration", years: 2 });

function post(service: Service, body: string, type = "application/x-www-form-urlencoded"): Promise<Answer> {
  return service.ask("/checkout", { method: "POST", body, headers: { "Content-Type": type } });
}

const postPromise = (service: Service, promise: string): Promise<Answer> =>
  post(service, new URLSearchParams({ promise }).toString());

/** The data that the service embedded in the page. */
function viewIn({ text }: Answer): z.infer<typeof viewShape> {
  const [, json = ""] = /<script id="view" type="application\/json">([^<]*)<\/script>/.exec(text) ?? [];
  return viewShape.parse(JSON.parse(json));
}

describe("the demo checkout", () => {
  const clock = new FakeClock();
  const retail = SMALL_SHOP.replace("registration: [1]", "registration: [1, 2]");
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock, retail });
  });
  afterAll(() => service.close());

  test("shows the lines of a promise and how long it is valid, without an upstream call", async () => {
    const { promise, validUntil } = await signCart(service);
    const calls = service.calls();
    const answer = await postPromise(service, promise);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
    });
    expect(viewIn(answer)).toEqual({
      kind: "good",
      lines: [
        expect.objectContaining({
          unicodeName: "kabul.af",
          years: 2,
          price: expect.objectContaining({ amount: "49.24" }),
        }),
      ],
      validForMs: Date.parse(validUntil) - clock.now(),
    });
    expect(answer.text).not.toContain(promise);
    expect(service.calls()).toBe(calls);
  });

  test("rejects a promise that was altered in any part", async () => {
    const { promise } = await signCart(service);
    const [head = "", claims = "", signature = ""] = promise.split(".");
    const cheaper = Buffer.from(claims, "base64url").toString("utf8").replace("49.24", "8.99");
    for (const wrong of [
      `${head}.${Buffer.from(cheaper).toString("base64url")}.${signature}`,
      `${head}.${claims}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`,
      `${head}.${claims}.`,
      `${Buffer.from('{"alg":"none"}').toString("base64url")}.${claims}.`,
      "aaaa.bbbb.cccc",
      "<script>alert(1)</script>",
    ]) {
      const answer = await postPromise(service, wrong);
      expect([wrong, answer.status, viewIn(answer)]).toEqual([wrong, 400, { kind: "altered" }]);
      expect(answer.text).not.toContain("alert(1)");
    }
  });

  test("rejects a promise that was signed with another key", () =>
    withService({ clock, retail }, async (other) => {
      const { promise } = await signCart(other);
      expect(viewIn(await postPromise(other, promise))).toMatchObject({ kind: "good" });
      expect(viewIn(await postPromise(service, promise))).toEqual({ kind: "altered" });
    }));

  test("rejects a promise from the moment at which it expires", async () => {
    const { promise, validUntil } = await signCart(service, "herat.af");
    await clock.advance(Date.parse(validUntil) - clock.now() - 1);
    expect(viewIn(await postPromise(service, promise))).toMatchObject({ kind: "good" });
    await clock.advance(1);
    const answer = await postPromise(service, promise);
    expect([answer.status, viewIn(answer)]).toEqual([400, { kind: "expired" }]);
  });

  test("says so when no cart was posted", async () => {
    for (const answer of [
      await service.ask("/checkout"),
      await post(service, ""),
      await post(service, "promise="),
      await post(service, "promise=a&promise=b"),
      await post(service, "other=1"),
    ])
      expect([answer.status, viewIn(answer)]).toEqual([200, { kind: "nothing" }]);
  });

  test("accepts only form fields of limited size, and no PUT", async () => {
    expect(problemOf(await post(service, '{"promise":"a"}', "application/json")).code).toBe(
      "unsupported_media_type",
    );
    expect(problemOf(await postPromise(service, "a".repeat(40_000))).code).toBe("payload_too_large");
    expect(problemOf(await service.ask("/checkout", { method: "PUT" })).code).toBe("method_not_allowed");
  });

  test("is where the storefront posts to in sandbox mode", async () => {
    const page = await service.ask("/");
    expect(searchIn(page)).toContain('checkout="/checkout"');
    expect(page.headers["content-security-policy"]).toContain("form-action 'self';");
  });
});

const searchIn = ({ text }: Answer): string | undefined => /<af-domain-search\s[^>]*>/.exec(text)?.[0];

test.each([
  [
    "only to CHECKOUT_URL if it is set",
    { CHECKOUT_URL: 'https://pay.example.af/cart?shop="1"&x=2' },
    "https://pay.example.af/cart?shop=%221%22&amp;x=2",
    "https://pay.example.af",
  ],
  ["nowhere with a live upstream and no CHECKOUT_URL", { QUOTA_COLD_START: "assume-free" }, "", "'none'"],
])("the storefront posts %s, and then there is no demo checkout", async (_where, env, checkout, allowed) => {
  const settings: ServiceOptions["env"] = (sandbox) => ({
    ...upstreamAt(sandbox),
    DEMO_STOREFRONT: "on",
    ...env,
  });
  await withService({ env: settings, warm: false }, async (service) => {
    const page = await service.ask("/");
    expect(searchIn(page)).toContain(`checkout="${checkout}"`);
    expect(page.headers["content-security-policy"]).toContain(`form-action ${allowed};`);
    for (const path of ["/checkout", "/assets/checkout/checkout.js"])
      expect((await service.ask(path)).status).toBe(404);
  });
});
