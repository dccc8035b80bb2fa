/**
 * Which credential the upstream is called with: the active one, or the standby while the active one is refused. An unverified credential is
 * tried with one call at a time, and a refused one not again for a while. A changed file takes effect immediately; its previous credential
 * stays in use until the new one is accepted.
 */
import { hash } from "node:crypto";
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
  /** Identifies the credential in logs and file names without revealing it. */
  readonly fingerprint: string;
}

/** How the upstream received a call: 401 and 403 refuse the credential, and a call without an understood answer shows nothing about it. */
export type Reception = "accepted" | "refused" | "unknown";

export interface Credentials {
  /** The credential to use now, or null while all are refused. */
  usable(): Credential | null;
  /** How long until a refused credential may be used again; while one is being verified, a guess. */
  usableInMs(): number;
  /** The call that is verifying the credential, if others have to wait for it; resolves with whether it was accepted or refused. */
  verification(credential: Credential): Promise<boolean> | null;
  /** Whether a call with it may be sent at this moment. */
  admits(credential: Credential): boolean;
  /**
   * Begins a call that is admitted; one that verifies a credential is its only one. The returned function ends it, and returns whether this is news.
   * Of the calls that were sent before a refusal, only the first refused one counts.
   */
  begin(credential: Credential): (reception: Reception) => boolean;
  states(): { readonly role: Credential["role"]; readonly fingerprint: string; readonly refused: boolean }[];
  /** The active credential that was accepted last, or the configured one if none was, and since when it has been: a stamp. */
  active(): { readonly fingerprint: string; readonly sinceAt: number };
}

/** How long a refused credential isn't used. The first refusal may be a mistake; later ones add up to at most 5 calls in any 5 minutes. */
const AFTER_FIRST_REFUSAL_MS = 5_000;
const AFTER_LATER_REFUSALS_MS = 75_000;

/** What is known about one credential. */
interface Standing {
  isAccepted: boolean;
  /** Refused and not accepted since: when it may be used again, monotonic ms. */
  refusedUntilAt: number | null;
  refusals: number;
  /** Resolves when the call that is verifying it ends, with whether it was accepted or refused. */
  verification: Promise<boolean> | null;
}

export function createCredentials(
  active: CredentialSource,
  standby: CredentialSource | null,
  clock: Clock,
  /** The stamps that facts carry. Default: the monotonic clock. */
  stamp = (): number => clock.monotonic(),
): Credentials {
  const sources = [
    { role: "active" as const, source: active },
    ...(standby === null ? [] : [{ role: "standby" as const, source: standby }]),
  ];
  /** Also those of former credentials, because calls still wait with them, and one may come back. */
  const standings = new Map<string, Standing>();
  /** The last accepted credential of each role: the two files can't be replaced at the same moment, so a new pair may not work yet. */
  const lastAccepted = new Map<Credential["role"], Credential>();
  let lastActive = { fingerprint: fingerprintOf(active.key.current()), sinceAt: -Infinity };

  function standingOf(credential: Credential): Standing {
    const id = idOf(credential);
    const standing = standings.get(id) ?? {
      isAccepted: false,
      refusedUntilAt: null,
      refusals: 0,
      verification: null,
    };
    standings.set(id, standing);
    return standing;
  }

  function currentOf({ role, source }: (typeof sources)[number]): Credential {
    const [key, secret] = [source.key.current(), source.secret.current()];
    return { role, key, secret, fingerprint: fingerprintOf(key) };
  }

  function all(): Credential[] {
    return sources.flatMap((place) => {
      const current = currentOf(place);
      const last = lastAccepted.get(place.role);
      return last === undefined || idOf(last) === idOf(current) ? [current] : [current, last];
    });
  }

  const isResting = ({ refusedUntilAt }: Standing): boolean =>
    (refusedUntilAt ?? -Infinity) > clock.monotonic();

  function accept(credential: Credential): boolean {
    const standing = standingOf(credential);
    const isNews = !standing.isAccepted;
    standing.isAccepted = true;
    standing.refusedUntilAt = null;
    const { role, fingerprint } = credential;
    const place = sources.find((one) => one.role === role);
    if (place !== undefined && idOf(currentOf(place)) === idOf(credential)) {
      lastAccepted.set(role, credential);
      if (role === "active" && fingerprint !== lastActive.fingerprint)
        lastActive = { fingerprint, sinceAt: stamp() };
    }
    return isNews;
  }

  function refuse(credential: Credential): boolean {
    const standing = standingOf(credential);
    standing.refusals += 1;
    standing.isAccepted = false;
    const restMs = standing.refusedUntilAt === null ? AFTER_FIRST_REFUSAL_MS : AFTER_LATER_REFUSALS_MS;
    standing.refusedUntilAt = clock.monotonic() + restMs;
    for (const [role, last] of lastAccepted) if (idOf(last) === idOf(credential)) lastAccepted.delete(role);
    // It may have been replaced a moment ago.
    for (const { source } of sources) {
      source.key.current({ reread: true });
      source.secret.current({ reread: true });
    }
    return true;
  }

  return {
    usable() {
      const open = all().filter((credential) => !isResting(standingOf(credential)));
      const hasAccepted = open.some((credential) => standingOf(credential).isAccepted);
      const best = open.find((credential) => {
        const { verification, refusedUntilAt } = standingOf(credential);
        return verification === null || (refusedUntilAt === null && !hasAccepted);
      });
      return best ?? null;
    },
    usableInMs() {
      const restsUntilAt = all().map((credential) => standingOf(credential).refusedUntilAt ?? -Infinity);
      const restMs = Math.min(...restsUntilAt) - clock.monotonic();
      return restMs > 0 ? restMs : AFTER_FIRST_REFUSAL_MS;
    },
    verification(credential) {
      const { verification, refusedUntilAt } = standingOf(credential);
      return refusedUntilAt === null ? verification : null;
    },
    admits(credential) {
      const standing = standingOf(credential);
      return !isResting(standing) && standing.verification === null;
    },
    begin(credential) {
      const standing = standingOf(credential);
      const { refusals } = standing;
      let endVerification = (_isVerified: boolean): void => {};
      if (!standing.isAccepted) {
        standing.verification = new Promise((resolve) => {
          endVerification = (isVerified) => {
            standing.verification = null;
            resolve(isVerified);
          };
        });
      }
      return (reception) => {
        endVerification(reception !== "unknown");
        // The answer to a call that was sent before a refusal shows nothing about now.
        if (reception === "unknown" || standing.refusals !== refusals) return false;
        return reception === "accepted" ? accept(credential) : refuse(credential);
      };
    },
    states: () =>
      all().map((credential) => ({
        role: credential.role,
        fingerprint: credential.fingerprint,
        refused: standingOf(credential).refusedUntilAt !== null,
      })),
    active: () => lastActive,
  };
}

function idOf({ key, secret }: Credential): string {
  return `${key}\n${secret}`;
}

/** The first 12 hex digits of SHA-256 of the key (not the secret). */
function fingerprintOf(key: string): string {
  return hash("sha256", key, "hex").slice(0, 12);
}
