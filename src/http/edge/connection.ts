/**
 * One client connection: it has a bounded number of requests outstanding and a bounded number of bytes queued, beyond which neither the
 * socket nor what has been read of it is parsed. However it ends, the answers that are ready leave first, in order.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ServiceError } from "../../errors.js";
import type { Arrived } from "./arrived.js";
import { inTurns } from "./turns.js";

/** Requests that have been parsed and whose answers have not left. Node alone would parse a whole packet: 1,900 small requests. */
const MOST_OUTSTANDING = 32;
/** How long a connection that has ended is read on, so that the client sees its last answer (RFC 9112, section 9.6), and a flooding one may take. */
const LINGER_MS = 5_000;

export interface ConnectionRules {
  /** Whether the client of this request is so far past its limit that it is not worth reading on. */
  readonly isFlooding: (request: Arrived) => boolean;
  /** Answers a request whose body turned out to be malformed. */
  readonly refuse: (request: Arrived, response: ServerResponse, problem: ServiceError) => void;
  /** Parses what has been read, and then what comes. */
  readonly parseOn: (socket: Socket, rest: readonly Buffer[]) => void;
  /** The whole answer, as bytes, to what was not a request. */
  readonly unreadable: (problem: ServiceError) => string;
}

/** Connections that were full and are parsed on. */
const MOST_PER_TURN = 2;
const goOnInTurn = inTurns(MOST_PER_TURN);

interface Exchange {
  readonly request: Arrived;
  readonly response: ServerResponse;
}

export class Connection {
  readonly #socket: Socket;
  readonly #rules: ConnectionRules;
  /** In the order of their requests. */
  #outstanding: ServerResponse[] = [];
  #last: Exchange | null = null;
  /** What has been read and is not to be parsed yet. */
  #rest: readonly Buffer[] | null = null;
  /** Set when no further request will be answered: what to do once all that is owed has left. */
  #ending: (() => void) | null = null;
  #hasEnded = false;
  #goesOn = false;

  constructor(socket: Socket, rules: ConnectionRules) {
    this.#socket = socket;
    this.#rules = rules;
    // Node's own listeners are gone while parsing is stopped.
    socket.on("error", () => socket.destroy());
    socket.on("timeout", () => socket.destroy());
    socket.on("drain", this.#goOnSoon);
    // What is ready in this turn of the event loop is written at its end.
    socket.on("end", () => setImmediate(this.#clientHasFinished));
    socket.on("close", this.#closed);
  }

  /** Whether the next request must wait until others have been answered. */
  get isFull(): boolean {
    return this.#outstanding.length >= MOST_OUTSTANDING || this.#socket.writableNeedDrain;
  }

  /** Takes in a request; false when the connection is ending and it must not be answered. */
  arrived(request: Arrived, response: ServerResponse): boolean {
    if (this.#ending !== null) return false;
    this.#last = { request, response };
    this.#outstanding.push(response);
    return true;
  }

  /** The answer to the oldest request has left. */
  answered(): void {
    this.#outstanding.shift();
    this.#goOnSoon();
    if (this.#ending !== null) setImmediate(this.#endWhenDone);
  }

  /** Parsing has stopped before this request, which is parsed again when all others have been answered; `rest` is what came behind its head. */
  hold(request: Arrived, rest: Buffer): void {
    if (this.#ending !== null) return;
    if (this.isFull && this.#rules.isFlooding(request)) {
      this.#destroyLater();
      this.#endWith(() => this.#socket.end());
      return;
    }
    this.#rest = [headOf(request), rest];
    this.#stayPaused();
    // Node resumes what it has paused itself, though nobody would hear the data.
    this.#socket.on("resume", this.#stayPaused);
    this.#goOnSoon();
  }

  /** What came next cannot be read, or is not served: all that is owed is answered, then this, and the connection ends. */
  refuse(problem: ServiceError): void {
    if (this.#ending !== null) return;
    const unfinished = this.#unfinished();
    if (unfinished === null) {
      this.#endWith(() => {
        if (this.#socket.writable) this.#socket.end(this.#rules.unreadable(problem));
      });
    } else {
      const { request, response } = unfinished;
      // It has come no further than its limit in this turn, and may have been refused by it.
      setImmediate(() => {
        if (!response.headersSent && !response.destroyed) this.#rules.refuse(request, response, problem);
      });
      this.#endWith(() => this.#socket.end());
    }
  }

  /** The client has finished in the middle of a request. */
  cutOff(problem: ServiceError): void {
    if (this.#unfinished() === null) this.refuse(problem);
    else if (this.#ending === null) this.#endWith(() => this.#socket.end());
  }

  /** The request whose body is still to come. */
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

  readonly #goOn = (): void => {
    this.#goesOn = false;
    const rest = this.#rest;
    if (rest === null || !this.#isEmpty || this.#ending !== null || this.#socket.destroyed) return;
    this.#rest = null;
    this.#rules.parseOn(this.#socket, rest);
    if (this.#rest === null) this.#socket.resume();
  };

  readonly #goOnSoon = (): void => {
    if (this.#rest === null || !this.#isEmpty || this.#goesOn) return;
    this.#goesOn = true;
    goOnInTurn(this.#goOn);
  };

  get #isEmpty(): boolean {
    return this.#outstanding.length === 0 && !this.#socket.writableNeedDrain;
  }

  /** Most who send no more have gone, so those who wait are given up; what is ready still leaves. */
  readonly #clientHasFinished = (): void => {
    const waiting = this.#outstanding.findIndex(({ writableEnded }) => !writableEnded);
    if (waiting === -1) return;
    for (const response of this.#outstanding.splice(waiting)) giveUp(response);
    if (this.#ending === null) this.#endWith(() => this.#socket.destroy());
    else this.#endWhenDone();
  };

  /** Node tells it to the answer that was being written, not to those behind it. */
  readonly #closed = (): void => {
    this.#rest = null;
    for (const response of this.#outstanding.splice(0)) if (response.socket === null) giveUp(response);
  };
}

function giveUp(response: ServerResponse): void {
  if (response.destroyed) return;
  response.destroyed = true;
  response.emit("close");
}

/** The bytes of a request up to its body. There is nothing to upgrade to, so the field that asks for it is ignored (RFC 9110, section 7.8). */
function headOf({ method = "", url = "", httpVersion, rawHeaders }: Arrived): Buffer {
  const fields = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() !== "upgrade" ? [`${name}: ${rawHeaders[at + 1]}`] : [],
  );
  return Buffer.from([`${method} ${url} HTTP/${httpVersion}`, ...fields, "", ""].join("\r\n"), "latin1");
}
