/**
 * Which credential the upstream is called with: the active one, or the standby while the active one is refused. A refused credential is
 * left alone for a while instead of being tried by every visitor; one whose file has changed is a new credential and is used at once.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../clock.js";
import type { Secret } from "../secret.js";

export interface CredentialSource {
  readonly key: Secret;
  readonly secret: Secret;
}

export interface Credential {
  readonly role: "active" | "standby";
  readonly key: string;
  readonly secret: string;
  /** Names the credential in logs and file names without telling it. */
  readonly fingerprint: string;
}

export interface CredentialState {
  readonly role: "active" | "standby";
  readonly fingerprint: string;
  readonly refused: boolean;
}

export interface Credentials {
  /** The credential to use now, or null while every one is refused. */
  usable(): Credential | null;
  /** Whether a call may be sent with it at this moment; of those that come when a refused one's time is over, one may, as a trial. */
  admits(credential: Credential): boolean;
  /** The upstream refused it with 401 or 403. */
  refused(credential: Credential): void;
  accepted(credential: Credential): void;
  states(): CredentialState[];
}

/** How long a refused credential is left alone: at most 5 calls in 5 minutes while it is dead. */
const TRIAL_AFTER_MS = 75_000;
const REMEMBERED = 20;

export function createCredentials(
  active: CredentialSource,
  standby: CredentialSource | null,
  clock: Clock,
): Credentials {
  const refusedUntilMs = new Map<string, number>();

  function all(): Credential[] {
    const list: Credential[] = [read("active", active)];
    if (standby !== null) list.push(read("standby", standby));
    return list;
  }
  const secretOf = ({ key, secret }: Credential): string => `${key}\n${secret}`;
  const isRefused = (credential: Credential): boolean =>
    (refusedUntilMs.get(secretOf(credential)) ?? 0) > clock.monotonic();
  const leaveAlone = (credential: Credential): void => {
    refusedUntilMs.set(secretOf(credential), clock.monotonic() + TRIAL_AFTER_MS);
  };
  return {
    usable: () => all().find((credential) => !isRefused(credential)) ?? null,
    admits(credential) {
      if (isRefused(credential)) return false;
      if (refusedUntilMs.has(secretOf(credential))) leaveAlone(credential);
      return true;
    },
    refused(credential) {
      const [oldest] = refusedUntilMs.keys();
      if (oldest !== undefined && refusedUntilMs.size >= REMEMBERED) refusedUntilMs.delete(oldest);
      leaveAlone(credential);
    },
    accepted(credential) {
      refusedUntilMs.delete(secretOf(credential));
    },
    states: () =>
      all().map((credential) => ({
        role: credential.role,
        fingerprint: credential.fingerprint,
        refused: refusedUntilMs.has(secretOf(credential)),
      })),
  };
}

function read(role: Credential["role"], source: CredentialSource): Credential {
  const key = source.key.current();
  return { role, key, secret: source.secret.current(), fingerprint: fingerprintOf(key) };
}

/** The first 12 hex digits of SHA-256 of the key (not the secret). */
function fingerprintOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 12);
}
