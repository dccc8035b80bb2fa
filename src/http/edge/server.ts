/**
 * The HTTP server. It sends known answers without Express, isn't held up by slow or hostile clients, and answers the requests of each connection in
 * order.
 */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Socket } from "node:net";
import type { Express } from "express";
import { ServiceError, shuttingDown } from "../../errors.js";
import { inTurns } from "../../turns.js";
import type { Arrived } from "./arrived.js";
import { createBurstQueue } from "./burst-queue.js";
import { Connection, type ConnectionRules } from "./connection.js";

/** How many late requests are refused per turn of the event loop. */
const MAX_LATE_PER_TURN = 4;
/** A connection on which nothing is sent or received for so long is ended, unless an answer may take longer. */
const MIN_SILENCE_MS = 90_000;

type OpenConnections = Map<Duplex, Connection>;

interface OnConnection extends Arrived {
  readonly arrivedOn: Connection | undefined;
}

/**
 * Express changes the prototype of every request and response, which makes their properties slow in V8 (Node 18 to 22, nodejs/node#37457). Objects
 * of these classes have Express's prototypes from the start, so Express changes nothing.
 */
function bornAsExpress(app: Express, connections: OpenConnections) {
  class Incoming extends IncomingMessage {
    declare readonly ip: string | undefined;
    declare arrivedOn: Connection | undefined;
    declare private stopsParsing: boolean;

    /**
     * Node parses a whole packet, but stops after the head of an upgrade request and hands over the rest. So a full connection is stopped by
     * marking its request as an upgrade. Real upgrades must be taken over, too, because Node drops the input after one that isn't.
     */
    get upgrade(): boolean {
      return this.stopsParsing;
    }
    set upgrade(isUpgrade: boolean | null) {
      this.arrivedOn = connections.get(this.socket);
      this.stopsParsing = isUpgrade === true || this.arrivedOn?.isFull === true;
    }
  }
  class Outgoing extends ServerResponse<Incoming> {
    /** Called by Node when the answer has been handed to the socket. */
    override detachSocket(socket: Socket): void {
      super.detachSocket(socket);
      this.req.arrivedOn?.answered();
    }
  }
  Object.setPrototypeOf(Incoming.prototype, app.request);
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  Object.assign(app, { request: Incoming.prototype, response: Outgoing.prototype });
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
}

/** Node's own parser of one connection. */
interface Parser {
  /** Called with the head of each request. */
  onIncoming: (request: { readonly upgrade: boolean }, keepAlive: boolean) => number;
}

/** Returned by `onIncoming`, it makes the parser stop after the head. */
const STOP_AFTER_HEAD = 2;

/**
 * Stops parsing after the head of a request that is marked as an upgrade. Since Node 26 (nodejs/node#60016), Node by itself would parse its body, and
 * the rest of the packet if the client hasn't asked for an upgrade.
 */
function stopAfterUpgrades(socket: Socket): void {
  const parser = "parser" in socket ? socket.parser : null;
  if (!isParser(parser)) throw new Error("This version of Node parses requests in another way.");
  const { onIncoming } = parser;
  parser.onIncoming = (request, keepAlive) => {
    const result = onIncoming(request, keepAlive);
    return request.upgrade ? STOP_AFTER_HEAD : result;
  };
}

function isParser(value: unknown): value is Parser {
  return (
    typeof value === "object" &&
    value !== null &&
    "onIncoming" in value &&
    typeof value.onIncoming === "function"
  );
}

interface ServerParts extends Pick<ConnectionRules, "isDraining" | "isFlooding" | "refuse" | "unreadable"> {
  /** The largest body that any route reads. */
  readonly maxBodyBytes: number;
  /** How long a request may take before it is answered. */
  readonly longestAnswerMs: number;
  /** Whether the request is served immediately even during a burst of new connections. */
  readonly isUrgent: (request: Arrived) => boolean;
  /** Called for a request that may have to wait for a burst to end. Returns what to call if its client leaves first. */
  readonly deferred: (request: Arrived) => () => void;
  /** Answers a request in front of Express, or returns false and leaves it untouched. */
  readonly isAnswered: (request: Arrived, response: ServerResponse) => boolean;
}

export interface Serving {
  readonly server: Server;
  /** Call once `isDraining`: answers in progress say that their connection ends, because a client that reused it would lose its request. */
  drain(): void;
  /** Refuses all requests whose answers haven't begun. */
  giveUp(): void;
}

export function serve(app: Express, parts: ServerParts): Serving {
  const connections: OpenConnections = new Map();
  const server = createServer(
    {
      ...bornAsExpress(app, connections),
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      // The service checks it and answers with a problem.
      requireHostHeader: false,
    },
    handle,
  );
  server.setTimeout(Math.max(MIN_SILENCE_MS, parts.longestAnswerMs));
  // By default, Node silently drops further fields, even a second Host. Their size is limited anyway.
  server.maxHeadersCount = 0;
  // Otherwise Node would end the connection while answers are still to be written.
  Object.assign(server, { httpAllowHalfOpen: true });

  const burst = createBurstQueue();
  const refuseInTurn = inTurns(MAX_LATE_PER_TURN);

  function handle(request: OnConnection, response: ServerResponse): void {
    if (request.arrivedOn?.arrived(request, response) === false) return;
    // Only some requests with a body are answered in front of Express, and it takes longer, so even a refusal can wait.
    const isPatient = request.method !== "GET" && hasBody(request);
    // By then Node has read the rest of the packet, which is usually the whole body. A client that waits for 100 Continue hasn't sent it.
    if (isPatient && request.headers.expect === undefined)
      process.nextTick(inTurn, request, response, isPatient);
    else inTurn(request, response, isPatient);
  }

  function inTurn(request: OnConnection, response: ServerResponse, isPatient: boolean): void {
    if (!isPatient && parts.isAnswered(request, response)) return;
    if (parts.isUrgent(request)) {
      app(request, response);
      return;
    }
    const abandoned = parts.deferred(request);
    burst.run(() => {
      if (response.destroyed) abandoned();
      else if (!isPatient || !parts.isAnswered(request, response)) app(request, response);
    });
  }

  const rules: ConnectionRules = {
    ...parts,
    inOrder: burst.run,
    closed: (socket) => connections.delete(socket),
    parseOn(socket, rest) {
      // Node adds its listeners again without having removed them.
      socket.removeAllListeners("pause").removeAllListeners("resume");
      server.emit("connection", socket);
      // Not with `unshift` and `resume`, which would read more input for every packet that is only partly parsed.
      for (const part of rest) socket.emit("data", part);
    },
  };
  server.on("connection", (socket) => {
    stopAfterUpgrades(socket);
    if (connections.has(socket)) return;
    connections.set(socket, new Connection(socket, rules));
    burst.accepted();
  });
  server.on("upgrade", (request: Arrived, socket, rest) => {
    connections.get(socket)?.hold(request, rest);
  });
  // Node's own method doesn't know the sockets that it has handed over.
  server.closeAllConnections = () => {
    for (const socket of connections.keys()) socket.destroy();
  };
  server.on("checkContinue", (request, response) => {
    // No route would read such a body. Node ends the connection after an answer without 100 Continue.
    if (Number(request.headers["content-length"]) > parts.maxBodyBytes) {
      handle(request, response);
      return;
    }
    // Otherwise Node would end the connection after an early answer, although the body is read either way.
    Object.assign(response, { _expect_continue: false });
    handle(request, response);
    if (hasBody(request) && !response.headersSent) continueInTurn(response);
  });
  server.on("checkExpectation", handle);
  server.on("connect", (_request, socket) => {
    connections.get(socket)?.refuse(
      new ServiceError("method_not_allowed", "This is not a proxy.", {
        headers: { Allow: "GET, HEAD, POST, OPTIONS" },
      }),
    );
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const connection = connections.get(socket);
    if (connection === undefined || !socket.writable || isGone(error, socket)) {
      socket.destroy();
    } else if (error.code === "HPE_INVALID_EOF_STATE") {
      connection.cutOff(problemOf(error));
    } else if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
      // Node reports all late requests at once, which may be hundreds.
      refuseInTurn(() => {
        connection.refuse(problemOf(error));
      });
    } else {
      connection.refuse(problemOf(error));
    }
  });
  return {
    server,
    drain() {
      for (const connection of connections.values()) connection.drain();
    },
    giveUp() {
      const problem = shuttingDown();
      burst.run(() => {
        for (const connection of connections.values()) connection.refuseOutstanding(problem);
      });
    },
  };
}

/** The connection broke, or never sent anything. */
function isGone({ code }: NodeJS.ErrnoException, socket: Duplex): boolean {
  return (
    code === "ECONNRESET" ||
    code === "EPIPE" ||
    (code === "ERR_HTTP_REQUEST_TIMEOUT" && socket instanceof Socket && socket.bytesRead === 0)
  );
}

function problemOf({ code }: NodeJS.ErrnoException): ServiceError {
  switch (code ?? "") {
    case "HPE_HEADER_OVERFLOW":
      return new ServiceError(
        "headers_too_large",
        "The request line and the headers together are larger than 16 kB.",
      );
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new ServiceError("payload_too_large", "The chunk extensions of the body are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new ServiceError("invalid_request", "The request didn't arrive in time.");
    default:
      return new ServiceError("invalid_request", "This isn't a valid HTTP request.");
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Sends 100 Continue (RFC 9110, section 10.1.1), after the answers to earlier requests. */
function continueInTurn(response: ServerResponse): void {
  const invite = (): void => {
    if (!response.headersSent) response.writeContinue();
  };
  if (response.socket !== null) invite();
  else response.once("socket", invite);
}
