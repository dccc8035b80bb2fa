/** The steps of a history, and the generator of random histories. A history depends only on its seed. */
import { z } from "zod";

const name = z.int().min(0).max(2);
const years = z.int().min(1).max(2);
const operation = z.enum(["check", "quote", "tier"]);

/** One term of the catalogue. */
const term = z.enum(["registration 1", "registration 2", "renewal 1", "transfer 1"]);
export type TermName = z.infer<typeof term>;
export const TERMS = term.options;

const worldStep = z.union([
  z.strictObject({ taken: name, is: z.boolean() }),
  z.strictObject({ premium: name, cents: z.int().positive().nullable() }),
  z.strictObject({ price: term, cents: z.int().positive() }),
  /** Changes every price to this percentage of its current value. */
  z.strictObject({ list: z.int().positive() }),
  z.strictObject({ tier: z.int().min(0).max(9) }),
]);
export type WorldStep = z.infer<typeof worldStep>;

const step = z.union([
  // Visitors: a request is sent, and its answer is judged whenever it arrives.
  z.strictObject({ look: name, years, known: z.boolean().optional() }),
  z.strictObject({ quote: term }),
  z.strictObject({ prices: z.literal(true) }),
  z.strictObject({ cart: z.array(z.strictObject({ name, term })).min(1).max(3) }),
  z.strictObject({ leave: z.int().min(0) }),
  // Changes at the registry or in the reseller's account: now, or after this many further calls.
  worldStep,
  z.strictObject({ after: z.int().positive(), change: worldStep }),
  // The connection to the upstream.
  z.strictObject({
    hold: operation,
    calls: z.int().positive(),
    decided: z.enum(["on-arrival", "on-release"]),
  }),
  z.strictObject({ release: z.int().min(0) }),
  z.strictObject({ releaseAll: z.literal(true) }),
  z.strictObject({ upstream: z.enum(["down", "up"]) }),
  // Staff, restarts and time.
  z.strictObject({ purge: z.enum(["prices", "availability", "account", "all"]) }),
  z.strictObject({ staffTier: z.literal(true) }),
  z.strictObject({ restart: z.int().min(0) }),
  z.strictObject({ pass: z.int().positive() }),
  /** The machine is suspended: the world goes on, but no time passes for the service. */
  z.strictObject({ suspend: z.int().positive() }),
]);
export type Step = z.infer<typeof step>;
export type History = readonly Step[];
export type Action = "registration" | "renewal" | "transfer";

export const parseHistory = (text: string): History => z.array(step).parse(JSON.parse(text));

/** Uniform in [0, 1), the same sequence for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const SHORT_MS = [5, 200, 900, 2_000, 4_000];
/** The longest are about the age at which "taken" is requested again. */
const LONG_MS = [6_000, 12_000, 25_000, 35_000, 61_000, 90_000, 300_000, 820_000, 860_000];

/**
 * Generates between ten and about twenty steps. About half of them are requests, so that changes are observed. Most are independent; some form
 * short scenes, because a fault often needs several steps about one name.
 */
export function historyOf(seed: number): History {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const oneOf = <T>(list: readonly T[]): T => {
    const found = list[below(list.length)];
    if (found === undefined) throw new RangeError("the list is empty");
    return found;
  };
  // Most requests are about one name, because a single answer can't contradict another.
  const aName = (): number => (random() < 0.7 ? 0 : below(3));
  const someYears = (): number => (random() < 0.75 ? 1 : 2);
  const look = (): Step => ({ look: aName(), years: someYears() });
  const cart = (): Step => {
    const names = random() < 0.5 ? [aName()] : [0, 1 + below(2)];
    return { cart: names.map((one) => ({ name: one, term: oneOf(TERMS) })) };
  };
  const taken = (): WorldStep => ({ taken: aName(), is: random() < 0.6 });
  const premium = (): WorldStep => ({
    premium: aName(),
    cents: random() < 0.65 ? 50_000 + below(500_000) : null,
  });
  /** Two years always cost more than one: a total below that of a shorter term is never shown. */
  const newPrice = (term: (typeof TERMS)[number]): WorldStep => ({
    price: term,
    cents: term === "registration 1" ? 1_000 + below(800) : 5_000 + below(4_000),
  });
  const newPrices = (): WorldStep =>
    oneOf([
      newPrice(oneOf(TERMS)),
      // Never 100 %: a price that returns can't be distinguished from one that never changed.
      { list: oneOf([80, 102]) + below(20) },
      { tier: below(10) },
    ]);
  const change = (): WorldStep => oneOf([taken, premium, newPrices, newPrices])();
  const hold = (): Step => ({
    hold: oneOf(["check", "check", "quote", "quote", "tier"]),
    calls: 1 + below(3),
    decided: random() < 0.8 ? "on-arrival" : "on-release",
  });
  const pass = (): Step => ({ pass: oneOf(SHORT_MS) });

  const lateAnswer = (): Step[] => {
    const [name, first, then] = [aName(), someYears(), someYears()];
    const left: Step[] = random() < 0.5 ? [{ leave: 0 }] : [];
    const late: Step = { hold: "check", calls: 1, decided: "on-arrival" };
    const changed: Step = random() < 0.7 ? { taken: name, is: true } : newPrices();
    const asked: Step[] = [late, { look: name, years: first }, pass(), ...left, changed];
    return [...asked, { look: name, years: then }, pass(), { release: 0 }, { look: name, years: first }];
  };
  const boughtAfterLook = (): Step[] => {
    const [name, years] = [aName(), someYears()];
    const between = random() < 0.6 ? [change()] : [];
    return [{ look: name, years }, ...between, pass(), { cart: [{ name, term: oneOf(TERMS) }] }];
  };
  const resolvedWhileItChanges = (): Step[] => [
    newPrices(),
    { after: 1 + below(3), change: change() },
    look(),
    cart(),
  ];
  /** A late answer is older than it looks: whether it is fresh, usable or recent enough to be signed depends on when it was requested. */
  const lateAndKept = (): Step[] => {
    const [name, years] = [aName(), someYears()];
    const late: Step = { hold: "check", calls: 1, decided: "on-arrival" };
    const asked: Step[] = [late, { look: name, years }, oneOf([{ taken: name, is: true }, newPrices()])];
    const down: Step[] = random() < 0.5 ? [{ upstream: "down" }] : [];
    const term = years === 1 ? "registration 1" : "registration 2";
    const then: Step = random() < 0.5 ? { look: name, years } : { cart: [{ name, term }] };
    return [
      ...asked,
      { pass: 4_500 },
      { release: 0 },
      ...down,
      { pass: oneOf([1_000, 27_000, 58_000]) },
      then,
    ];
  };
  const newPricesOverRestart = (): Step[] => [
    { restart: oneOf([0, 1_000, 20_000]) },
    newPrices(),
    oneOf([look, cart])(),
  ];

  const kinds: readonly (readonly [weight: number, make: () => Step | Step[]])[] = [
    [20, look],
    [2, () => ({ look: aName(), years: someYears(), known: true })],
    [7, () => ({ quote: oneOf(TERMS) })],
    [2, () => ({ prices: true })],
    [16, cart],
    [3, () => ({ leave: below(4) })],
    [16, change],
    [5, () => ({ after: 1 + below(4), change: change() })],
    [7, hold],
    [8, () => ({ release: below(4) })],
    [2, () => ({ releaseAll: true })],
    [3, () => ({ upstream: random() < 0.5 ? "down" : "up" })],
    [3, () => ({ purge: oneOf(["prices", "availability", "account", "all"]) })],
    [2, () => ({ staffTier: true })],
    [2, () => ({ restart: oneOf([0, 1_000, 20_000, 90_000]) })],
    [13, pass],
    [8, () => ({ pass: oneOf(LONG_MS) })],
    [3, lateAnswer],
    [4, boughtAfterLook],
    [3, resolvedWhileItChanges],
    [2, lateAndKept],
    [2, newPricesOverRestart],
  ];
  const total = kinds.reduce((sum, [weight]) => sum + weight, 0);
  const history: Step[] = [];
  const length = 10 + below(9);
  while (history.length < length) {
    let at = random() * total;
    const kind = kinds.find(([weight]) => (at -= weight) < 0);
    history.push(...[kind?.[1]() ?? pass()].flat());
  }
  return withSuspensions(history, randomOf(~seed));
}

/** Three of the longest are 45 h: after 48 the service forgets a price, and can't notice that it has changed. */
const SUSPENDED_MS = [1_200, 6_000, 61_000, 3_700_000, 54_000_000];

/** Suspends the machine somewhere in every third history, up to three times. The other steps stay the same. */
function withSuspensions(history: readonly Step[], random: () => number): History {
  const steps = [...history];
  const times = random() < 1 / 3 ? 1 + Math.floor(3 * random()) : 0;
  for (let n = 0; n < times; n += 1) {
    const forMs = SUSPENDED_MS[Math.floor(SUSPENDED_MS.length * random())] ?? 0;
    steps.splice(Math.floor(steps.length * random()), 0, { suspend: forMs });
  }
  return steps;
}
