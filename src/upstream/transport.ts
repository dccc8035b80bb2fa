/**
 * One HTTP exchange with the upstream: to its origin only, without redirects or proxies, on a connection of its own, within the deadline and
 * the size limit. The only user of axios.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import axios from "axios";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Permit } from "../quota/quota.js";
import { tracingHeaders } from "../request-ids.js";
import { type Body, MAX_BODY_BYTES, readBody } from "./body.js";
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
  readonly body: Body;
}

export interface Transport {
  /** Sends one request with the credential, if the permit is still valid. Calls `answered` when the answer is complete. */
  send(
    credential: Credential,
    request: UpstreamRequest,
    permit: Pick<Permit, "isValid" | "answered">,
  ): Promise<UpstreamResponse>;
}

interface TransportSettings {
  readonly baseUrl: string;
  /** For the whole exchange, from connecting to the last byte. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

const MAX_REQUEST_BYTES = 64 * 1024;

export function createTransport({ baseUrl, timeoutMs, clock }: TransportSettings): Transport {
  const { origin } = new URL(baseUrl);
  const http = axios.create({
    proxy: false,
    maxRedirects: 0,
    maxContentLength: MAX_BODY_BYTES,
    maxBodyLength: MAX_REQUEST_BYTES,
    // Bytes that follow an answer can't become part of the next one.
    httpAgent: new HttpAgent({ keepAlive: false }),
    httpsAgent: new HttpsAgent({ keepAlive: false }),
    validateStatus: null,
    // The limit then applies to what arrives, and `readBody` limits what it inflates.
    decompress: false,
    responseType: "arraybuffer",
    transformResponse: (bytes: Uint8Array, headers) => readBody(bytes, headers["content-encoding"]),
    headers: {
      Accept: "application/json",
      "Accept-Encoding": "identity",
      "User-Agent": "af-storefront",
    },
  });

  return {
    async send({ key, secret }, { method, path, body }, permit) {
      const url = new URL(path, baseUrl);
      if (url.pathname !== path || url.origin !== origin)
        throw new ServiceError("internal", "A request would have left its path.");
      if (!permit.isValid()) throw timedOut();
      // Not the timeout of axios, which starts again with every byte that arrives.
      const deadline = new AbortController();
      const cancel = clock.after(timeoutMs, () => {
        deadline.abort();
      });
      try {
        const { status, headers, data } = await http.request<Body>({
          url: url.href,
          method,
          headers: { "X-Service-Key": key, "X-Service-Secret": secret, ...tracingHeaders() },
          data: body,
          signal: deadline.signal,
        });
        permit.answered();
        return { status, headers, body: data };
      } catch {
        // An axios error contains the credential in its config, so it must not leave this function, not even as a cause.
        throw deadline.signal.aborted
          ? timedOut()
          : upstreamFailed("couldn't be reached or closed the connection early");
      } finally {
        cancel();
      }
    },
  };
}
