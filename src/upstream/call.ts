/**
 * One paid call: with a credential that isn't refused, through the operation's circuit, in a slot of that credential's quota. Every call ends
 * by its deadline, and fails with a ServiceError that contains nothing of the upstream's text.
 */
import { type Answered, type Clock, createStamps, pause } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { type Quota, WITHDRAWN } from "../quota/line.js";
import type { Ask, Permit } from "../quota/quota.js";
import { createCircuits, type Outcome } from "./circuit.js";
import type { Credential, Credentials, Reception } from "./credentials.js";
import { failureCodeOf, notUnderstood, timedOut, upstreamFailed } from "./failures.js";
import type { Fields } from "./fields.js";
import type { Reply, ReplyReader } from "./reply.js";
import type { Transport, UpstreamRequest } from "./transport.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";

interface Call<T> extends UpstreamRequest {
  readonly operation: Operation;
  /** The one name that it is about, if there is one. */
  readonly name?: DomainName;
  /** `beside`: what stands in the envelope beside the data. */
  readonly decode: (data: unknown, beside: Fields) => T;
  /** The value when the upstream has no such record. Without it, that is a failure. */
  readonly ifAbsent?: T;
}

interface CallHealth {
  readonly lastSuccessAt: number | null;
  readonly lastFailureAt: number | null;
  /** Whether the last call of an operation failed; one that was made before its last success doesn't count. */
  readonly isFailing: boolean;
  /** Operations that keep failing, so that only trial requests are made. */
  readonly openCircuits: readonly Operation[];
}

/** What background work does about failures. */
interface Trials {
  /** Operations whose last call failed, and how long until each should have a trial request, in ms. */
  pending(): readonly { readonly operation: Operation; readonly inMs: number }[];
  /** Calls `act` after each failure. */
  onFailure(act: () => void): void;
}

export interface Caller {
  /** Waits for a slot as long as `ask` allows, makes the call and decodes its answer. */
  call<T>(ask: Ask, call: Call<T>): Promise<Answered<T>>;
  health(): CallHealth;
  readonly trials: Trials;
}

/** What a caller needs of a quota. */
export type CallQuota = Pick<Quota, "run" | "pause" | "withdrawUseless">;

export interface CallerSettings {
  readonly transport: Transport;
  readonly readReply: ReplyReader;
  readonly credentials: Credentials;
  readonly quotaOf: (credential: Credential) => Promise<CallQuota>;
  readonly timeoutMs: number;
  /** The quota's window. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** Default: stamps of its own, for callers that don't compare answers with anything else. */
  readonly stamp?: (() => number) | undefined;
  readonly log: Log;
  readonly onCall?: ((operation: Operation, outcome: string, durationMs: number) => void) | undefined;
}

/** The result of a call that was made. After a refused credential, another one may be tried. */
type Result<T> = { readonly value: Answered<T> } | { readonly error: ServiceError } | "refused";

/** An open circuit lets a visitor's trial request through after half a window, but after this time at the latest. */
const HALF_OPEN_AFTER_MS = 30_000;

export function createCaller(settings: CallerSettings): Caller {
  const { transport, readReply, credentials, clock, log, stamp = createStamps(clock) } = settings;
  const circuitOf = createCircuits(OPERATIONS, {
    clock,
    log,
    halfOpenAfterMs: Math.min(HALF_OPEN_AFTER_MS, settings.windowMs / 2),
  });
  /** By the fingerprint of their credential. */
  const quotas = new Map<string, CallQuota>();
  const onFailure: (() => void)[] = [];
  let lastSuccessAt: number | null = null;
  let lastFailureAt: number | null = null;
  /** By operation, the stamps of the last success, and of the last failure's request. */
  const succeededAt = new Map<Operation, number>();
  const failedAskedAt = new Map<Operation, number>();

  async function call<T>(ask: Ask, request: Call<T>): Promise<Answered<T>> {
    const circuit = circuitOf(request.operation);
    let verificationMs = settings.timeoutMs;
    for (;;) {
      const rejection = circuit.rejection(isBackground(ask));
      if (rejection !== null) throw rejection;
      const credential = credentials.usable();
      if (credential === null)
        throw upstreamFailed("refuses the credential", { retryAfterMs: credentials.usableInMs() });
      const verification = credentials.verification(credential);
      if (verification !== null) {
        const waitedFromAt = clock.monotonic();
        const tooLate = pause(clock, verificationMs, ask.signal).then(() => false);
        const isVerified = await Promise.race([verification, tooLate]);
        verificationMs -= clock.monotonic() - waitedFromAt;
        // There is no time left to wait for another verification or to attempt it.
        if (!isVerified && verificationMs < settings.timeoutMs / 2) throw timedOut();
        continue;
      }
      const result = await inSlot(ask, request, credential);
      // Try again with another credential, if there is one. Each credential pays from its own quota.
      if (result === "withdrawn" || result === "refused") continue;
      if ("error" in result) throw result.error;
      return result.value;
    }
  }

  /** Makes the call once it has a slot, unless it becomes useless before that. */
  async function inSlot<T>(
    ask: Ask,
    request: Call<T>,
    credential: Credential,
  ): Promise<Result<T> | "withdrawn"> {
    const circuit = circuitOf(request.operation);
    const isUseful = (): boolean =>
      circuit.rejection(isBackground(ask)) === null && credentials.admits(credential);
    const quota = await settings.quotaOf(credential);
    quotas.set(credential.fingerprint, quota);
    const maxWaitMs = Math.max(0, ask.waitUntilAt - clock.monotonic());
    const { operation, method, path, body = null } = request;
    const queryKey = `${method} ${path} ${JSON.stringify(body)}`;
    try {
      return await quota.run({ ask, maxWaitMs, isUseful, operation, queryKey }, (permit) =>
        send(ask, request, credential, quota, permit),
      );
    } catch (error) {
      if (error === WITHDRAWN) return "withdrawn";
      throw error;
    }
  }

  /** Makes the call unless it has become useless, and reports its outcome to the circuit and the credential. */
  async function send<T>(
    ask: Ask,
    request: Call<T>,
    credential: Credential,
    quota: CallQuota,
    permit: Permit,
  ): Promise<Result<T> | "withdrawn"> {
    const { operation } = request;
    const { fingerprint, role } = credential;
    const endCall = credentials.admits(credential) ? circuitOf(operation).begin(isBackground(ask)) : null;
    if (endCall === null) {
      permit.answered();
      return "withdrawn";
    }
    const endUse = credentials.begin(credential);
    withdrawUseless();
    const askedAt = stamp();
    let outcome: Outcome = "inconclusive";
    let reception: Reception = "unknown";
    let status: number | undefined;
    const rejected = (how: string): Result<T> => {
      outcome = "rejected";
      const error = upstreamFailed(how);
      noteFailure(operation, error, askedAt);
      return { error };
    };
    const answered = (value: T): Result<T> => {
      outcome = "success";
      const answeredAt = stamp();
      lastSuccessAt = clock.now();
      succeededAt.set(operation, answeredAt);
      return { value: { value, askedAt, answeredAt } };
    };
    try {
      const reply = await measured(ask, request, credential, permit);
      switch (reply.kind) {
        case "answer":
          reception = "accepted";
          const value = request.decode(reply.data, reply.beside);
          if (contains(value, credential)) throw notUnderstood("it repeats the credential");
          return answered(value);
        case "absent":
          // A 403 for one domain may mean that the domain isn't managed or that the credential is refused, so it proves neither.
          if (reply.status !== 403) reception = "accepted";
          if (request.ifAbsent === undefined) return rejected("answered with an error");
          return answered(request.ifAbsent);
        case "rejected":
          return rejected(reply.how);
        case "refused":
          reception = "refused";
          ({ status } = reply);
          outcome = "success";
          lastFailureAt = clock.now();
          return "refused";
        case "limited":
          outcome = "success";
          log.warn("upstream.limited", { operation, credential: fingerprint, pauseMs: reply.pauseMs });
          // Within the call, because a stop waits for its end before it hands on the places.
          quota.pause(operation, reply.pauseMs);
          return { error: permit.refusal() };
        default:
          return reply satisfies never;
      }
    } catch (error) {
      outcome = failureCodeOf(error) ?? "inconclusive";
      if (error instanceof ServiceError && outcome !== "inconclusive") noteFailure(operation, error, askedAt);
      throw error;
    } finally {
      const isNews = endUse(reception);
      if (isNews && reception === "accepted")
        log.info("upstream.credential.accepted", { credential: fingerprint, role });
      if (isNews && reception === "refused")
        log.error("upstream.credential.refused", { credential: fingerprint, role, status });
      endCall(outcome);
      if (outcome !== "success" && outcome !== "inconclusive") for (const act of onFailure) act();
      withdrawUseless();
    }
  }

  function withdrawUseless(): void {
    for (const quota of quotas.values()) quota.withdrawUseless();
  }

  function noteFailure(operation: Operation, { code, detail }: ServiceError, askedAt: number): void {
    lastFailureAt = clock.now();
    failedAskedAt.set(operation, Math.max(failedAskedAt.get(operation) ?? -Infinity, askedAt));
    log.warn("upstream.failed", { operation, code, detail });
  }

  /** One exchange and its reply, logged and counted. */
  async function measured(
    ask: Ask,
    request: Call<unknown>,
    credential: Credential,
    permit: Permit,
  ): Promise<Reply> {
    const { operation, name = null } = request;
    let outcome = "failed";
    let httpStatus: number | null = null;
    const startedAt = clock.monotonic();
    try {
      const response = await transport.send(credential, request, permit);
      httpStatus = response.status;
      outcome = String(response.status);
      const reply = readReply(response, { operation, name, credential });
      if (reply.kind === "rejected") outcome = "upstream_failed";
      return reply;
    } catch (error) {
      if (error instanceof ServiceError) outcome = error.code;
      throw error;
    } finally {
      const durationMs = Math.round(clock.monotonic() - startedAt);
      settings.onCall?.(operation, outcome, durationMs);
      log.info("upstream.call", {
        operation,
        outcome,
        status: httpStatus,
        lane: ask.lane,
        credential: credential.fingerprint,
        durationMs,
      });
    }
  }

  return {
    call,
    health: () => ({
      lastSuccessAt,
      lastFailureAt,
      isFailing: OPERATIONS.some(
        (operation) =>
          (failedAskedAt.get(operation) ?? -Infinity) > (succeededAt.get(operation) ?? -Infinity),
      ),
      openCircuits: OPERATIONS.filter((operation) => circuitOf(operation).isOpen),
    }),
    trials: {
      pending: () => {
        // Only a call shows that a refused credential is good again; it can be tried once it has rested.
        if (credentials.states().every(({ refused }) => refused))
          return [{ operation: "tier", inMs: credentials.usable() === null ? Infinity : 0 }];
        const credential = credentials.usable();
        // Until a call has verified the credential, all others wait for that one.
        const isVerifying = credential !== null && credentials.verification(credential) !== null;
        return OPERATIONS.flatMap((operation) => {
          const inMs = circuitOf(operation).trialInMs();
          return inMs === null ? [] : [{ operation, inMs: isVerifying ? Infinity : inMs }];
        });
      },
      onFailure: (act) => void onFailure.push(act),
    },
  };
}

function isBackground({ lane }: Ask): boolean {
  return lane === "refresh";
}

/** Shorter keys could occur by chance. */
const MIN_SECRET_LENGTH = 8;

/** Whether a value that staff or customers may see has the key or the secret in one of its texts. */
function contains(value: unknown, { key, secret }: Credential): boolean {
  const text = JSON.stringify(value).toLowerCase();
  return [key, secret].some(
    (part) =>
      part.length >= MIN_SECRET_LENGTH && text.includes(JSON.stringify(part).slice(1, -1).toLowerCase()),
  );
}
