/** The whole service over HTTP against every preset of the sandbox: its answers are the same with every style of upstream API. */
import { beforeAll, expect, test } from "@jest/globals";
import { z } from "zod";
import { PRESET_NAMES, type PresetName } from "../src/presets.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { promiseFault } from "../../../test/support/promise.js";
import {
  bearer,
  problemOf,
  type Question,
  type Service,
  startService,
} from "../../../test/support/service.js";

const RETAIL = `
currency: USD
catalog:
  - tld: .af
    years: { registration: [1, 2], renewal: [1, 2], transfer: [1], restore: [1] }
rules:
  - match: {}
    markupPercent: "20"
    addFixed: "1.00"
    minMargin: "1.00"
    ending: "0.99"
premium: { markupPercent: "10" }
`;

const cart = {
  items: [
    { domain: "kabul.af", action: "registration", years: 1 },
    { domain: "khyber.af", action: "renewal", years: 2 },
  ],
};
const QUESTIONS: Readonly<Record<string, [path: string, question?: Question]>> = {
  available: ["/v1/availability?domain=kabul.af"],
  availableFor2: ["/v1/availability?domain=kabul.af&years=2"],
  taken: ["/v1/availability?domain=google.af"],
  premium: ["/v1/availability?domain=gold.af"],
  prices: ["/v1/prices"],
  quote: ["/v1/quotes?tld=.af&action=restore&years=1"],
  cart: ["/v1/quotes", { method: "POST", body: cart }],
  balance: ["/v1/staff/balance", { headers: bearer("read") }],
  tier: ["/v1/staff/tier", { headers: bearer("read") }],
  wholesale: ["/v1/staff/prices", { headers: bearer("read") }],
  record: ["/v1/staff/domains/lapis.af", { headers: bearer("read") }],
};

/** A promise differs each time, so it is checked against its cart before this is applied. */
const TIMED = new Set(["asOf", "source", "status", "promise", "validUntil"]);
const timeless = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body), (key, value: unknown) => (TIMED.has(key) ? undefined : value));
const listShape = z.object({ domains: z.array(z.looseObject({ domain: z.string() })) });

async function start(preset: PresetName): Promise<Service> {
  return startService({ clock: new FakeClock(Date.now()), retail: RETAIL, sandbox: { shapes: { preset } } });
}

async function facts(service: Service): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const [name, [path, question]] of Object.entries(QUESTIONS)) {
    const { status, body } = await service.ask(path, question);
    if (name === "cart") expect(promiseFault(body)).toBeUndefined();
    answers[name] = [status, timeless(body)];
  }
  const list = await service.ask("/v1/staff/domains", { headers: bearer("read") });
  answers["list"] = listShape
    .parse(list.body)
    .domains.map(({ domain }) => domain)
    .sort();
  const foreign = await service.ask("/v1/staff/domains/google.af", { headers: bearer("read") });
  answers["foreign"] = problemOf(foreign).code;
  return answers;
}

let documented: Record<string, unknown>;

beforeAll(async () => {
  const service = await start("documented");
  documented = await facts(service);
  await service.close();
  expect(documented).toMatchObject({
    available: [200, { available: true, price: { amount: "25.99", currency: "USD" } }],
    taken: [200, { available: false, price: null }],
    foreign: "not_found",
  });
});

test.each(PRESET_NAMES.filter((preset) => preset !== "documented"))(
  "with the preset %s, visitors and staff get the same answers as with the documented shapes, and a rate limit pauses the service as long as it lasts",
  async (preset) => {
    const service = await start(preset);
    try {
      expect(await facts(service)).toEqual(documented);
      expect(service.sandbox.stats().credentials[0]).toMatchObject({ rejected429: 0, refused: 0 });

      service.sandbox.control.setRateLimit({ limit: 1, windowMs: 30_000 });
      const first = problemOf(await service.ask("/v1/availability?domain=balkh.af"));
      expect(first.code).toBe("quota_exhausted");
      expect(first.retryAfter).toBeGreaterThanOrEqual(29);
      const second = problemOf(await service.ask("/v1/availability?domain=herat.af"));
      expect(second.code).toBe("quota_exhausted");
      expect(service.sandbox.stats().credentials[0]).toMatchObject({ rejected429: 1, refused: 0 });
    } finally {
      await service.close();
    }
  },
);
