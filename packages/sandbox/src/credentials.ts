/** The portal's credentials. Only a digest of the secret is stored, so a secret can be shown once, at creation. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { RollingWindow } from "./rolling-window.js";
import type { Reseller } from "./world.js";

export interface Credential {
  readonly key: string;
  readonly secret: string;
}

export interface Call {
  /** Monotonic ms on the sandbox's clock. */
  readonly at: number;
  /** "METHOD /api/v1/…", or "other". */
  readonly route: string;
  readonly accepted: boolean;
}

const KEPT_CALLS = 5000;

/** The calls of one credential, counted on arrival. Only for the portal's statistics, never for decisions. */
class Usage {
  accepted = 0;
  rejected429 = 0;
  /** Calls with a known key whose credential, account or address was refused. */
  refused = 0;
  /** Accepted calls. */
  readonly byRoute: Record<string, number> = {};
  #calls: Call[] = [];

  record(call: Call): void {
    if (call.accepted) {
      this.accepted += 1;
      this.byRoute[call.route] = (this.byRoute[call.route] ?? 0) + 1;
    } else {
      this.rejected429 += 1;
    }
    this.#calls.push(call);
    // Cut only at twice the length, so that the cost of cutting occurs once in 5000 calls.
    if (this.#calls.length >= 2 * KEPT_CALLS) this.#calls = this.#calls.slice(-KEPT_CALLS);
  }

  /** The last calls, accepted or refused with 429, in order of arrival. */
  lastCalls(): Call[] {
    return this.#calls.slice(-KEPT_CALLS);
  }
}

export interface StoredCredential {
  readonly key: string;
  readonly secretDigest: Buffer;
  readonly reseller: Reseller;
  readonly window: RollingWindow;
  readonly usage: Usage;
  /** Empty: no restriction. */
  allowlist: readonly string[];
  revoked: boolean;
}

/** The credential with the given key, or null if there is none, and the reason if it is refused. */
type Verification =
  | { readonly credential: null; readonly refusal: "missing_credentials" | "invalid_credentials" }
  | {
      readonly credential: StoredCredential;
      readonly refusal: "invalid_credentials" | "revoked_credentials" | null;
    };

function digest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

export function isAllowed(allowlist: readonly string[], remoteAddress: string): boolean {
  if (allowlist.length === 0) return true;
  const rules = new BlockList();
  for (const rule of allowlist) {
    const [address = "", bits] = rule.split("/");
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    if (bits === undefined) rules.addAddress(address, family);
    else rules.addSubnet(address, Number(bits), family);
  }
  // A dual-stack socket shows IPv4 peers as mapped IPv6 addresses.
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIP(address) !== 0 && rules.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

export class Credentials {
  readonly #byKey = new Map<string, StoredCredential>();
  readonly #decoy = randomBytes(32);

  create(reseller: Reseller, given?: Credential, allowlist: readonly string[] = []): Credential {
    const credential = given ?? {
      key: `rk_${randomBytes(12).toString("hex")}`,
      secret: `rs_${randomBytes(32).toString("base64url")}`,
    };
    this.#byKey.set(credential.key, {
      key: credential.key,
      secretDigest: digest(credential.secret),
      reseller,
      window: new RollingWindow(),
      usage: new Usage(),
      allowlist,
      revoked: false,
    });
    return credential;
  }

  find(key: string): StoredCredential | undefined {
    return this.#byKey.get(key);
  }

  all(): StoredCredential[] {
    return [...this.#byKey.values()];
  }

  verify(key: string | undefined, secret: string | undefined): Verification {
    if (!key || !secret) return { credential: null, refusal: "missing_credentials" };
    const credential = this.#byKey.get(key);
    // Digests have one length, and an unknown key costs the same comparison as a known one.
    const matches = timingSafeEqual(digest(secret), credential?.secretDigest ?? this.#decoy);
    if (credential === undefined) return { credential: null, refusal: "invalid_credentials" };
    if (!matches) return { credential, refusal: "invalid_credentials" };
    return { credential, refusal: credential.revoked ? "revoked_credentials" : null };
  }
}
