/**
 * Connections to the upstream. Usually each call has its own: at 60 calls a minute a new one costs little, and leftover bytes of an answer can't become
 * part of the next one.
 *
 * A connection that is kept for the next call is closed if anything arrives on it meanwhile, if its answer was compressed, or after a second.
 *
 * Node writes a request as soon as its socket is connected. After the whole process was suspended (by SIGSTOP, or a migration of the machine), that
 * can happen before any timer can cancel it. So the request gets its socket only once it is connected, and only if the permit is still valid.
 */
import {
  Agent as HttpAgent,
  type ClientRequest,
  type ClientRequestArgs,
  type IncomingMessage,
  request as httpRequest,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import type { Permit } from "../quota/quota.js";

export interface Connections {
  /** With `isKept`, uses a connection that an earlier call has left, and leaves it for the next one. */
  open(permit: Permit, isKept: boolean): Connection;
  /** Closes the connections that no call uses. */
  closeIdle(): void;
}

/** Shorter than servers usually keep an idle connection, so that it isn't closed just as the next request is sent. */
const MAX_IDLE_MS = 1000;

export function createConnections(isTls: boolean): Connections {
  const fresh = openAgent(isTls, {});
  const kept = openAgent(isTls, { keepAlive: true, timeout: MAX_IDLE_MS });
  return {
    open: (permit, isKept) => new Connection(isTls, isKept ? kept : fresh, permit),
    closeIdle() {
      for (const sockets of Object.values(kept.freeSockets))
        for (const socket of sockets ?? []) socket.destroy();
    },
  };
}

/** The connection of one call, through which axios sends its request. */
class Connection {
  readonly #isTls: boolean;
  readonly #agent: HttpAgent;
  readonly #permit: Permit;
  #socket: Duplex | null = null;

  constructor(isTls: boolean, agent: HttpAgent, permit: Permit) {
    this.#isTls = isTls;
    this.#agent = agent;
    this.#permit = permit;
  }

  /** Throws if the permit is no longer valid. */
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest {
    if (!this.#permit.isValid()) throw tooLate();
    const own: CallOptions = { ...options, agent: this.#agent, call: this };
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

  /** Ends the call, for half a millisecond less than an AbortSignal that axios watches. */
  end(): void {
    this.#socket?.destroy(tooLate());
  }
}

type CallOptions = ClientRequestArgs & { readonly call?: Connection };
type OnSocket = NonNullable<Parameters<HttpAgent["createConnection"]>[1]>;

function tooLate(): Error {
  return new Error("it is too late for this call");
}

function openAgent(isTls: boolean, options: { keepAlive?: boolean; timeout?: number }): HttpAgent {
  const agent = isTls ? new HttpsAgent({ ...options, minVersion: "TLSv1.2" }) : new HttpAgent(options);
  const connect = agent.createConnection.bind(agent);
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);
  function faulty(this: Duplex): void {
    this.destroy();
  }
  agent.createConnection = ({ call, ...rest }: CallOptions, onSocket) => {
    const socket = connect(rest);
    if (socket === null || socket === undefined || onSocket === undefined || call === undefined)
      return socket;
    call.opened(socket, isTls ? "secureConnect" : "connect", onSocket);
    return null;
  };
  agent.keepSocketAlive = (socket) => {
    socket.on("data", faulty);
    return keep(socket);
  };
  agent.reuseSocket = (socket, request) => {
    socket.off("data", faulty);
    reuse(socket, request);
  };
  return agent;
}
