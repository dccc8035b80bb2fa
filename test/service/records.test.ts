/** What staff, customers and visitors see of records that upstreams really send: unreadable ones, odd dates, lists that are too short. */
import { describe, expect, test } from "@jest/globals";
import { SignJWT } from "jose";
import { z } from "zod";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import {
  bearer,
  inTime,
  problemOf,
  type Service,
  type ServiceOptions,
  startService,
  until,
} from "../support/service.js";

const SECRET = "a-secret-that-the-login-shares-with-us";
const env = {
  CUSTOMER_JWT_SECRET: SECRET,
  CUSTOMER_JWT_ISSUER: "https://login.example.af",
  CUSTOMER_JWT_AUDIENCE: "storefront",
};
/** Few prices, so that they are known at once. */
const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1] } }]
rules: [{ match: {}, markupPercent: "25" }]
`;
const DOMAIN = "GET /api/v1/domains/{domain}";
const document = openApiDocument({ version: "1" });

interface Readers {
  readonly service: Service;
  readonly clock: FakeClock;
  /** As a customer who owns these names. */
  mine(path: string, ...names: readonly string[]): Promise<unknown>;
  staff(path: string): Promise<unknown>;
}

/** Starts a service whose upstream answers with this list, and this record of any domain. */
async function withUpstream(
  given: { readonly domains?: unknown; readonly domain?: unknown; readonly balance?: unknown },
  check: (readers: Readers) => Promise<void>,
  options: Omit<Partial<ServiceOptions>, "env"> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const clock = new FakeClock();
  const service = await startService({
    clock,
    retail,
    ...options,
    env: { ...env, ...(typeof options.env === "object" && options.env) },
    warm: false,
  });
  const { control } = service.sandbox;
  if (given.domains !== undefined)
    control.setFault("domains", { fault: "patched", patch: { domains: given.domains } });
  if (given.domain !== undefined) control.setFault("domain", { fault: "patched", patch: given.domain });
  if (given.balance !== undefined) control.setFault("balance", { fault: "patched", patch: given.balance });
  try {
    await until(() => service.log.some((line) => line.includes("prices.refreshed")), "the price list");
    // The list of the start may be that of before the fault.
    await service.ask("/v1/staff/cache/purge", {
      method: "POST",
      headers: bearer("operate"),
      body: { what: "account" },
    });
    const asked = async (path: string, headers: Readonly<Record<string, string>>): Promise<unknown> => {
      const answer = await inTime(clock, service.ask(path, { headers }));
      matchesDocument(document, "GET", path, answer);
      return answer.body;
    };
    await check({
      service,
      clock,
      async mine(path, ...domains) {
        const now = Math.floor(clock.now() / 1000);
        const claims = {
          iss: env.CUSTOMER_JWT_ISSUER,
          aud: env.CUSTOMER_JWT_AUDIENCE,
          exp: now + 600,
          domains,
        };
        const token = await new SignJWT(claims)
          .setProtectedHeader({ alg: "HS256" })
          .sign(new TextEncoder().encode(SECRET));
        return asked(path, { Authorization: `Bearer ${token}` });
      },
      staff: (path) => asked(path, bearer("read")),
    });
  } finally {
    await service.close();
  }
}

const good = (name: string) => ({
  domain: name,
  status: "active",
  expires_at: "2027-05-04T00:00:00Z",
  registered_at: "2020-05-04T00:00:00Z",
  auto_renew: true,
  nameservers: [],
});
const statusOf = async ({ service }: Readers, name: string): Promise<unknown> =>
  (await service.ask(`/v1/availability?domain=${encodeURIComponent(name)}`)).body;

describe("a record that can't be read", () => {
  /** Each with the name that staff see beside the reason. */
  const BAD: readonly (readonly [string, unknown, string | null])[] = [
    ["null", null, null],
    ["an empty object", {}, null],
    ["a record whose name is empty", good(""), null],
    ["a record whose name is a number", { ...good("x.af"), domain: 7 }, null],
    ["a record with an underscore in its name", good("my_shop.af"), null],
    ["a list", ["x.af"], null],
    ["two names", { ...good("odd-one.af"), fqdn: "odd-three.af" }, "odd-one.af"],
    ["a name in a list", { ...good("x.af"), domain: ["odd-four.af"] }, "odd-four.af"],
    ["two spellings of a field", { ...good("odd-one.af"), expiresAt: "2029-01-01" }, "odd-one.af"],
    ["two spellings of the name", { ...good("odd-one.af"), Domain: "odd-two.af" }, "odd-one.af"],
    [
      "a wrapped record with two expiries",
      { domain: { ...good("odd-one.af"), "expires-at": 1 } },
      "odd-one.af",
    ],
  ];

  test("is left out and counted, while the others stand, and its name counts as owned", async () => {
    const given = [good("first.af"), ...BAD.map(([, item]) => item), good("last.af")];
    await withUpstream({ domains: given }, async (readers) => {
      const list = await readers.staff("/v1/staff/domains");
      expect(list).toMatchObject({
        domains: [{ domain: "first.af" }, { domain: "last.af" }],
        unreadable: BAD.map(([, , domain]) => ({ domain, why: expect.any(String) })),
      });
      const csv = await readers.service.ask("/v1/staff/domains", {
        headers: { ...bearer("read"), Accept: "text/csv" },
      });
      expect([csv.status, csv.text.trim().split("\r\n").length]).toEqual([200, 3]);
      for (const name of ["first.af", "last.af", "odd-one.af", "odd-two.af"])
        expect(await statusOf(readers, name)).toMatchObject({ status: "taken" });
      expect(await readers.mine("/v1/me/domains", "last.af", "first.af")).toMatchObject({
        domains: [{ domain: "last.af" }, { domain: "first.af" }],
      });
    });
  });

  test("of a customer is asked for by its name", async () => {
    const given = [{ ...good("khyber.af"), expiresAt: "2029-01-01" }, good("other.af")];
    await withUpstream({ domains: given }, async ({ mine }) => {
      const khyber = { domain: "khyber.af", status: "active" };
      expect(await mine("/v1/me/domains", "khyber.af")).toMatchObject({ domains: [khyber] });
      expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject(khyber);
    });
  });

  test("is an answer that isn't understood if it is all that the list has", async () => {
    await withUpstream({ domains: [{ ...good("x.af"), domain: null }] }, async ({ staff }) => {
      expect(await staff("/v1/staff/domains")).toMatchObject({ code: "upstream_contract" });
    });
  });
});

test("an expiry that a domain can't have is unknown and reported", async () => {
  const { expires_at: _no, ...record } = good("");
  /** What is written, and the expiry that staff see. test/upstream/contract has the ways to write a date. */
  const Y2027 = "2027-05-04T00:00:00.000Z";
  const WRITTEN: readonly (readonly [Readonly<Record<string, unknown>>, string | null])[] = [
    // A year of the Afghan calendar.
    [{ expires_at: "1406-02-14" }, null],
    [{ expires_at: "0000-00-00 00:00:00" }, null],
    [{ expires_at: "0000-00-00", expiry_date: "2027-05-04" }, Y2027],
    [{ expires_at: "1970-01-01T00:00:00Z" }, null],
    [{ expires_at: "9999-12-31" }, null],
    [{ expires_at: 20270504 }, null],
    [{ expires_at: 1809388800000000 }, null],
    [{ expires_at: "never", expiry: "2027-05-04" }, Y2027],
    [{ expires_at: "2029-01-01", expiry_date: "2027-05-04" }, Y2027],
    // The others are good, and not reported.
    [{ expires_at: { date: "2027-05-04 00:00:00.000000", timezone: "UTC" } }, Y2027],
    [{ expires_at: 1809388800000 }, Y2027],
    [{ expires_at: "", expires_on: "2027-05-04" }, Y2027],
    [{ expires_at: "2027-05-04T10:00:00Z", expiry_date: "2027-05-04" }, Y2027],
  ];
  for (const [rows, reported] of [
    [WRITTEN.slice(0, 9), 2],
    [WRITTEN.slice(9), 0],
  ] as const) {
    const domains = rows.map(([dates], at) => ({ ...record, domain: `dated-${at}.af`, ...dates }));
    await withUpstream({ domains }, async ({ staff }) => {
      const list = z
        .object({ domains: z.array(z.object({ expiresAt: z.string().nullable() })) })
        .parse(await staff("/v1/staff/domains"));
      expect(list.domains.map(({ expiresAt }, at) => [rows[at]?.[0], expiresAt])).toEqual(rows);
      const { unexpected } = z
        .object({ unexpected: z.array(z.object({ what: z.string() })) })
        .parse(await staff("/v1/staff/overview"));
      expect(unexpected.filter(({ what }) => what.startsWith("expires_at"))).toHaveLength(reported);
    });
  }
});

describe("a list with fewer domains than the account has", () => {
  const some = Array.from({ length: 50 }, (_, at) => good(`listed-${at}.af`));

  test("is truncated for staff, and what it lacks is asked for", async () => {
    await withUpstream(
      { domains: some, balance: { active_domains: 137 } },
      async ({ staff, mine, service }) => {
        expect(await staff("/v1/staff/domains")).toMatchObject({ truncated: true });
        const khyber = { domain: "khyber.af", status: "active" };
        expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject(khyber);
        expect(await mine("/v1/me/domains", "listed-7.af", "khyber.af")).toMatchObject({
          domains: [{ domain: "listed-7.af" }, khyber],
        });
        expect(service.calls(DOMAIN)).toBe(1);
      },
    );
  });

  test("unlike one with as many, which is whole", async () => {
    await withUpstream(
      { domains: some, balance: { active_domains: 50 } },
      async ({ staff, mine, service }) => {
        expect(await staff("/v1/staff/domains")).not.toHaveProperty("truncated");
        expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject({ code: "not_found" });
        expect(service.calls(DOMAIN)).toBe(0);
      },
    );
  });
});

describe("a customer with 120 domains", () => {
  const NAMES = Array.from({ length: 120 }, (_, n) => `client-${String(n + 1).padStart(3, "0")}.af`);
  const listed = z.object({
    domains: z.array(
      z.looseObject({ domain: z.string(), status: z.string(), retryAfter: z.number().optional() }),
    ),
  });

  test("sees what is known at once, and more with each repetition, while the quota is nearly used up", async () => {
    const options = { reseller: "big", env: { UPSTREAM_RATE_LIMIT: "60", UPSTREAM_RATE_HEADROOM: "3" } };
    await withUpstream(
      {},
      async ({ mine, clock, service }) => {
        const known: number[] = [];
        // One of those that aren't listed isn't understood at first.
        service.sandbox.control.setFault("domain", { fault: "data-number", calls: 1 });
        for (let tries = 0; tries < 20; tries += 1) {
          const { domains } = listed.parse(await mine("/v1/me/domains", ...NAMES));
          expect(domains.map(({ domain }) => domain)).toEqual(NAMES);
          const unknown = domains.filter(({ status }) => status === "unknown");
          known.push(120 - unknown.length);
          for (const one of unknown) expect(Object.keys(one)).toEqual(["domain", "status", "retryAfter"]);
          if (unknown.length === 0) break;
          const soonest = Math.min(...unknown.map(({ retryAfter = 0 }) => retryAfter));
          expect(soonest).toBeGreaterThan(0);
          await clock.advance(soonest * 1000);
        }
        expect(known[0]).toBeGreaterThanOrEqual(100);
        expect(known).toEqual(known.toSorted((a, b) => a - b));
        expect(known.at(-1)).toBe(120);
        expect(service.calls(DOMAIN)).toBe(21);
      },
      options,
    );
  });
});

test("the status of a check that isn't about the name says nothing about it, is reported, and is asked again after seconds", async () => {
  await withUpstream({}, async (readers) => {
    const { service, clock } = readers;
    const words = ["rate_limited", "maintenance"];
    for (const [at, word] of [...words, "42"].entries()) {
      const patch = { available: false, status: word, pricing: null };
      service.sandbox.control.setFault("check", { fault: "patched", patch });
      const path = `/v1/availability?domain=word-${at}.af`;
      expect(problemOf(await service.ask(path)).code).toBe("upstream_contract");
      const search = await service.ask(`/v1/search?q=word-${at}&tlds=.af`);
      expect(search.body).toMatchObject({ results: [{ status: "unknown" }], complete: false });
      service.sandbox.control.clearFaults();
      await clock.advance(10_000);
      expect((await service.ask(path)).status).toBe(200);
    }
    const overview = JSON.stringify(await readers.staff("/v1/staff/overview"));
    for (const word of words) expect(overview).toContain(`data.status \\"${word}\\"`);
  });
});
