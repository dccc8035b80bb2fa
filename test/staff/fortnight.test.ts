/** A fortnight of signed carts, side by side with what really happened to each; and what visitors notice of it. */
import { expect, test } from "@jest/globals";
import { overviewShape } from "../../src/wire/overview.js";
import { bearer } from "../support/service.js";
import { type Action, DAY_MS, HOUR_MS, listed, MINUTE_MS, say, Shop, statesOf } from "./signing-shop.js";

interface Fate {
  readonly action: Action;
  /** When the portal or somebody else acts, after the signature; Infinity: never. */
  readonly afterMs: number;
  readonly end: "managed" | "lost" | "open";
  readonly said?: "ordered" | "cancelled";
}

const FATES: readonly Fate[] = [
  { action: "registration", afterMs: 2 * HOUR_MS, end: "managed" },
  { action: "registration", afterMs: Infinity, end: "open" },
  { action: "registration", afterMs: 5 * HOUR_MS, end: "lost" },
  { action: "renewal", afterMs: DAY_MS, end: "managed", said: "ordered" },
  { action: "registration", afterMs: 3 * DAY_MS, end: "managed", said: "ordered" },
  { action: "transfer", afterMs: 6 * HOUR_MS, end: "managed" },
  { action: "registration", afterMs: Infinity, end: "open", said: "cancelled" },
  { action: "registration", afterMs: 20 * MINUTE_MS, end: "managed" },
];
const RENEWED = "khyber bamyan herat-tiles pamir-trek saffron lapis".split(" ").map((label) => `${label}.af`);

test("every line is in its right state within a day, and none is ever in a wrong one", async () => {
  const shop = await new Shop().open();
  const { control } = shop.sandbox;
  const lines: { key: string; domain: string; fate: Fate; actsAtMs: number; hasActed: boolean }[] = [];
  const act = (domain: string, { action, end }: Fate): void => {
    if (end === "lost") control.setTaken(domain, true);
    else control.order("demo", { domain, action, years: 1 });
  };
  const halfDay = async (): Promise<void> => {
    await shop.clock.leap(12 * HOUR_MS - MINUTE_MS);
    for (let times = 0; times < 4; times += 1) await shop.pass(15_000, 15_000);
    for (const line of lines) {
      if (line.hasActed || shop.clock.now() < line.actsAtMs) continue;
      line.hasActed = true;
      act(line.domain, line.fate);
    }
  };
  try {
    for (let day = 0; day < 14; day += 1) {
      for (let nth = 0; nth < 2; nth += 1) {
        const fate = FATES[lines.length % FATES.length];
        const renewed = RENEWED[Math.floor(lines.length / FATES.length)];
        if (fate === undefined || (fate.action === "renewal" && renewed === undefined)) continue;
        const domain = fate.action === "renewal" ? (renewed ?? "") : `month-${lines.length}.af`;
        if (fate.action === "transfer") control.setTaken(domain, true);
        const id = await shop.sign({ domain, action: fate.action, years: 1 });
        if (fate.said !== undefined) await say(shop.service.ask, id, { state: fate.said });
        const actsAtMs = shop.clock.now() + fate.afterMs;
        lines.push({ key: `${id} ${fate.action} ${domain}`, domain, fate, actsAtMs, hasActed: false });
      }
      if (day % 5 === 4) {
        await shop.service.close();
        await shop.start();
      }
      for (let hours = 0; hours < 24; hours += 12) await halfDay();
      const states = await statesOf(shop.service.ask);
      for (const { key, fate, actsAtMs } of lines) {
        const state = states[key];
        const isOver = shop.clock.now() >= actsAtMs + DAY_MS;
        const right = isOver
          ? [fate.end]
          : ["open", "expired", ...(shop.clock.now() >= actsAtMs ? [fate.end] : [])];
        expect({ day, key, state, right: right.includes(state ?? "") }).toEqual({
          day,
          key,
          state,
          right: true,
        });
      }
    }
    const { sums } = await listed(shop.service.ask);
    expect(sums.days30.managed.names).toBeGreaterThanOrEqual(12);
    const used = shop.sandbox.stats().credentials.find(({ accepted }) => accepted > 0);
    expect([used?.rejected429, (used?.largestWindow ?? 99) <= 57]).toEqual([0, true]);
  } finally {
    await shop.close();
  }
}, 300_000);

test("visitors wait no longer beside carts that are looked for", async () => {
  const waits = async (carts: number): Promise<{ meanMs: number; served: number }> => {
    const shop = await new Shop().open();
    try {
      const { service, clock, sandbox } = shop;
      for (let n = 0; n < carts; n += 1) {
        await shop.sign({ domain: `due-${n}.af`, action: "registration", years: 1 });
        await shop.pass(10_000, 5_000);
      }
      await clock.leap(31 * MINUTE_MS);
      const exact = async () =>
        overviewShape.parse((await service.ask("/v1/staff/overview", { headers: bearer("read") })).body).quota
          .lanes.exact;
      const before = await exact();
      const asking: Promise<unknown>[] = [];
      // Fifty visitors, each with a new name, within a minute.
      for (let n = 0; n < 50; n += 1) {
        asking.push(service.ask(`/v1/availability?domain=visitor-${n}.af`));
        await shop.pass(1_200, 400);
      }
      await Promise.all([Promise.all(asking), shop.pass(30_000, 400)]);
      const after = await exact();
      const served = after.served - before.served;
      expect(sandbox.stats().credentials[0]?.rejected429).toBe(0);
      return { meanMs: Math.round((after.waitedMsTotal - before.waitedMsTotal) / served), served };
    } finally {
      await shop.close();
    }
  };
  const [without, beside] = [await waits(0), await waits(20)];
  // Who comes at the end may be served or not.
  expect(Math.abs(beside.served - without.served)).toBeLessThanOrEqual(3);
  expect(beside.meanMs).toBeLessThanOrEqual(without.meanMs + 100);
}, 300_000);
