/** Staff tokens, of which only SHA-256 digests are configured. A token names its holder and the scopes that it grants. */
import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.js";
import { type Scope, SCOPES } from "../wire/scopes.js";

export interface StaffToken {
  readonly name: string;
  readonly sha256: Buffer;
  readonly scopes: readonly Scope[];
}

export interface StaffTokens {
  /** The configured entry for this token, or null. Digests are compared in constant time. */
  find(token: string): StaffToken | null;
  /** The configured entry with this name whose token made this signature of the path, or null. */
  signer(name: string, signature: string, path: string): StaffToken | null;
}

/** Signs a path with the digest of a token, so that a link allows one path and doesn't reveal the token. */
export function signedPath(sha256: Buffer, path: string): string {
  return createHmac("sha256", sha256).update(path).digest("base64url");
}

/** Reads the list, and again whenever it changes. Null: there are no tokens. */
export function createStaffTokens(list: Secret | null): StaffTokens {
  let readFrom = "";
  let tokens: readonly StaffToken[] = [];

  function read(): void {
    const text = list?.current() ?? "";
    if (text === readFrom) return;
    readFrom = text;
    tokens = parseStaffTokens(text).tokens;
  }
  read();

  return {
    find(token) {
      read();
      const digest = hash("sha256", token, "buffer");
      return tokens.find(({ sha256 }) => timingSafeEqual(sha256, digest)) ?? null;
    },
    signer(name, signature, path) {
      read();
      const digestOf = (text: string): Buffer => hash("sha256", text, "buffer");
      const isBy = (one: StaffToken): boolean =>
        timingSafeEqual(digestOf(signedPath(one.sha256, path)), digestOf(signature));
      return tokens.find((one) => one.name === name && isBy(one)) ?? null;
    },
  };
}

/** Parses comma-separated `name:sha256hex:scope+scope` entries. A malformed entry is reported by its position, never quoted. */
export function parseStaffTokens(text: string): { tokens: StaffToken[]; problems: string[] } {
  const tokens: StaffToken[] = [];
  const problems: string[] = [];
  text.split(",").forEach((entry, index) => {
    const [name = "", sha256 = "", scopeWords = "", ...rest] = entry.trim().split(":");
    const words = scopeWords.split("+");
    const scopes = SCOPES.filter((scope) => words.includes(scope));
    const good =
      /^[\w.-]{1,64}$/.test(name) &&
      /^[0-9a-f]{64}$/i.test(sha256) &&
      scopes.length === words.length &&
      rest.length === 0;
    if (good) tokens.push({ name, sha256: Buffer.from(sha256, "hex"), scopes });
    else
      problems.push(
        `entry ${index + 1} must be name:sha256hex:scope+scope with the scopes ${SCOPES.join(", ")}`,
      );
  });
  return { tokens, problems };
}
