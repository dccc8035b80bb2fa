/**
 * Plays every fault of the sandbox against the operations of the service, over HTTP. Each answer comes in time and is correct, stale but correct,
 * or a problem. Nothing leaks, nothing wrong is remembered, and the next healthy call is correct. The deadline passes only when the test advances
 * the clock, so a busy machine makes no difference.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Clock } from "../../src/clock.js";
import { FAULTS } from "../../packages/sandbox/src/fault-list.js";
import { BAIT } from "../../packages/sandbox/src/fault-wire.js";
import type { Operation } from "../../packages/sandbox/src/sandbox.js";
import { promiseFault } from "../support/promise.js";
import { legible, revealed } from "../support/revealed.js";
import {
  type Answer,
  bearer,
  problemOf,
  type Question,
  type Service,
  startService,
  until,
} from "../support/service.js";

const TIMEOUT_MS = 300;
/** Nothing takes this long on any machine, so the service would wait forever. */
const HUNG_MS = 30_000;

const KEY = "LEAKED-KEY-0123456789";
const SECRET = "LEAKED-SECRET-0123456789";
const WHOLESALE = ["731.37", "733.33", "739.19", "787.87"];

const world = `
rateLimit: { limit: 1000, windowMs: 60000 }
nameservers: [ns1.example.af, ns2.example.af]
tiers:
  - { name: Silver, fromDomains: 0, discountPercent: 0 }
  - { name: Gold, fromDomains: 10, discountPercent: 7 }
priceLists:
  USD:
    .af: { registration: ["731.37"], renewal: ["733.33"], transfer: ["739.19"], restore: ["787.87"] }
names: { takenPercent: 0, taken: [taken.af] }
resellers:
  - id: demo
    accountNumber: RS-1
    currency: USD
    tier: Silver
    balance: "918273.46"
    creditLimit: "554433.21"
    credentials: [{ key: ${KEY}, secret: ${SECRET} }]
    domains: [{ name: own.af, registered: 2020-02-02, expires: 2030-02-02 }]
`;

const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1], transfer: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

/** Everything except prices is fresh for 10 s, and can be shown as stale after that. Failures aren't remembered. */
const cache = `
availability:
  entries: 100
  available: { freshMs: 10000, usableMs: 60000 }
  taken: { freshMs: 10000, usableMs: 3600000 }
  failureMs: 0
prices: { entries: 100, freshMs: 3600000, usableMs: 3600000, failureMs: 0 }
tier: { entries: 4, freshMs: 10000, usableMs: 3600000, failureMs: 0 }
account: { entries: 100, freshMs: 10000, usableMs: 3600000, failureMs: 0 }
`;
const PAST_FRESH_MS = 20_000;
const PAST_EVERYTHING_MS = 24 * 3_600_000;
/** Longer than any pause of the credential, and than any time for which a refused one isn't used. */
const PAST_PAUSES_MS = 400_000;

interface Case {
  /** The operation that it needs, and for which a fault is set. */
  readonly operation: Operation;
  readonly path: string;
  readonly question?: Question;
  /** The healthy answer, without what changes over time. */
  readonly status: number;
  readonly truth: unknown;
}

const usd = (amount: string) => ({ amount, currency: "USD" });
const staff = { headers: bearer("read") };

function cart(domain: string, action: string): Question {
  return { method: "POST", body: { items: [{ domain, action, years: 1 }] } };
}

const availability = (domain: string, status: string, price: unknown, renewal: unknown = null) => ({
  domain,
  unicodeName: domain,
  tld: ".af",
  status,
  available: status === "available",
  premium: false,
  years: 1,
  price,
  renewal,
});
const inCart = (domain: string, action: string, status: string, amount: string) => ({
  items: [{ domain, tld: ".af", action, years: 1, price: usd(amount), status, premium: false }],
  total: [usd(amount)],
});
const own = {
  domain: "own.af",
  status: "active",
  registeredAt: "2020-02-02T00:00:00.000Z",
  expiresAt: "2030-02-02T00:00:00.000Z",
  autoRenew: true,
  nameservers: ["ns1.example.af", "ns2.example.af"],
};

/** Retail is wholesale plus a quarter, rounded up to the cent. */
const REGISTRATION = "914.22";
const RENEWAL = "916.67";
const TRANSFER = "923.99";

/** During faults of these kinds all calls are alike, so only a few questions are asked: two of visitors, and in turn one of staff. */
const ON_THE_WIRE = new Set([
  "the connection",
  "time",
  "the framing of HTTP",
  "headers",
  "the body's format",
  "redirects",
]);
const FOR_STAFF: readonly Operation[] = ["domains", "domain", "balance", "tier"];

function isAsked({ operation, path }: Case, fault: string, nth: number): boolean {
  if (!ON_THE_WIRE.has(FAULTS.get(fault)?.kind ?? "")) return true;
  return /free-|action=renewal/.test(path) || operation === FOR_STAFF[nth % FOR_STAFF.length];
}

/** Each fault has names of its own, because signs that a name is premium are remembered. */
const casesOf = (fault: string): readonly Case[] => [
  {
    operation: "check",
    path: `/v1/availability?domain=free-${fault}.af`,
    status: 200,
    truth: availability(`free-${fault}.af`, "available", usd(REGISTRATION), usd(RENEWAL)),
  },
  {
    operation: "check",
    path: "/v1/quotes",
    question: cart(`cart-${fault}.af`, "registration"),
    status: 200,
    truth: inCart(`cart-${fault}.af`, "registration", "available", REGISTRATION),
  },
  {
    operation: "quote",
    path: `/v1/availability?domain=unpriced-${fault}.af`,
    status: 200,
    truth: availability(`unpriced-${fault}.af`, "available", usd(REGISTRATION), usd(RENEWAL)),
  },
  {
    operation: "quote",
    path: "/v1/quotes?tld=.af&action=renewal&years=1",
    status: 200,
    truth: { tld: ".af", action: "renewal", years: 1, price: usd(RENEWAL) },
  },
  {
    operation: "quote",
    path: "/v1/quotes",
    question: cart(`cart-${fault}.af`, "transfer"),
    status: 200,
    truth: inCart(`cart-${fault}.af`, "transfer", "not_checked", TRANSFER),
  },
  {
    operation: "domains",
    path: "/v1/staff/domains",
    question: staff,
    status: 200,
    truth: { domains: [own] },
  },
  { operation: "domain", path: "/v1/staff/domains/own.af", question: staff, status: 200, truth: own },
  { operation: "domain", path: "/v1/staff/domains/foreign.af", question: staff, status: 404, truth: null },
  {
    operation: "balance",
    path: "/v1/staff/balance",
    question: staff,
    status: 200,
    truth: {
      accountNumber: "RS-1",
      balance: "918273.46",
      currency: "USD",
      creditLimit: "554433.21",
      activeDomains: 1,
    },
  },
  {
    operation: "tier",
    path: "/v1/staff/tier",
    question: staff,
    status: 200,
    truth: { currentTier: "Silver", nextTier: "Gold", domainsNeeded: 9 },
  },
];

/** After these, the credential is paused or not used for a while, as it should be. */
const isPause = (fault: string): boolean => /^(?:status-40[13]|limit-.*)$/.test(fault);
/** Answers by which an upstream may say that the reseller doesn't manage a domain. They are remembered. */
const isNotManaged = (fault: string): boolean => /^(?:status-40[34]|data-null)$/.test(fault);
/** After these, a name can be premium, and then it has no price. */
const showsPremium = (fault: string): boolean => fault === "premium-sign" || fault === "price-and-another";
const isOnConnect = (fault: string): boolean => typeof FAULTS.get(fault)?.play === "string";
/** After these, nothing more is received, so the deadline has to end the call. All others end by themselves. */
const isSilent = (fault: string): boolean => /^(?:silence-.*|drip-.*|slow|switching-.*)$/.test(fault);

/** A clock that stands still. Timers fire only in `advance`. Those of background work, which wait longer, never do. */
class FrozenClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  #timerMs = 0;

  now(): number {
    return Date.UTC(2026, 2, 20) + this.#nowMs;
  }
  monotonic(): number {
    return this.#nowMs;
  }
  after(delayMs: number, run: () => void): () => void {
    if (delayMs > 3000) return () => {};
    const timer = { atMs: this.#timerMs + Math.max(0, delayMs), run };
    if (delayMs <= 0) setImmediate(() => this.#timers.delete(timer) && run());
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }
  advance(byMs: number): void {
    this.#nowMs += byMs;
    this.#timerMs += byMs;
    for (const timer of this.#timers) {
      if (timer.atMs > this.#timerMs || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
  /** Makes everything known older, without firing timers. */
  shift(byMs: number): void {
    this.#nowMs += byMs;
  }
}

const answerShape = z.looseObject({
  stale: z.boolean().optional(),
  source: z.string().optional(),
  items: z.array(z.looseObject({}).transform(({ asOf: _asOf, ...line }) => line)).optional(),
});

/** An answer without its times and its promise, and whether it is marked stale. */
function factsOf({ body }: Answer): { facts: unknown; stale: boolean } {
  const {
    asOf: _asOf,
    promise: _promise,
    validUntil: _validUntil,
    stale,
    source,
    ...facts
  } = answerShape.parse(body);
  return { facts, stale: stale === true || source === "stale" };
}

const premiumLine = z.looseObject({ premium: z.boolean().nullish(), price: z.unknown().optional() });
const premiumShape = premiumLine.extend({ items: z.array(premiumLine).optional() });

/** Whether nothing in an answer is untrue. Values may be null, and items may be missing from a list. */
function isWithin(answered: unknown, truth: unknown): boolean {
  if (answered === null || Object.is(answered, truth)) return true;
  if (Array.isArray(answered) && Array.isArray(truth))
    return answered.every((item) => truth.some((one) => isWithin(item, one)));
  if (typeof answered !== "object" || typeof truth !== "object" || truth === null) return false;
  const known = new Map<string, unknown>(Object.entries(truth));
  return Object.entries(answered).every(([key, value]) => known.has(key) && isWithin(value, known.get(key)));
}

const PROBLEMS = new Set(["upstream_failed", "upstream_contract", "upstream_timeout", "quota_exhausted"]);

/** Staff see the upstream's texts unchanged, and account amounts that could be true. Nobody could tell that they are wrong. */
function couldBeTrue(fault: string, { operation }: Case): boolean {
  if (operation === "check" || operation === "quote") return false;
  if (operation === "balance" && /^(?:price-(?:zero|negative)|currency-other)$/.test(fault)) return true;
  return fault === "scripts-amid";
}

/** What is wrong with an answer during a fault, if anything. */
function defectOf(fault: string, expected: Case, answer: Answer): string | undefined {
  if (answer.status === 200) {
    if (expected.status !== 200) return "reports what doesn't exist";
    const { facts } = factsOf(answer);
    if (pricesPremium(facts)) return "shows a price for a name that may be premium";
    const isTrue = isWithin(showsPremium(fault) ? withoutPremium(facts) : facts, expected.truth);
    return isTrue || couldBeTrue(fault, expected) ? undefined : "reports what isn't true";
  }
  const { code } = problemOf(answer);
  const mayBeAbsent = expected.status === 404 || (expected.operation === "domain" && isNotManaged(fault));
  return PROBLEMS.has(code) || (code === "not_found" && mayBeAbsent) ? undefined : `reports ${code}`;
}

/** Whether a name or a line of a cart counts as premium and has a price, which could only be that of an ordinary name. */
function pricesPremium(facts: unknown): boolean {
  const { items = [], premium, price } = premiumShape.parse(facts);
  return [{ premium, price }, ...items].some((one) => one.premium === true && (one.price ?? null) !== null);
}

function withoutPremium(facts: unknown): unknown {
  return JSON.parse(JSON.stringify(facts), (key, value: unknown) => (key === "premium" ? null : value));
}

function isCorrect(expected: Case, answer: Answer): boolean {
  if (answer.status !== 200 || expected.status !== 200) return answer.status === expected.status;
  return isDeepStrictEqual(factsOf(answer), { facts: expected.truth, stale: false });
}

const NEVER_SHOWN = [KEY, SECRET, "/api/v1", "X-Service", "axios", "node_modules", "    at "];

/** `audience`: staff see account amounts, and the upstream's texts where they could be true. */
function leaksIn(text: string, audience: "visitor" | "staff" | "staff, with texts"): string[] {
  return revealed(text, [
    ...(audience === "staff, with texts" ? [KEY, SECRET] : [...NEVER_SHOWN, BAIT]),
    ...(audience === "visitor" ? WHOLESALE : []),
  ]);
}

const clock = new FrozenClock();
let service: Service;
let elsewhere: Server;
let elsewhereUrl = "";
let elsewhereVisits = 0;

beforeAll(async () => {
  elsewhere = createServer((socket) => {
    elsewhereVisits += 1;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  elsewhereUrl = `http://127.0.0.1:${z.object({ port: z.number() }).parse(elsewhere.address()).port}`;
  const env = { UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS), UPSTREAM_RATE_LIMIT: "100" };
  service = await startService({ clock, world, retail, cache, env, warm: false });
  // Let the calls made at startup end before time passes.
  await until(
    () => service.calls() === 4 && service.log.filter((line) => line.includes("upstream.call")).length === 4,
  );
});
afterAll(async () => {
  await service.close();
  elsewhere.close();
});

/** Plays the fault against a service that knows nothing, then only prices, then none. Returns what went wrong. */
async function defectsDuring(fault: string, nth: number): Promise<readonly string[]> {
  const { control } = service.sandbox;
  const all = casesOf(fault).filter((one) => isAsked(one, fault, nth));
  const defects: string[] = [];
  const report = ({ path, question }: Case, what: string, { text }: Answer): void => {
    defects.push(`${question?.method ?? "GET"} ${path} ${what}: ${text.slice(0, 300)}`);
  };

  async function ask(one: Case): Promise<Answer> {
    const answer = await service.ask(one.path, one.question);
    const isStaff = one.question === staff;
    const audience = isStaff ? (couldBeTrue(fault, one) ? "staff, with texts" : "staff") : "visitor";
    if (answer.status === 200 && one.question?.method === "POST") {
      const defect = promiseFault(answer.body);
      if (defect !== undefined) report(one, defect, answer);
    }
    const leaks = leaksIn(legible(answer), audience);
    if (leaks.length > 0) report(one, `leaks ${leaks.join(", ")}`, answer);
    return answer;
  }

  /** Sends every question about these operations while the fault is set. */
  async function strike(when: string, operations: readonly Operation[]): Promise<void> {
    const cases = all.filter(({ operation }) => operations.includes(operation));
    const isPlayed = (): boolean =>
      control
        .faults()
        .active.every(
          ({ operation, struck }) =>
            operation === "all" || struck >= cases.filter((one) => one.operation === operation).length,
        );
    const ms = fault === "slow" ? HUNG_MS : 200;
    for (const target of isOnConnect(fault) ? (["all"] as const) : operations)
      control.setFault(target, { fault, elsewhere: elsewhereUrl, ms });

    const strikeOne = async (one: Case): Promise<void> => {
      const answer = await ask(one);
      const defect = defectOf(fault, one, answer);
      if (defect !== undefined) report(one, `${when} ${defect}`, answer);
    };
    const hung = setTimeout(() => {
      defects.push(`a request ${when} waits for longer than the deadline`);
      clock.advance(TIMEOUT_MS);
    }, HUNG_MS);
    if (isPause(fault)) {
      for (const one of cases) {
        await strikeOne(one);
        clock.shift(PAST_PAUSES_MS);
      }
    } else {
      const answered = Promise.all(cases.map(strikeOne));
      if (isSilent(fault)) {
        await until(isPlayed, `${fault} ${when}`);
        clock.advance(TIMEOUT_MS);
      }
      await answered;
    }
    clearTimeout(hung);
    if (!isPlayed()) defects.push(`${when}, the fault wasn't played for every question`);
    control.clearFaults();
    if (isSilent(fault)) clock.advance(TIMEOUT_MS);
    if (isPause(fault)) clock.shift(PAST_PAUSES_MS);
  }

  clock.shift(PAST_EVERYTHING_MS);
  const logged = service.log.length;
  await strike("with nothing known", ["quote", ...FOR_STAFF]);
  await strike("with prices known", ["check"]);

  // Now every answer is correct immediately, or, where values were missing or plausible, once it is requested again.
  const balance = all.find(({ operation }) => operation === "balance");
  // A refused credential is tried with one call.
  if (isPause(fault) && balance !== undefined) await ask(balance);
  const incomplete: Case[] = [];
  await Promise.all(
    all.map(async (one) => {
      const answer = await ask(one);
      if (isCorrect(one, answer)) return;
      const isUntrue = defectOf(fault, one, answer) !== undefined;
      if (showsPremium(fault) && !isUntrue) return;
      if (isUntrue || answer.status >= 500) report(one, "isn't correct after the fault", answer);
      else incomplete.push(one);
    }),
  );
  if (incomplete.length > 0) clock.shift(PAST_FRESH_MS);
  for (const one of incomplete) {
    const answer = await ask(one);
    if (!isCorrect(one, answer)) report(one, "isn't correct long after the fault", answer);
  }
  for (const line of service.log.slice(logged)) {
    const leaks = leaksIn(line, "visitor");
    if (leaks.length > 0 || line.includes('"event":"internal"'))
      defects.push(`the log contains ${leaks.join(", ")}: ${line.slice(0, 300)}`);
  }
  return defects;
}

test.each([...FAULTS.keys()].map((fault, nth) => [fault, nth] as const))(
  "the fault %s causes no wrong, late or leaky answer, and no redirect is followed",
  async (fault, nth) => {
    expect([await defectsDuring(fault, nth), elsewhereVisits]).toEqual([[], 0]);
  },
);
