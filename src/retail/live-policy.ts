/**
 * The retail policy in effect. A changed file is reloaded: a valid file takes effect as a whole, an invalid one not at all. Policies are
 * immutable, so code that calls `current()` once uses a single version.
 */
import { hash } from "node:crypto";
import { type Clock, every } from "../clock.js";
import { readFileText } from "../file-text.js";
import type { Log } from "../logger.js";
import { createRetailPolicy, type RetailPolicy } from "./policy.js";
import { parseRetailConfig } from "./price-file/parse.js";
import type { RetailConfig } from "./price-file/retail-config.js";
import { MAX_CONFIG_BYTES } from "./price-file/yaml.js";

/** The file that a config was read from, and its text at that time. */
export interface RetailFile {
  readonly path: string;
  readonly text: string;
}

export interface RetailFileState {
  /** Identifies the text in effect. */
  readonly fingerprint: string;
  /** Since when it is in effect; wall clock, ms. */
  readonly sinceAt: number;
  /** The faults of the current file; empty if it is in effect. */
  readonly faults: readonly string[];
}

export interface LivePolicy {
  current(): RetailPolicy;
  /** The config that the current policy was made of. */
  config(): RetailConfig;
  state(): RetailFileState;
  /** Calls `act` after a changed file has been applied or rejected. */
  onChange(act: (outcome: "applied" | "rejected") => void): void;
  /** Starts watching the file; returns a function that stops it. */
  watch(): () => void;
}

interface LivePolicySettings {
  readonly config: RetailConfig;
  readonly file: RetailFile;
  readonly clock: Clock;
  readonly log: Log;
}

/** A half-written file can look complete, so a text counts only if two reads in a row return it. */
const READ_EVERY_MS = 500;
const MAX_LOGGED_FAULTS = 10;
const PLACE = /^(the file|[a-zA-Z]+(?:\[\d+\]|\.[a-zA-Z]+)*):/;

export function createLivePolicy({ file, clock, log, ...initial }: LivePolicySettings): LivePolicy {
  const acts: ((outcome: "applied" | "rejected") => void)[] = [];
  let config = initial.config;
  let policy = createRetailPolicy(config);
  let inEffect = file.text;
  let sinceAt = clock.now();
  let faults: readonly string[] = [];
  /** The text last evaluated; null while the file can't be read. */
  let evaluated: string | null = file.text;
  let seen: string | null = evaluated;

  function reread(): void {
    const text = readConfigFile(file.path);
    const isSettled = text === seen;
    seen = text;
    if (isSettled && text !== evaluated) evaluate(text);
  }

  function evaluate(text: string | null): void {
    evaluated = text;
    const read = parse(text);
    if (read.ok) {
      if (text !== inEffect) {
        config = read.config;
        policy = createRetailPolicy(config);
        inEffect = text ?? "";
        sinceAt = clock.now();
      }
      faults = [];
      log.info("retail.config.applied", { fingerprint: fingerprintOf(inEffect) });
    } else {
      faults = read.faults;
      // Only the places of the faults: a message can quote an amount, and an unknown key can be one.
      const places = faults
        .slice(0, MAX_LOGGED_FAULTS)
        .map((fault) => PLACE.exec(fault)?.[1] ?? "an unknown key");
      log.error("retail.config.rejected", { faults: faults.length, places: places.join(", ") });
    }
    for (const act of acts) act(read.ok ? "applied" : "rejected");
  }

  return {
    current: () => policy,
    config: () => config,
    state: () => ({ fingerprint: fingerprintOf(inEffect), sinceAt, faults }),
    onChange: (act) => void acts.push(act),
    watch() {
      reread();
      return every(clock, READ_EVERY_MS, reread);
    },
  };
}

function readConfigFile(path: string): string | null {
  try {
    return readFileText(path, MAX_CONFIG_BYTES);
  } catch {
    return null;
  }
}

function parse(text: string | null): ReturnType<typeof parseRetailConfig> {
  if (text !== null) return parseRetailConfig(text);
  return { ok: false, faults: ["the file: doesn't exist, is empty, can't be read or is larger than 64 kB"] };
}

function fingerprintOf(text: string): string {
  return hash("sha256", text, "hex").slice(0, 12);
}
