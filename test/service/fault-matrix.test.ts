/**
 * Every fault of the sandbox against every operation of the service, over HTTP: the answer comes in time and is right, or stale and right,
 * or an honest problem; nothing leaks, nothing wrong is remembered, and the next healthy call is right. The deadline passes only when the
 * test says so, so a busy machine changes nothing.
 */
import { createServer, type Server } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Clock } from "../../src/clock.js";
import { FAULTS } from "../../src/sandbox/fault-table.js";
import { BAIT } from "../../src/sandbox/fault-wire.js";
import { type Operation, OPERATIONS } from "../../src/sandbox/sandbox.js";
import { promiseFault } from "../support/promise.js";
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
/** Nothing takes so long on any machine: the service would wait for ever. */
const HUNG_MS = 30_000;
/** Faults that are played at the same time, each against a service of its own. */
const LANES = 4;

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

/** All but prices is fresh for 10 s and can be shown, marked stale, after that; failures are not remembered. */
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
/** Longer than any pause of the credential and any time for which a refused one is left alone. */
const PAST_PAUSES_MS = 400_000;

interface Asked {
  /** The operation that answers it, and that a fault is set for. */
  readonly operation: Operation;
  readonly path: string;
  readonly question?: Question;
  /** The healthy answer, less what changes with time. */
  readonly status: number;
  readonly truth: unknown;
}

const usd = (amount: string) => ({ amount, currency: "USD" });
const staff = { headers: bearer("read") };

function cart(domain: string, action: string): Question {
  return { method: "POST", body: { items: [{ domain, action, years: 1 }] } };
}

const registered = (domain: string, status: string, price: unknown, renewal: unknown = null) => ({
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

const ASKED: readonly Asked[] = [
  {
    operation: "check",
    path: "/v1/availability?domain=free.af",
    status: 200,
    truth: registered("free.af", "available", usd(REGISTRATION), usd(RENEWAL)),
  },
  {
    operation: "check",
    path: "/v1/availability?domain=taken.af",
    status: 200,
    truth: registered("taken.af", "taken", null),
  },
  {
    operation: "check",
    path: "/v1/quotes",
    question: cart("cart.af", "registration"),
    status: 200,
    truth: inCart("cart.af", "registration", "available", REGISTRATION),
  },
  {
    operation: "quote",
    path: "/v1/availability?domain=unpriced.af",
    status: 200,
    truth: registered("unpriced.af", "available", usd(REGISTRATION), usd(RENEWAL)),
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
    question: cart("cart.af", "transfer"),
    status: 200,
    truth: inCart("cart.af", "transfer", "not_checked", TRANSFER),
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

const BALANCE = ASKED.find(({ operation }) => operation === "balance");

/** After these the credential is paused or left alone for a while, as it should be. */
const isPause = (fault: string): boolean => /^(?:status-(?:401|403|429)|limit-.*)$/.test(fault);
/** Ways in which an upstream may say that it does not manage a domain; what it says so is remembered. */
const isNotManaged = (fault: string): boolean =>
  /^(?:status-(?:403|404)|html-404|data-(?:null|empty|missing))$/.test(fault);
const isAtDoor = (fault: string): boolean => typeof FAULTS.get(fault)?.play === "string";

/** What is refused is refused whatever is known, so every fifth fault stands for its neighbours. */
const isPlayedAgainstStale = (fault: string): boolean => [...FAULTS.keys()].indexOf(fault) % 5 === 0;
const isSlow = (fault: string): boolean => fault === "slow";

/** After these nothing more comes, so that the deadline has to end the call; all others end by themselves. */
const isSilent = (fault: string): boolean => /^(?:silence-.*|drip-.*|slow|switching-.*)$/.test(fault);

/** Time that stands still, and passes for what waits only in `advance`; background work, which waits longer, never happens. */
class StillClock implements Clock {
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
  /** Everything known grows older; nobody who waits is told. */
  shift(byMs: number): void {
    this.#nowMs += byMs;
  }
}

const check = z.tuple([z.object({ status: z.enum(["pass", "warn", "fail"]) })]);
const health = z.object({
  checks: z.object({ upstream: check, quota: check, redis: check, prices: check }),
});

const told = z.looseObject({
  stale: z.boolean().optional(),
  source: z.string().optional(),
  items: z.array(z.looseObject({}).transform(({ asOf: _asOf, ...line }) => line)).optional(),
});

/** What is left of an answer when time is taken out of it, with the promise that goes with it, and whether it says that it is old. */
function factsOf({ body }: Answer): { facts: unknown; stale: boolean } {
  const {
    asOf: _asOf,
    promise: _promise,
    validUntil: _validUntil,
    stale,
    source,
    ...facts
  } = told.parse(body);
  return { facts, stale: stale === true || source === "stale" };
}

/** Whether nothing is said that is not true; things may be left unsaid as null, or left out of a list. */
function isWithin(said: unknown, truth: unknown): boolean {
  if (said === null || Object.is(said, truth)) return true;
  if (Array.isArray(said) && Array.isArray(truth))
    return said.every((item) => truth.some((one) => isWithin(item, one)));
  if (typeof said !== "object" || typeof truth !== "object" || truth === null) return false;
  const known = new Map<string, unknown>(Object.entries(truth));
  return Object.entries(said).every(([key, value]) => known.has(key) && isWithin(value, known.get(key)));
}

const PROBLEMS = new Set(["upstream_failed", "upstream_contract", "upstream_timeout", "quota_exhausted"]);

/** Staff see the upstream's own words as they are, and amounts of the account that could be true; nobody could tell. */
function couldBeTrue(fault: string, { operation }: Asked): boolean {
  if (operation === "check" || operation === "quote") return false;
  if (operation === "balance" && /^(?:price-(?:zero|negative)|currency-(?:other|unknown|none))$/.test(fault))
    return true;
  return /^(?:scripts|(?:scripts|templates|paths)-amid)$/.test(fault);
}

/** What is wrong with an answer under a fault; undefined when nothing is. */
function wrongUnder(fault: string, asked: Asked, answer: Answer): string | undefined {
  if (answer.status === 200) {
    if (asked.status !== 200) return "is told what is not there";
    return couldBeTrue(fault, asked) || isWithin(factsOf(answer).facts, asked.truth)
      ? undefined
      : "is told what is not true";
  }
  const { code } = problemOf(answer);
  if (code === "not_found" && (asked.status === 404 || (asked.operation === "domain" && isNotManaged(fault))))
    return undefined;
  return PROBLEMS.has(code) ? undefined : `is told ${code}`;
}

function isRight(asked: Asked, answer: Answer): boolean {
  if (answer.status !== 200 || asked.status !== 200) return answer.status === asked.status;
  return isDeepStrictEqual(factsOf(answer), { facts: asked.truth, stale: false });
}

const NEVER_TOLD = [KEY, SECRET, "/api/v1", "X-Service", "axios", "node_modules", "    at "];

/** `whose`: staff see amounts of the account, and the upstream's own words where they could be true. */
function leaksIn(text: string, whose: "visitor" | "staff" | "staff, with words"): string[] {
  const lower = text.toLowerCase();
  const words = [
    ...(whose === "staff, with words" ? [KEY, SECRET] : [...NEVER_TOLD, BAIT]),
    ...(whose === "visitor" ? WHOLESALE : []),
  ];
  return words.filter((word) => lower.includes(word.toLowerCase()));
}

class Lane {
  readonly #service: Service;
  readonly #clock: StillClock;
  readonly #elsewhere: string;
  #fault = "";
  #wrong: string[] = [];
  /** Whether an operation has failed that hasn't been asked again since: another's success doesn't make it healthy. */
  #hasFailed = false;
  /** Calls that neither the sandbox's record nor ours can be compared by. */
  #callsAhead = 0;

  constructor(service: Service, clock: StillClock, elsewhere: string) {
    this.#service = service;
    this.#clock = clock;
    this.#elsewhere = elsewhere;
  }

  /** Plays the fault against a service that knows nothing, prices alone, and everything from long ago; the answer is what went wrong. */
  async play(fault: string): Promise<string[]> {
    const { log } = this.#service;
    this.#fault = fault;
    this.#wrong = [];
    this.#clock.shift(PAST_EVERYTHING_MS);
    const logged = log.length;

    await this.#strike("with nothing known", ["quote", "domains", "domain", "balance", "tier"]);
    await this.#strike("with prices known", ["check"]);
    await this.#healthy();
    if (isPlayedAgainstStale(fault)) {
      this.#clock.shift(PAST_FRESH_MS);
      await this.#strike(
        "with everything stale",
        OPERATIONS.filter((operation) => operation !== "quote"),
      );
      await this.#healthy();
    }
    for (const line of log.slice(logged)) {
      const leaks = leaksIn(line, "visitor");
      if (leaks.length > 0 || line.includes('"event":"internal"'))
        this.#wrong.push(`the log tells ${leaks.join(", ")}: ${line.slice(0, 300)}`);
    }
    return this.#wrong;
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  async #strike(when: string, operations: readonly Operation[]): Promise<void> {
    const { control } = this.#service.sandbox;
    const wish = { fault: this.#fault, elsewhere: this.#elsewhere, ms: isSlow(this.#fault) ? HUNG_MS : 200 };
    const asked = ASKED.filter(({ operation }) => operations.includes(operation));
    const expected = (operation: Operation): number =>
      asked.filter((one) => one.operation === operation).length;
    const notStruck = (): string[] =>
      control
        .faults()
        .active.flatMap(({ operation, struck }) =>
          operation === "all" || struck >= expected(operation) ? [] : operation,
        );
    for (const target of isAtDoor(this.#fault) ? (["all"] as const) : operations)
      control.setFault(target, wish);

    const outcomes: string[] = [];
    const ask = async (one: Asked): Promise<void> => {
      const answer = await this.#ask(one);
      outcomes.push(answer.status === 200 ? "right" : problemOf(answer).code);
      const wrong = wrongUnder(this.#fault, one, answer);
      if (wrong !== undefined)
        this.#wrong.push(`${nameOf(one)} ${when} ${wrong}: ${answer.text.slice(0, 300)}`);
    };
    const hung = setTimeout(() => {
      this.#wrong.push(`somebody waits ${when} for longer than the deadline`);
      this.#clock.advance(TIMEOUT_MS);
    }, HUNG_MS);
    if (isPause(this.#fault)) {
      for (const one of asked) {
        await ask(one);
        this.#clock.shift(PAST_PAUSES_MS);
      }
    } else {
      const answered = Promise.all(asked.map(ask));
      if (isSilent(this.#fault)) {
        await until(() => notStruck().length === 0, `${this.#fault} ${when}`);
        this.#clock.advance(TIMEOUT_MS);
      }
      await answered;
    }
    clearTimeout(hung);
    if (notStruck().length > 0) this.#wrong.push(`${when} it has not struck every ${notStruck().join(", ")}`);
    control.clearFaults();
    await this.#isTold(when, outcomes);
    if (isSilent(this.#fault)) this.#clock.advance(TIMEOUT_MS);
    if (isPause(this.#fault)) this.#clock.shift(PAST_PAUSES_MS);
  }

  /** Every answer is right at once; where something was left unsaid or could have been true, as soon as it is asked for anew. */
  async #healthy(): Promise<void> {
    // A credential that was refused is tried with one call.
    if (isPause(this.#fault) && BALANCE !== undefined) await this.#ask(BALANCE);
    await Promise.all(
      ASKED.map(async (one) => {
        const answer = await this.#ask(one);
        if (isRight(one, answer)) return;
        const wrong = `${nameOf(one)} is not right after the fault: ${answer.text.slice(0, 300)}`;
        if (wrongUnder(this.#fault, one, answer) !== undefined || answer.status >= 500)
          this.#wrong.push(wrong);
        else this.#unsaid.push(one);
      }),
    );
    this.#hasFailed = false;
    await this.#isTold("after it", ["right"]);
    if (this.#unsaid.length === 0) return;
    this.#clock.shift(PAST_FRESH_MS);
    for (const one of this.#unsaid.splice(0)) {
      const answer = await this.#ask(one);
      if (!isRight(one, answer))
        this.#wrong.push(`${nameOf(one)} is not right long after the fault: ${answer.text.slice(0, 300)}`);
    }
  }

  /** Whether health, readiness and metrics say what the sandbox and those who asked have seen. */
  async #isTold(when: string, outcomes: readonly string[]): Promise<void> {
    const { checks } = health.parse((await this.#service.ask("/health")).body);
    let text = "";
    const metric = (pattern: RegExp): number =>
      [...text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
    const ahead = (): number =>
      metric(/^upstream_call_duration_seconds_count\{.*\} (\d+)$/gm) - this.#service.calls();
    // A call of the background may be under way.
    for (let tries = 0; tries < 50 && (text === "" || ahead() < this.#callsAhead); tries += 1)
      ({ text } = await this.#service.ask("/metrics", { headers: bearer("metrics") }));
    const tell = (what: string): void => void this.#wrong.push(`${when}, ${what}`);

    const ofCheck = (name: string): number =>
      metric(new RegExp(`^health_check\\{check="${name}"\\} (\\d)$`, "gm"));
    for (const [name, [check]] of Object.entries(checks))
      if (ofCheck(name) !== ["pass", "warn", "fail"].indexOf(check.status))
        tell(`the metrics differ about ${name}`);
    if ((await this.#service.ask("/readyz")).status !== 200) tell("it isn't ready");
    const failures = outcomes.filter((outcome) => outcome.startsWith("upstream_"));
    if (failures.length === outcomes.length && checks.upstream[0].status === "pass")
      tell("health is too good");
    this.#hasFailed ||= outcomes.some((outcome) => outcome !== "right");
    if (!this.#hasFailed && checks.upstream[0].status !== "pass") tell(`health is ${JSON.stringify(checks)}`);

    if (isAtDoor(this.#fault) ? ahead() < this.#callsAhead : ahead() !== this.#callsAhead)
      tell(`the metrics are ${ahead() - this.#callsAhead} calls ahead of the sandbox`);
    this.#callsAhead = ahead();
  }

  readonly #unsaid: Asked[] = [];

  async #ask(one: Asked): Promise<Answer> {
    const answer = await this.#service.ask(one.path, one.question);
    const whole = `${answer.status} ${JSON.stringify(answer.headers)} ${answer.text}`;
    const isStaff = one.question === staff;
    const whose = isStaff ? (couldBeTrue(this.#fault, one) ? "staff, with words" : "staff") : "visitor";
    if (answer.status === 200 && one.question?.method === "POST") {
      const wrong = promiseFault(answer.body);
      if (wrong !== undefined) this.#wrong.push(`${nameOf(one)} ${wrong}: ${answer.text.slice(0, 300)}`);
    }
    for (const leak of leaksIn(whole, whose))
      this.#wrong.push(`${nameOf(one)} leaks ${leak}: ${whole.slice(-300)}`);
    return answer;
  }
}

function nameOf({ path, question }: Asked): string {
  return `${question?.method ?? "GET"} ${path}`;
}

let elsewhere: Server;
let visits = 0;
const verdicts = new Map<string, readonly string[]>();

beforeAll(async () => {
  elsewhere = createServer((socket) => {
    visits += 1;
    socket.destroy();
  });
  const port = await new Promise<number>((done) => {
    elsewhere.listen(0, "127.0.0.1", () => {
      done(z.object({ port: z.number() }).parse(elsewhere.address()).port);
    });
  });
  const lanes = await Promise.all(
    Array.from({ length: LANES }, async () => {
      const clock = new StillClock();
      const env = { UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS), UPSTREAM_RATE_LIMIT: "100" };
      const service = await startService({ clock, world, retail, cache, env, warm: false });
      // What is asked for at the start has ended before time begins to pass.
      await until(
        () =>
          service.calls() === 4 && service.log.filter((line) => line.includes("upstream.call")).length === 4,
      );
      return new Lane(service, clock, `http://127.0.0.1:${port}`);
    }),
  );
  const waiting = [...FAULTS.keys()];
  try {
    await Promise.all(
      lanes.map(async (lane) => {
        for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift())
          verdicts.set(fault, await lane.play(fault).catch((error: unknown) => [String(error)]));
      }),
    );
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
  }
}, 240_000);

afterAll(
  () =>
    new Promise((done) => {
      elsewhere.close(done);
    }),
);

test("there are at least a hundred faults, each with a line about it", () => {
  expect(FAULTS.size).toBeGreaterThanOrEqual(100);
  for (const { what } of FAULTS.values()) expect(what).toMatch(/^\S.*\.$/);
});

test("redirects lead nobody elsewhere", () => {
  expect(visits).toBe(0);
});

describe("nothing wrong, late or leaky comes of the fault", () => {
  test.each([...FAULTS.keys()])("%s", (fault) => {
    expect(verdicts.get(fault)).toEqual([]);
  });
});
