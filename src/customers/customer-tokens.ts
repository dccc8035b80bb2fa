/**
 * Customer tokens: JWTs from the reseller's own login that list the customer's domains. A token is accepted only with a pinned algorithm, a
 * valid signature, an expiry, and the configured issuer and audience. Requests for the login's keys contain nothing of ours.
 *
 * What verifies them is loaded with the first token, because a start doesn't need it.
 */
import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { JOSEError, JWKSNoMatchingKey, JWTExpired } from "jose/errors";
import type { createLocalJWKSet } from "jose/jwks/local";
import { z } from "zod";
import { createPage } from "../facts/page.js";
import type { Answered, Clock } from "../clock.js";
import { AF_TLDS, canonicalHost, type DomainName, parseDomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Ask } from "../quota/quota.js";
import type { Secret } from "../secret.js";

/** RFC 7518, section 3.2: an HS256 key has at least as many bits as the hash. */
export const MIN_CUSTOMER_SECRET_BYTES = 32;

export interface CustomerSettings {
  readonly keys: { readonly jwksUrl: string } | { readonly secret: Secret };
  /** Null: not checked; not allowed in production. */
  readonly issuer: string | null;
  readonly audience: string | null;
}

/** The customer that a token identifies. */
export interface OwnNames {
  /** The token's `sub`; null without one. */
  readonly subject: string | null;
  /** The customer's names that the reseller can manage, by their canonical form. */
  readonly names: ReadonlyMap<string, DomainName>;
}

export interface CustomerTokens {
  /**
   * The token's customer, or why it isn't accepted. `expired`: it was valid before. Rejects with `upstream_failed` if the login's keys can't
   * be fetched.
   */
  ownerOf(token: string, signal: AbortSignal): Promise<OwnNames | "expired" | "wrong">;
}

// Never HMAC here: anyone with the public key could sign.
const PUBLIC_KEY_ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(
  " ",
);

const KEYS_FRESH_MS = 600_000;
/** Customers can keep using their tokens while the login is down. */
const KEYS_USABLE_MS = 3_600_000;
const FAILURE_MS = 10_000;
/** An unknown key refreshes the key set only if it is older than this, because anyone can create such tokens. */
const NEW_KEY_AFTER_MS = 30_000;
const FETCH_DEADLINE_MS = 3_000;
const MAX_KEY_SET_BYTES = 256 * 1024;

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) });
const claims = z.object({ domains: z.array(z.string()) });

export function createCustomerTokens(
  settings: CustomerSettings & { readonly clock: Clock; readonly log: Log },
): CustomerTokens {
  const { keys, issuer, audience, clock, log } = settings;
  const payloadOf = "secret" in keys ? withSecret(keys.secret) : withPublished(new URL(keys.jwksUrl));

  async function verify(token: string, key: JWTVerifyGetKey, algorithms: string[]): Promise<JWTPayload> {
    const { jwtVerify } = await import("jose/jwt/verify");
    const { payload } = await jwtVerify(token, key, {
      algorithms,
      requiredClaims: ["exp"],
      ...(issuer !== null && { issuer }),
      ...(audience !== null && { audience }),
      currentDate: new Date(clock.now()),
    });
    return payload;
  }

  function withSecret(secret: Secret) {
    const key = (): Uint8Array => new TextEncoder().encode(secret.current());
    return (token: string): Promise<JWTPayload> => verify(token, key, ["HS256"]);
  }

  function withPublished(url: URL) {
    type Keys = ReturnType<typeof createLocalJWKSet>;
    const known = createPage<Keys>({
      entries: 1,
      freshness: () => ({ freshMs: KEYS_FRESH_MS, usableMs: KEYS_USABLE_MS }),
      failureMs: FAILURE_MS,
      clock,
    });
    const load = async (): Promise<Answered<Keys>> => {
      const { createLocalJWKSet } = await import("jose/jwks/local");
      const askedAt = clock.monotonic();
      try {
        const value = createLocalJWKSet(keySet.parse(JSON.parse(await textAt(url))));
        return { value, askedAt, answeredAt: clock.monotonic() };
      } catch {
        throw keysFailed("unreachable");
      }
    };
    return async (token: string, signal: AbortSignal): Promise<JWTPayload> => {
      const asker: Ask = { lane: "account", client: "keys", waitUntilAt: Infinity, signal };
      const { value } = await known.get("keys", asker, load, { whileRevalidating: true });
      try {
        return await verify(token, value, PUBLIC_KEY_ALGORITHMS);
      } catch (error) {
        if (!(error instanceof JWKSNoMatchingKey)) throw error;
        const askedSince = clock.monotonic() - NEW_KEY_AFTER_MS;
        const newer = await known.get("keys", asker, load, { askedSince });
        return verify(token, newer.value, PUBLIC_KEY_ALGORITHMS);
      }
    };
  }

  /** The body of a successful answer, within the deadline and the size limit. */
  async function textAt(url: URL): Promise<string> {
    const deadline = new AbortController();
    const cancel = clock.after(FETCH_DEADLINE_MS, () => {
      deadline.abort();
    });
    try {
      const response = await fetch(url, {
        headers: { Accept: "application/json" },
        redirect: "error",
        signal: deadline.signal,
      });
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const part of response.body ?? []) {
        const chunk = z.instanceof(Uint8Array).parse(part);
        chunks.push(chunk);
        bytes += chunk.byteLength;
        if (bytes > MAX_KEY_SET_BYTES) throw new Error("the answer is too large");
      }
      if (!response.ok) throw new Error("the answer is not a success");
      return Buffer.concat(chunks).toString("utf8");
    } finally {
      cancel();
    }
  }

  function keysFailed(how: "unreachable" | "unusable"): ServiceError {
    log.warn("customer.keys.failed", { how });
    return new ServiceError("upstream_failed", "Customer tokens can't be verified at the moment.", {
      retryAfterMs: FAILURE_MS,
    });
  }

  return {
    async ownerOf(token, signal) {
      let payload: JWTPayload;
      try {
        payload = await payloadOf(token, signal);
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        // jose checks the expiry last, after the signature, the issuer and the audience.
        if (error instanceof JWTExpired) return "expired";
        if (error instanceof JOSEError) return "wrong";
        // Errors that aren't about the token are about the key, such as one that is too short for its algorithm.
        throw keysFailed("unusable");
      }
      const read = claims.safeParse(payload);
      if (!read.success) return "wrong";
      const names = read.data.domains.flatMap((text) => readName(text) ?? []);
      return { subject: payload.sub ?? null, names: new Map(names.map((name) => [name.ascii, name])) };
    },
  };
}

/** The name, in any spelling, if a reseller of .af can manage it. */
function readName(text: string): DomainName | null {
  const host = canonicalHost(text);
  if (host === null) return null;
  try {
    const name = parseDomainName(host, AF_TLDS, "domains");
    return name.ascii === host ? name : null;
  } catch {
    return null;
  }
}
