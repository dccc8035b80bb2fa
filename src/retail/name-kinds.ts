/**
 * Which names were found to be premium, remembered for 30 days and across restarts and changes of the owner. Names are hashed, so what is saved doesn't
 * reveal what people search. A name is premium for every reseller, so another credential has no effect.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import { bootedAt, type Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { SavedFile } from "../saved-file.js";
import type { NameKind } from "./policy.js";

/** What was decided about a name, and the stamp at which the check was asked that it was decided by. */
export interface LastKind {
  readonly kind: NameKind;
  readonly askedAt: number;
}

export interface NameKinds {
  /** The last decision about a name that was found to be premium at some time. */
  last(name: DomainName): LastKind | undefined;
  /** Ordinary, unless it was last found to be premium. */
  of(name: DomainName): NameKind;
  note(name: Pick<DomainName, "ascii">, decision: LastKind): void;
  /** An answer asked at that stamp says in some way that the name is premium. */
  noteSign(name: Pick<DomainName, "ascii">, askedAt: number): void;
  /** Loads what was saved before a restart, or by the former owner. */
  restore(): Promise<void>;
}

interface NameKindsSettings {
  readonly max: number;
  /** Null if nothing outlives the process. */
  readonly file: SavedFile<SavedNames> | null;
  readonly clock: Clock;
  readonly onChange: () => void;
}

const KEPT_MS = 30 * 24 * 3_600_000;
const MAX_SAVED = 10_000;

/** The names as saved. The times are of the wall clock, because the machine may restart before they are read. */
export const savedNames = z
  .array(z.strictObject({ key: z.string(), askedAtMs: z.number().positive() }))
  .readonly();
type SavedNames = z.output<typeof savedNames>;

export function createNameKinds({ max, file, clock, onChange }: NameKindsSettings): NameKinds {
  const decisions = new BoundedMap<string, LastKind & { readonly key: string }>(max);
  function last(name: DomainName): LastKind | undefined {
    const known = decisions.get(keyOf(name.ascii));
    return known !== undefined && clock.monotonic() - known.askedAt <= KEPT_MS ? known : undefined;
  }

  function save(): void {
    const names: z.output<typeof savedNames>[number][] = [];
    decisions.forEach(({ key, kind, askedAt }) => {
      if (kind === "premium") names.push({ key, askedAtMs: Math.floor(bootedAt(clock) + askedAt) });
    });
    file?.save(names.slice(-MAX_SAVED));
  }

  /** Returns whether that is new. */
  function learn(key: string, decision: LastKind): boolean {
    const before = decisions.get(key);
    // That a name is ordinary is only worth remembering if it was premium.
    if (before === undefined ? decision.kind === "ordinary" : decision.askedAt <= before.askedAt)
      return false;
    decisions.set(key, { key, ...decision });
    if (before?.kind !== decision.kind) onChange();
    return true;
  }

  function note({ ascii }: Pick<DomainName, "ascii">, decision: LastKind): void {
    if (learn(keyOf(ascii), decision)) save();
  }

  return {
    last,
    of: (name) => last(name)?.kind ?? "ordinary",
    note,
    noteSign(name, askedAt) {
      note(name, { kind: "premium", askedAt });
    },
    async restore() {
      const now = clock.monotonic();
      for (const { key, askedAtMs } of (await file?.load()) ?? [])
        // After the clock was set back it is unknown how old it is.
        learn(key, { kind: "premium", askedAt: Math.min(now, askedAtMs - bootedAt(clock)) });
    },
  };
}

function keyOf(ascii: string): string {
  return hash("sha256", ascii, "base64url");
}
