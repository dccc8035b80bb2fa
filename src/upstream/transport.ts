/**
 * One HTTP exchange with the upstream: to its origin only, without redirects or proxies, within the deadline and the size limit. The only
 * user of axios.
 */
import axios, { type AxiosInstance } from "axios";
import type { Clock } from "../clock.js";
import { inTurns } from "../turns.js";
import type { Permit } from "../quota/quota.js";
import { ServiceError } from "../errors.js";
import { createConnections } from "./connections.js";
import type { Credential } from "./credentials.js";
import { timedOut, upstreamFailed } from "./failures.js";

export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  /** Whether the answer names what was asked, so that the answer to another request can't be taken for it. Default: false. */
  readonly isNamedInAnswer?: boolean;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The body's bytes as they arrived, perhaps compressed. */
  readonly data: unknown;
}

export interface Transport {
  /**
   * Sends one request with the credential, one per turn of the event loop, if the permit is still valid once there is a connection. Calls `answered`
   * when the answer is complete.
   */
  send(
    credential: Credential,
    request: UpstreamRequest,
    permit: Pick<Permit, "isValid" | "answered">,
  ): Promise<UpstreamResponse>;
  /** Keeps no connections for a while, because something was wrong with an answer. */
  distrust(): void;
}

interface TransportSettings {
  readonly baseUrl: string;
  /** For the whole exchange, from connecting to the last byte. */
  readonly timeoutMs: number;
  /** How many calls the quota allows. Default: so few that no connection is kept for the next one. */
  readonly callsPerSecond?: number | undefined;
  readonly clock: Clock;
}

/** 1000 typical domain records fit. */
export const MAX_BODY_BYTES = 256 * 1024;
const MAX_REQUEST_BYTES = 64 * 1024;
/** With so many calls, the next one follows within a few hundredths of a second. */
const SHARED_FROM_CALLS_PER_SECOND = 15;

export function createTransport(settings: TransportSettings): Transport {
  const { baseUrl, timeoutMs, callsPerSecond = 0, clock } = settings;
  const http = createHttp();
  const { origin, protocol } = new URL(baseUrl);
  const connections = createConnections(protocol === "https:", clock);
  const sharesConnections = callsPerSecond >= SHARED_FROM_CALLS_PER_SECOND;
  // Dozens of calls may be due at once, each taking a millisecond of CPU before it is sent.
  const inTurn = inTurns(1);

  async function send(
    credential: Credential,
    { method, path, body, isNamedInAnswer = false }: UpstreamRequest,
    permit: Pick<Permit, "isValid" | "answered">,
  ): Promise<UpstreamResponse> {
    const url = new URL(path, baseUrl);
    if (url.pathname !== path || url.origin !== origin)
      throw new ServiceError("internal", "A request would have left its path.");
    await new Promise<void>(inTurn);
    const connection = connections.open(permit, sharesConnections && isNamedInAnswer);
    let cancel = (): void => {};
    const late = new Promise<never>((_, reject) => {
      cancel = clock.after(timeoutMs, () => {
        connection.end();
        reject(timedOut());
      });
    });
    try {
      const exchange = http.request<unknown>({
        url: url.href,
        method,
        headers: {
          Accept: "application/json",
          "Accept-Encoding": "identity",
          "User-Agent": "af-storefront",
          "X-Service-Key": credential.key,
          "X-Service-Secret": credential.secret,
          ...(body && { "Content-Type": "application/json" }),
        },
        ...(body && { data: JSON.stringify(body) }),
        transport: connection,
      });
      const response = await Promise.race([exchange, late]);
      permit.answered();
      return response;
    } catch (error) {
      // An axios error contains the credential in its config, so it must not leave this function, not even as a cause.
      if (error instanceof ServiceError) throw error;
      throw permit.isValid()
        ? upstreamFailed("couldn't be reached or closed the connection early")
        : timedOut();
    } finally {
      cancel();
    }
  }

  return { send, distrust: connections.distrust };
}

function createHttp(): AxiosInstance {
  const instance = axios.create({
    adapter: "http",
    proxy: false,
    maxRedirects: 0,
    responseType: "arraybuffer",
    decompress: false,
    maxContentLength: MAX_BODY_BYTES,
    maxBodyLength: MAX_REQUEST_BYTES,
    validateStatus: () => true,
    transformRequest: [(data: unknown) => data],
    transformResponse: [(data: unknown) => data],
  });
  instance.defaults.headers.common = {};
  return instance;
}
