/** Reads the YAML file at CACHE_CONFIG: how long each kind of fact is fresh and usable, and how many are stored. */
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { NotebookLimits } from "../facts/notebook.js";
import { readText, type Settings } from "./settings.js";

const ms = z
  .int()
  .min(0)
  .max(30 * 24 * 3_600_000);
const entries = z.int().min(1).max(1_000_000);
const times = { freshMs: ms, usableMs: ms };
const pool = z.strictObject({ entries, ...times, failureMs: ms });
const cacheSchema = z.strictObject({
  availability: z.strictObject({
    entries,
    available: z.strictObject({
      freshMs: ms,
      usableMs: ms.max(60_000, "must be at most 60000: available is never shown beyond 60 s"),
    }),
    taken: z.strictObject(times),
    failureMs: ms,
  }),
  prices: pool,
  tier: pool,
  account: pool,
});

export function readCache(settings: Settings): NotebookLimits | null {
  const text = readText(settings, "CACHE_CONFIG", "config/cache.yaml");
  if (text === null) return null;
  let raw: unknown;
  try {
    raw = parseYaml(text);
  } catch {
    settings.fault("CACHE_CONFIG", "is not valid YAML");
    return null;
  }
  // It is read once, so a compiled parser wouldn't pay off.
  const result = cacheSchema.safeParse(raw, { jitless: true });
  if (result.success) return result.data;
  for (const { path, message } of result.error.issues)
    settings.fault("CACHE_CONFIG", path.length === 0 ? message : `${path.join(".")}: ${message}`);
  return null;
}
