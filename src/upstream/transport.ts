/**
 * One HTTP exchange with the upstream: to its origin only, without redirects or proxies, within the deadline and the size limit. The only
 * user of axios.
 */
import { Agent as HttpAgent, type ClientRequestArgs } from "node:http";
import { Agent as HttpsAgent, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import axios, { type AxiosInstance } from "axios";
import type { Clock } from "../clock.js";
import { inTurns } from "../turns.js";
import type { Permit } from "../quota/quota.js";
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

/**
 * Sends one request with the credential, one per turn of the event loop, if the permit is still valid once there is a connection. Calls `answered`
 * when the answer is complete.
 */
export type Transport = (
  credential: Credential,
  request: UpstreamRequest,
  permit: Permit,
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
  const { origin, protocol } = new URL(baseUrl);
  const isTls = protocol === "https:";
  // Dozens of calls may be due at once, each taking a millisecond of CPU before it is sent.
  const inTurn = inTurns(1);

  return async (credential, { method, path, body }, permit) => {
    const url = new URL(path, baseUrl);
    if (url.pathname !== path || url.origin !== origin)
      throw new ServiceError("internal", "A request would have left its path.");
    await new Promise<void>(inTurn);
    const connection = new Connection(isTls, permit);
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
        [isTls ? "httpsAgent" : "httpAgent"]: connection.agent,
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
  };
}

/**
 * Every call gets its own socket. At 60 calls a minute a new connection costs little, and leftover bytes of an answer can't become part of the next
 * one.
 *
 * Node writes a request as soon as its socket is connected. After the whole process was suspended (by SIGSTOP, or a migration of the machine), that
 * can happen before any timer can cancel it. So the request gets its socket only once it is connected, and only if the permit is still valid.
 */
class Connection {
  readonly agent: HttpAgent;
  readonly #permit: Permit;
  #socket: Duplex | null = null;

  constructor(isTls: boolean, permit: Permit) {
    this.agent = isTls ? new TlsAgent(this) : new PlainAgent(this);
    this.#permit = permit;
  }

  /** Hands over the socket once it is connected. */
  opened(socket: Opened, connected: "connect" | "secureConnect", onSocket: OnSocket): Opened {
    if (socket === null || socket === undefined || onSocket === undefined) return socket;
    this.#socket = socket;
    socket.once(connected, () => {
      if (this.#permit.isValid()) onSocket(null, socket);
      else this.end();
    });
    socket.once("error", (error) => {
      onSocket(error, socket);
    });
    return null;
  }

  /** Ends the call, for half a millisecond less than an AbortSignal that axios watches. */
  end(): void {
    this.#socket?.destroy(new Error("it is too late for this call"));
  }
}

type Opened = ReturnType<HttpAgent["createConnection"]>;
type OnSocket = Parameters<HttpAgent["createConnection"]>[1];

// Classes, because V8 keeps everything that a function refers to until the next full garbage collection if each agent gets its own.
class PlainAgent extends HttpAgent {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    super({ keepAlive: false });
    this.#connection = connection;
  }

  override createConnection(options: ClientRequestArgs, onSocket?: OnSocket): Opened {
    return this.#connection.opened(super.createConnection(options), "connect", onSocket);
  }
}

class TlsAgent extends HttpsAgent {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    super({ keepAlive: false, minVersion: "TLSv1.2" });
    this.#connection = connection;
  }

  override createConnection(options: RequestOptions, onSocket?: OnSocket): Opened {
    return this.#connection.opened(super.createConnection(options), "secureConnect", onSocket);
  }
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
