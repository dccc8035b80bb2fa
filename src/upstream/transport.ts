/**
 * One HTTP exchange with the upstream: to its origin only, without redirects or proxies, within the deadline and the size limit. The only
 * user of axios.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import axios, { type AxiosInstance } from "axios";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Credential } from "./credentials.js";
import { timedOut, upstreamFailed } from "./failures.js";

export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The body's bytes as they arrived, perhaps compressed. */
  readonly data: unknown;
}

/** Sends one request with the credential. `onAnswered` is called once the answer is complete. */
export type Transport = (
  credential: Credential,
  request: UpstreamRequest,
  onAnswered: () => void,
) => Promise<UpstreamResponse>;

interface TransportSettings {
  readonly baseUrl: string;
  /** For the whole exchange, from connecting to the last byte. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** 1000 typical domain records fit. */
export const MAX_BODY_BYTES = 256 * 1024;
const MAX_REQUEST_BYTES = 64 * 1024;

export function createTransport({ baseUrl, timeoutMs, clock }: TransportSettings): Transport {
  const http = createHttp();
  const { origin } = new URL(baseUrl);

  return async (credential, { method, path, body }, onAnswered) => {
    const url = new URL(path, baseUrl);
    if (url.pathname !== path || url.origin !== origin)
      throw new ServiceError("internal", "A request would have left its path.");
    const deadline = new AbortController();
    const cancel = clock.after(timeoutMs, () => {
      deadline.abort();
    });
    try {
      const response = await http.request<unknown>({
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
        signal: deadline.signal,
      });
      onAnswered();
      return response;
    } catch {
      // An axios error contains the credential in its config, so it must not leave this function, not even as a cause.
      throw deadline.signal.aborted
        ? timedOut()
        : upstreamFailed("couldn't be reached or closed the connection early");
    } finally {
      cancel();
    }
  };
}

/**
 * Every call gets its own socket. At 60 calls a minute a new connection costs little, and bytes that an answer leaves on its socket can't
 * become part of the next answer.
 */
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
    httpAgent: new HttpAgent({ keepAlive: false }),
    httpsAgent: new HttpsAgent({ keepAlive: false, minVersion: "TLSv1.2" }),
  });
  instance.defaults.headers.common = {};
  return instance;
}
