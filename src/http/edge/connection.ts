/**
 * One client connection. Outstanding requests and queued bytes are bounded; beyond the bounds no further input is parsed. However the
 * connection ends, answers that are ready are sent first, in order.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ServiceError } from "../../errors.js";
import { inTurns } from "../../turns.js";
import type { Arrived } from "./arrived.js";

/** Parsed requests whose answers haven't been sent. Node by itself would parse a whole packet: 1,900 small requests. */
const MAX_OUTSTANDING = 32;
/**
 * How long an ended connection is still read, so that the client sees its last answer (RFC 9112, section 9.6), and how long a flooding
 * client may stay connected.
 */
const LINGER_MS = 5_000;

export interface ConnectionRules {
  /** Whether the client of this request is so far over its limit that its connection should be closed. */
  readonly isFlooding: (request: Arrived) => boolean;
  /** Answers a request whose body is malformed, or that is given up. */
  readonly refuse: (request: Arrived, response: ServerResponse, problem: ServiceError) => void;
  /** Parses the bytes already read, and then the socket. */
  readonly parseOn: (socket: Socket, rest: readonly Buffer[]) => void;
  /** Runs the function after all requests that have already arrived have been handed on. */
  readonly inOrder: (act: () => void) => void;
  /** Whether no connection is kept for further requests. */
  readonly isDraining: () => boolean;
  /** Called once the connection is closed. */
  readonly closed: (socket: Socket) => void;
  /** Renders the complete answer to bytes that aren't an HTTP request. */
  readonly unreadable: (problem: ServiceError) => string;
}

/** Connections resumed per turn of the event loop. */
const MAX_PER_TURN = 2;
const resumeInTurn = inTurns(MAX_PER_TURN);

interface Exchange {
  readonly request: Arrived;
  readonly response: ServerResponse;
}

export class Connection {
  readonly #socket: Socket;
  readonly #rules: ConnectionRules;
  /** Not answered yet, in the order of their requests. */
  #outstanding: Exchange[] = [];
  /** The latest exchange, until its request is complete and everything is answered: an idle connection keeps nothing of what it served. */
  #last: Exchange | null = null;
  /** Bytes that were read but must not be parsed yet. */
  #rest: readonly Buffer[] | null = null;
  /** Set once no further request will be answered; called when all outstanding answers have been sent. */
  #ending: (() => void) | null = null;
  #hasEnded = false;
  #isResuming = false;

  constructor(socket: Socket, rules: ConnectionRules) {
    this.#socket = socket;
    this.#rules = rules;
    // Node removes its own listeners while parsing is stopped.
    socket.on("error", () => socket.destroy());
    socket.on("timeout", () => socket.destroy());
    socket.on("drain", this.#resumeSoon);
    socket.on("end", () => {
      // Answers that are ready in this turn of the event loop are written at its end.
      if (this.#outstanding.length > 0) setImmediate(this.#clientEnded);
    });
    socket.on("close", this.#closed);
    // Node calls it after the last answer. By itself it would close the socket, although the client may still be sending and would then lose the answer.
    socket.destroySoon = () => {
      for (const { response } of this.#outstanding.splice(0)) abandon(response);
      this.#endWith(() => socket.end());
    };
  }

  /** Whether the next request must wait until others have been answered. */
  get isFull(): boolean {
    return this.#outstanding.length >= MAX_OUTSTANDING || this.#socket.writableNeedDrain;
  }

  /** Registers a request; returns false if the connection is ending and it must not be answered. */
  arrived(request: Arrived, response: ServerResponse): boolean {
    if (this.#ending !== null) return false;
    this.#last = { request, response };
    this.#outstanding.push(this.#last);
    if (this.#rules.isDraining()) this.drain();
    return true;
  }

  /** Makes the latest outstanding answer the last one. */
  drain(): void {
    const last = this.#outstanding.at(-1);
    if (last !== undefined) last.response.shouldKeepAlive = false;
  }

  /** Called when the answer to the oldest request has been sent. */
  answered(): void {
    this.#outstanding.shift();
    if (this.#outstanding.length === 0 && this.#unfinished() === null) this.#last = null;
    this.#resumeSoon();
    if (this.#ending !== null) setImmediate(this.#endWhenDone);
  }

  /** Holds back a request until all others have been answered, and then parses it again; `rest` is the input after its head. */
  hold(request: Arrived, rest: Buffer): void {
    if (this.#ending !== null) return;
    if (this.isFull && this.#rules.isFlooding(request)) {
      this.#destroyLater();
      this.#endWith(() => this.#socket.end());
      return;
    }
    this.#rest = [headOf(request), rest];
    this.#stayPaused();
    // Node resumes sockets that it has paused itself, although nothing would receive the data.
    this.#socket.on("resume", this.#stayPaused);
    this.#resumeSoon();
  }

  /** Refuses input that is unreadable or not served: sends all outstanding answers, then this problem, and ends the connection. */
  refuse(problem: ServiceError): void {
    if (this.#ending !== null) return;
    const unfinished = this.#unfinished();
    if (unfinished === null) {
      this.#endWith(() => {
        if (this.#socket.writable) this.#socket.end(this.#rules.unreadable(problem));
      });
    } else {
      setImmediate(() => {
        this.#rules.inOrder(() => {
          // The client limit may still refuse the request in the turn in which it was handed on.
          setImmediate(() => {
            this.#refuse(unfinished, problem);
          });
        });
      });
      this.#endWith(() => this.#socket.end());
    }
  }

  /** Refuses all requests whose answers haven't begun. */
  refuseOutstanding(problem: ServiceError): void {
    for (const exchange of this.#outstanding) this.#refuse(exchange, problem);
  }

  #refuse({ request, response }: Exchange, problem: ServiceError): void {
    if (!response.headersSent && !response.destroyed) this.#rules.refuse(request, response, problem);
  }

  /** Called when the client has ended its side in the middle of a request. */
  cutOff(problem: ServiceError): void {
    if (this.#unfinished() === null) this.refuse(problem);
    else if (this.#ending === null) this.#endWith(() => this.#socket.end());
  }

  /** The request whose body is incomplete. */
  #unfinished(): Exchange | null {
    return this.#last === null || this.#last.request.complete ? null : this.#last;
  }

  #endWith(end: () => void): void {
    this.#ending = end;
    this.#endWhenDone();
  }

  #destroyLater(): void {
    const deadline = setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
    this.#socket.once("close", () => {
      clearTimeout(deadline);
    });
  }

  readonly #endWhenDone = (): void => {
    if (this.#ending === null || this.#hasEnded || this.#outstanding.length > 0) return;
    this.#hasEnded = true;
    this.#rest = null;
    this.#ending();
    this.#socket.resume();
    this.#destroyLater();
  };

  readonly #stayPaused = (): void => {
    if (this.#rest !== null) this.#socket.pause();
  };

  readonly #resume = (): void => {
    this.#isResuming = false;
    const rest = this.#rest;
    if (rest === null || !this.#isEmpty || this.#ending !== null || this.#socket.destroyed) return;
    this.#rest = null;
    this.#rules.parseOn(this.#socket, rest);
    if (this.#rest === null) this.#socket.resume();
  };

  readonly #resumeSoon = (): void => {
    if (this.#rest === null || !this.#isEmpty || this.#isResuming) return;
    this.#isResuming = true;
    resumeInTurn(this.#resume);
  };

  get #isEmpty(): boolean {
    return this.#outstanding.length === 0 && !this.#socket.writableNeedDrain;
  }

  /** Most clients that stop sending have gone, so unfinished answers are abandoned; finished ones are still sent. */
  readonly #clientEnded = (): void => {
    const waiting = this.#outstanding.findIndex(({ response }) => !response.writableEnded);
    if (waiting === -1) return;
    for (const { response } of this.#outstanding.splice(waiting)) abandon(response);
    if (this.#ending === null) this.#endWith(() => this.#socket.destroy());
    else this.#endWhenDone();
  };

  /** Node reports the close only to the answer being written, not to those queued behind it. */
  readonly #closed = (): void => {
    this.#rest = null;
    this.#rules.closed(this.#socket);
    for (const { response } of this.#outstanding.splice(0)) if (response.socket === null) abandon(response);
  };
}

function abandon(response: ServerResponse): void {
  if (response.destroyed) return;
  response.destroyed = true;
  response.emit("close");
}

/** The bytes of a request up to its body. No upgrade is supported, so the Upgrade field is ignored (RFC 9110, section 7.8). */
function headOf({ method = "", url = "", httpVersion, rawHeaders }: Arrived): Buffer {
  const fields = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() !== "upgrade" ? [`${name}: ${rawHeaders[at + 1]}`] : [],
  );
  return Buffer.from([`${method} ${url} HTTP/${httpVersion}`, ...fields, "", ""].join("\r\n"), "latin1");
}
