/** The shapes of errors (RFC 9457), health and keys. */
import { z } from "zod";
import { ERROR_CODES, REASONS } from "../errors.js";

const named = { title: z.string(), status: z.int().min(400).max(599), code: z.enum(ERROR_CODES) };

export const problemShape = z
  .strictObject({
    type: z.string().regex(/^\/problems\/[a-z_]+$/),
    ...named,
    detail: z.string(),
    requestId: z.string().describe("The same as the `x-request-id` header."),
    errors: z
      .array(
        z.strictObject({
          field: z.string(),
          reason: z.enum(REASONS).describe("For programs. More may be added."),
          message: z.string().describe("For people, in English."),
        }),
      )
      .optional()
      .describe("Each invalid field."),
    retryAfter: z
      .int()
      .min(1)
      .optional()
      .describe("Seconds to wait before a retry; the same as the `Retry-After` header."),
    kept: z
      .boolean()
      .optional()
      .describe("With quota_exhausted: whether a call is reserved, so that a retry at that second succeeds."),
  })
  .describe("An error. Its `code` is one of a closed list.");

export const problemKindShape = z
  .strictObject({ ...named, explanation: z.string() })
  .describe("What an error code means, and what to do about it.");

export const statusShape = z.strictObject({ status: z.string() }).describe("A state as one word.");

export const keySetShape = z
  .strictObject({
    keys: z.array(
      z.strictObject({
        kty: z.literal("OKP"),
        crv: z.literal("Ed25519"),
        x: z.string(),
        kid: z.string().describe("The key's RFC 7638 thumbprint."),
        use: z.literal("sig"),
        alg: z.literal("EdDSA"),
      }),
    ),
  })
  .describe("Public keys (RFC 7517).");

const grade = z.enum(["pass", "warn", "fail"]);
const check = z
  .array(z.strictObject({ status: grade, output: z.string().optional() }))
  .min(1)
  .describe("Without figures, because it is public.");

export const healthShape = z
  .strictObject({
    status: grade,
    version: z.string(),
    description: z.string(),
    checks: z.strictObject({
      upstream: check,
      quota: check,
      redis: check,
      prices: check,
      owner: check,
      proxy: check,
    }),
  })
  .describe("The health of the service and its dependencies.");
