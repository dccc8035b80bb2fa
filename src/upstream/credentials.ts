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
  active(): { readonly fingerprint: string; readonly sinceMs: number };
}

/** How long a refused credential isn't used. The first refusal may be a mistake; later ones add up to at most 5 calls in any 5 minutes. */
const AFTER_FIRST_REFUSAL_MS = 5_000;
const AFTER_LATER_REFUSALS_MS = 75_000;

/** A credential, and what is known about it. */
interface Held extends Credential {
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
  const places = [new Place("active", active), ...(standby === null ? [] : [new Place("standby", standby)])];
  let lastActive = { fingerprint: fingerprintOf(active.key.current()), sinceMs: -Infinity };

  const all = (): Held[] => places.flatMap((place) => place.held());
  const isResting = ({ refusedUntilMs }: Held): boolean => (refusedUntilMs ?? -Infinity) > clock.monotonic();
  const heldAs = (credential: Credential): Held | undefined => all().find((held) => held === credential);

  function accept(held: Held): boolean {
    const isNews = !held.isAccepted;
    held.isAccepted = true;
    held.refusedUntilMs = null;
    const { role, fingerprint } = held;
    const isCurrent = places.some((place) => place.accept(held));
    if (isCurrent && role === "active" && fingerprint !== lastActive.fingerprint)
      lastActive = { fingerprint, sinceMs: stamp() };
    return isNews;
  }

  function refuse(held: Held): boolean {
    held.refusals += 1;
    held.isAccepted = false;
    const restMs = held.refusedUntilMs === null ? AFTER_FIRST_REFUSAL_MS : AFTER_LATER_REFUSALS_MS;
    held.refusedUntilMs = clock.monotonic() + restMs;
    // It may have been replaced a moment ago.
    for (const place of places) place.refuse(held);
    return true;
  }

  return {
    usable() {
      const open = all().filter((held) => !isResting(held));
      const hasAccepted = open.some(({ isAccepted }) => isAccepted);
      const mayUse = ({ verification, refusedUntilMs }: Held): boolean =>
        verification === null || (refusedUntilMs === null && !hasAccepted);
      return open.find(mayUse) ?? null;
    },
    usableInMs() {
      const restMs = Math.min(...all().map((held) => held.refusedUntilMs ?? -Infinity)) - clock.monotonic();
      return restMs > 0 ? restMs : AFTER_FIRST_REFUSAL_MS;
    },
    verification(credential) {
      const held = heldAs(credential);
      return held?.refusedUntilMs === null ? held.verification : null;
    },
    admits(credential) {
      const held = heldAs(credential);
      return held !== undefined && !isResting(held) && held.verification === null;
    },
    begin(credential) {
      const held = heldAs(credential);
      if (held === undefined) return () => false;
      const { refusals } = held;
      let endVerification = (_isVerified: boolean): void => {};
      if (!held.isAccepted) {
        held.verification = new Promise((resolve) => {
          endVerification = (isVerified) => {
            held.verification = null;
            resolve(isVerified);
          };
        });
      }
      return (reception) => {
        endVerification(reception !== "unknown");
        let isNews = false;
        // The answer to a call that was sent before a refusal shows nothing about now.
        if (held.refusals === refusals && reception !== "unknown")
          isNews = reception === "accepted" ? accept(held) : refuse(held);
        return isNews;
      };
    },
    states: () =>
      all().map(({ role, fingerprint, refusedUntilMs }) => ({
        role,
        fingerprint,
        refused: refusedUntilMs !== null,
      })),
    active: () => lastActive,
  };
}

/** Where a credential comes from: the current one, and the one before until the current one is accepted. */
class Place {
  readonly #role: Credential["role"];
  readonly #source: CredentialSource;
  #current: Held | null = null;
  #accepted: Held | null = null;

  constructor(role: Credential["role"], source: CredentialSource) {
    this.#role = role;
    this.#source = source;
  }

  held(): Held[] {
    const [key, secret] = [this.#source.key.current(), this.#source.secret.current()];
    if (this.#current?.key !== key || this.#current.secret !== secret) {
      const credential = { role: this.#role, key, secret, fingerprint: fingerprintOf(key) };
      const standing = { isAccepted: false, refusedUntilMs: null, refusals: 0, verification: null };
      this.#current = { ...credential, ...standing };
    }
    const before = this.#accepted;
    return before === null || before === this.#current ? [this.#current] : [this.#current, before];
  }

  /** Returns whether it is the current one. */
  accept(held: Held): boolean {
    if (held !== this.#current) return false;
    this.#accepted = held;
    return true;
  }

  refuse(held: Held): void {
    if (held === this.#accepted) this.#accepted = null;
    this.#source.key.current({ reread: true });
    this.#source.secret.current({ reread: true });
  }
}

/** The first 12 hex digits of SHA-256 of the key (not the secret). */
function fingerprintOf(key: string): string {
  return hash("sha256", key, "hex").slice(0, 12);
}
