/** What a reseller or the operator does outside the API: credentials, access, changes of the world, scripts, and reading the statistics. */
import type { Behaviour, LatencyChange } from "./behaviour.js";
import { type Change, resellerOf, type SetPrice, type Timeline } from "./changes.js";
import type { Credential, Credentials, StoredCredential } from "./credentials.js";
import type { Delivery, Watcher } from "./delivery.js";
import { type FaultReport, FaultRefused, type FaultRequest, type Target } from "./faults.js";
import type { Hold, HoldRequest, Holds } from "./holds.js";
import type { ShapeSettings } from "./open-points.js";
import type { Personality } from "./personality.js";
import { PortalError } from "./portal-error.js";
import { type ShapeChoice, ShapeFault } from "./presets.js";
import type { RateLimit } from "./rolling-window.js";
import type { Due, Scheduled } from "./schedule.js";
import type { Call } from "./usage.js";
import type { Reseller, World } from "./world.js";

interface CredentialStats {
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
  readonly unknownKeys: number;
  readonly credentials: readonly CredentialStats[];
}

/** Both must hold before a reseller can have API access or credentials. */
interface AccountSecurity {
  readonly emailVerified?: boolean | undefined;
  readonly twoFactor?: boolean | undefined;
}

export interface Control {
  /** Only with API access, a verified e-mail address and two-factor authentication. */
  createCredential(reseller: string): Credential;
  /** Under the same conditions: a second credential with the same reseller and allowlist; the old one stays valid unless `revokeOld`. */
  rotate(key: string, options?: { readonly revokeOld?: boolean | undefined }): Credential;
  revoke(key: string): void;
  /** Addresses or CIDR blocks; an empty list lifts the restriction. */
  setAllowlist(key: string, addresses: readonly string[]): void;
  setSecurity(reseller: string, security: AccountSecurity): void;
  /** Enabling it needs a verified e-mail address and two-factor authentication. */
  setApiAccess(reseller: string, enabled: boolean): void;
  /** All prices of the reseller that have not been set follow from it. */
  setTier(reseller: string, tier: string): void;
  /** `amountCents` is what this reseller pays from now on, whatever the tier; null goes back to the tier's price. */
  setPrice(reseller: string, price: Omit<SetPrice, "reseller">): void;
  setTaken(domain: string, taken: boolean): void;
  /** The first year's price in cents by currency; null makes the name ordinary. */
  setPremium(domain: string, firstYear: Readonly<Record<string, number>> | null): void;
  /** Makes these changes together later: before the next answer that is decided once they are due. Returns an id. */
  schedule(due: Due, changes: readonly Change[]): number;
  scheduled(): readonly Scheduled<readonly Change[]>[];
  clearSchedule(): void;
  /** Holds the next answers until they are released, in any order. */
  hold(request?: HoldRequest): Hold;
  holds(): readonly Hold[];
  /** Shows every answer that is sent as decided to a caller who is still there; the result ends it. */
  watch(watcher: Watcher): () => void;
  setBehaviour(latency: LatencyChange): void;
  setRateLimit(rateLimit: RateLimit): void;
  /** Plays the preset (default: `documented`) with the settings that differ from it, from the next answer on. */
  setShapes(choice: ShapeChoice): ShapeSettings;
  shapes(): ShapeSettings;
  /** From the next call on, until it has struck its calls, is cleared or another one is set for the same target. */
  setFault(target: Target, request: FaultRequest): void;
  /** Without a target: every fault. */
  clearFaults(target?: Target): void;
  faults(): FaultReport;
  stats(): Stats;
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

export interface PortalParts {
  readonly world: World;
  readonly timeline: Timeline;
  readonly holds: Holds;
  readonly delivery: Delivery;
  readonly credentials: Credentials;
  readonly behaviour: Behaviour;
  readonly personality: Personality;
  readonly unknownKeys: () => number;
}

function requireSecurity({ id, emailVerified, twoFactor }: Reseller): void {
  if (!emailVerified) throw new PortalError(409, `the e-mail address of ${id} is not verified`);
  if (!twoFactor) throw new PortalError(409, `two-factor authentication is off for ${id}`);
}

function requireAccess(reseller: Reseller): void {
  requireSecurity(reseller);
  if (!reseller.apiAccess) throw new PortalError(409, `API access is not enabled for ${reseller.id}`);
}

export function createPortal(parts: PortalParts): Control {
  const { world, timeline, holds, delivery, credentials, behaviour, personality } = parts;
  const resellerNamed = (id: string): Reseller => resellerOf(world, id);
  const credentialWith = (key: string): StoredCredential => {
    const stored = credentials.find(key);
    if (stored === undefined) throw new PortalError(404, "there is no such credential");
    return stored;
  };

  return {
    createCredential: (id) => {
      requireAccess(resellerNamed(id));
      return credentials.create(id);
    },
    rotate: (key, options = {}) => {
      const old = credentialWith(key);
      if (old.revoked) throw new PortalError(409, "a revoked credential cannot be rotated");
      requireAccess(resellerNamed(old.resellerId));
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
    setSecurity: (id, { emailVerified, twoFactor }) => {
      const reseller = resellerNamed(id);
      reseller.emailVerified = emailVerified ?? reseller.emailVerified;
      reseller.twoFactor = twoFactor ?? reseller.twoFactor;
    },
    setApiAccess: (id, enabled) => {
      const reseller = resellerNamed(id);
      if (enabled) requireSecurity(reseller);
      reseller.apiAccess = enabled;
    },
    setTier: (reseller, tier) => {
      timeline.apply([{ tier: { reseller, tier } }]);
    },
    setPrice: (reseller, price) => {
      timeline.apply([{ price: { reseller, ...price } }]);
    },
    setTaken: (domain, taken) => {
      timeline.apply([{ taken: { domain, taken } }]);
    },
    setPremium: (domain, firstYear) => {
      timeline.apply([{ premium: { domain, firstYear } }]);
    },
    schedule: (due, changes) => timeline.schedule(due, changes),
    scheduled: () => timeline.pending(),
    clearSchedule: () => {
      timeline.clear();
    },
    hold: (request = {}) => holds.add(request),
    holds: () => holds.active(),
    watch: (watcher) => delivery.watch(watcher),
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
    setFault: (target, request) => {
      try {
        behaviour.faults.set(target, request);
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
      unknownKeys: parts.unknownKeys(),
      credentials: credentials.all().map(report),
    }),
  };
}
