/**
 * Connections to the upstream. Usually each call has its own: at 60 calls a minute a new one costs little, and leftover bytes of an answer can't become
 * part of the next one.
 *
 * A connection that is kept is used again only after a turn of the event loop in which nothing followed its answer, and for a second at most. If
 * anything goes wrong with a call or with a connection that is kept, none is kept for a minute.
 *
 * Node writes a request as soon as its socket is connected. After the whole process was suspended (by SIGSTOP, or a migration of the machine), that
 * can happen before any timer can cancel it. So the request gets its socket only once it is connected, and only if the permit is still valid.
 */
import {
  Agent as HttpAgent,
  type AgentOptions,
  type ClientRequest,
  type ClientRequestArgs,
  type IncomingMessage,
  request as httpRequest,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import type { Clock } from "../clock.js";
import type { Permit } from "../quota/quota.js";

export interface Connections {
  /** With `mayShare`, the connection may have been kept from an earlier call, and may be kept for the next one. */
  open(permit: Pick<Permit, "isValid">, mayShare: boolean): Connection;
  /** Closes those that no call uses, and keeps none for a minute. */
  distrust(): void;
}

/** Shorter than servers usually keep an idle connection, so that it isn't closed just as the next request is sent. */
const MAX_IDLE_MS = 1000;
const NONE_KEPT_FOR_MS = 60_000;
/** Events of a connection that no call uses. Recent versions of Node (22.23, 24.21, 26) close it instead of emitting the first two. */
const UNEXPECTED = ["data", "end", "close"] as const;

export function createConnections(isTls: boolean, clock: Clock): Connections {
  const fresh = openAgent(isTls, {});
  const kept = openAgent(isTls, { keepAlive: true, scheduling: "fifo", timeout: MAX_IDLE_MS });
  const keep = kept.keepSocketAlive.bind(kept);
  const reuse = kept.reuseSocket.bind(kept);
  /** Those whose last answer came in this turn of the event loop or the one before. */
  const unproven = new WeakSet<Duplex>();
  let keptFrom = -Infinity;

  kept.keepSocketAlive = (socket) => {
    unproven.add(socket);
    setImmediate(() => setImmediate(() => unproven.delete(socket)));
    for (const event of UNEXPECTED) socket.on(event, distrust);
    socket.on("timeout", expectClose);
    return keep(socket);
  };
  kept.reuseSocket = (socket, request) => {
    for (const event of UNEXPECTED) socket.off(event, distrust);
    socket.off("timeout", expectClose);
    reuse(socket, request);
  };

  function distrust(): void {
    keptFrom = clock.monotonic() + NONE_KEPT_FOR_MS;
    for (const sockets of Object.values(kept.freeSockets))
      for (const socket of sockets ?? []) socket.destroy();
  }

  /** An idle connection is about to be closed. */
  function expectClose(this: Duplex): void {
    this.off("close", distrust);
  }

  function agentFor(mayShare: boolean): HttpAgent {
    const isNextUnproven = (): boolean =>
      Object.values(kept.freeSockets).some(
        (sockets) => sockets?.[0] !== undefined && unproven.has(sockets[0]),
      );
    return mayShare && clock.monotonic() >= keptFrom && !isNextUnproven() ? kept : fresh;
  }

  return {
    open: (permit, mayShare) => new Connection(isTls, () => agentFor(mayShare), permit),
    distrust,
  };
}

/** The connection of one call, through which axios sends its request. */
class Connection {
  readonly #isTls: boolean;
  readonly #agent: () => HttpAgent;
  readonly #permit: Pick<Permit, "isValid">;
  #socket: Duplex | null = null;

  constructor(isTls: boolean, agent: () => HttpAgent, permit: Pick<Permit, "isValid">) {
    this.#isTls = isTls;
    this.#agent = agent;
    this.#permit = permit;
  }

  /** Throws if the permit is no longer valid. */
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest {
    if (!this.#permit.isValid()) throw tooLate();
    const own: CallOptions = { ...options, agent: this.#agent(), call: this };
    const request = (this.#isTls ? httpsRequest : httpRequest)(own, (response) => {
      // Such an answer is judged only once it is decompressed.
      if (response.headers["content-encoding"] !== undefined) request.shouldKeepAlive = false;
      onResponse(response);
    });
    request.once("socket", (socket) => {
      this.#socket = socket;
    });
    return request;
  }

  /** Hands over a new socket once it is connected. */
  opened(socket: Duplex, connected: "connect" | "secureConnect", onSocket: OnSocket): void {
    this.#socket = socket;
    socket.once(connected, () => {
      if (this.#permit.isValid()) onSocket(null, socket);
      else this.end();
    });
    socket.once("error", (error) => {
      onSocket(error, socket);
    });
  }

  /** Ends the call. An AbortSignal would cost axios half a millisecond more per call. */
  end(): void {
    this.#socket?.destroy(tooLate());
  }
}

type CallOptions = ClientRequestArgs & { readonly call?: Connection };
type OnSocket = NonNullable<Parameters<HttpAgent["createConnection"]>[1]>;

function tooLate(): Error {
  return new Error("it is too late for this call");
}

function openAgent(isTls: boolean, options: AgentOptions): HttpAgent {
  const agent = isTls ? new HttpsAgent({ ...options, minVersion: "TLSv1.2" }) : new HttpAgent(options);
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = ({ call, ...rest }: CallOptions, onSocket) => {
    const socket = connect(rest);
    if (socket === null || socket === undefined || onSocket === undefined || call === undefined)
      return socket;
    call.opened(socket, isTls ? "secureConnect" : "connect", onSocket);
    return null;
  };
  return agent;
}
