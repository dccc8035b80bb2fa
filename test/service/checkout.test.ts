/** From a signed cart to the checkout: which promises the demo checkout accepts, and where the storefront posts a cart. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { type Answer, problemOf, type Service, startService } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const quotesShape = z.object({ promise: z.string(), validUntil: z.string() });
const viewShape = z.object({
  kind: z.string(),
  lines: z
    .array(z.object({ unicodeName: z.string(), years: z.int(), price: z.object({ amount: z.string() }) }))
    .optional(),
  validForMs: z.int().optional(),
});

async function signCart(service: Service, domain = "kabul.af"): Promise<z.infer<typeof quotesShape>> {
  const items = [{ domain, action: "registration", years: 2 }];
  const { body } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
  return quotesShape.parse(body);
}

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
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
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
          price: expect.objectContaining({ amount: "48.99" }),
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
    const cheaper = Buffer.from(claims, "base64url").toString("utf8").replace("48.99", "8.99");
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

  test("rejects a promise that was signed with another key", async () => {
    const other = await startService({ clock });
    const { promise } = await signCart(other);
    expect(viewIn(await postPromise(other, promise))).toMatchObject({ kind: "good" });
    expect(viewIn(await postPromise(service, promise))).toEqual({ kind: "altered" });
    await other.close();
  });

  test("rejects a promise from the moment at which it expires", async () => {
    const { promise, validUntil } = await signCart(service, "kabul.com.af");
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
  const service = await startService({
    clock: new FakeClock(),
    env: (sandbox) => ({ ...upstreamAt(sandbox), DEMO_STOREFRONT: "on", ...env }),
    warm: false,
  });
  const page = await service.ask("/");
  expect(searchIn(page)).toContain(`checkout="${checkout}"`);
  expect(page.headers["content-security-policy"]).toContain(`form-action ${allowed};`);
  for (const path of ["/checkout", "/assets/checkout/checkout.js"])
    expect((await service.ask(path)).status).toBe(404);
  await service.close();
});
