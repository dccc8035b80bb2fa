/**
 * The upstream's six operations, typed. Every call is paid for in the quota of the credential it uses, ends by its total deadline, goes
 * to no other host, and fails with a ServiceError that carries nothing of the upstream's. The one home of axios.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import axios, { type AxiosInstance, type AxiosResponse } from "axios";
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Wholesale } from "../money.js";
import type { Ask, Quota } from "../quota/quota.js";
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
import { retryAfterMs } from "./retry-after.js";

export interface Upstream {
  /** Availability and the price of `years` of registration (POST /domains/check). */
  check(ask: Ask, name: DomainName, years: number): Promise<Check>;
  /** POST /pricing */
  quote(ask: Ask, term: Term): Promise<Wholesale>;
  /** GET /domains: at most 100. */
  domains(ask: Ask): Promise<DomainRecord[]>;
  /** GET /domains/{domain}; null when the reseller does not manage it. */
  domain(ask: Ask, name: DomainName): Promise<DomainRecord | null>;
  balance(ask: Ask): Promise<Balance>;
  tier(ask: Ask): Promise<Tier>;
  health(): UpstreamHealth;
}

export interface UpstreamHealth {
  readonly lastSuccessAtMs: number | null;
  readonly lastFailureAtMs: number | null;
}

export type Operation = "check" | "quote" | "domains" | "domain" | "balance" | "tier";

export interface UpstreamSettings {
  readonly baseUrl: string;
  readonly timeoutMs: number;
  readonly credentials: Credentials;
  /** The quota of one credential. */
  readonly quotaOf: (credential: Credential) => Promise<Quota>;
  readonly clock: Clock;
  readonly log: Log;
  readonly onCall?: (operation: Operation, outcome: string, durationMs: number) => void;
}

interface Call {
  readonly operation: Operation;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
}

const LARGEST_BODY_BYTES = 1024 * 1024;

/** A client of the upstream at `baseUrl`. */
export function createUpstream(settings: UpstreamSettings): Upstream {
  const { credentials, clock, log } = settings;
  const http = createHttp();
  let lastSuccessAtMs: number | null = null;
  let lastFailureAtMs: number | null = null;

  async function request(ask: Ask, call: Call): Promise<{ status: number; data: unknown }> {
    const credential = credentials.usable();
    if (credential === null) throw failed("refuses the credential");
    const quota = await settings.quotaOf(credential);
    let outcome = "failed";
    let httpStatus: number | null = null;
    const result = await quota.run(ask, async (answered) => {
      // It may have been refused while this call waited for its slot.
      if (!credentials.admits(credential)) {
        answered();
        return { kind: "unsent" as const };
      }
      const startedAtMs = clock.monotonic();
      try {
        const response = await exchange(credential, call, answered);
        httpStatus = response.status;
        outcome = String(response.status);
        return await understand(response);
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
    });
    if (result.kind === "limited") {
      log.warn("upstream.limited", { credential: credential.fingerprint, pauseMs: result.pauseMs });
      await quota.pause(result.pauseMs);
      throw new ServiceError("quota_exhausted", "The registry service asks us to wait.", {
        retryAfterMs: result.pauseMs,
      });
    }
    if (result.kind === "refused" && !(call.operation === "domain" && result.status === 403)) {
      credentials.refused(credential);
      log.error("upstream.credential.refused", {
        credential: credential.fingerprint,
        role: credential.role,
        status: result.status,
      });
      return request(ask, call);
    }
    if (result.kind === "unsent") return request(ask, call);
    // A 403 on one domain may mean that it is not the reseller's, or that the credential is refused: it proves neither.
    if (result.kind === "answer") credentials.accepted(credential);
    return result;
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
      if (deadline.signal.aborted)
        throw new ServiceError("upstream_timeout", "The registry service did not answer in time.");
      throw failed("could not be reached or broke off");
    } finally {
      cancel();
    }
  }

  async function understand(response: AxiosResponse<unknown>) {
    const { status, headers } = response;
    if (status === 429) {
      return { kind: "limited" as const, pauseMs: retryAfterMs(headers["retry-after"], clock.now()) };
    }
    if (status === 401 || status === 403) return { kind: "refused" as const, status, data: null };
    if (status === 404) return { kind: "answer" as const, status, data: null };
    if (status !== 200) throw failed("answered with an error");
    const text = await inflated(response.data, headers["content-encoding"]);
    return { kind: "answer" as const, status, data: decodeEnvelope(parseJson(text)) };
  }

  async function read<T>(ask: Ask, call: Call, decode: (data: unknown, status: number) => T): Promise<T> {
    try {
      const { status, data } = await request(ask, call);
      if (status !== 200 && call.operation !== "domain") throw failed("answered with an error");
      const value = decode(data, status);
      lastSuccessAtMs = clock.now();
      return value;
    } catch (error) {
      if (error instanceof ServiceError && error.code.startsWith("upstream_")) {
        lastFailureAtMs = clock.now();
        log.warn("upstream.failed", { operation: call.operation, code: error.code, detail: error.detail });
      }
      throw error;
    }
  }

  return {
    check: (ask, name, years) =>
      read(
        ask,
        {
          operation: "check",
          method: "POST",
          path: "/api/v1/domains/check",
          body: { domain: name.ascii, years },
        },
        (data) => decodeCheck(data, name),
      ),
    quote: (ask, { tld, action, years }) =>
      read(
        ask,
        { operation: "quote", method: "POST", path: "/api/v1/pricing", body: { tld, action, years } },
        (data) => decodeQuote(data, { tld, action, years }),
      ),
    domains: (ask) =>
      read(ask, { operation: "domains", method: "GET", path: "/api/v1/domains" }, decodeDomainList),
    domain: (ask, name) =>
      read(
        ask,
        { operation: "domain", method: "GET", path: `/api/v1/domains/${name.ascii}` },
        (data, status) => (status === 200 ? decodeDomain(data, name) : null),
      ),
    balance: (ask) =>
      read(ask, { operation: "balance", method: "GET", path: "/api/v1/account/balance" }, decodeBalance),
    tier: (ask) => read(ask, { operation: "tier", method: "GET", path: "/api/v1/account/tier" }, decodeTier),
    health: () => ({ lastSuccessAtMs, lastFailureAtMs }),
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

function parseJson(bytes: Uint8Array): unknown {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    throw misread();
  }
}

function misread(): ServiceError {
  return new ServiceError(
    "upstream_contract",
    "The registry service's answer was not understood (its body).",
  );
}

function failed(how: string): ServiceError {
  return new ServiceError("upstream_failed", `The registry service ${how}.`);
}
