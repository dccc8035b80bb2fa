/** Everything that a reseller or the operator does outside the API: credentials, access, changes of the world, scripts, statistics. */
import type { Credential, Credentials, StoredCredential } from "./credentials.js";
import { Failure, PortalError } from "./facts.js";
import type { FaultRequest, Faults, Target } from "./faults.js";
import type { After, Behaviour, Latency } from "./gate.js";
import type { Hold, HoldRequest, Holds, Watcher } from "./holds.js";
import type { ShapeSettings } from "./open-points.js";
import type { PriceKey } from "./prices.js";
import { type ShapeChoice, ShapeFault } from "./presets.js";
import type { RateLimit } from "./rolling-window.js";
import type { Personality } from "./shapes.js";
import type { Order, Reseller, World } from "./world.js";

export interface Stats {
  readonly rateLimit: RateLimit;
  /** Requests without a known key. */
  readonly unknownKeys: number;
  readonly credentials: readonly ReturnType<typeof report>[];
}

interface AccountSecurity {
  readonly emailVerified?: boolean | undefined;
  readonly twoFactor?: boolean | undefined;
}

/** The price of the first year in cents, by currency; null makes the name ordinary. */
type FirstYear = Readonly<Record<string, number>> | null;

function report({ key, reseller, revoked, allowlist, usage, window }: StoredCredential) {
  const { accepted, rejected429, refused, byRoute } = usage;
  return {
    key,
    reseller: reseller.id,
    revoked,
    allowlist,
    accepted,
    rejected429,
    refused,
    /** The largest number of accepted calls in any rolling window, both ends included. */
    largestWindow: window.largest,
    byRoute,
    calls: usage.lastCalls(),
  };
}

interface PortalParts {
  readonly world: World;
  readonly holds: Holds;
  readonly credentials: Credentials;
  readonly behaviour: Behaviour;
  readonly faults: Faults;
  readonly personality: Personality;
  readonly unknownKeys: () => number;
  /** The wall clock, for the dates of ordered names. */
  readonly today: () => Date;
  readonly after: After;
}

function requireSecurity({ id, emailVerified, twoFactor }: Reseller): void {
  if (!emailVerified) throw new PortalError(409, `the e-mail address of ${id} is not verified`);
  if (!twoFactor) throw new PortalError(409, `two-factor authentication is off for ${id}`);
}

function requireAccess(reseller: Reseller): void {
  requireSecurity(reseller);
  if (!reseller.apiAccess) throw new PortalError(409, `API access is not enabled for ${reseller.id}`);
}

export type Control = ReturnType<typeof createPortal>;

export function createPortal(parts: PortalParts) {
  const { world, holds, credentials, behaviour, faults, personality } = parts;
  const credentialWith = (key: string): StoredCredential => {
    const stored = credentials.find(key);
    if (stored === undefined) throw new PortalError(404, "there is no such credential");
    return stored;
  };
  const carryOut = (id: string, order: Order): void => {
    const reseller = world.reseller(id);
    const problem = world.problemOf(reseller, order);
    if (problem !== null) throw new PortalError(409, problem);
    try {
      world.order(reseller, order, parts.today());
    } catch (error) {
      if (error instanceof Failure) throw new PortalError(422, error.message);
      throw error;
    }
  };

  return {
    /** Requires API access, a verified e-mail address and two-factor authentication. */
    createCredential: (id: string): Credential => {
      const reseller = world.reseller(id);
      requireAccess(reseller);
      return credentials.create(reseller);
    },
    /** Has the same requirements. Creates a second credential with the same reseller and allowlist; the old one stays valid unless `revokeOld`. */
    rotate: (
      key: string,
      { revokeOld = false }: { readonly revokeOld?: boolean | undefined } = {},
    ): Credential => {
      const old = credentialWith(key);
      if (old.revoked) throw new PortalError(409, "a revoked credential can't be rotated");
      requireAccess(old.reseller);
      const fresh = credentials.create(old.reseller, undefined, old.allowlist);
      old.revoked = revokeOld;
      return fresh;
    },
    revoke: (key: string): void => {
      credentialWith(key).revoked = true;
    },
    /** Addresses or CIDR blocks; an empty list removes the restriction. */
    setAllowlist: (key: string, addresses: readonly string[]): void => {
      credentialWith(key).allowlist = [...addresses];
    },
    setSecurity: (id: string, { emailVerified, twoFactor }: AccountSecurity): void => {
      const reseller = world.reseller(id);
      reseller.emailVerified = emailVerified ?? reseller.emailVerified;
      reseller.twoFactor = twoFactor ?? reseller.twoFactor;
    },
    /** Enabling it requires a verified e-mail address and two-factor authentication. */
    setApiAccess: (id: string, enabled: boolean): void => {
      const reseller = world.reseller(id);
      if (enabled) requireSecurity(reseller);
      reseller.apiAccess = enabled;
    },
    /** Determines all prices of the reseller that haven't been set individually. */
    setTier: (id: string, tier: string): void => {
      if (!world.hasTier(tier)) throw new PortalError(422, `there is no tier ${tier}`);
      world.reseller(id).tier = tier;
    },
    /** What this reseller pays from now on, in any tier; null restores the tier's price. */
    setPrice: (
      id: string,
      { amountCents, ...key }: PriceKey & { readonly amountCents: number | null },
    ): void => {
      const reseller = world.reseller(id);
      if (!world.prices.tlds(reseller).includes(key.tld))
        throw new PortalError(422, `${key.tld} is not sold to ${id}`);
      world.prices.override(reseller, key, amountCents);
    },
    /** Registers, renews, transfers or restores a name: at once, or later, as the registry's queue does, which drops what it can't do. */
    order: (id: string, order: Order, afterMs = 0): void => {
      world.reseller(id);
      if (afterMs === 0) return carryOut(id, order);
      parts.after(afterMs, () => {
        try {
          carryOut(id, order);
        } catch (error) {
          if (!(error instanceof PortalError)) throw error;
        }
      });
    },
    setTaken: (domain: string, taken: boolean): void => world.setTaken(domain, taken),
    setPremium: (domain: string, firstYear: FirstYear): void =>
      world.prices.setPremium(domain, firstYear && new Map(Object.entries(firstYear))),
    /** Holds the next answers until they are released, in any order. */
    hold: (request: HoldRequest = {}): Hold => holds.add(request),
    holds: (): readonly Hold[] => holds.active(),
    /** Calls the watcher for every answer that is sent unchanged to a connected caller; returns a function that stops it. */
    watch: (watcher: Watcher) => holds.watch(watcher),
    setBehaviour: (latency: Latency): void => {
      behaviour.latency = { ...behaviour.latency, ...latency };
    },
    setRateLimit: (rateLimit: RateLimit): void => {
      behaviour.rateLimit = rateLimit;
    },
    /** From the next answer on, plays the preset (default: `documented`) with these settings. */
    setShapes: (choice: ShapeChoice): ShapeSettings => {
      try {
        return personality.choose(choice);
      } catch (error) {
        if (error instanceof ShapeFault) throw new PortalError(422, error.message);
        throw error;
      }
    },
    shapes: (): ShapeSettings => personality.settings,
    /** From the next call on, until it has applied to its number of calls, is cleared, or is replaced by another of the same target. */
    setFault: (target: Target, request: FaultRequest): void => faults.set(target, request),
    /** Without a target: all faults. */
    clearFaults: (target?: Target): void => faults.clear(target),
    faults: () => faults.report(),
    stats: (): Stats => ({
      rateLimit: behaviour.rateLimit,
      unknownKeys: parts.unknownKeys(),
      credentials: credentials.all().map(report),
    }),
  };
}
