/** Parses the YAML file into a validated, frozen description of the sandbox's world, or reports the paths that are wrong. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { DOMAIN_STATUSES } from "./facts.js";
import { asName, isTld } from "./names.js";
import { ShapeFault, shapeSettings } from "./presets.js";

/** An amount in cents, written as a decimal with two fraction digits. */
export function amountInCents(message: string, pattern = /^\d{1,9}\.\d{2}$/) {
  return z
    .string()
    .regex(pattern, message)
    .transform((text) => Number(text.replace(".", "")));
}

const cents = amountInCents("must be a quoted decimal with two fraction digits");
const signedCents = amountInCents("must be a quoted decimal with two fraction digits", /^-?\d{1,9}\.\d{2}$/);
const name = z.string().refine((text) => asName(text) === text, "must be a lower-case domain name");
const tld = z.string().refine(isTld, "must be a lower-case TLD with a leading dot");
const currency = z.string().regex(/^[A-Z]{3}$/, "must be a three-letter currency code");
const terms = z.array(cents).max(10);

/** A mapping becomes a Map, so that no key can collide with a property of Object.prototype. */
function mapping<Value extends z.ZodType>(key: z.ZodString, value: Value) {
  return z.record(key, value).transform((record) => new Map<string, z.output<Value>>(Object.entries(record)));
}

const priceTable = mapping(
  tld,
  z.strictObject({ registration: terms.min(1), renewal: terms, transfer: terms, restore: terms }),
);

const domain = z.strictObject({
  name,
  registered: z.iso.date(),
  /** Default: an anniversary of the registration, so that the demo data doesn't get old. */
  expires: z.iso.date().optional(),
  status: z.enum(DOMAIN_STATUSES).default("active"),
  autoRenew: z.boolean().default(true),
  nameservers: z.array(name).max(13).optional(),
});
export type DomainConfig = z.infer<typeof domain>;

const generated = z.strictObject({
  count: z.int().min(1).max(100_000),
  /** `{n}` becomes 1, 2, 3 … padded to the width of `count`. */
  name: z.string().refine((text) => text.includes("{n}") && asName(text.replace("{n}", "0")) !== undefined, {
    error: "must be a lower-case domain name that contains {n}",
  }),
  registered: z.iso.date(),
});

const shapes = z
  .unknown()
  .default({})
  .transform((choice, context) => {
    try {
      return shapeSettings(choice);
    } catch (error) {
      if (!(error instanceof ShapeFault)) throw error;
      for (const message of error.faults) context.addIssue({ code: "custom", message });
      return z.NEVER;
    }
  });

const credential = z.strictObject({ key: z.string().min(8), secret: z.string().min(16) });

const reseller = z.strictObject({
  id: z.string().regex(/^[a-z0-9-]{1,40}$/, "must be 1-40 of a-z, 0-9 and -"),
  accountNumber: z.string().min(1),
  currency,
  tier: z.string(),
  balance: signedCents,
  creditLimit: cents,
  /** API access and credentials require both. */
  emailVerified: z.boolean().default(true),
  twoFactor: z.boolean().default(true),
  apiAccess: z.boolean().default(true),
  /** Default: one random credential per start. */
  credentials: z.array(credential).min(1).optional(),
  domains: z.array(domain).default([]),
  generate: generated.optional(),
});
export type ResellerConfig = z.infer<typeof reseller>;

export const rateLimit = z.strictObject({ limit: z.int().min(1), windowMs: z.int().min(1) });

const world = z.strictObject({
  rateLimit: rateLimit.default({ limit: 60, windowMs: 60_000 }),
  /** What the upstream's document leaves open: a preset, single settings, or both. */
  shapes,
  unpricedTlds: z.array(tld).default([]),
  nameservers: z.array(name).min(1),
  tiers: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        fromDomains: z.int().min(0),
        discountPercent: z.int().min(0).max(90),
      }),
    )
    .min(1),
  priceLists: mapping(currency, priceTable),
  names: z.strictObject({
    takenPercent: z.int().min(0).max(100),
    taken: z.array(name).default([]),
    available: z.array(name).default([]),
    premium: mapping(name, mapping(currency, cents)).default(new Map()),
  }),
  resellers: z.array(reseller).min(1),
});
export type Config = z.infer<typeof world>;

/** Reports faults across values: duplicate names, and references to names that don't exist. */
function checkReferences(world: Config, context: z.RefinementCtx): Config {
  const say = (path: PropertyKey[], message: string): void =>
    context.addIssue({ code: "custom", path, message });
  const ids = new Set<string>();
  const keys = new Set<string>();
  const owned = new Set<string>();
  const tiers = new Set(world.tiers.map((tier) => tier.name));
  if (tiers.size < world.tiers.length) say(["tiers"], "two tiers have the same name");
  world.tiers.slice(1).forEach((tier, index) => {
    if (tier.fromDomains <= (world.tiers[index]?.fromDomains ?? 0)) {
      say(["tiers", index + 1, "fromDomains"], "tiers must rise");
    }
  });
  world.resellers.forEach((one, index) => {
    const at = ["resellers", index];
    if (ids.has(one.id)) say([...at, "id"], `two resellers are called ${one.id}`);
    ids.add(one.id);
    if (!tiers.has(one.tier)) say([...at, "tier"], `there is no tier ${one.tier}`);
    if (one.apiAccess && !(one.emailVerified && one.twoFactor))
      say([...at, "apiAccess"], "needs emailVerified and twoFactor");
    if (!world.priceLists.has(one.currency)) say([...at, "currency"], `no price list is in ${one.currency}`);
    (one.credentials ?? []).forEach(({ key }, position) => {
      if (keys.has(key)) say([...at, "credentials", position, "key"], "this key is already used");
      keys.add(key);
    });
    one.domains.forEach((own, position) => {
      if (owned.has(own.name)) say([...at, "domains", position, "name"], `${own.name} is already registered`);
      owned.add(own.name);
    });
  });
  return world;
}

type Parsed =
  { readonly ok: true; readonly world: Config } | { readonly ok: false; readonly faults: readonly string[] };

/** The world that the text describes, or what is wrong with it, one line for each fault. */
export function parseWorld(text: string): Parsed {
  let raw: unknown;
  try {
    raw = parse(text);
  } catch (error) {
    // The other lines repeat the text.
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split(/:?\n/);
    return { ok: false, faults: [`not YAML: ${reason}`] };
  }
  const result = world.transform(checkReferences).safeParse(raw);
  if (result.success) return { ok: true, world: result.data };
  const faults = result.error.issues.map(
    ({ path, message }) => `${path.map(String).join(".") || "(top)"}: ${message}`,
  );
  return { ok: false, faults };
}

export function readConfig(file: string): Config {
  const result = parseWorld(readFileSync(file, "utf8"));
  if (result.ok) return result.world;
  const lines = result.faults.map((fault) => `  ${fault}`);
  throw new Error(`${file} is not a valid sandbox configuration:\n${lines.join("\n")}`);
}
