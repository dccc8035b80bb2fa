/** The upstream client with a recorded environment, and the words that it must never reveal. */
import { inspect } from "node:util";
import { expect } from "@jest/globals";
import { type Clock, systemClock } from "../../../src/clock.js";
import { type DomainName, parseDomainName } from "../../../src/domain-name.js";
import { ServiceError } from "../../../src/errors.js";
import type { Log, LogFields } from "../../../src/logger.js";
import type { CallQuota } from "../../../src/upstream/call.js";
import type { Ask } from "../../../src/quota/quota.js";
import { fixedSecret } from "../../../src/secret.js";
import { createCredentials, type Credential, type Credentials } from "../../../src/upstream/credentials.js";
import { createUpstream, type Upstream } from "../../../src/upstream/operations.js";

export const ACTIVE = { key: "active-key-7f3a", secret: "active-secret-91bc" } as const;
export const STANDBY = { key: "standby-key-22de", secret: "standby-secret-08aa" } as const;

/** Is in the reason phrases, headers and bodies of bad answers. */
const UPSTREAM_WORD = "marrow";
const SECRET_WORDS = [
  ACTIVE.key,
  ACTIVE.secret,
  STANDBY.key,
  STANDBY.secret,
  UPSTREAM_WORD,
  "X-Service",
  "axios",
] as const;

export const KABUL: DomainName = parseDomainName("kabul.af", [".af", ".com.af"], "domain");

export const AVAILABLE = {
  domain: "kabul.af",
  status: "available",
  available: true,
  pricing: { amount: "12.34", currency: "USD" },
} as const;

export interface Bench {
  readonly upstream: Upstream;
  readonly credentials: Credentials;
  /** Every log line as JSON. */
  readonly lines: string[];
  readonly pausesMs: number[];
  /** For each call in a slot: whether it reported that it was answered. */
  readonly answered: boolean[];
}

export interface BenchSettings {
  readonly baseUrl: string;
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly standby?: boolean;
  /** Default: ACTIVE. */
  readonly credential?: { readonly key: string; readonly secret: string };
  /** Default: one that allows every call. */
  readonly quotaOf?: (credential: Pick<Credential, "role">) => CallQuota;
}

export function createBench({
  baseUrl,
  timeoutMs = 5000,
  clock = systemClock,
  standby = false,
  credential = ACTIVE,
  quotaOf,
}: BenchSettings): Bench {
  const lines: string[] = [];
  const pausesMs: number[] = [];
  const answered: boolean[] = [];
  const credentials = createCredentials(source(credential), standby ? source(STANDBY) : null, clock);
  const quota: CallQuota = {
    run({ ask }, call) {
      return Promise.resolve().then(() => {
        if (ask.signal.aborted) throw new Error("the call was withdrawn");
        const slot = answered.push(false) - 1;
        return call({
          isValid: () => true,
          answered: () => {
            answered[slot] = true;
          },
          refusal: () =>
            new ServiceError("quota_exhausted", "The upstream has asked for a pause.", {
              retryAfterMs: pausesMs.at(-1) ?? 0,
            }),
        });
      });
    },
    pause(_operation, forMs) {
      pausesMs.push(forMs);
    },
    withdrawUseless() {},
  };
  const upstream = createUpstream({
    baseUrl,
    timeoutMs,
    windowMs: 60_000,
    credentials,
    quotaOf: async (credential) => quotaOf?.(credential) ?? quota,
    clock,
    log: recordingLog(lines),
    onCall: () => {},
  });
  return { upstream, credentials, lines, pausesMs, answered };
}

function source({ key, secret }: { readonly key: string; readonly secret: string }) {
  return { key: fixedSecret(key), secret: fixedSecret(secret) };
}

function recordingLog(lines: string[]): Log {
  const write =
    (level: string) =>
    (event: string, fields: LogFields = {}): void => {
      lines.push(JSON.stringify({ level, event, ...fields }));
    };
  return {
    error: write("error"),
    warn: write("warn"),
    info: write("info"),
    debug: write("debug"),
    flush: async () => {},
  };
}

export function ask(): Ask {
  return { lane: "exact", client: "a", waitUntilAt: Infinity, signal: new AbortController().signal };
}

/** The ServiceError that the work rejects with. Throws for any other outcome. */
export async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw new Error(`not a ServiceError: ${inspect(error)}`, { cause: error });
  }
  throw new Error("the call did not fail");
}

/** However an error or a log line is printed, it reveals nothing about the credential or the upstream's answer. */
export function expectNothingRevealed(error: ServiceError, lines: readonly string[]): void {
  const printed = [
    JSON.stringify(error),
    inspect(error, { depth: null, showHidden: true }),
    inspect(error.cause, { depth: null, showHidden: true }),
    error.stack ?? "",
    ...lines,
  ].join("\n");
  // Stack frames contain local paths with the name of the axios module.
  const withoutPaths = printed.replaceAll(/\(?file:\/\/\S+|\/\S*node_modules\S+/g, "");
  for (const word of SECRET_WORDS) expect(withoutPaths).not.toContain(word);
  expect(error.cause).toBeUndefined();
}
