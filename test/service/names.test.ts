/** Which names the service understands, as people type and paste them, which ones it refuses, and the reason that it gives to programs. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { problemOf, type Service, startService } from "../support/service.js";

const clock = new FakeClock();
let service: Service;
beforeAll(async () => {
  service = await startService({ clock });
});
afterAll(() => service.close());

/** Like a browser, also the apostrophe. */
const encoded = (text: string): string => encodeURIComponent(text).replaceAll("'", "%27");
const availabilityPath = (domain: string, years = "1"): string =>
  `/v1/availability?domain=${encoded(domain)}&years=${years}`;

/** The reason of the only error, without an upstream call. */
async function reasonFor(path: string, at = service): Promise<string | undefined> {
  const before = at.calls();
  const { errors = [] } = problemOf(await at.ask(path));
  expect(errors).toHaveLength(1);
  expect(at.calls()).toBe(before);
  return errors[0]?.reason;
}

describe("a name copied from elsewhere", () => {
  const named = z.looseObject({ domain: z.string() });
  test.each([
    ["کابل۔af", "کابل.af"],
    ["کابل٫af", "کابل.af"],
    ["kabul。af", "kabul.af"],
    ["kabul．af．", "kabul.af"],
    ["kabul۔com۔af", "kabul.com.af"],
    ["kabul․af", "kabul.af"],
    ["www۔kabul۔af۔", "kabul.af"],
    ["kabul. af", "kabul.af"],
    ["kabul .af", "kabul.af"],
    ["“kabul.af”", "kabul.af"],
    ["«kabul.af»،", "kabul.af"],
    ["(kabul.af).", "kabul.af"],
    ["<https://kabul.af/>", "kabul.af"],
    ["'kabul.af',", "kabul.af"],
    ["`kabul.af`", "kabul.af"],
    ["**kabul.af**", "kabul.af"],
    ["_kabul.af_", "kabul.af"],
    ["kabul.af!", "kabul.af"],
    ["kabul.af؟", "kabul.af"],
    ["kabul.af…", "kabul.af"],
    ["• kabul.af", "kabul.af"],
    ["– kabul.af", "kabul.af"],
    ["👉 kabul.af 😀", "kabul.af"],
    ["\u200B\uFEFFkabul.af\u200C", "kabul.af"],
    ["\u2068kabul.af\u2069", "kabul.af"],
    ["view-source:https://www.kabul.af/x", "kabul.af"],
    ["https:kabul.af", "kabul.af"],
    ["https:/kabul.af", "kabul.af"],
    ["https:\\\\kabul.af", "kabul.af"],
    ["http:// kabul.af", "kabul.af"],
  ])("such as %j is %s", async (text, expected) => {
    const answer = await service.ask(availabilityPath(text));
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    const wanted = await service.ask(availabilityPath(expected));
    expect(named.parse(answer.body).domain).toBe(named.parse(wanted.body).domain);
    const search = await service.ask(`/v1/search?q=${encoded(text)}&tlds=.af,.com.af`);
    expect(search.body).toMatchObject({ results: [{ domain: named.parse(wanted.body).domain }, {}] });
  });
});

describe("a name of a script that isn't sold, or of several,", () => {
  test.each([
    ["pаypal.af", "a Cyrillic letter among Latin ones"],
    ["раураӏ.af", "Cyrillic"],
    ["ελλάδα.af", "Greek"],
    ["kαbul.af", "a Greek letter among Latin ones"],
    ["中国.af", "Han"],
    ["abc中国.af", "Han and Latin"],
    ["भारत.af", "Devanagari"],
    ["kabulא.af", "Hebrew and Latin"],
    ["ｐаypal.af", "full-width Latin and Cyrillic"],
    ["xn--pypal-4ve.af", "an A-label of Latin and Cyrillic"],
    ["kabul۱.af", "a Persian digit among Latin letters"],
    ["12۱.af", "digits of two writings"],
    ["کابل۱2.af", "digits of two writings after Arabic letters"],
    ["կաբուլ.af", "Armenian"],
  ])("%s, is refused without a call: %s", async (name) => {
    expect(await reasonFor(availabilityPath(name))).toBe("script");
    expect(await reasonFor(`/v1/search?q=${encodeURIComponent(name)}`)).toBe("script");
    const label = name.replace(/\.af$/, "");
    expect(await reasonFor(`/v1/search?q=${encodeURIComponent(label)}`)).toBe("script");
    const body = { items: [{ domain: name, action: "registration", years: 1 }] };
    const cart = problemOf(await service.ask("/v1/quotes", { method: "POST", body }));
    expect(cart.errors).toMatchObject([{ field: "items[0].domain", reason: "script" }]);
  });

  test.each(["münchen.af", "kabul-2026.af", "2026.af", "کابل۲.af", "کابل-1.af", "ښار.af", "café.af"])(
    "unlike %s, is refused",
    async (name) => {
      expect((await service.ask(availabilityPath(name))).status).toBe(200);
    },
  );
});

test.each(["کابل\u200E.af", "کابل.\u200Faf", "کابل\u202C.\u2066af", "#کابل.af"])(
  "%j is understood: what editors and chats add isn't part of the name",
  async (text) => {
    const { body } = await service.ask(availabilityPath(text));
    expect(body).toMatchObject({ unicodeName: "کابل.af" });
  },
);

test("a registry can take Latin names alone, so another name is refused there and left out of searches", async () => {
  const retail = `
currency: USD
catalog:
  - { tld: .af, years: { registration: [1] } }
  - { tld: .com.af, scripts: [latin], years: { registration: [1] } }
rules: [{ match: {}, markupPercent: "25" }]
`;
  const latin = await startService({ clock, retail });
  try {
    expect(await reasonFor(availabilityPath("کابل.com.af"), latin)).toBe("script");
    const { body } = await latin.ask(`/v1/search?q=${encodeURIComponent("کابل")}`);
    expect(body).toMatchObject({ results: [{ unicodeName: "کابل.af" }] });
    expect((await latin.ask(availabilityPath("bücher.com.af"))).status).toBe(200);
  } finally {
    await latin.close();
  }
});

test.each([
  ["/v1/availability", "required"],
  ["/v1/availability?domain=", "required"],
  ["/v1/availability?domain=kabul.af&domain=x.af", "duplicate"],
  ["/v1/availability?domain=kabul.af&color=red", "unknown"],
  ["/v1/availability?domain=kabul.af&years=x", "malformed"],
  ["/v1/availability?domain=kabul.af&years=9", "not_sold"],
  ["/v1/availability?domain=kabul.af&only=some", "malformed"],
  ["/v1/availability?domain=kabul.uk", "not_sold"],
  ["/v1/availability?domain=shop.kabul.af", "not_a_name"],
  ["/v1/availability?domain=kabul", "not_a_name"],
  ["/v1/availability?domain=a@kabul.af", "not_a_name"],
  ["/v1/availability?domain=ka--bul.af", "not_a_name"],
  ["/v1/availability?domain=-kabul.af", "not_a_name"],
  ["/v1/availability?domain=ka..bul.af", "not_a_name"],
  ["/v1/availability?domain=com.af", "not_a_name"],
  ["/v1/availability?domain=ka_bul.af", "character"],
  ["/v1/availability?domain=ka%20bul.af", "character"],
  [`/v1/availability?domain=${encodeURIComponent("😀.af")}`, "character"],
  [`/v1/availability?domain=${encodeURIComponent("ka\u200Ebul.af")}`, "character"],
  [`/v1/availability?domain=${encodeURIComponent("123کابل.af")}`, "script"],
  [`/v1/availability?domain=${encodeURIComponent("کار\u200Cها.af")}`, "script"],
  [`/v1/availability?domain=${"k".repeat(64)}.af`, "too_long"],
  ["/v1/search?q=kabul&tlds=.uk", "not_sold"],
  ["/v1/search?q=kabul&years=9", "not_sold"],
  ["/v1/prices?action=sale", "not_sold"],
  ["/v1/quotes?tld=.af&action=renewal&years=99", "not_sold"],
  ["/v1/quotes?action=renewal", "required"],
])("the error of %s has the reason %s", async (path, reason) => {
  expect(await reasonFor(path)).toBe(reason);
});

test("the faults of a cart have reasons, each at its field", async () => {
  const reasons = async (body: unknown) => {
    const { errors = [] } = problemOf(await service.ask("/v1/quotes", { method: "POST", body }));
    return Object.fromEntries(errors.map(({ field, reason }) => [field, reason]));
  };
  const item = { domain: "kabul.af", action: "registration", years: 1 };
  expect(await reasons({ items: [] })).toEqual({ items: "too_short" });
  expect(await reasons({ items: Array.from({ length: 21 }, () => item) })).toEqual({ items: "too_many" });
  expect(await reasons({})).toEqual({ items: "required" });
  expect(await reasons({ items: [item], more: 1 })).toEqual({ body: "unknown" });
  expect(await reasons({ items: [item, { ...item, years: 9 }] })).toEqual({
    "items[1].domain": "duplicate",
  });
  expect(
    await reasons({
      items: [
        { ...item, domain: "" },
        { ...item, domain: 7 },
        { ...item, action: "sale" },
        { ...item, years: 0 },
        { ...item, years: "1" },
      ],
    }),
  ).toEqual({
    "items[0].domain": "required",
    "items[1].domain": "malformed",
    "items[2].action": "not_sold",
    "items[3].years": "out_of_range",
    "items[4].years": "malformed",
  });
});
