/**
 * Which credential the upstream is called with: the active one, or the standby while the active one is refused. An unverified credential is
 * tried with one call at a time, and a refused one not again for a while. A changed file takes effect immediately; its previous credential
 * stays in use until the new one is accepted.
 */
import { hash } from "node:crypto";
import { BoundedMap } from "../bounded-map.js";
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

interface CredentialState extends Pick<Credential, "role" | "fingerprint"> {
  readonly refused: boolean;
}

/** One call with a credential, and how the upstream received it. */
export interface Use {
  /** Returns whether this is news: the credential hadn't been accepted before, or had been refused since. */
  accepted(): boolean;
  /**
   * The upstream refused the credential with 401 or 403. Returns whether this is the first refusal: of the calls that were sent before it,
   * only one counts.
   */
  refused(): boolean;
  /** The call is over. Unless it was accepted or refused, it verified nothing. */
  ended(): void;
}

export interface Credentials {
  /** The credential to use now, or null while all are refused. */
  usable(): Credential | null;
  /** How long until a refused credential may be used again; while one is being verified, a guess. */
  usableInMs(): number;
  /**
   * The call that is verifying the credential, if others have to wait for it; resolves with whether it was accepted or refused. Null if
   * nobody has to wait.
   */
  verification(credential: Credential): Promise<boolean> | null;
  /** Whether a call with it may be sent at this moment. */
  admits(credential: Credential): boolean;
  /** Begins a call with it, or returns null if `admits` is false. A call that verifies a credential is its only one. */
  begin(credential: Credential): Use | null;
  states(): CredentialState[];
  /** The active credential that was accepted last, or the configured one if none was, and since when it has been: monotonic ms. */
  active(): { readonly fingerprint: string; readonly sinceMs: number };
}

/** How long a refused credential isn't used. The first refusal may be a mistake; later ones add up to at most 5 calls in any 5 minutes. */
const AFTER_FIRST_REFUSAL_MS = 5_000;
const AFTER_LATER_REFUSALS_MS = 75_000;
const MAX_REMEMBERED = 20;

/** What is known about one credential. */
interface Standing {
  isAccepted: boolean;
  /** Refused and not accepted since: when it may be used again, monotonic ms. */
  refusedUntilMs: number | null;
  refusals: number;
  /** The call that verifies it. */
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
    { role: "active" as const, source: active, read: reader("active", active) },
    ...(standby === null
      ? []
      : [{ role: "standby" as const, source: standby, read: reader("standby", standby) }]),
  ];
  /** Also those of former credentials, because one may come back. */
  const standings = new BoundedMap<string, Standing>(MAX_REMEMBERED);
  const standingOfCurrent = new WeakMap<Credential, Standing>();
  /** The last accepted credential of each role: the two files can't be replaced at the same moment, so a new pair may not work yet. */
  const lastAccepted = new Map<Credential["role"], Credential>();

  let lastActive = { fingerprint: fingerprintOf(active.key.current()), sinceMs: -Infinity };

  function standingOf(credential: Credential): Standing {
    const known = standingOfCurrent.get(credential);
    if (known !== undefined) return known;
    const id = idOf(credential);
    const standing = standings.get(id) ?? {
      isAccepted: false,
      refusedUntilMs: null,
      refusals: 0,
      verification: null,
    };
    standings.set(id, standing);
    standingOfCurrent.set(credential, standing);
    return standing;
  }

  function all(): Credential[] {
    return sources.flatMap(({ role, read }) => {
      const current = read();
      const last = lastAccepted.get(role);
      return last === undefined || idOf(last) === idOf(current) ? [current] : [current, last];
    });
  }

  function isRefused(credential: Credential): boolean {
    const { refusedUntilMs } = standingOf(credential);
    return refusedUntilMs !== null && refusedUntilMs > clock.monotonic();
  }

  function admits(credential: Credential): boolean {
    return !isRefused(credential) && standingOf(credential).verification === null;
  }

  return {
    admits,
    usable() {
      const open = all().filter((credential) => !isRefused(credential));
      const hasAccepted = open.some((credential) => standingOf(credential).isAccepted);
      const best = open.find((credential) => {
        const { verification, refusedUntilMs } = standingOf(credential);
        return verification === null || (refusedUntilMs === null && !hasAccepted);
      });
      return best ?? null;
    },
    usableInMs() {
      const restUntilMs = all().map((credential) => standingOf(credential).refusedUntilMs ?? -Infinity);
      const restMs = Math.min(...restUntilMs) - clock.monotonic();
      return restMs > 0 ? restMs : AFTER_FIRST_REFUSAL_MS;
    },
    verification(credential) {
      const { verification, refusedUntilMs } = standingOf(credential);
      return refusedUntilMs === null ? verification : null;
    },
    begin(credential) {
      if (!admits(credential)) return null;
      const standing = standingOf(credential);
      const refusalsBefore = standing.refusals;
      let end = (): void => {};
      if (!standing.isAccepted) {
        standing.verification = new Promise((resolve) => {
          end = () => {
            standing.verification = null;
            resolve(standing.isAccepted || standing.refusals !== refusalsBefore);
          };
        });
      }
      return {
        accepted() {
          // The answer to a call that was sent before a refusal shows nothing about now.
          if (standing.refusals !== refusalsBefore) return false;
          const isNews = !standing.isAccepted;
          standing.isAccepted = true;
          standing.refusedUntilMs = null;
          const { role, fingerprint } = credential;
          const current = all().find((one) => one.role === role);
          if (current !== undefined && idOf(current) === idOf(credential)) {
            lastAccepted.set(role, current);
            if (role === "active" && fingerprint !== lastActive.fingerprint)
              lastActive = { fingerprint, sinceMs: stamp() };
          }
          return isNews;
        },
        refused() {
          if (standing.refusals !== refusalsBefore) return false;
          standing.refusals += 1;
          standing.isAccepted = false;
          const restMs = standing.refusedUntilMs === null ? AFTER_FIRST_REFUSAL_MS : AFTER_LATER_REFUSALS_MS;
          standing.refusedUntilMs = clock.monotonic() + restMs;
          for (const [role, last] of lastAccepted)
            if (idOf(last) === idOf(credential)) lastAccepted.delete(role);
          // It may have been replaced a moment ago.
          for (const { source } of sources) {
            source.key.current({ reread: true });
            source.secret.current({ reread: true });
          }
          return true;
        },
        ended: end,
      };
    },
    states: () =>
      all().map((credential) => ({
        role: credential.role,
        fingerprint: credential.fingerprint,
        refused: standingOf(credential).refusedUntilMs !== null,
      })),
    active: () => lastActive,
  };
}

/** Returns the source's credential: the same object until it changes. */
function reader(role: Credential["role"], source: CredentialSource): () => Credential {
  let last: Credential | null = null;
  return () => {
    const [key, secret] = [source.key.current(), source.secret.current()];
    if (last?.key !== key || last.secret !== secret)
      last = { role, key, secret, fingerprint: fingerprintOf(key) };
    return last;
  };
}

function idOf({ key, secret }: Credential): string {
  return `${key}\n${secret}`;
}

/** The first 12 hex digits of SHA-256 of the key (not the secret). */
function fingerprintOf(key: string): string {
  return hash("sha256", key, "hex").slice(0, 12);
}
