/**
 * The retail policy in effect. Its file is read again when it changes: a good file takes effect as a whole, a bad one never does. A policy
 * never changes itself, so whoever takes `current()` once uses a single version.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { createRetailPolicy, type RetailPolicy } from "./policy.js";
import { MOST_CONFIG_BYTES, parseRetailConfig, type RetailConfig } from "./retail-config.js";

/** The file that a config was read from, and what it said then. */
export interface RetailFile {
  readonly path: string;
  readonly text: string;
}

export interface RetailFileState {
  /** Identifies the text in effect. */
  readonly fingerprint: string;
  /** Since when it is in effect; wall clock, ms. */
  readonly sinceMs: number;
  /** What is wrong with the file as it is now; empty while it is in effect. */
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

export interface LivePolicySettings {
  readonly config: RetailConfig;
  readonly file: RetailFile;
  readonly clock: Clock;
  readonly log: Log;
}

/** A file that was read in the middle of being written can look complete, so two looks have to find the same. */
const LOOK_EVERY_MS = 500;
const MOST_LOGGED_FAULTS = 10;

export function createLivePolicy({ file, clock, log, ...initial }: LivePolicySettings): LivePolicy {
  const acts: ((outcome: "applied" | "rejected") => void)[] = [];
  let config = initial.config;
  let policy = createRetailPolicy(config);
  let inEffect = file.text;
  let sinceMs = clock.now();
  let faults: readonly string[] = [];
  /** The text last judged; null while the file can't be read. */
  let judged: string | null = file.text;
  let seen: string | null = judged;

  function look(): void {
    const text = readConfigFile(file.path);
    const isSettled = text === seen;
    seen = text;
    if (isSettled && text !== judged) judge(text);
  }

  function judge(text: string | null): void {
    judged = text;
    const read = parse(text);
    if (read.ok) {
      if (text !== inEffect) {
        config = read.config;
        policy = createRetailPolicy(config);
        inEffect = text ?? "";
        sinceMs = clock.now();
      }
      faults = [];
      log.info("retail.config.applied", { fingerprint: fingerprintOf(inEffect) });
    } else {
      faults = read.faults;
      // Without the messages, which may quote amounts.
      const places = faults.slice(0, MOST_LOGGED_FAULTS).map((fault) => fault.split(":")[0]);
      log.error("retail.config.rejected", { faults: faults.length, places: places.join(", ") });
    }
    for (const act of acts) act(read.ok ? "applied" : "rejected");
  }

  return {
    current: () => policy,
    config: () => config,
    state: () => ({ fingerprint: fingerprintOf(inEffect), sinceMs, faults }),
    onChange: (act) => void acts.push(act),
    watch() {
      let cancel = (): void => {};
      const lookAgain = (): void => {
        look();
        cancel = clock.after(LOOK_EVERY_MS, lookAgain);
      };
      lookAgain();
      return () => {
        cancel();
      };
    },
  };
}

/** Null for what can't be read, or is no file of a sensible size. */
function readConfigFile(path: string): string | null {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= MOST_CONFIG_BYTES ? readFileSync(path, "utf8") : null;
  } catch {
    return null;
  }
}

function parse(text: string | null): ReturnType<typeof parseRetailConfig> {
  if (text !== null) return parseRetailConfig(text);
  return { ok: false, faults: ["the file: doesn't exist, can't be read or is larger than 256 kB"] };
}

function fingerprintOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
