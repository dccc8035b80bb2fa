/** Every request first passes here: latency, authentication, access and the rate limit, in this order. */
import type { RequestHandler, Response } from "express";
import type { Behaviour } from "./behaviour.js";
import { type Credentials, isAllowed, type StoredCredential } from "./credentials.js";
import { Failure } from "./facts.js";
import type { FailureReason } from "./failure-table.js";
import { OPERATION_OF } from "./faults.js";
import type { Reseller, World } from "./world.js";

export const PREFIX = "/api/v1";

export interface Gate {
  readonly admit: RequestHandler;
  /** The reseller to which the request's credential belongs. */
  reseller(res: Response): Reseller;
  /** Requests without a known key. */
  readonly unknownKeys: () => number;
}

/** The documented route, or "other", so that a name in a path never becomes a label. */
function routeLabel(method: string, path: string): string {
  const route = `${method} ${PREFIX}${path.replace(/^\/domains\/(?!check$)[^/]+$/, "/domains/{domain}")}`;
  return OPERATION_OF.has(route) ? route : "other";
}

/** Counted for the known key, so that the statistics show calls that continue after a refusal. */
function refusal(credential: StoredCredential, reason: FailureReason, message: string): Failure {
  credential.usage.refused += 1;
  return new Failure(reason, message);
}

export function createGate(
  world: World,
  credentials: Credentials,
  behaviour: Behaviour,
  now: () => number,
): Gate {
  const resellers = new WeakMap<Response, Reseller>();
  let unknownKeys = 0;

  const authenticate = (key: string | undefined, secret: string | undefined): StoredCredential => {
    const verification = credentials.verify(key, secret);
    switch (verification.outcome) {
      case "valid":
        return verification.credential;
      case "missing":
        unknownKeys += 1;
        throw new Failure("missing_credentials", "X-Service-Key and X-Service-Secret are required");
      case "unknown":
        unknownKeys += 1;
        throw new Failure("invalid_credentials", "The credentials are not valid");
      case "wrong_secret":
        throw refusal(verification.credential, "invalid_credentials", "The credentials are not valid");
      case "revoked":
        throw refusal(verification.credential, "revoked_credentials", "The credentials are revoked");
      default:
        return verification satisfies never;
    }
  };

  return {
    admit: async (req, res, next) => {
      await behaviour.delay("beforeMs");
      const credential = authenticate(req.get("X-Service-Key"), req.get("X-Service-Secret"));
      const reseller = world.reseller(credential.resellerId);
      if (reseller?.apiAccess !== true) {
        throw refusal(credential, "api_access_disabled", "API access is not enabled on this account");
      }
      if (!isAllowed(credential.allowlist, req.socket.remoteAddress ?? "")) {
        throw refusal(credential, "ip_not_allowed", "This address is not on the credential's allowlist");
      }
      const at = now();
      const admission = credential.window.admit(at, behaviour.rateLimit);
      const route = routeLabel(req.method, req.path);
      credential.usage.record({ at, route, accepted: admission.admitted });
      if (!admission.admitted) {
        throw new Failure("rate_limited", "Too many requests with this credential", {
          retryAfterSeconds: admission.retryAfterSeconds,
        });
      }
      resellers.set(res, reseller);
      behaviour.faults.admitted(res, route);
      await behaviour.delay("afterMs");
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
