/**
 * Which credential the upstream is called with: the active one, or the standby while the active one is refused. One that has not proved
 * itself is tried by one call at a time, a refused one is left alone for a while, and one whose file has changed is used at once, while
 * its predecessor stays in use until the new one is accepted.
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

/** One call with a credential, and what the upstream made of it. */
export interface Use {
  accepted(): void;
  /** The upstream refused it with 401 or 403. True when that is news: of calls sent before the first refusal only one counts. */
  refused(): boolean;
  /** It is over; unless it was accepted or refused, it has proved nothing. */
  ended(): void;
}

export interface Credentials {
  /** The credential to use now, or null while every one is refused. */
  usable(): Credential | null;
  /**
   * Null when nobody need wait; else a call is trying out a credential about which nothing is known, and this resolves with whether that
   * has told anything.
   */
  proof(credential: Credential): Promise<boolean> | null;
  /** Whether a call may be sent with it at this moment. */
  admits(credential: Credential): boolean;
  /** Begins a call with it, or null where `admits` says no. Of a credential that has to prove itself it is the only one. */
  begin(credential: Credential): Use | null;
  states(): CredentialState[];
}

/** How long a refused credential is left alone: at most 5 calls in 5 minutes while it is dead. */
const TRIAL_AFTER_MS = 75_000;
const REMEMBERED = 20;

/** What is known of one credential. */
interface Standing {
  isAccepted: boolean;
  /** Refused and not accepted since: until when it is left alone, monotonic ms. */
  refusedUntilMs: number | null;
  refusals: number;
  /** The call that tries it out. */
  trial: Promise<boolean> | null;
}

export function createCredentials(
  active: CredentialSource,
  standby: CredentialSource | null,
  clock: Clock,
): Credentials {
  const sources = [
    { role: "active" as const, source: active },
    ...(standby === null ? [] : [{ role: "standby" as const, source: standby }]),
  ];
  const standings = new Map<string, Standing>();
  /** Of each role, the last that was accepted: two files are not replaced at once, and the new pair may not work yet. */
  const lastAccepted = new Map<Credential["role"], Credential>();

  function standingOf(credential: Credential): Standing {
    const id = idOf(credential);
    const standing = standings.get(id) ?? {
      isAccepted: false,
      refusedUntilMs: null,
      refusals: 0,
      trial: null,
    };
    // Last in the map, so that the first is the one that has not been used for longest.
    standings.delete(id);
    standings.set(id, standing);
    const [oldest] = standings.keys();
    if (oldest !== undefined && standings.size > REMEMBERED) standings.delete(oldest);
    return standing;
  }

  function all(): Credential[] {
    return sources.flatMap(({ role, source }) => {
      const current = read(role, source);
      const last = lastAccepted.get(role);
      return last === undefined || idOf(last) === idOf(current) ? [current] : [current, last];
    });
  }

  function isRefused(credential: Credential): boolean {
    const { refusedUntilMs } = standingOf(credential);
    return refusedUntilMs !== null && refusedUntilMs > clock.monotonic();
  }

  function admits(credential: Credential): boolean {
    return !isRefused(credential) && standingOf(credential).trial === null;
  }

  return {
    admits,
    usable() {
      const open = all().filter((credential) => !isRefused(credential));
      const hasAccepted = open.some((credential) => standingOf(credential).isAccepted);
      const best = open.find((credential) => {
        const { trial, refusedUntilMs } = standingOf(credential);
        return trial === null || (refusedUntilMs === null && !hasAccepted);
      });
      return best ?? null;
    },
    proof(credential) {
      const { trial, refusedUntilMs } = standingOf(credential);
      return refusedUntilMs === null ? trial : null;
    },
    begin(credential) {
      if (!admits(credential)) return null;
      const standing = standingOf(credential);
      const refusalsBefore = standing.refusals;
      let end = (): void => {};
      if (!standing.isAccepted) {
        standing.trial = new Promise((resolve) => {
          end = () => {
            standing.trial = null;
            resolve(standing.isAccepted || standing.refusals !== refusalsBefore);
          };
        });
      }
      return {
        accepted() {
          // The answer to a call that was sent before a refusal proves nothing about now.
          if (standing.refusals !== refusalsBefore) return;
          standing.isAccepted = true;
          standing.refusedUntilMs = null;
          const { role } = credential;
          const current = all().find((one) => one.role === role);
          if (current !== undefined && idOf(current) === idOf(credential)) lastAccepted.set(role, current);
        },
        refused() {
          if (standing.refusals !== refusalsBefore) return false;
          standing.refusals += 1;
          standing.isAccepted = false;
          standing.refusedUntilMs = clock.monotonic() + TRIAL_AFTER_MS;
          for (const [role, last] of lastAccepted)
            if (idOf(last) === idOf(credential)) lastAccepted.delete(role);
          // Perhaps it was replaced a moment ago.
          for (const { source } of sources) {
            source.key.current({ afresh: true });
            source.secret.current({ afresh: true });
          }
          return true;
        },
        ended() {
          end();
        },
      };
    },
    states: () =>
      all().map((credential) => ({
        role: credential.role,
        fingerprint: credential.fingerprint,
        refused: standingOf(credential).refusedUntilMs !== null,
      })),
  };
}

function read(role: Credential["role"], source: CredentialSource): Credential {
  const key = source.key.current();
  return { role, key, secret: source.secret.current(), fingerprint: fingerprintOf(key) };
}

function idOf({ key, secret }: Credential): string {
  return `${key}\n${secret}`;
}

/** The first 12 hex digits of SHA-256 of the key (not the secret). */
function fingerprintOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 12);
}
