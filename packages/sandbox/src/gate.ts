/** Every request first passes here: latency, authentication, access and the rate limit, in this order. */
import type { RequestHandler, Response } from "express";
import { type Credentials, isAllowed } from "./credentials.js";
import { Failure } from "./facts.js";
import type { Faults } from "./faults.js";
import { operationOf, ROUTES } from "./operations.js";
import type { RateLimit } from "./rolling-window.js";
import type { Reseller } from "./world.js";

export const PREFIX = "/api/v1";

const REFUSALS = {
  missing_credentials: "X-Service-Key and X-Service-Secret are required",
  invalid_credentials: "The credentials are not valid",
  revoked_credentials: "The credentials are revoked",
  api_access_disabled: "API access is not enabled on this account",
  ip_not_allowed: "This address is not on the credential's allowlist",
};

export interface Latency {
  /** Elapses before the request counts, like network latency. */
  readonly beforeMs?: number;
  /** Elapses after the request counted and before the answer. */
  readonly afterMs?: number;
}

/** Calls `run` once after `delayMs`. */
export type After = (delayMs: number, run: () => void) => void;

/** What the document leaves to the account or doesn't mention. It can change at any time. */
export interface Behaviour {
  rateLimit: RateLimit;
  latency: Latency;
}

interface GateParts {
  readonly credentials: Credentials;
  readonly faults: Faults;
  readonly behaviour: Behaviour;
  /** Monotonic ms. */
  readonly now: () => number;
  readonly after: After;
}

export interface Gate {
  readonly admit: RequestHandler;
  /** The reseller to which the request's credential belongs. */
  reseller(res: Response): Reseller;
  /** Requests without a known key. */
  readonly unknownKeys: () => number;
}

export function createGate({ credentials, faults, behaviour, now, after }: GateParts): Gate {
  const resellers = new WeakMap<Response, Reseller>();
  let unknownKeys = 0;

  async function delay(delayMs = 0): Promise<void> {
    if (delayMs > 0) await new Promise<void>((resolve) => after(delayMs, resolve));
  }

  return {
    admit: async (req, res, next) => {
      await delay(behaviour.latency.beforeMs);
      const { credential, refusal } = credentials.verify(
        req.get("X-Service-Key"),
        req.get("X-Service-Secret"),
      );
      if (credential === null) {
        unknownKeys += 1;
        throw new Failure(refusal, REFUSALS[refusal]);
      }
      const { reseller, allowlist, usage, window } = credential;
      const isExpected = isAllowed(allowlist, req.socket.remoteAddress ?? "");
      const reason =
        refusal ?? (!reseller.apiAccess ? "api_access_disabled" : isExpected ? null : "ip_not_allowed");
      if (reason !== null) {
        // Counted for the known key, so that the statistics show calls that continue after a refusal.
        usage.refused += 1;
        throw new Failure(reason, REFUSALS[reason]);
      }
      const at = now();
      const retryAfterSeconds = window.admit(at, behaviour.rateLimit);
      const operation = operationOf(req.method, PREFIX + req.path);
      // "other", so that a name in a path never becomes a label.
      const route = operation === undefined ? "other" : `${req.method} ${ROUTES[operation].path}`;
      usage.record({ at, route, accepted: retryAfterSeconds === null });
      if (retryAfterSeconds !== null)
        throw new Failure("rate_limited", "Too many requests with this credential", { retryAfterSeconds });
      resellers.set(res, reseller);
      faults.admitted(res, operation);
      await delay(behaviour.latency.afterMs);
      next();
    },
    reseller: (res) => {
      const reseller = resellers.get(res);
      if (reseller === undefined) throw new Failure("internal", "Something went wrong");
      return reseller;
    },
    unknownKeys: () => unknownKeys,
  };
}
