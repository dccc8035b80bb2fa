/** What a reseller or the operator does outside the API: credentials, access, tiers, prices, and reading the statistics. */
import type { Behaviour, LatencyChange } from "./behaviour.js";
import type { Credential, Credentials, StoredCredential } from "./credentials.js";
import { type FaultReport, FaultRefused, type FaultWish, type Target } from "./faults.js";
import type { ShapeSettings } from "./open-points.js";
import type { Personality } from "./personality.js";
import { type ShapeChoice, ShapeFault } from "./presets.js";
import type { PriceKey } from "./prices.js";
import type { RateLimit } from "./rolling-window.js";
import type { Call } from "./usage.js";
import type { Reseller, World } from "./world.js";

export interface CredentialStats {
  readonly key: string;
  readonly reseller: string;
  readonly revoked: boolean;
  readonly allowlist: readonly string[];
  readonly accepted: number;
  readonly rejected429: number;
  /** Refused with 401 or 403 although the key is known. */
  readonly refused: number;
  /** The most accepted calls that any rolling window has held, both ends of the window included. */
  readonly largestWindow: number;
  /** Accepted calls by "METHOD /api/v1/…", else "other". */
  readonly byRoute: Readonly<Record<string, number>>;
  /** At most the last 5000 calls, accepted or refused with 429, in the order of arrival. */
  readonly calls: readonly Call[];
}

export interface Stats {
  readonly rateLimit: RateLimit;
  /** Requests that named no known key. */
  readonly strangers: number;
  readonly credentials: readonly CredentialStats[];
}

export interface Control {
  createCredential(reseller: string): Credential;
  /** A second credential with the same reseller and allowlist; the old one stays valid unless `revokeOld`. */
  rotate(key: string, options?: { readonly revokeOld?: boolean | undefined }): Credential;
  revoke(key: string): void;
  /** Addresses or CIDR blocks; an empty list lifts the restriction. */
  setAllowlist(key: string, addresses: readonly string[]): void;
  setApiAccess(reseller: string, enabled: boolean): void;
  setTier(reseller: string, tier: string): void;
  /** `amountCents` is what this reseller pays from now on, whatever the tier. */
  setPrice(reseller: string, price: PriceKey & { readonly amountCents: number }): void;
  setTaken(domain: string, taken: boolean): void;
  setBehaviour(latency: LatencyChange): void;
  setRateLimit(rateLimit: RateLimit): void;
  /** Plays the preset (default: `documented`) with the settings that differ from it, from the next answer on. */
  setShapes(choice: ShapeChoice): ShapeSettings;
  shapes(): ShapeSettings;
  /** From the next call on, until it has struck its calls, is cleared or another one is set for the same target. */
  setFault(target: Target, wish: FaultWish): void;
  /** Without a target: every fault. */
  clearFaults(target?: Target): void;
  faults(): FaultReport;
  stats(): Stats;
}

export class PortalError extends Error {
  readonly status: 404 | 409 | 422;

  constructor(status: 404 | 409 | 422, message: string) {
    super(message);
    this.name = "PortalError";
    this.status = status;
  }
}

function report(stored: StoredCredential): CredentialStats {
  const { key, resellerId, revoked, allowlist, usage, window } = stored;
  return {
    key,
    reseller: resellerId,
    revoked,
    allowlist,
    accepted: usage.accepted,
    rejected429: usage.rejected429,
    refused: usage.refused,
    largestWindow: window.largest,
    byRoute: Object.fromEntries(usage.byRoute),
    calls: usage.lastCalls(),
  };
}

export function createPortal(
  world: World,
  credentials: Credentials,
  behaviour: Behaviour,
  personality: Personality,
  strangers: () => number,
): Control {
  const resellerNamed = (id: string): Reseller => {
    const reseller = world.reseller(id);
    if (reseller === undefined) throw new PortalError(404, `there is no reseller ${id}`);
    return reseller;
  };
  const credentialWith = (key: string): StoredCredential => {
    const stored = credentials.find(key);
    if (stored === undefined) throw new PortalError(404, "there is no such credential");
    return stored;
  };

  return {
    createCredential: (id) => {
      if (!resellerNamed(id).apiAccess) throw new PortalError(409, `API access is not enabled for ${id}`);
      return credentials.create(id);
    },
    rotate: (key, options = {}) => {
      const old = credentialWith(key);
      if (old.revoked) throw new PortalError(409, "a revoked credential cannot be rotated");
      const fresh = credentials.create(old.resellerId, undefined, old.allowlist);
      old.revoked = options.revokeOld === true;
      return fresh;
    },
    revoke: (key) => {
      credentialWith(key).revoked = true;
    },
    setAllowlist: (key, addresses) => {
      credentialWith(key).allowlist = [...addresses];
    },
    setApiAccess: (id, enabled) => {
      resellerNamed(id).apiAccess = enabled;
    },
    setTier: (id, tier) => {
      const reseller = resellerNamed(id);
      if (!world.hasTier(tier)) throw new PortalError(422, `there is no tier ${tier}`);
      reseller.tier = tier;
    },
    setPrice: (id, { amountCents, ...key }) => {
      const reseller = resellerNamed(id);
      if (!world.sells(reseller, key.tld)) throw new PortalError(422, `${key.tld} is not sold to ${id}`);
      world.setPrice(reseller, key, amountCents);
    },
    setTaken: (domain, taken) => {
      world.setTaken(domain, taken);
    },
    setBehaviour: (latency) => {
      behaviour.changeLatency(latency);
    },
    setRateLimit: (rateLimit) => {
      behaviour.rateLimit = rateLimit;
    },
    setShapes: (choice) => {
      try {
        personality.choose(choice);
      } catch (error) {
        if (error instanceof ShapeFault) throw new PortalError(422, error.message);
        throw error;
      }
      return personality.settings;
    },
    shapes: () => personality.settings,
    setFault: (target, wish) => {
      try {
        behaviour.faults.set(target, wish);
      } catch (error) {
        if (error instanceof FaultRefused) throw new PortalError(422, error.message);
        throw error;
      }
    },
    clearFaults: (target) => {
      behaviour.faults.clear(target);
    },
    faults: () => behaviour.faults.report(),
    stats: () => ({
      rateLimit: behaviour.rateLimit,
      strangers: strangers(),
      credentials: credentials.all().map(report),
    }),
  };
}
