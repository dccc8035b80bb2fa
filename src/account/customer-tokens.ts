/**
 * Customer tokens: JWTs from the reseller's own login that name the customer's domains. Believed only with a pinned algorithm, a good
 * signature, an expiry, and the issuer and audience that are set. Nothing of ours is sent to where the login publishes its keys.
 */
import type { JWTPayload } from "jose";
import { JOSEError, JWKSNoMatchingKey } from "jose/errors";
import { createLocalJWKSet } from "jose/jwks/local";
import { jwtVerify } from "jose/jwt/verify";
import { z } from "zod";
import { type Asker, createPool } from "../cache/cache.js";
import type { Fact } from "../cache/facts.js";
import type { Clock } from "../clock.js";
import { type CustomerSettings, LEAST_CUSTOMER_SECRET_BYTES } from "../config.js";
import { AF_TLDS, canonicalHost, type DomainName, parseDomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";

export interface CustomerTokens {
  /**
   * The customer's names, by their canonical form, that can be the reseller's. Rejects with `unauthenticated` for a token that is not
   * believed, with `upstream_failed` while the login's keys cannot be had.
   */
  namesOf(token: string, asker: Asker): Promise<ReadonlyMap<string, DomainName>>;
}

// Never HMAC here: whoever has the public key could sign with it.
const PUBLIC_KEY_ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(
  " ",
);

const KEYS_FRESH_MS = 600_000;
/** A login that is down for a while locks nobody out. */
const KEYS_USABLE_MS = 3_600_000;
const FAILURE_MS = 10_000;
/** A token of an unknown key has the keys fetched anew if they are older than this: anyone can make such tokens. */
const NEW_KEY_AFTER_MS = 30_000;
const FETCH_DEADLINE_MS = 3_000;
const LARGEST_SET_BYTES = 256 * 1024;

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) });
const claims = z.object({ domains: z.array(z.string()) });

export function createCustomerTokens(
  settings: CustomerSettings & { readonly clock: Clock; readonly log: Log },
): CustomerTokens {
  const { keys, issuer, audience, clock, log } = settings;
  const payloadOf =
    "secret" in keys ? withSecret(() => keys.secret.current()) : withPublished(new URL(keys.jwksUrl));

  const options = (algorithms: string[]) => ({
    algorithms,
    requiredClaims: ["exp"],
    ...(issuer !== null && { issuer }),
    ...(audience !== null && { audience }),
    currentDate: new Date(clock.now()),
  });

  function withSecret(current: () => string) {
    let good = current();
    return async (token: string): Promise<JWTPayload> => {
      const text = current();
      if (Buffer.byteLength(text) >= LEAST_CUSTOMER_SECRET_BYTES) good = text;
      return (await jwtVerify(token, new TextEncoder().encode(good), options(["HS256"]))).payload;
    };
  }

  function withPublished(url: URL) {
    type Keys = ReturnType<typeof createLocalJWKSet>;
    const known = createPool<Keys, Asker>({
      entries: 1,
      freshness: () => ({ freshMs: KEYS_FRESH_MS, usableMs: KEYS_USABLE_MS }),
      failureMs: FAILURE_MS,
      clock,
    });
    const load = async (): Promise<Fact<Keys>> => {
      const askedMs = clock.monotonic();
      try {
        const value = createLocalJWKSet(keySet.parse(JSON.parse(await textAt(url))));
        return { value, askedMs, answeredMs: clock.monotonic() };
      } catch {
        throw keysFailed("not had");
      }
    };
    const verify = async (token: string, by: Keys): Promise<JWTPayload> =>
      (await jwtVerify(token, by, options(PUBLIC_KEY_ALGORITHMS))).payload;

    return async (token: string, asker: Asker): Promise<JWTPayload> => {
      const { value } = await known.get("keys", asker, load, { whileRevalidating: true });
      try {
        return await verify(token, value);
      } catch (error) {
        if (!(error instanceof JWKSNoMatchingKey)) throw error;
        return verify(
          token,
          (await known.get("keys", asker, load, { askedSinceMs: clock.monotonic() - NEW_KEY_AFTER_MS }))
            .value,
        );
      }
    };
  }

  /** The body of a success, whole within the deadline and the bound. */
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
        if (bytes > LARGEST_SET_BYTES) throw new Error("the answer is too large");
      }
      if (!response.ok) throw new Error("the answer is no success");
      return Buffer.concat(chunks).toString("utf8");
    } finally {
      cancel();
    }
  }

  function keysFailed(how: "not had" | "not usable"): ServiceError {
    log.warn("customer.keys.failed", { how });
    return new ServiceError("upstream_failed", "Customer tokens cannot be checked at the moment.", {
      retryAfterMs: FAILURE_MS,
    });
  }

  return {
    async namesOf(token, asker) {
      let payload: JWTPayload;
      try {
        payload = await payloadOf(token, asker);
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        // What is not about the token is about the key, such as one that is too short for its algorithm.
        throw error instanceof JOSEError ? notBelieved() : keysFailed("not usable");
      }
      const read = claims.safeParse(payload);
      if (!read.success) throw notBelieved();
      const names = read.data.domains.flatMap((text) => nameOf(text) ?? []);
      return new Map(names.map((name) => [name.ascii, name]));
    },
  };
}

/** The name itself, in any spelling, if a reseller of .af can manage it. */
function nameOf(text: string): DomainName | null {
  const host = canonicalHost(text);
  if (host === null) return null;
  try {
    const name = parseDomainName(host, AF_TLDS, "domains");
    return name.ascii === host ? name : null;
  } catch {
    return null;
  }
}

function notBelieved(): ServiceError {
  return new ServiceError("unauthenticated", "The customer token is not valid, or not any more.", {
    headers: { "WWW-Authenticate": 'Bearer realm="customer", error="invalid_token"' },
  });
}
