/**
 * The last known wholesale prices in a file that the owner alone can read, so that a restart serves prices at once. Facts learned from
 * another upstream or with another credential are not believed: they may be another reseller's.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { Log } from "../logger.js";
import { parseWholesale, type Wholesale } from "../money.js";
import { ACTIONS, type Combination } from "./policy.js";

export interface SavedPrice extends Combination {
  readonly wholesale: Wholesale;
  readonly asOfMs: number;
}

export interface PriceFacts {
  load(): SavedPrice[];
  save(prices: readonly SavedPrice[]): void;
}

/** A price as JSON brought it back. */
const wholesale = z.unknown().transform((value, context): Wholesale => {
  const { amount, currency } = z
    .object({ amount: z.unknown(), currency: z.unknown() })
    .catch({ amount: null, currency: null })
    .parse(value);
  const read = parseWholesale(amount, currency);
  if (read !== null) return read;
  context.addIssue({ code: "custom", message: "is not a price" });
  return z.NEVER;
});

/** A price that was kept as JSON; undefined for anything that it never is. */
export const decodeKeptWholesale = (data: unknown): Wholesale | undefined => wholesale.safeParse(data).data;

const fileSchema = z.object({
  source: z.string(),
  prices: z.array(
    z.object({
      tld: z.string(),
      action: z.enum(ACTIONS),
      years: z.int().positive(),
      wholesale,
      asOfMs: z.number().positive(),
    }),
  ),
});

/** Facts kept at `path`; `source` names the upstream and credential that they belong to. */
export function createPriceFacts(path: string, source: () => string, log: Log): PriceFacts {
  return {
    load() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch {
        return [];
      }
      try {
        const file = fileSchema.parse(JSON.parse(text));
        if (file.source === source()) return file.prices.filter(({ asOfMs }) => asOfMs <= Date.now());
        log.warn("prices.saved.foreign");
      } catch {
        log.warn("prices.saved.unreadable");
      }
      return [];
    },
    save(prices) {
      const file = {
        source: source(),
        prices: prices.map(({ tld, action, years, wholesale, asOfMs }) => ({
          tld,
          action,
          years,
          wholesale,
          asOfMs,
        })),
      };
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
        writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 });
        renameSync(`${path}.new`, path);
      } catch (error) {
        log.error("prices.saved.failed", { reason: error instanceof Error ? error.name : "unknown" });
      }
    },
  };
}

/** For an upstream that lives and dies with the process, and where the pool's facts outlive it anyway. */
export const noPriceFacts: PriceFacts = { load: () => [], save: () => {} };
