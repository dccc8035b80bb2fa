/** The portal's credentials. Only a digest of the secret is stored, so a secret can be shown once, at creation. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { RollingWindow } from "./rolling-window.js";
import { Usage } from "./usage.js";
import type { Reseller } from "./world.js";

export interface Credential {
  readonly key: string;
  readonly secret: string;
}

export interface StoredCredential {
  readonly key: string;
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
  readonly #byKey = new Map<string, { readonly stored: StoredCredential; readonly secretDigest: Buffer }>();
  readonly #decoy = randomBytes(32);

  create(reseller: Reseller, given?: Credential, allowlist: readonly string[] = []): Credential {
    const credential = given ?? {
      key: `rk_${randomBytes(12).toString("hex")}`,
      secret: `rs_${randomBytes(32).toString("base64url")}`,
    };
    this.#byKey.set(credential.key, {
      stored: {
        key: credential.key,
        reseller,
        window: new RollingWindow(),
        usage: new Usage(),
        allowlist,
        revoked: false,
      },
      secretDigest: digest(credential.secret),
    });
    return credential;
  }

  find(key: string): StoredCredential | undefined {
    return this.#byKey.get(key)?.stored;
  }

  all(): StoredCredential[] {
    return [...this.#byKey.values()].map(({ stored }) => stored);
  }

  verify(key: string | undefined, secret: string | undefined): Verification {
    if (!key || !secret) return { credential: null, refusal: "missing_credentials" };
    const entry = this.#byKey.get(key);
    // Digests have one length, and an unknown key costs the same comparison as a known one.
    const matches = timingSafeEqual(digest(secret), entry?.secretDigest ?? this.#decoy);
    if (entry === undefined) return { credential: null, refusal: "invalid_credentials" };
    const { stored: credential } = entry;
    if (!matches) return { credential, refusal: "invalid_credentials" };
    return { credential, refusal: credential.revoked ? "revoked_credentials" : null };
  }
}
