/** What an owner leaves to the next one, in a file or in Redis. */
import { z } from "zod";
import { type BudgetSettings, graceMsOf, occupiedMsOf, type Rests } from "./slot-table.js";
import { handedPlace } from "./tickets.js";

export const noteShape = z.object({
  windowMs: z.number(),
  slots: z.array(z.number().nullable()).readonly(),
  pausedForMs: z.number(),
  places: z.array(handedPlace).readonly(),
}) satisfies z.ZodType<Rests>;
/** All times are in ms from the time of writing. */
export type Note = z.infer<typeof noteShape>;

/** Where the notes are, and who may call. */
export interface NoteStore {
  /** Makes this process the owner of a credential. `coldStart` says what holds if nothing is known of earlier calls. */
  take(fingerprint: string, coldStart: ColdStart): Promise<Taken>;
  /** Gives up the ownership, and leaves the note for the next owner. */
  giveUp(fingerprint: string, note: Note): Promise<void>;
  /** Calls `act` when another process may have become the owner. */
  onLost?(act: (fingerprint: string) => void): void;
}

export interface Taken {
  /** Null: nothing was called before. */
  readonly note: Note | null;
  /** Records each call before it is sent. */
  readonly record?: (rests: Rests) => void;
  /** Whether this process may send calls now. Default: always. */
  readonly mayCall?: () => boolean;
}

export type ColdStart = "assume-spent" | "assume-free";

/** The same note when it is this much older. */
export function aged(note: Note, byMs: number): Note {
  const left = (ms: number): number => Math.max(0, ms - byMs);
  return {
    ...note,
    slots: note.slots.map((ms) => (ms === null ? null : left(ms))),
    pausedForMs: left(note.pausedForMs),
    places: note.places.map((place) => ({ ...place, dueInMs: place.dueInMs - byMs })),
  };
}

/** Nothing is known of a former owner. It made at most `budget` calls, so `headroom` more stay within the limit. */
export function nothingKnown({ limit, headroom, windowMs }: BudgetSettings): Note {
  const slots = Array.from({ length: limit - headroom }, (_, n) => (n < headroom ? 0 : null));
  return { windowMs, slots, pausedForMs: 0, places: [] };
}

/** A former owner may have made all its calls until `forMs` from now. */
export function allSpent({ limit, headroom, windowMs }: BudgetSettings, forMs: number): Note {
  const restMs = forMs + occupiedMsOf(windowMs) + graceMsOf(windowMs);
  return {
    windowMs,
    slots: Array.from({ length: limit - headroom }, () => restMs),
    pausedForMs: 0,
    places: [],
  };
}
