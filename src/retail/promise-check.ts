/** Verifies a price promise as a reseller's checkout does: with only the published keys and a clock. */
import type { JSONWebKeySet } from "jose";
import { JOSEError, JWTExpired } from "jose/errors";
import { createLocalJWKSet } from "jose/jwks/local";
import { jwtVerify } from "jose/jwt/verify";
import { z } from "zod";

const claimsShape = z.object({
  jti: z.string(),
  exp: z.int(),
  items: z
    .array(
      z.object({
        domain: z.string(),
        tld: z.string(),
        action: z.string(),
        years: z.int(),
        price: z.object({ amount: z.string(), currency: z.string() }),
      }),
    )
    .min(1),
});

type CheckedPromise =
  | {
      readonly ok: true;
      readonly validUntilMs: number;
      readonly lines: z.infer<typeof claimsShape>["items"];
    }
  /** `altered`: signed by another key, modified, or not a promise. */
  | { readonly ok: false; readonly reason: "expired" | "altered" };

/** Verifies a promise with `keys`, the JWK set of `/.well-known/jwks.json`. */
export async function checkPromise(jws: string, keys: JSONWebKeySet, nowMs: number): Promise<CheckedPromise> {
  try {
    const { payload } = await jwtVerify(jws, createLocalJWKSet(keys), {
      algorithms: ["EdDSA"],
      typ: "price-promise+jwt",
      currentDate: new Date(nowMs),
    });
    const { exp, items } = claimsShape.parse(payload);
    return { ok: true, validUntilMs: exp * 1000, lines: items };
  } catch (error) {
    if (error instanceof JWTExpired) return { ok: false, reason: "expired" };
    if (error instanceof JOSEError || error instanceof z.ZodError) return { ok: false, reason: "altered" };
    throw error;
  }
}
