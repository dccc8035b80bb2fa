/** `POST /v1/staff/prices/preview`: what a `retail.yaml` would change. */
/* oxlint-disable unicorn/no-thenable -- `now` and `then` are names in the answer; nothing awaits the rows */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { z } from "zod";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { type Answer, bearer, problemOf, type Service, startService } from "../support/service.js";
import { RETAIL, usd, WORLD } from "../shop/shop.js";

const document = openApiDocument({ version: "1.2.3" });
const PATH = "/v1/staff/prices/preview";
const YAML = "application/yaml";

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock(), world: WORLD, retail: RETAIL });
});
afterAll(() => service.close());

const post = (body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  service.ask(PATH, {
    method: "POST",
    headers: { ...bearer("operate"), "Content-Type": YAML, ...headers },
    body,
  });

const previewShape = z.object({
  faults: z.array(z.string()),
  sections: z.array(z.string()),
  prices: z.array(z.looseObject({ tld: z.string(), action: z.string(), years: z.int(), change: z.string() })),
  warnings: z.array(z.string()),
});

async function preview(text: string) {
  const answer = await post(text);
  expect(answer.status).toBe(200);
  expect(answer.headers["cache-control"]).toBe("no-store");
  matchesDocument(document, "post", PATH, answer);
  return previewShape.parse(answer.body);
}

test("a preview of the file in effect shows no change", async () => {
  const { faults, sections, prices } = await preview(RETAIL);
  expect([faults, sections]).toEqual([[], []]);
  expect(prices.map(({ change }) => change)).toEqual(["same", "same", "same", "same", "same"]);
});

test("other rules show the current and new price and margin of each term, without taking effect or making a call", async () => {
  const calls = service.calls();
  const before = await service.ask("/v1/prices");
  const { prices, sections } = await preview(RETAIL.replace('addFixed: "1.00"', 'addFixed: "2.00"'));
  expect(sections).toEqual(["rules"]);
  const terms = [
    ["registration", 1, "17.31", "26.97", "9.66", "27.97", "10.66"],
    ["registration", 2, "33.00", "50.50", "17.50", "51.50", "18.50"],
    ["renewal", 1, "20.00", "31.00", "11.00", "32.00", "12.00"],
    ["transfer", 1, "19.00", "29.50", "10.50", "30.50", "11.50"],
    ["restore", 1, "80.00", "121.00", "41.00", "122.00", "42.00"],
  ] as const;
  expect(prices).toEqual(
    terms.map(([action, years, wholesale, retailNow, marginNow, retailThen, marginThen]) => ({
      tld: ".af",
      action,
      years,
      change: "changed",
      wholesale: usd(wholesale),
      now: { retail: usd(retailNow), margin: usd(marginNow), rule: "rule 1" },
      then: { retail: usd(retailThen), margin: usd(marginThen), rule: "rule 1" },
    })),
  );
  expect((await service.ask("/v1/prices")).text).toBe(before.text);
  expect(service.calls()).toBe(calls);
});

test("added and removed terms are marked; an unknown wholesale price is a warning, not a call", async () => {
  const calls = service.calls();
  const { prices, warnings } = await preview(
    RETAIL.replace("renewal: [1], transfer: [1]", "renewal: [1, 3]"),
  );
  expect(prices.filter(({ change }) => change !== "same")).toEqual([
    expect.objectContaining({
      action: "renewal",
      years: 3,
      change: "added",
      wholesale: null,
      now: null,
      then: { retail: null, margin: null, rule: null },
    }),
    expect.objectContaining({ action: "transfer", change: "removed", then: null }),
  ]);
  expect(warnings).toContainEqual(expect.stringContaining("1 of 5 wholesale prices are unknown"));
  expect(service.calls()).toBe(calls);
});

test("the warnings are those of the new prices, and name promotions that aren't running", async () => {
  const { warnings } = await preview(
    `${RETAIL.replace('addFixed: "1.00", ', "")}promotions: [{ id: nowruz, match: {}, percentOff: "10", from: 2027-03-20T00:00:00Z, to: 2027-03-27T00:00:00Z }]\n`,
  );
  expect(warnings).toEqual([
    expect.stringMatching(/same multiple of wholesale in all 5 prices/),
    "Promotion nowruz starts at 2027-03-20T00:00:00.000Z and isn't included in these prices.",
  ]);
});

test("all faults of an invalid file are reported at once", async () => {
  const { faults, prices } = await preview(
    RETAIL.replace('markupPercent: "50"', "markupPercent: 50").replace("currency: USD", "currency: US"),
  );
  expect(faults).toEqual([
    expect.stringMatching(/^currency: /),
    expect.stringMatching(/^rules\[0\]\.markupPercent: /),
  ]);
  expect(prices).toEqual([]);
  expect((await preview("")).faults).toEqual([expect.stringContaining("must be a mapping")]);
  expect((await preview("a: [")).faults).toHaveLength(1);
});

test("a preview requires the operate scope, YAML, and a body within the size limit", async () => {
  expect(problemOf(await post(RETAIL, { Authorization: "" })).code).toBe("unauthenticated");
  expect(problemOf(await post(RETAIL, bearer("read"))).code).toBe("forbidden");
  for (const type of ["application/json", "text/plain", "text/yaml"])
    expect(problemOf(await post(RETAIL, { "Content-Type": type })).code).toBe("unsupported_media_type");
  const without = await service.ask(PATH, { method: "POST", headers: bearer("operate") });
  expect(problemOf(without).code).toBe("unsupported_media_type");
  const large = problemOf(await post(`${RETAIL}# ${"x".repeat(256 * 1024)}`));
  expect([large.code, large.detail]).toEqual(["payload_too_large", expect.stringContaining("64 kB")]);
  expect(problemOf(await service.ask(PATH)).code).toBe("method_not_allowed");
});
