/** How the times of saved facts are written. */
import { z } from "zod";
import { bootedAtMs, type Clock } from "../clock.js";
import type { Fact } from "./facts.js";

/** When a saved fact was requested and answered. Wall-clock ms, because the machine may restart before it is read. */
export const savedTimes = { askedAtMs: z.number().positive(), answeredAtMs: z.number().positive() };

type Times = Pick<Fact<unknown>, "askedMs" | "answeredMs">;
interface SavedTimes {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

/** The times of a fact, as saved. */
export function toSavedTimes(clock: Clock, { askedMs, answeredMs }: Times): SavedTimes {
  return {
    askedAtMs: Math.floor(bootedAtMs(clock) + askedMs),
    answeredAtMs: Math.floor(bootedAtMs(clock) + answeredMs),
  };
}

/** The reverse, on the monotonic clock: negative if before the machine booted. Null for times in the future, because the clock has been set back since. */
export function fromSavedTimes(clock: Clock, { askedAtMs, answeredAtMs }: SavedTimes): Times | null {
  if (answeredAtMs > clock.now()) return null;
  return { askedMs: askedAtMs - bootedAtMs(clock), answeredMs: answeredAtMs - bootedAtMs(clock) };
}
