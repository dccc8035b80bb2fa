/**
 * The release test. All private data has unmistakable values. Every public answer, header, log line, metric and page is searched for them,
 * also while the upstream fails.
 */
import { expect, test } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { plainShapes } from "../support/plain-shapes.js";
import { legible, revealed } from "../support/revealed.js";
import {
  bearer,
  type Question,
  type Service,
  startService,
  STATUS_OF,
  withService,
} from "../support/service.js";

/** The service uses the credential of one that pays in another currency and has a discount, or of one whose access is closed. */
const RESELLERS = ["quetzal", "markhor", "closed"] as const;
type Reseller = (typeof RESELLERS)[number];

const tier = (reseller: Reseller): string => `Tier-of-${reseller}`;
const key = (reseller: Reseller): string => `LEAKED-KEY-of-${reseller}`;
const secret = (reseller: Reseller): string => `LEAKED-SECRET-of-${reseller}-0123456789`;
const account = (reseller: Reseller): string => `LEAKED-ACCOUNT-${reseller}`;
const balance: Record<Reseller, string> = {
  quetzal: "918273.46",
  markhor: "736455.64",
  closed: "645546.73",
};
const credit: Record<Reseller, string> = {
  quetzal: "554433.21",
  markhor: "332211.23",
  closed: "221100.34",
};
/** What a year of .af costs each reseller: the list price, 731.37 USD or 843.91 EUR, less the tier's discount. */
const yearlyCost: Record<Reseller, string> = {
  quetzal: "731.37",
  markhor: "742.64",
  closed: "731.37",
};
const UPSTREAM_TEXT = "LEAKED-TEXT-OF-THE-UPSTREAM";

const world = `
nameservers: [ns1.example.af]
tiers:
  - { name: ${tier("quetzal")}, fromDomains: 0, discountPercent: 0 }
  - { name: ${tier("markhor")}, fromDomains: 20, discountPercent: 12 }
  - { name: ${tier("closed")}, fromDomains: 30, discountPercent: 0 }
priceLists:
  USD:
    .af: { registration: ["731.37", "1462.79"], renewal: ["733.33"], transfer: ["739.19"], restore: ["787.87"] }
    .com.af: { registration: ["751.57"], renewal: ["757.51"], transfer: ["761.67"], restore: ["797.91"] }
  EUR:
    .af: { registration: ["843.91", "1688.03"], renewal: ["853.31"], transfer: ["857.59"], restore: ["877.73"] }
    .com.af: { registration: ["859.61"], renewal: ["863.29"], transfer: ["869.83"], restore: ["883.37"] }
names:
  takenPercent: 30
  taken: [taken-always.af]
  available: [free-always.af]
  premium: { dear.af: { USD: "4747.47", EUR: "5858.58" } }
resellers:
${RESELLERS.map(
  (one) => `
  - id: ${one}
    accountNumber: ${account(one)}
    currency: ${one === "markhor" ? "EUR" : "USD"}
    tier: ${tier(one)}
    balance: "${balance[one]}"
    creditLimit: "${credit[one]}"
    apiAccess: ${one !== "closed"}
    credentials: [{ key: ${key(one)}, secret: ${secret(one)} }]
    domains: [{ name: owned-by-${one}.af, registered: 2020-02-02 }]
`,
).join("")}
`;

const retail = `
currency: USD
rates: { USD: "1", EUR: "1.0871" }
catalog:
  - { tld: .af, years: { registration: [1, 2], renewal: [1], transfer: [1], restore: [1] } }
  - { tld: .com.af, years: { registration: [1], renewal: [1], transfer: [1], restore: [1] } }
rules: [{ match: {}, markupPercent: "23", addFixed: "1.50", minMargin: "2.00", ending: "0.99" }]
premium: { markupPercent: "17" }
`;

const CREDENTIALS = RESELLERS.flatMap((one) => [key(one), secret(one)]);
const WHOLESALE = [...world.matchAll(/\d+\.\d\d(?=")/g)].map(([amount]) => amount);
const PRIVATE = [
  ...CREDENTIALS,
  ...RESELLERS.flatMap((one) => [
    tier(one),
    account(one),
    balance[one],
    credit[one],
    yearlyCost[one],
    `owned-by-${one}`,
  ]),
  ...WHOLESALE,
  UPSTREAM_TEXT,
  "X-Service",
  "/api/v1",
];

type Request = readonly [path: string, question?: Question];

const cart = (...domains: string[]) => ({
  items: domains.map((domain) => ({ domain, action: "registration", years: 1 })),
});
const post = (body: unknown, headers = {}): Question => ({ method: "POST", body, headers });

/** The requests whose answers depend on the upstream. `name` is a label that hasn't been requested before. */
const visitorRequests = (name: string): readonly Request[] => [
  [`/v1/availability?domain=${name}.af`],
  [`/v1/availability?domain=${name}.af&years=2`],
  ["/v1/availability?domain=free-always.af"],
  ["/v1/availability?domain=taken-always.af"],
  ["/v1/availability?domain=dear.af"],
  [`/v1/search?q=${name}-search`],
  ["/v1/search?q=dear"],
  ["/v1/prices"],
  ["/v1/quotes?tld=.af&action=registration"],
  ["/v1/quotes?tld=.com.af&action=restore"],
  ["/v1/quotes", post(cart(`${name}-cart.af`, "dear.af", "taken-always.af"))],
  ...["renewal", "transfer", "restore"].map((action): Request => [
    "/v1/quotes",
    post({ items: [{ domain: "free-always.af", action, years: 1 }] }),
  ]),
  ["/readyz"],
  ["/health"],
];

/** All other public requests, valid and malformed. */
const otherRequests = (port: number): readonly Request[] => [
  ["/v1/availability?domain=free-always.com"],
  ["/v1/availability?domain="],
  ["/v1/availability?domain=free-always.af&years=77"],
  ["/v1/availability?domain=free-always.af", { method: "HEAD" }],
  ["/v1/search?q=..&nonsense=1"],
  ["/v1/prices?tld=.af&action=registration&years=1"],
  ["/v1/prices?tld=.xx"],
  ["/v1/quotes?tld=.af"],
  ["/v1/quotes", post({ items: [] })],
  ["/v1/quotes", post("{")],
  ["/v1/quotes", post("x", { "Content-Type": "text/plain" })],
  ["/v1/quotes", post("x".repeat(40_000))],
  ["/v1/prices", { headers: { Accept: "image/png" } }],
  ["/v1/prices", { method: "DELETE" }],
  ["/v1/prices", { headers: { Origin: `http://127.0.0.1:${port}` } }],
  ["/v1/availability", { method: "OPTIONS" }],
  ["/v1/nothing"],
  ["/%"],
  ...[
    "domains",
    "domains/owned-by-quetzal.af",
    "balance",
    "tier",
    "prices",
    "promises/x",
    "overview",
  ].flatMap((path): Request[] => [
    [`/v1/staff/${path}`],
    [`/v1/staff/${path}`, { headers: { Authorization: "Bearer guess" } }],
    [`/v1/staff/${path}`, { headers: bearer("metrics") }],
  ]),
  ["/v1/staff/cache/purge", post({ what: "all" }, bearer("read"))],
  ["/metrics"],
  ["/livez"],
  ["/.well-known/jwks.json"],
  ["/openapi.json"],
  ["/docs"],
  ["/docs/assets/init.js"],
  ["/docs/assets/swagger-ui.css"],
  ...Object.keys(STATUS_OF).map((code): Request => [`/problems/${code}`]),
  ["/problems/nothing"],
];

/** Sends the requests and returns what is revealed by an answer, the metrics or the log. */
async function crawl(
  service: Service,
  name: string,
  more: readonly Request[] = [],
): Promise<{ statuses: Set<number>; leaks: string[] }> {
  const statuses = new Set<number>();
  const leaks: string[] = [];
  for (const [path, question] of [...visitorRequests(name), ...more]) {
    const answer = await service.ask(path, question);
    statuses.add(answer.status);
    const echoed = path.includes("owned-by") ? ["owned-by-quetzal"] : [];
    const leaked = revealed(legible(answer), PRIVATE).filter((value) => !echoed.includes(value));
    if (leaked.length > 0) leaks.push(`${path}: ${leaked.join(", ")}`);
    if (/(?:\n|\\n)\s+at |node_modules/.test(answer.text) && !path.startsWith("/docs/assets"))
      leaks.push(`${path}: a stack trace`);
  }
  const metrics = await service.ask("/metrics", { headers: bearer("metrics") });
  const searched = [name, "free-always", "taken-always", "dear.af"];
  const inMetrics = revealed(legible(metrics), [...PRIVATE, ...searched]);
  if (inMetrics.length > 0) leaks.push(`/metrics: ${inMetrics.join(", ")}`);
  const inLog = service.log.flatMap((line) => revealed(line, [...PRIVATE, ...searched]));
  if (inLog.length > 0) leaks.push(`log: ${[...new Set(inLog)].join(", ")}`);
  return { statuses, leaks };
}

test.each(["markhor", "closed"] as const)(
  "the private data of the reseller %s is never public, whatever happens",
  async (reseller) => {
    const clock = new FakeClock();
    let failure: { readonly status: number } | null = null;
    const poisoned = {
      success: false,
      error: { code: UPSTREAM_TEXT, message: `${UPSTREAM_TEXT} ${secret(reseller)} ${yearlyCost[reseller]}` },
      data: { domain: UPSTREAM_TEXT, balance: balance[reseller], tier: tier(reseller) },
    };
    const headers = {
      "X-Internal": UPSTREAM_TEXT,
      "Set-Cookie": `s=${secret(reseller)}`,
      "Retry-After": "30",
    };
    const check: typeof plainShapes.check = (result) =>
      failure === null ? plainShapes.check(result) : { ...failure, headers, body: poisoned };
    const service = await startService({
      clock,
      world,
      retail,
      reseller,
      warm: reseller !== "closed",
      sandbox: { shapes: { ...plainShapes, check } },
    });
    try {
      const first = await crawl(service, "zanzibar-fair", otherRequests(service.port));
      expect(first.leaks).toEqual([]);
      const common = [400, 401, 403, 404, 405, 406, 413, 415];
      expect([...first.statuses]).toEqual(
        expect.arrayContaining(reseller === "closed" ? common : [200, 204, ...common]),
      );
      if (reseller !== "closed")
        for (const status of [500, 200, 429, 403]) {
          failure = { status };
          const seen = await crawl(service, `zanzibar-${status}`);
          expect([status, seen.leaks]).toEqual([status, []]);
          expect([...seen.statuses].some((answered) => answered >= 500)).toBe(true);
          // Longer than failures, refused credentials and pauses are remembered.
          await clock.advance(100_000);
        }
      failure = null;
      await service.sandbox.close();
      expect((await crawl(service, "zanzibar-unreachable")).leaks).toEqual([]);
      service.stop();
      const stopping = await crawl(service, "zanzibar-stopping");
      expect([stopping.leaks, stopping.statuses.has(503)]).toEqual([[], true]);
    } finally {
      await service.close();
    }
  },
);

test("staff see wholesale prices, balance and tier only in the fields meant for them, and never credentials", () =>
  withService({ world, retail }, async (service) => {
    const read = async (path: string) => {
      const answer = await service.ask(`/v1/staff/${path}`, { headers: bearer("read") });
      expect([path, answer.status]).toEqual([path, 200]);
      expect(revealed(legible(answer), [...CREDENTIALS, "X-Service", "/api/v1"])).toEqual([]);
      return answer;
    };
    const own = (values: string[]) => values.filter((value) => !/^(?:owned-by-quetzal)$/.test(value));
    expect(own(revealed(legible(await read("domains")), PRIVATE))).toEqual([]);
    expect(own(revealed(legible(await read("domains/owned-by-quetzal.af")), PRIVATE))).toEqual([]);
    expect(revealed(legible(await read("overview")), PRIVATE)).toEqual([]);
    expect(new Set(revealed(legible(await read("balance")), PRIVATE))).toEqual(
      new Set([account("quetzal"), balance.quetzal, credit.quetzal]),
    );
    expect(new Set(revealed(legible(await read("tier")), PRIVATE))).toEqual(
      new Set([tier("quetzal"), tier("markhor")]),
    );
    const { prices, ...rest } = z
      .looseObject({ prices: z.array(z.looseObject({ wholesale: z.unknown(), margin: z.unknown() })) })
      .parse((await read("prices")).body);
    expect(revealed(JSON.stringify(rest), PRIVATE)).toEqual([]);
    for (const { wholesale, margin: _margin, ...others } of prices) {
      expect(revealed(JSON.stringify(wholesale), WHOLESALE)).toHaveLength(1);
      expect(revealed(JSON.stringify(others), PRIVATE)).toEqual([]);
    }
    expect(service.log.flatMap((line) => revealed(line, PRIVATE))).toEqual([]);
  }));
