/**
 * One paid call: with a credential that isn't refused, through the operation's circuit, in a slot of that credential's quota. Every call ends
 * by its deadline, and fails with a ServiceError that contains nothing of the upstream's text.
 */
import { type Answered, type Clock, createStamps, pause } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Quota } from "../quota/line.js";
import type { Ask, Permit } from "../quota/quota.js";
import { type Circuit, createCircuits, type Outcome } from "./circuit.js";
import type { Credential, Credentials, Use } from "./credentials.js";
import { failureCodeOf, notUnderstood, timedOut, upstreamFailed } from "./failures.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";
import type { Fields } from "./written-json.js";
import type { Reply, ReplyReader } from "./reply.js";
import { createSlots } from "./slots.js";
import type { Transport, UpstreamRequest } from "./transport.js";

interface Call<T> extends UpstreamRequest {
  readonly operation: Operation;
  /** The one name that it is about, if there is one. */
  readonly name?: DomainName;
  /** `beside`: what stands in the envelope beside the data. */
  readonly decode: (data: unknown, beside: Fields) => T;
  /** The value when the upstream has no such record. Without it, that is a failure. */
  readonly ifAbsent?: T;
}

/** Equal for equal requests of any caller. */
function queryKeyOf({ method, path, body }: UpstreamRequest): string {
  return `${method} ${path} ${JSON.stringify(body ?? null)}`;
}

export interface CallHealth {
  readonly lastSuccessAtMs: number | null;
  readonly lastFailureAtMs: number | null;
  /** Whether the last call failed; one that was made before the last success doesn't count. */
  readonly isFailing: boolean;
  /** Operations that keep failing, so that only trial requests are made. */
  readonly openCircuits: readonly Operation[];
}

/** What background work does about failures. */
export interface Trials {
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

export interface CallerSettings {
  readonly transport: Transport;
  readonly readReply: ReplyReader;
  readonly credentials: Credentials;
  readonly quotaOf: (credential: Credential) => Promise<Quota>;
  readonly timeoutMs: number;
  /** After how many failures a circuit opens. Default: 5. */
  readonly failuresToOpen?: number | undefined;
  /** The quota's window. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** Default: stamps of its own, for callers that don't compare answers with anything else. */
  readonly stamp?: (() => number) | undefined;
  readonly log: Log;
  readonly onCall?: ((operation: Operation, outcome: string, durationMs: number) => void) | undefined;
}

/** The result of a call that didn't fail. */
type Result<T> =
  | { readonly kind: "value"; readonly value: Answered<T> }
  | Extract<Reply, { kind: "rejected" | "refused" | "limited" }>
  | "withdrawn";

/** What one attempt of a call needs. */
interface Attempt {
  readonly circuit: Circuit;
  readonly credential: Credential;
  readonly isBackground: () => boolean;
}

/** An open circuit lets a visitor's trial request through after half a window, but after this time at the latest. */
const HALF_OPEN_AFTER_MS = 30_000;

export function createCaller(settings: CallerSettings): Caller {
  const { transport, readReply, credentials, clock, log, stamp = createStamps(clock) } = settings;
  const circuitOf = createCircuits(OPERATIONS, {
    clock,
    log,
    halfOpenAfterMs: Math.min(HALF_OPEN_AFTER_MS, settings.windowMs / 2),
    failuresToOpen: settings.failuresToOpen,
  });
  const slots = createSlots();
  let lastSuccessAtMs: number | null = null;
  let lastFailureAtMs: number | null = null;
  /** By operation, the stamps of the last success, and of the last failure's request. */
  const succeededAt = new Map<Operation, number>();
  const failedAskedAt = new Map<Operation, number>();
  const onFailure: (() => void)[] = [];

  async function call<T>(ask: Ask, request: Call<T>): Promise<Answered<T>> {
    const circuit = circuitOf(request.operation);
    const isBackground = (): boolean => ask.lane === "refresh";
    let verificationMs = settings.timeoutMs;
    for (;;) {
      const rejection = circuit.rejection(isBackground());
      if (rejection !== null) throw rejection;
      const credential = credentials.usable();
      if (credential === null)
        throw upstreamFailed("refuses the credential", { retryAfterMs: credentials.usableInMs() });
      const verification = credentials.verification(credential);
      if (verification !== null) {
        const waitedFromMs = clock.monotonic();
        const tooLate = pause(clock, verificationMs, ask.signal).then(() => false);
        const isVerified = await Promise.race([verification, tooLate]);
        verificationMs -= clock.monotonic() - waitedFromMs;
        // There is no time left to wait for another verification or to attempt it.
        if (!isVerified && verificationMs < settings.timeoutMs / 2) throw timedOut();
        continue;
      }
      const quota = await settings.quotaOf(credential);
      const maxWaitMs = Math.max(0, ask.waitUntilMs - clock.monotonic());
      const attempt: Attempt = { circuit, credential, isBackground };
      const result = await slots.run(
        quota,
        { ask, queryKey: queryKeyOf(request), operation: request.operation, maxWaitMs },
        () => circuit.rejection(isBackground()) === null && credentials.admits(credential),
        async (permit) => {
          const answered = await send(ask, request, attempt, permit);
          if (answered === "withdrawn" || answered.kind !== "limited") return answered;
          const { kind, pauseMs } = answered;
          log.warn("upstream.limited", {
            operation: request.operation,
            credential: credential.fingerprint,
            pauseMs,
          });
          // Within the call, because a stop waits for its end before it hands on the places.
          quota.pause(request.operation, pauseMs);
          return { kind, refusal: permit.refusal() };
        },
      );
      // Try again with another credential, if there is one. Each credential pays from its own quota.
      if (result === "withdrawn" || result.kind === "refused") continue;
      switch (result.kind) {
        case "value":
          return result.value;
        case "rejected":
          throw upstreamFailed(result.how);
        case "limited":
          throw result.refusal;
        default:
          return result satisfies never;
      }
    }
  }

  /** Makes the call, and reports its outcome to the circuit and the credential. */
  async function send<T>(
    ask: Ask,
    request: Call<T>,
    { circuit, credential, isBackground }: Attempt,
    permit: Permit,
  ): Promise<Result<T>> {
    const endCall = circuit.begin(isBackground());
    const use = endCall === null ? null : credentials.begin(credential);
    if (endCall === null || use === null) {
      endCall?.("inconclusive");
      permit.answered();
      return "withdrawn";
    }
    slots.withdrawUseless();
    let outcome: Outcome = "inconclusive";
    const askedAt = stamp();
    try {
      const reply = await measured(ask, request, credential, permit);
      outcome = "success";
      const result = resultOf(reply, request, credential, use, askedAt);
      if (result.kind === "rejected") outcome = "rejected";
      return result;
    } catch (error) {
      outcome = failureCodeOf(error) ?? "inconclusive";
      if (error instanceof ServiceError && outcome !== "inconclusive")
        noteFailure(request.operation, error, askedAt);
      throw error;
    } finally {
      endCall(outcome);
      if (outcome !== "success" && outcome !== "inconclusive") for (const act of onFailure) act();
      use.ended();
      slots.withdrawUseless();
    }
  }

  function resultOf<T>(
    reply: Reply,
    request: Call<T>,
    credential: Credential,
    use: Use,
    askedAt: number,
  ): Exclude<Result<T>, "withdrawn"> {
    const { fingerprint, role } = credential;
    const valueOf = (value: T): Extract<Result<T>, { kind: "value" }> => {
      const answeredAt = stamp();
      lastSuccessAtMs = clock.now();
      succeededAt.set(request.operation, answeredAt);
      return { kind: "value", value: { value, askedAt, answeredAt } };
    };
    const rejected = (how: string): Extract<Result<T>, { kind: "rejected" }> => {
      noteFailure(request.operation, upstreamFailed(how), askedAt);
      return { kind: "rejected", how };
    };
    const accepted = (): void => {
      if (use.accepted()) log.info("upstream.credential.accepted", { credential: fingerprint, role });
    };
    switch (reply.kind) {
      case "answer":
        accepted();
        const value = request.decode(reply.data, reply.beside);
        if (contains(value, credential)) throw notUnderstood("it repeats the credential");
        return valueOf(value);
      case "absent":
        // A 403 for one domain may mean that the domain isn't managed or that the credential is refused, so it proves neither.
        if (reply.status !== 403) accepted();
        return request.ifAbsent === undefined
          ? rejected("answered with an error")
          : valueOf(request.ifAbsent);
      case "rejected":
        return rejected(reply.how);
      case "refused":
        lastFailureAtMs = clock.now();
        if (use.refused())
          log.error("upstream.credential.refused", { credential: fingerprint, role, status: reply.status });
        return reply;
      case "limited":
        return reply;
      default:
        return reply satisfies never;
    }
  }

  function noteFailure(operation: Operation, { code, detail }: ServiceError, askedAt: number): void {
    lastFailureAtMs = clock.now();
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
    const startedMs = clock.monotonic();
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
      const durationMs = Math.round(clock.monotonic() - startedMs);
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
      lastSuccessAtMs,
      lastFailureAtMs,
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
