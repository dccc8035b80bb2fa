/** The HTTP server: what is known is answered in front of Express, slow and hostile clients cannot hold it, and everything parsed is answered in order. */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Socket } from "node:net";
import type { Express } from "express";
import { ServiceError } from "../../errors.js";
import type { Arrived } from "./arrived.js";
import { Connection, type ConnectionRules } from "./connection.js";
import { createBurstQueue, inTurns } from "./turns.js";

/** Clients per turn of the event loop that are refused because their request is late. */
const MAX_LATE_PER_TURN = 4;

type OpenConnections = Map<Duplex, Connection>;

interface OnConnection extends Arrived {
  readonly arrivedOn: Connection | undefined;
}

/**
 * Express changes the prototype of every request and response, after which V8 (Node 18 to 22) finds none of their properties fast
 * (nodejs/node#37457). Made by these classes they have Express's prototypes from birth, and Express changes nothing.
 */
function bornAsExpress(app: Express, connections: OpenConnections) {
  class Incoming extends IncomingMessage {
    declare readonly ip: string | undefined;
    declare arrivedOn: Connection | undefined;
    declare private stopsParsing: boolean;

    /**
     * Node parses a whole packet, but stops behind the head of an upgrade and hands over what comes next. That is how a full connection is
     * stopped. A real upgrade must be taken too: Node drops what comes behind one that is not.
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

export interface ServerParts extends Pick<ConnectionRules, "isFlooding" | "refuse" | "unreadable"> {
  /** Whether the request is served immediately even during a burst of new connections. */
  readonly isUrgent: (request: Arrived) => boolean;
  /** Called for a request that may have to wait for a burst to end. Returns what to call if its client leaves first. */
  readonly deferred: (request: Arrived) => () => void;
  /** Answers a request in front of Express, or returns false and leaves it untouched. */
  readonly isAnswered: (request: Arrived, response: ServerResponse) => boolean;
}

export function serve(app: Express, parts: ServerParts): Server {
  const connections: OpenConnections = new Map();
  const server = createServer(
    {
      ...bornAsExpress(app, connections),
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      // Checked by us, with a problem as the answer.
      requireHostHeader: false,
    },
    handle,
  );
  server.setTimeout(90_000);
  // Node drops the rest without a word, a second Host included; their size is bounded anyway.
  server.maxHeadersCount = 0;
  // Node would end the connection while answers are still to be written.
  Object.assign(server, { httpAllowHalfOpen: true });

  const burst = createBurstQueue();
  const refuseInTurn = inTurns(MAX_LATE_PER_TURN);

  function handle(request: OnConnection, response: ServerResponse): void {
    if (request.arrivedOn?.arrived(request, response) === false) return;
    // A request with a body is never answered from memory, so even its refusal can wait.
    const isPatient = request.method !== "GET" && hasBody(request);
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
      // Node adds its own once more and has not removed them.
      socket.removeAllListeners("pause").removeAllListeners("resume");
      server.emit("connection", socket);
      // Not by unshift and resume, which would read more with every packet that is only parsed in part.
      for (const part of rest) socket.emit("data", part);
    },
  };
  server.on("connection", (socket) => {
    if (connections.has(socket)) return;
    connections.set(socket, new Connection(socket, rules));
    burst.accepted();
  });
  server.on("upgrade", (request: Arrived, socket, rest) => {
    connections.get(socket)?.hold(request, rest);
  });
  // Node's own knows nothing of those that it has let go.
  server.closeAllConnections = () => {
    for (const socket of connections.keys()) socket.destroy();
  };
  server.on("checkContinue", (request, response) => {
    // Or Node would end the connection behind an answer that comes without the invitation, though the body is read either way.
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
      // Node finds everyone who is late at once, which may be hundreds.
      refuseInTurn(() => {
        connection.refuse(problemOf(error));
      });
    } else {
      connection.refuse(problemOf(error));
    }
  });
  return server;
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
        "The request line and the header fields may have up to 16 kB together.",
      );
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new ServiceError("payload_too_large", "The chunk extensions of the body are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new ServiceError("invalid_request", "The request did not arrive in time.");
    default:
      return new ServiceError("invalid_request", "This is not a readable HTTP request.");
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Invites the body (RFC 9110, section 10.1.1), after the answers to earlier requests. */
function continueInTurn(response: ServerResponse): void {
  const invite = (): void => {
    if (!response.headersSent) response.writeContinue();
  };
  if (response.socket !== null) invite();
  else response.once("socket", invite);
}
