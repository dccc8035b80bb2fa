/** Everything that a reseller or the operator does outside the API: credentials, access, changes of the world, scripts, statistics. */
import type { Behaviour, LatencyChange } from "./behaviour.js";
import {
  type Change,
  type Due,
  type FirstYear,
  resellerOf,
  type Scheduled,
  type SetPrice,
  type Timeline,
} from "./changes.js";
import type { Credential, Credentials, StoredCredential } from "./credentials.js";
import type { Delivery, Watcher } from "./delivery.js";
import { Failure } from "./facts.js";
import type { FaultRequest, Target } from "./faults.js";
import type { Hold, HoldRequest, Holds } from "./holds.js";
import type { ShapeSettings } from "./open-points.js";
import type { Personality } from "./personality.js";
import { PortalError } from "./portal-error.js";
import { type ShapeChoice, ShapeFault } from "./presets.js";
import type { RateLimit } from "./rolling-window.js";
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

function report({ key, reseller, revoked, allowlist, usage, window }: StoredCredential) {
  return {
    key,
    reseller: reseller.id,
    revoked,
    allowlist,
    accepted: usage.accepted,
    rejected429: usage.rejected429,
    /** Calls with a known key whose credential, account or address was refused. */
    refused: usage.refused,
    /** The largest number of accepted calls in any rolling window, both ends included. */
    largestWindow: window.largest,
    /** Accepted calls by "METHOD /api/v1/…" or "other". */
    byRoute: Object.fromEntries(usage.byRoute),
    /** The last calls, at most 5000, accepted or refused with 429, in order of arrival. */
    calls: usage.lastCalls(),
  };
}

interface PortalParts {
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

export type Control = ReturnType<typeof createPortal>;

export function createPortal(parts: PortalParts) {
  const { world, timeline, holds, delivery, credentials, behaviour, personality } = parts;
  const credentialWith = (key: string): StoredCredential => {
    const stored = credentials.find(key);
    if (stored === undefined) throw new PortalError(404, "there is no such credential");
    return stored;
  };

  return {
    /** Requires API access, a verified e-mail address and two-factor authentication. */
    createCredential: (id: string): Credential => {
      const reseller = resellerOf(world, id);
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
      const reseller = resellerOf(world, id);
      reseller.emailVerified = emailVerified ?? reseller.emailVerified;
      reseller.twoFactor = twoFactor ?? reseller.twoFactor;
    },
    /** Enabling it requires a verified e-mail address and two-factor authentication. */
    setApiAccess: (id: string, enabled: boolean): void => {
      const reseller = resellerOf(world, id);
      if (enabled) requireSecurity(reseller);
      reseller.apiAccess = enabled;
    },
    /** Determines all prices of the reseller that haven't been set individually. */
    setTier: (reseller: string, tier: string): void => timeline.apply([{ tier: { reseller, tier } }]),
    setPrice: (reseller: string, price: Omit<SetPrice, "reseller">): void =>
      timeline.apply([{ price: { reseller, ...price } }]),
    /** Registers, renews, transfers or restores a name at once; `schedule` does it later, as the registry's queue does. */
    order: (id: string, order: Order): void => {
      timeline.catchUp();
      const problem = world.problemOf(resellerOf(world, id), order);
      if (problem !== null) throw new PortalError(409, problem);
      try {
        timeline.apply([{ order: { reseller: id, ...order } }]);
      } catch (error) {
        if (error instanceof Failure) throw new PortalError(422, error.message);
        throw error;
      }
    },
    setTaken: (domain: string, taken: boolean): void => timeline.apply([{ taken: { domain, taken } }]),
    setPremium: (domain: string, firstYear: FirstYear): void =>
      timeline.apply([{ premium: { domain, firstYear } }]),
    /** Makes these changes together later, before the first answer that is computed after they are due. Returns an id. */
    schedule: (due: Due, changes: readonly Change[]): number => timeline.schedule(due, changes),
    scheduled: (): readonly Scheduled[] => timeline.pending(),
    clearSchedule: (): void => timeline.clear(),
    /** Holds the next answers until they are released, in any order. */
    hold: (request: HoldRequest = {}): Hold => holds.add(request),
    holds: (): readonly Hold[] => holds.active(),
    /** Calls the watcher for every answer that is sent unchanged to a connected caller; returns a function that stops it. */
    watch: (watcher: Watcher) => delivery.watch(watcher),
    setBehaviour: (latency: LatencyChange): void => behaviour.changeLatency(latency),
    setRateLimit: (rateLimit: RateLimit): void => {
      behaviour.rateLimit = rateLimit;
    },
    /** From the next answer on, plays the preset (default: `documented`) with these settings. */
    setShapes: (choice: ShapeChoice): ShapeSettings => {
      try {
        personality.choose(choice);
      } catch (error) {
        if (error instanceof ShapeFault) throw new PortalError(422, error.message);
        throw error;
      }
      return personality.settings;
    },
    shapes: (): ShapeSettings => personality.settings,
    /** From the next call on, until it has applied to its number of calls, is cleared, or is replaced by another of the same target. */
    setFault: (target: Target, request: FaultRequest): void => behaviour.faults.set(target, request),
    /** Without a target: all faults. */
    clearFaults: (target?: Target): void => behaviour.faults.clear(target),
    faults: () => behaviour.faults.report(),
    stats: (): Stats => ({
      rateLimit: behaviour.rateLimit,
      unknownKeys: parts.unknownKeys(),
      credentials: credentials.all().map(report),
    }),
  };
}
