/**
 * Hands the reservations of a process to the next one in the same folder. They are saved while it runs, so a killed process loses only the latest.
 * Those whose second has passed in between are due soon after the start. Clients aren't written down.
 */
import { join } from "node:path";
import { z } from "zod";
import { bootedAtMs, type Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { createSavedFile } from "../saved-file.js";
import { MAX_PAUSE_MS } from "./ledger/memory.js";
import type { SharedReservations } from "./scheduler/reservations.js";
import type { OwnReservations } from "./scheduler/scheduler.js";

interface SaveReservationsSettings {
  readonly directory: string;
  /** Identifies the credential without revealing it. */
  readonly fingerprint: string;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon a change is saved. With more reservations than this it takes as many ms, because all of them are written each time. */
const SAVE_AFTER_MS = 250;

/** By then, most holders who found no process have tried again. */
const DUE_AFTER_START_MS = 1000;
/** A holder whose second passed this long ago counts as gone. */
const MAX_OVERDUE_MS = 60_000;

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
  { directory, fingerprint, windowMs, clock, log }: SaveReservationsSettings,
  own: OwnReservations,
): SharedReservations {
  const path = join(directory, `reservations-${fingerprint}.json`);
  const file = createSavedFile({ path, shape: savedSchema, source: () => fingerprint, clock, log });
  let saved = 0;
  let cancelSave: (() => void) | null = null;

  const startedAt = clock.monotonic();
  for (const { key, dueAtMs, askedAtMs, ...rest } of file.load() ?? []) {
    const wasDueAt = dueAtMs - bootedAtMs(clock);
    // The longest wait lasts until a window after a pause of the upstream; a time further ahead comes from a clock that was set back.
    if (wasDueAt > startedAt + MAX_PAUSE_MS + 2 * windowMs || wasDueAt < startedAt - MAX_OVERDUE_MS) continue;
    const dueAt = wasDueAt < startedAt ? startedAt + DUE_AFTER_START_MS : wasDueAt;
    own.adopt({ key, client: "", dueAt, askedAt: askedAtMs - bootedAtMs(clock), ...rest });
  }

  function save(): void {
    // Read each time, because the wall clock may be set while the process runs.
    const bootAtMs = bootedAtMs(clock);
    const all = own.all().map(({ key, dueAt, askedAt, maxWaitMs, earlyAsks }) => ({
      key,
      dueAtMs: dueAt + bootAtMs,
      askedAtMs: askedAt + bootAtMs,
      maxWaitMs,
      earlyAsks,
    }));
    saved = all.length;
    file.save(all);
  }

  return {
    changed() {
      cancelSave ??= clock.after(Math.max(SAVE_AFTER_MS, saved), () => {
        cancelSave = null;
        save();
      });
    },
    canPublish: () => true,
    replicas: () => 1,
    cartsElsewhere: () => 0,
    close() {
      if (cancelSave !== null) {
        cancelSave();
        save();
      }
      return file.saved();
    },
  };
}
