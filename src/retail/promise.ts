/**
 * Price promises: the retail lines of a cart, signed (JWS, Ed25519), so that the reseller's checkout can verify a price offline. Wholesale
 * amounts are never part of the signed text; they are kept with the signed cart, for staff only.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  randomUUID,
  sign,
} from "node:crypto";
import { z } from "zod";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { presentRetail, type Retail, type Wholesale } from "../money.js";
import type { Secret } from "../secret.js";
import { ACTIONS, type Combination } from "../upstream/contract.js";
import { NAME_KINDS, type NameKind } from "./policy.js";

export interface PromisedLine extends Combination {
  readonly domain: string;
  readonly price: Retail;
  /** The price that the retail price was calculated from. */
  readonly wholesale: Wholesale;
  readonly kind: NameKind;
}

export interface PricePromise {
  readonly id: string;
  readonly issuedAtMs: number;
  readonly validUntilMs: number;
  readonly lines: readonly PromisedLine[];
}

const storedMoney = { amount: z.string().regex(/^\d+(?:\.\d+)?$/), currency: z.string() };

/** A line and a promise in a store. */
export const promisedLineShape = z.object({
  domain: z.string(),
  tld: z.string(),
  action: z.enum(ACTIONS),
  years: z.int().positive(),
  price: z.object({ kind: z.literal("retail"), ...storedMoney }),
  wholesale: z.object({ kind: z.literal("wholesale"), ...storedMoney }),
  kind: z.enum(NAME_KINDS),
}) satisfies z.ZodType<PromisedLine>;
export const promiseShape = z.object({
  id: z.string(),
  issuedAtMs: z.number(),
  validUntilMs: z.number(),
  lines: z.array(promisedLineShape).readonly(),
}) satisfies z.ZodType<PricePromise>;

export interface SignedPromise {
  readonly jws: string;
  readonly validUntilMs: number;
  /** Resolves when the next owner could find the promise, or once that has taken too long. */
  readonly kept: Promise<void>;
}

/** A public Ed25519 key as JWK (RFC 8037). */
interface PublicKey {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  readonly x: string;
  /** The key's RFC 7638 thumbprint. */
  readonly kid: string;
  readonly use: "sig";
  readonly alg: "EdDSA";
}

export interface Promises {
  /** Signs the lines as a compact JWS that is valid for `validMs`; null without lines or without a key. */
  sign(lines: readonly PromisedLine[], validMs: number): SignedPromise | null;
  /** A JWK set with the key of every valid promise. */
  publicKeys(): { readonly keys: readonly PublicKey[] };
}

interface PromiseSettings {
  /** In the format of `parsePromiseKeys`, reread on use. Null: nothing is signed. */
  readonly keys: Secret | null;
  /** How long promises are valid. */
  readonly validMs: () => number;
  /** Keeps what was signed; never rejects. */
  readonly keep: (promise: PricePromise) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

interface SigningKey {
  readonly key: KeyObject;
  readonly public: PublicKey;
  /** The encoded header of every promise that it signs. */
  readonly header: string;
}

interface KeyRing {
  readonly signing: SigningKey;
  readonly published: readonly PublicKey[];
}

/** Other replicas may notice a changed key file later, and sign with the previous key until then. */
const OTHERS_LATER_MS = 120_000;

export function createPromises({ keys, validMs, keep, clock, log }: PromiseSettings): Promises {
  /** None is deleted, because the wall clock may be ahead only for a while. */
  const retired = new Map<string, { readonly key: PublicKey; readonly untilMs: number }>();
  let seen: string | null = null;
  let ring: KeyRing | null = null;
  let lastValidUntilAt = -Infinity;

  if (keys === null) {
    log.warn("promise.key.missing", { note: "prices aren't signed because PROMISE_PRIVATE_KEY isn't set" });
  }

  function current(): KeyRing | null {
    const text = keys?.current() ?? null;
    if (text === null || text === seen) return ring;
    seen = text;
    const read = parsePromiseKeys(text);
    if (!read.ok) return ring;
    const former = ring?.signing.public;
    if (former && former.kid !== read.ring.signing.public.kid) {
      const untilMs = Math.max(lastValidUntilAt, clock.now() + validMs()) + OTHERS_LATER_MS;
      retired.set(former.kid, { key: former, untilMs });
      log.info("promise.key.changed", { kid: read.ring.signing.public.kid, former: former.kid });
    }
    ring = read.ring;
    return ring;
  }

  // Loaded on startup, so that the keys remain if the file becomes malformed later.
  current();

  return {
    sign(lines, forMs) {
      const signing = current()?.signing;
      const [first] = lines;
      if (signing === undefined || first === undefined) return null;
      const id = randomUUID();
      const issuedAtMs = clock.now();
      const validUntil = Math.floor((issuedAtMs + forMs) / 1000);
      const validUntilMs = validUntil * 1000;
      lastValidUntilAt = Math.max(lastValidUntilAt, validUntilMs);
      const jws = signedJwt(signing, {
        currency: first.price.currency,
        items: lines.map(presentLine),
        jti: id,
        iat: Math.floor(issuedAtMs / 1000),
        exp: validUntil,
      });
      return { jws, validUntilMs, kept: keep({ id, issuedAtMs, validUntilMs, lines }) };
    },
    publicKeys() {
      const published = current()?.published ?? [];
      const former = [...retired.values()]
        .filter(({ untilMs }) => untilMs > clock.now())
        .map(({ key }) => key)
        .filter(({ kid }) => published.every((key) => key.kid !== kid));
      return { keys: [...published, ...former] };
    },
  };
}

/** A compact JWS (RFC 7515, section 7.1) with Ed25519 (RFC 8037, section 3.1). */
function signedJwt({ header, key }: SigningKey, claims: object): string {
  const text = `${header}.${base64url(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), key).toString("base64url")}`;
}

function signingKey(key: KeyObject, shown: PublicKey): SigningKey {
  return {
    key,
    public: shown,
    header: base64url({ alg: "EdDSA", kid: shown.kid, typ: "price-promise+jwt" }),
  };
}

function base64url(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

function presentLine({ domain, tld, action, years, price }: PromisedLine) {
  return { domain, tld, action, years, price: presentRetail(price) };
}

type PromiseKeysResult =
  { readonly ok: true; readonly ring: KeyRing } | { readonly ok: false; readonly problem: string };

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

/**
 * Parses one or more Ed25519 keys in PEM. The first, a private key (PKCS#8), signs; the others, private or public, are only published. Text
 * around the blocks is ignored, and `\n` counts as a line break, as in one-line environment files.
 */
export function parsePromiseKeys(text: string): PromiseKeysResult {
  const blocks = text.replaceAll("\\n", "\n").match(PEM_BLOCK) ?? [];
  const published: PublicKey[] = [];
  let signing: SigningKey | null = null;
  for (const [index, pem] of blocks.entries()) {
    try {
      const key = index === 0 ? createPrivateKey(pem) : createPublicKey(pem);
      if (key.asymmetricKeyType !== "ed25519")
        return { ok: false, problem: `key ${index + 1} must be an Ed25519 key` };
      const shown = publicKeyOf(index === 0 ? createPublicKey(pem) : key);
      if (index === 0) signing = signingKey(key, shown);
      if (published.every(({ kid }) => kid !== shown.kid)) published.push(shown);
    } catch {
      // Node's message may quote the key.
      return {
        ok: false,
        problem: `key ${index + 1} must be ${index === 0 ? "a private key" : "a key"} in PEM without a passphrase`,
      };
    }
  }
  if (signing === null)
    return {
      ok: false,
      problem: "must contain an Ed25519 private key in PEM (npm run promise-key creates one)",
    };
  return { ok: true, ring: { signing, published } };
}

function publicKeyOf(key: KeyObject): PublicKey {
  const { x = "" } = key.export({ format: "jwk" });
  // RFC 7638: the required members in alphabetical order, without white space.
  const kid = hash("sha256", JSON.stringify({ crv: "Ed25519", kty: "OKP", x }), "base64url");
  return { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA" };
}

/** Creates a private key, PKCS#8 in PEM. */
export function newPromiseKey(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
