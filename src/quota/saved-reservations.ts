/**
 * Hands the reservations of a process that stops to the next one in the same folder. A killed process hands over none. Clients aren't written down.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { MAX_PAUSE_MS } from "./ledger/memory.js";
import type { SharedReservations } from "./scheduler/reservations.js";
import type { OwnReservations } from "./scheduler/scheduler.js";

interface SaveReservationsSettings {
  readonly directory: string;
  /** Identifies the credential without revealing it. */
  readonly fingerprint: string;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly onFault: (what: string, error: unknown) => void;
}

/** Times are on the wall clock, because the machine may have been restarted. */
const savedSchema = z.array(
  z.strictObject({
    key: z.string(),
    dueAtMs: z.number(),
    askedAtMs: z.number(),
    maxWaitMs: z.number().nonnegative(),
    earlyAsks: z.int().nonnegative(),
  }),
);

export function saveReservations(
  settings: SaveReservationsSettings,
  own: OwnReservations,
): SharedReservations {
  const { directory, fingerprint, windowMs, clock, onFault } = settings;
  const path = join(directory, `reservations-${fingerprint}.json`);
  const wallAheadMs = clock.now() - clock.monotonic();

  for (const { key, dueAtMs, askedAtMs, ...rest } of takeSaved(path)) {
    const dueAt = dueAtMs - wallAheadMs;
    // The longest wait lasts until a window after a pause of the upstream; a time further ahead comes from a clock that was set back.
    if (dueAt > clock.monotonic() + MAX_PAUSE_MS + 2 * windowMs) continue;
    own.adopt({ key, client: "", dueAt, askedAt: askedAtMs - wallAheadMs, ...rest });
  }

  return {
    changed: () => {},
    canPublish: () => true,
    replicas: () => 1,
    cartsElsewhere: () => 0,
    close() {
      const saved = own.all().map(({ key, dueAt, askedAt, maxWaitMs, earlyAsks }) => ({
        key,
        dueAtMs: dueAt + wallAheadMs,
        askedAtMs: askedAt + wallAheadMs,
        maxWaitMs,
        earlyAsks,
      }));
      if (saved.length === 0) return;
      try {
        writeFileSync(path, JSON.stringify(saved), { mode: 0o600 });
      } catch (error) {
        onFault("the reservations could not be saved for the next process", error);
      }
    },
  };
}

/** Reads and deletes what the last process saved. A malformed file counts as empty. */
function takeSaved(path: string): z.infer<typeof savedSchema> {
  try {
    const text = readFileSync(path, "utf8");
    rmSync(path);
    return savedSchema.parse(JSON.parse(text));
  } catch {
    return [];
  }
}
