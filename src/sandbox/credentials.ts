/** The portal's credentials. Only a digest of the secret is stored, so a secret can be shown once, at creation. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { RollingWindow } from "./rolling-window.js";
import { Usage } from "./usage.js";

export interface Credential {
  readonly key: string;
  readonly secret: string;
}

export interface StoredCredential {
  readonly key: string;
  readonly resellerId: string;
  readonly window: RollingWindow;
  readonly usage: Usage;
  /** Empty: no restriction. */
  allowlist: readonly string[];
  revoked: boolean;
}

type Verification =
  | { readonly outcome: "missing" | "unknown" }
  | { readonly outcome: "valid" | "wrong_secret" | "revoked"; readonly credential: StoredCredential };

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

  create(resellerId: string, given?: Credential, allowlist: readonly string[] = []): Credential {
    const credential = given ?? {
      key: `rk_${randomBytes(12).toString("hex")}`,
      secret: `rs_${randomBytes(32).toString("base64url")}`,
    };
    this.#byKey.set(credential.key, {
      stored: {
        key: credential.key,
        resellerId,
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
    if (key === undefined || secret === undefined || key === "" || secret === "")
      return { outcome: "missing" };
    const entry = this.#byKey.get(key);
    // Digests have one length, and an unknown key costs the same comparison as a known one.
    const matches = timingSafeEqual(digest(secret), entry?.secretDigest ?? this.#decoy);
    if (entry === undefined) return { outcome: "unknown" };
    if (!matches) return { outcome: "wrong_secret", credential: entry.stored };
    return { outcome: entry.stored.revoked ? "revoked" : "valid", credential: entry.stored };
  }
}
