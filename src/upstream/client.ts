/**
 * The upstream's six operations, typed. Every call is paid for in the quota of the credential it uses, ends by its total deadline, goes
 * to no other host, and fails with a ServiceError that carries nothing of the upstream's; what fails is left alone. The one home of axios.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import axios, { type AxiosInstance, type AxiosResponse } from "axios";
import { type Clock, createStamps } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Wholesale } from "../money.js";
import type { Ask, Quota } from "../quota/quota.js";
import { type Circuit, createCircuits, type Ending } from "./circuit.js";
import {
  type Balance,
  type Check,
  decodeBalance,
  decodeCheck,
  decodeDomain,
  decodeDomainList,
  decodeEnvelope,
  decodeQuote,
  decodeTier,
  type DomainRecord,
  type Term,
  type Tier,
} from "./contract.js";
import type { Credential, Credentials } from "./credentials.js";
import { type Operation, OPERATIONS } from "./operation.js";
import { meaningOf } from "./refusal.js";
import { retryAfterMs } from "./retry-after.js";
import { createSurprises, type Surprises } from "./surprises.js";
import { parseWrittenJson, RepeatedFieldError } from "./written-json.js";

export type { Operation } from "./operation.js";

/** A value with when its question left and when its answer had come: stamps, ms. */
export interface Answered<T> {
  readonly value: T;
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface Upstream {
  /** Availability and the price of `years` of registration (POST /domains/check). */
  check(ask: Ask, name: DomainName, years: number): Promise<Answered<Check>>;
  /** POST /pricing */
  quote(ask: Ask, term: Term): Promise<Answered<Wholesale>>;
  /** GET /domains: at most 100. */
  domains(ask: Ask): Promise<Answered<DomainRecord[]>>;
  /** GET /domains/{domain}; null when the reseller does not manage it. */
  domain(ask: Ask, name: DomainName): Promise<Answered<DomainRecord | null>>;
  balance(ask: Ask): Promise<Answered<Balance>>;
  tier(ask: Ask): Promise<Answered<Tier>>;
  health(): UpstreamHealth;
  /** What was seen and not expected since the start. */
  readonly surprises: Pick<Surprises, "list" | "totals">;
}

export interface UpstreamHealth {
  readonly lastSuccessAtMs: number | null;
  readonly lastFailureAtMs: number | null;
  /** Operations that have failed several times and are not called but for a trial now and then. */
  readonly leftAlone: readonly Operation[];
}

export interface UpstreamSettings {
  readonly baseUrl: string;
  readonly timeoutMs: number;
  /** A price in another one is not understood. Default: any. */
  readonly currencies?: () => ReadonlySet<string>;
  readonly credentials: Credentials;
  /** The quota of one credential. */
  readonly quotaOf: (credential: Credential) => Promise<Quota>;
  /** How long an operation that keeps failing is left alone before it is tried again, and after how many failures. Default: 30 s, 5. */
  readonly trialAfterMs?: number;
  readonly failuresToOpen?: number;
  readonly clock: Clock;
  /** Default: stamps of its own, for callers that compare no answers. */
  readonly stamp?: () => number;
  readonly log: Log;
  readonly onCall?: (operation: Operation, outcome: string, durationMs: number) => void;
  /** Shown every answer before it is understood. */
  readonly onAnswer?: (answer: RawAnswer) => void;
}

/** An answer as it came, for those who judge the upstream itself; its text may be cut. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: { readonly json: unknown } | { readonly text: string };
}

interface Call {
  readonly operation: Operation;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  /** What it asks about, if that is one name. */
  readonly name?: DomainName;
}

type Understood =
  | { readonly kind: "answer"; readonly status: number; readonly data: unknown }
  | { readonly kind: "absent" | "refused"; readonly status: number; readonly data: null }
  /** It works, but not for what was asked. */
  | { readonly kind: "rejected"; readonly how: string }
  | { readonly kind: "limited"; readonly pauseMs: number };

type Decode<T> = (data: unknown, isAbsent: boolean) => T;

/** How a call ended that did not fail. */
type Outcome<T> =
  | { readonly kind: "value"; readonly value: Answered<T> }
  | { readonly kind: "refused" | "called off" }
  | Extract<Understood, { kind: "rejected" | "limited" }>;

/** A call that waits for its slot. */
interface Queued {
  readonly circuit: Circuit;
  readonly credential: Credential;
  readonly isBackground: () => boolean;
  readonly leave: AbortController;
}

/** A list of 1000 usual records fits. */
const LARGEST_BODY_BYTES = 256 * 1024;
/** As much as is read of an error that is no JSON. */
const LONGEST_TEXT_BYTES = 4096;
const TRIAL_AFTER_MS = 30_000;

/** A client of the upstream at `baseUrl`. */
export function createUpstream(settings: UpstreamSettings): Upstream {
  const { credentials, clock, log, stamp = createStamps(clock) } = settings;
  const http = createHttp();
  const circuitOf = createCircuits(OPERATIONS, {
    clock,
    log,
    trialAfterMs: settings.trialAfterMs ?? TRIAL_AFTER_MS,
    failuresToOpen: settings.failuresToOpen,
  });
  const surprises = createSurprises(clock, log);
  const queued = new Set<Queued>();
  let lastSuccessAtMs: number | null = null;
  let lastFailureAtMs: number | null = null;

  /** Those who wait for a slot that they could not use any more leave without it, so nothing is spent. */
  function callOff(): void {
    for (const place of queued) if (!isOpen(place)) place.leave.abort();
  }

  function isOpen({ circuit, credential, isBackground }: Queued): boolean {
    return circuit.refusal(isBackground()) === null && credentials.admits(credential);
  }

  async function request<T>(ask: Ask, call: Call, decode: Decode<T>): Promise<Answered<T>> {
    const circuit = circuitOf(call.operation);
    const isBackground = (): boolean => ask.lane === "refresh";
    const since = clock.monotonic();
    let patienceMs = settings.timeoutMs;
    for (;;) {
      const refusal = circuit.refusal(isBackground());
      if (refusal !== null) throw refusal;
      const credential = credentials.usable();
      if (credential === null) throw failed("refuses the credential");
      const proof = credentials.proof(credential);
      if (proof !== null) {
        const from = clock.monotonic();
        const isProved = await within(patienceMs, proof, ask.signal);
        patienceMs -= clock.monotonic() - from;
        // There is no time to wait for another one, nor to be the next that tries.
        if (!isProved && patienceMs < settings.timeoutMs / 2) throw tooSlow();
        continue;
      }
      const quota = await settings.quotaOf(credential);
      const place: Queued = { circuit, credential, isBackground, leave: new AbortController() };
      const maxWaitMs = Math.max(0, ask.maxWaitMs - (clock.monotonic() - since));
      const outcome = await inSlot(quota, ask, maxWaitMs, place, (answered) =>
        send(ask, call, decode, place, answered),
      );
      switch (outcome.kind) {
        case "value":
          return outcome.value;
        case "rejected":
          throw failed(outcome.how);
        case "limited":
          log.warn("upstream.limited", { credential: credential.fingerprint, pauseMs: outcome.pauseMs });
          await quota.pause(outcome.pauseMs);
          throw new ServiceError("quota_exhausted", "The registry service asks us to wait.", {
            retryAfterMs: outcome.pauseMs,
          });
        // With another credential if there is one: a call pays where it is sent.
        case "refused":
        case "called off":
          break;
        default:
          return outcome satisfies never;
      }
    }
  }

  async function inSlot<T>(
    quota: Quota,
    ask: Ask,
    maxWaitMs: number,
    place: Queued,
    run: (answered: () => void) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    // Things may have changed while the quota was opened.
    if (!isOpen(place)) return { kind: "called off" };
    const { leave } = place;
    const onGone = (): void => {
      leave.abort();
    };
    ask.signal.addEventListener("abort", onGone, { once: true });
    if (ask.signal.aborted) onGone();
    queued.add(place);
    // Urgency and who asks may change while it waits.
    const waiting: Ask = {
      get lane() {
        return ask.lane;
      },
      get client() {
        return ask.client;
      },
      get network() {
        return ask.network;
      },
      maxWaitMs,
      signal: leave.signal,
    };
    let sent = false;
    try {
      return await quota.run(waiting, (answered) => {
        sent = true;
        queued.delete(place);
        return run(answered);
      });
    } catch (error) {
      if (!sent && leave.signal.aborted && !ask.signal.aborted) return { kind: "called off" };
      throw error;
    } finally {
      queued.delete(place);
      ask.signal.removeEventListener("abort", onGone);
    }
  }

  /** One call, which tells the circuit and the credential how it ended. */
  async function send<T>(
    ask: Ask,
    call: Call,
    decode: Decode<T>,
    { circuit, credential, isBackground }: Queued,
    answered: () => void,
  ): Promise<Outcome<T>> {
    const endTrip = circuit.begin(isBackground());
    const use = endTrip === null ? null : credentials.begin(credential);
    if (endTrip === null || use === null) {
      endTrip?.("unknown");
      answered();
      return { kind: "called off" };
    }
    callOff();
    let ending: Ending = "unknown";
    const askedMs = stamp();
    try {
      const understood = await timed(ask, call, credential, answered);
      ending = "works";
      switch (understood.kind) {
        case "limited":
          return understood;
        case "rejected":
          noteFailure(call, failed(understood.how));
          return understood;
        case "refused":
          lastFailureAtMs = clock.now();
          if (use.refused())
            log.error("upstream.credential.refused", {
              credential: credential.fingerprint,
              role: credential.role,
              status: understood.status,
            });
          return { kind: "refused" };
        case "absent":
        case "answer": {
          const isAbsent = understood.kind === "absent";
          // A 403 on one domain may mean that it is not the reseller's, or that the credential is refused: it proves neither.
          if (!isAbsent || understood.status !== 403) use.accepted();
          if (isAbsent && call.operation !== "domain") {
            noteFailure(call, failed("answered with an error"));
            return { kind: "rejected", how: "answered with an error" };
          }
          const value = decode(understood.data, isAbsent);
          lastSuccessAtMs = clock.now();
          return { kind: "value", value: { value, askedMs, answeredMs: stamp() } };
        }
        default:
          return understood satisfies never;
      }
    } catch (error) {
      ending = "unknown";
      if (error instanceof ServiceError && isFailure(error.code)) {
        ending = error.code;
        noteFailure(call, error);
      }
      throw error;
    } finally {
      endTrip(ending);
      use.ended();
      callOff();
    }
  }

  function noteFailure({ operation }: Call, { code, detail }: ServiceError): void {
    lastFailureAtMs = clock.now();
    log.warn("upstream.failed", { operation, code, detail });
  }

  async function timed(
    ask: Ask,
    call: Call,
    credential: Credential,
    answered: () => void,
  ): Promise<Understood> {
    let outcome = "failed";
    let httpStatus: number | null = null;
    const startedAtMs = clock.monotonic();
    try {
      const response = await exchange(credential, call, answered);
      httpStatus = response.status;
      outcome = String(response.status);
      const understood = await understand(response, call, credential);
      if (understood.kind === "rejected") outcome = "upstream_failed";
      return understood;
    } catch (error) {
      if (error instanceof ServiceError) outcome = error.code;
      throw error;
    } finally {
      const durationMs = Math.round(clock.monotonic() - startedAtMs);
      settings.onCall?.(call.operation, outcome, durationMs);
      log.info("upstream.call", {
        operation: call.operation,
        outcome,
        status: httpStatus,
        lane: ask.lane,
        credential: credential.fingerprint,
        durationMs,
      });
    }
  }

  /** What the work resolves with, or false after that time or when nobody waits any more. */
  function within(forMs: number, work: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (result: boolean): void => {
        cancel();
        signal.removeEventListener("abort", give);
        resolve(result);
      };
      const give = (): void => {
        end(false);
      };
      const cancel = clock.after(forMs, give);
      signal.addEventListener("abort", give, { once: true });
      void work.then(end);
    });
  }

  async function exchange(
    credential: Credential,
    call: Call,
    answered: () => void,
  ): Promise<AxiosResponse<unknown>> {
    const url = new URL(call.path, settings.baseUrl);
    if (url.pathname !== call.path || url.origin !== new URL(settings.baseUrl).origin) {
      throw new ServiceError("internal", "A request would have left its path.");
    }
    const deadline = new AbortController();
    const cancel = clock.after(settings.timeoutMs, () => {
      deadline.abort();
    });
    try {
      const response = await http.request<unknown>({
        url: url.href,
        method: call.method,
        headers: {
          Accept: "application/json",
          "Accept-Encoding": "identity",
          "User-Agent": "af-storefront",
          "X-Service-Key": credential.key,
          "X-Service-Secret": credential.secret,
          ...(call.body && { "Content-Type": "application/json" }),
        },
        ...(call.body && { data: JSON.stringify(call.body) }),
        signal: deadline.signal,
      });
      answered();
      return response;
    } catch {
      // An axios error carries the credential in its config, so it ends here and is not even a cause.
      if (deadline.signal.aborted) throw tooSlow();
      throw failed("could not be reached or broke off");
    } finally {
      cancel();
    }
  }

  async function understand(
    { status, headers, data }: AxiosResponse<unknown>,
    call: Call,
    { key, secret }: Credential,
  ): Promise<Understood> {
    const hidden = [key, secret, ...(call.name ? [call.name.ascii, call.name.unicode, call.name.label] : [])];
    const bytes = await inflated(data, headers["content-encoding"]).catch((error: unknown) => {
      if (status === 200) throw error;
      return new Uint8Array();
    });
    const body = bodyOf(bytes);
    settings.onAnswer?.({ status, headers, body });
    if (status === 200 && "json" in body && isSuccess(body.json)) {
      // Of what was asked for, the visitor knows it already; refusing it would tell him that he has guessed right.
      if (
        tells(
          bytes,
          [key, secret].filter((one) => call.name?.ascii.includes(one) !== true),
        )
      )
        throw misread("it repeats the credential");
      surprises.inAnswer(call.operation, body.json, hidden);
      return { kind: "answer", status, data: decodeEnvelope(body.json) };
    }
    const retryAfter: unknown = headers["retry-after"];
    const meaning = meaningOf({
      status,
      hasRetryAfter: retryAfter !== undefined,
      body: "json" in body ? body.json : body.text,
      isRecord: call.operation === "domain",
      asked: call.name ?? null,
    });
    switch (meaning) {
      case "limit":
        return { kind: "limited", pauseMs: retryAfterMs(retryAfter, sentAtMs(headers["date"])) };
      case "credential":
        return { kind: "refused", status, data: null };
      case "absent":
        return { kind: "absent", status, data: null };
      case "failure":
        if ("json" in body) surprises.inError(call.operation, body.json, hidden);
        if (status >= 400 && status < 500) return { kind: "rejected", how: "answered with an error" };
        if (status !== 200) throw failed("answered with an error");
        if (!("json" in body)) throw body.fault;
        if (saysNo(body.json)) return { kind: "rejected", how: "refused the request" };
        return { kind: "answer", status, data: decodeEnvelope(body.json) };
      default:
        return meaning satisfies never;
    }
  }

  /** The upstream's own clock where it tells it, so that a wait until a date does not depend on ours. */
  function sentAtMs(date: unknown): number {
    const told = typeof date === "string" ? Date.parse(date) : NaN;
    return Number.isNaN(told) ? clock.now() : told;
  }

  return {
    check: (ask, name, years) =>
      request(
        ask,
        {
          operation: "check",
          method: "POST",
          path: "/api/v1/domains/check",
          body: { domain: name.ascii, years },
          name,
        },
        (data) => decodeCheck(data, name, years, settings.currencies?.()),
      ),
    quote: (ask, { tld, action, years }) =>
      request(
        ask,
        { operation: "quote", method: "POST", path: "/api/v1/pricing", body: { tld, action, years } },
        (data) => decodeQuote(data, { tld, action, years }, settings.currencies?.()),
      ),
    domains: (ask) =>
      request(ask, { operation: "domains", method: "GET", path: "/api/v1/domains" }, decodeDomainList),
    domain: (ask, name) =>
      request(
        ask,
        { operation: "domain", method: "GET", path: `/api/v1/domains/${name.ascii}`, name },
        (data, isAbsent) => (isAbsent ? null : decodeDomain(data, name)),
      ),
    balance: (ask) =>
      request(ask, { operation: "balance", method: "GET", path: "/api/v1/account/balance" }, decodeBalance),
    tier: (ask) =>
      request(ask, { operation: "tier", method: "GET", path: "/api/v1/account/tier" }, decodeTier),
    health: () => ({
      lastSuccessAtMs,
      lastFailureAtMs,
      leftAlone: OPERATIONS.filter((operation) => circuitOf(operation).isOpen),
    }),
    surprises,
  };
}

/**
 * One socket a call: at 60 calls a minute a new connection costs little, and whatever an answer leaves behind on its socket can never
 * become the next caller's answer.
 */
function createHttp(): AxiosInstance {
  const instance = axios.create({
    adapter: "http",
    proxy: false,
    maxRedirects: 0,
    responseType: "arraybuffer",
    decompress: false,
    maxContentLength: LARGEST_BODY_BYTES,
    maxBodyLength: 64 * 1024,
    validateStatus: () => true,
    transformRequest: [(data: unknown) => data],
    transformResponse: [(data: unknown) => data],
    httpAgent: new HttpAgent({ keepAlive: false }),
    httpsAgent: new HttpsAgent({ keepAlive: false, minVersion: "TLSv1.2" }),
  });
  instance.defaults.headers.common = {};
  return instance;
}

const INFLATE = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

/** The body's bytes, inflated up to the cap where the upstream compressed in spite of being asked not to. */
async function inflated(body: unknown, encoding: unknown): Promise<Uint8Array> {
  if (!(body instanceof Uint8Array)) throw misread();
  const coding = typeof encoding === "string" ? encoding.toLowerCase() : "identity";
  if (coding === "" || coding === "identity") return body;
  if (coding !== "gzip" && coding !== "deflate" && coding !== "br") throw misread();
  try {
    return await INFLATE[coding](body, { maxOutputLength: LARGEST_BODY_BYTES });
  } catch {
    throw misread();
  }
}

/** The JSON that it is, else its text and why it is none. */
function bodyOf(
  bytes: Uint8Array,
): { readonly json: unknown } | { readonly text: string; readonly fault: ServiceError } {
  try {
    return { json: parseWrittenJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) };
  } catch (error) {
    const fault = misread(error instanceof RepeatedFieldError ? "a field that stands twice" : "its body");
    return { text: new TextDecoder().decode(bytes.subarray(0, LONGEST_TEXT_BYTES)), fault };
  }
}

/** Anything shorter stands in texts by chance. */
const SHORTEST_SECRET = 8;

/** Whether one of the secrets stands in the bytes, as it is or with the escapes of JSON or of addresses. */
function tells(bytes: Uint8Array, secrets: readonly string[]): boolean {
  const charOf = (_escape: string, code: string): string => String.fromCharCode(parseInt(code, 16));
  const bare = (text: string): string => text.replaceAll("\\", "");
  const text = bare(new TextDecoder().decode(bytes).replaceAll(/\\u([\da-f]{4})/gi, charOf));
  const decoded = bare(text.replaceAll(/%([\da-f]{2})/gi, charOf));
  return secrets
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .map(bare)
    .some((secret) => text.includes(secret) || decoded.includes(secret));
}

function isSuccess(body: unknown): boolean {
  return typeof body === "object" && body !== null && "success" in body && body.success === true;
}

function saysNo(body: unknown): boolean {
  return typeof body === "object" && body !== null && "success" in body && body.success === false;
}

function isFailure(code: string): code is Exclude<Ending, "works" | "unknown"> {
  return code === "upstream_failed" || code === "upstream_contract" || code === "upstream_timeout";
}

function tooSlow(): ServiceError {
  return new ServiceError("upstream_timeout", "The registry service did not answer in time.");
}

function misread(what = "its body"): ServiceError {
  return new ServiceError("upstream_contract", `The registry service's answer was not understood (${what}).`);
}

function failed(how: string): ServiceError {
  return new ServiceError("upstream_failed", `The registry service ${how}.`);
}
