/** If TRUST_PROXY_HOPS doesn't fit the requests, the log, staff and `/health` say so. */
import { expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, type Service, startService } from "../support/service.js";

const health = z.object({ checks: z.object({ proxy: z.array(z.object({ status: z.string() })) }) });
const overview = z.object({ proxy: z.string() });

async function withHops(hops: number, act: (service: Service) => Promise<void>): Promise<void> {
  const service = await startService({ clock: new FakeClock(), env: { TRUST_PROXY_HOPS: String(hops) } });
  try {
    await act(service);
  } finally {
    await service.close();
  }
}

/** Asks so many times, each time with the X-Forwarded-For of another visitor. */
async function visit(
  { ask }: Service,
  visits: number,
  forwarded: (n: number) => string | null,
): Promise<void> {
  for (let n = 0; n < visits; n += 1) {
    const value = forwarded(n);
    await ask("/problems/internal", { headers: value === null ? {} : { "X-Forwarded-For": value } });
  }
}

/** What `/health`, staff and the log say. */
async function told({ ask, log }: Service): Promise<readonly [string | undefined, string, number]> {
  const { checks } = health.parse((await ask("/health")).body);
  const { proxy } = overview.parse((await ask("/v1/staff/overview", { headers: bearer("read") })).body);
  return [checks.proxy[0]?.status, proxy, log.filter((line) => line.includes("proxy.misconfigured")).length];
}

const visitor = (n: number): string => `192.0.2.${n}`;

test("visitors behind a proxy that isn't configured: told once, with what to set", () =>
  withHops(0, async (service) => {
    await visit(service, 60, visitor);
    expect(await told(service)).toEqual(["warn", "more", 1]);
    expect(service.log.find((line) => line.includes("proxy.misconfigured"))).toContain(
      "Set TRUST_PROXY_HOPS to the number of proxies",
    );
  }));

test("one proxy more than is configured", () =>
  withHops(1, async (service) => {
    await visit(service, 60, (n) => `${visitor(n)}, 198.51.100.1`);
    expect(await told(service)).toEqual(["warn", "more", 1]);
  }));

test.each([
  ["one hop and no proxy", 1, () => null],
  [
    "one hop and no proxy, with a flood of invented addresses",
    1,
    (n: number) => (n % 4 > 0 ? visitor(n) : null),
  ],
  ["two hops and one proxy", 2, visitor],
  ["a proxy that hides the addresses", 1, () => "unknown"],
] as const)("%s", (_what, hops, forwarded) =>
  withHops(hops, async (service) => {
    await visit(service, 60, forwarded);
    expect(await told(service)).toEqual(["warn", "fewer", 1]);
  }),
);

test("passes again once the requests are as expected", () =>
  withHops(1, async (service) => {
    await visit(service, 60, () => null);
    await visit(service, 60, visitor);
    expect(await told(service)).toEqual(["pass", "fits", 1]);
  }));

test.each([
  ["no proxy", 0, (n: number) => (n % 2 > 0 ? visitor(n) : null)],
  ["one proxy", 1, visitor],
] as const)(
  "says nothing with %s that is configured, whatever some clients send themselves",
  (_what, hops, forwarded) =>
    withHops(hops, async (service) => {
      await visit(service, 60, forwarded);
      for (let n = 0; n < 30; n += 1) await service.ask("/metrics", { headers: bearer("metrics") });
      expect(await told(service)).toEqual(["pass", "fits", 0]);
    }),
);
