/** The HTTP server: Node's own, with its timeouts and bounds. Bytes that aren't a request get a problem like any other. */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Express } from "express";
import { ServiceError, shuttingDown } from "../../errors.js";
import { refuseAndAbort, type UnreadableAnswer, unreadableAnswer } from "./problems.js";

/** A connection on which nothing is sent or received for so long is ended, unless an answer may take longer. */
const MIN_SILENCE_MS = 90_000;
/** Behind a proxy, its limits apply long before these. They bound what one client costs that connects directly. */
const MAX_CONNECTIONS = 4_000;
const MAX_REQUESTS_PER_CONNECTION = 100;

interface ServerParts {
  /** How long a request may take before it is answered. */
  readonly longestAnswerMs: number;
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number;
  /** Answers a request in front of Express, or returns false and leaves it untouched. */
  readonly isAnswered: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Whether answers end their connections. */
  readonly isLeaving: () => boolean;
  /** Called with each answer to bytes that aren't a request. */
  readonly onUnreadable: (answer: UnreadableAnswer) => void;
}

export interface Serving {
  readonly server: Server;
  /** Call once `isLeaving`: answers in progress end their connections, too, because a client that reused one would lose its request. */
  leave(): void;
  /** Refuses the requests whose answers haven't begun. */
  giveUp(): void;
}

export function serve(app: Express, parts: ServerParts): Serving {
  /** The last answer of each connection, until it is sent and its request is complete. */
  const last = new WeakMap<Duplex, ServerResponse>();
  const unanswered = new Set<ServerResponse>();
  const server = createServer(
    {
      ...withPrototypesOf(app),
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: parts.keepAliveMs,
      maxHeaderSize: 16 * 1024,
      // The service checks it and answers with a problem.
      requireHostHeader: false,
    },
    handle,
  );
  server.setTimeout(Math.max(MIN_SILENCE_MS, parts.longestAnswerMs));
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  // By default, Node silently drops further fields, even a second Host. Their size is limited anyway.
  server.maxHeadersCount = 0;

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket, headers } = request;
    // Node drops what follows a request to upgrade in the same packet.
    if (parts.isLeaving() || headers.upgrade !== undefined) response.setHeader("Connection", "close");
    const isAnswered = parts.isAnswered(request, response);
    if (isAnswered && response.writableFinished) return;
    last.set(socket, response);
    unanswered.add(response);
    response.once("close", () => {
      unanswered.delete(response);
      if (request.complete && last.get(socket) === response) last.delete(socket);
    });
    if (!isAnswered) app(request, response);
  }

  server.on("checkContinue", (request, response) => {
    // Node would write it into an answer that waits for its turn. Clients don't wait for it for long.
    if (response.socket !== null) response.writeContinue();
    handle(request, response);
  });
  // Node would refuse what is pipelined beyond the bound, and keep the connection and every refusal that isn't read.
  server.on("dropRequest", (_request, socket) => socket.destroy());
  // Express answers these, too.
  server.on("checkExpectation", handle);
  server.on("connect", (_request, socket) => {
    const headers = { Allow: "GET, HEAD, POST, OPTIONS" };
    endWith(socket, new ServiceError("method_not_allowed", "This is not a proxy.", { headers }));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // After the answer to a request with `Connection: close`, Node ends the connection by itself.
    if (error.code === "HPE_CLOSED_CONNECTION") return;
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else if (error.code === "HPE_INVALID_EOF_STATE" && last.get(socket)?.req.complete === false) socket.end();
    else endWith(socket, problemOf(error));
  });

  /** Sends the problem as the last answer of the connection: to a request whose body is malformed, or after the answers to earlier requests. */
  function endWith(socket: Duplex, problem: ServiceError): void {
    const response = last.get(socket);
    const end = (): void => {
      if (!socket.writable) return;
      const answer = unreadableAnswer(problem);
      parts.onUnreadable(answer);
      socket.end(answer.text);
    };
    if (response === undefined || (response.writableFinished && response.req.complete)) end();
    else if (response.req.complete) response.once("close", end);
    else if (response.headersSent) socket.destroy();
    else refuseAndAbort(response, problem);
  }

  return {
    server,
    leave() {
      for (const response of unanswered) if (!response.headersSent) response.setHeader("Connection", "close");
    },
    giveUp() {
      for (const response of unanswered) if (!response.headersSent) refuseAndAbort(response, shuttingDown());
    },
  };
}

/**
 * Creates requests and responses with Express's prototypes. Express would set them for each one, which makes their properties slow on Node 18 to 22
 * (nodejs/node#37457).
 */
function withPrototypesOf(app: Express) {
  class Incoming extends IncomingMessage {}
  class Outgoing extends ServerResponse<Incoming> {}
  Object.setPrototypeOf(Incoming.prototype, app.request);
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  Object.assign(app, { request: Incoming.prototype, response: Outgoing.prototype });
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
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
