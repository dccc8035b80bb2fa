/**
 * HTTP without a network: connections are pairs of streams in this process, so that what is sent arrives in an order that no kernel decides.
 * Node's own HTTP client and server run on them unchanged.
 */
import { Agent, type Server } from "node:http";
import { Duplex } from "node:stream";

class End extends Duplex {
  readonly remoteAddress = "127.0.0.1";
  peer: End | null = null;
  #arrived: (() => void) | null = null;
  readonly #onWrite: () => void;

  constructor(onWrite: () => void) {
    super({ allowHalfOpen: true });
    this.#onWrite = onWrite;
  }

  override _read(): void {
    const arrived = this.#arrived;
    this.#arrived = null;
    arrived?.();
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#onWrite();
    this.peer?.arrive(chunk, done);
  }

  override _final(done: () => void): void {
    this.#onWrite();
    this.peer?.arrive(null, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#onWrite();
    const { peer } = this;
    // The other end hears of it as it would from a socket: later, and without a reason.
    process.nextTick(() => peer?.destroy());
    done(error);
  }

  arrive(chunk: unknown, done: () => void): void {
    if (this.destroyed) return done();
    if (this.push(chunk) || chunk === null) done();
    else this.#arrived = done;
  }

  // What HTTP asks of a socket beside being a stream.
  setTimeout(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

export class Network {
  /** Grows with everything that is sent. */
  activity = 0;
  readonly #servers = new Map<string, Server>();
  readonly #open = new WeakMap<Server, Set<End>>();
  readonly #unreachable = new WeakSet<Server>();

  /** Requests to this address go to that server. */
  route(url: string, server: Server): void {
    this.#servers.set(new URL(url).host, server);
  }

  /** A connection to the server, or one that is refused while the server cannot be reached. */
  connect(server: Server): Duplex {
    const count = (): void => {
      this.activity += 1;
    };
    const [near, far] = [new End(count), new End(count)];
    near.peer = far;
    far.peer = near;
    if (this.#unreachable.has(server)) {
      process.nextTick(() => near.destroy(new Error("connection refused")));
      return near;
    }
    const open = this.#open.get(server) ?? new Set();
    this.#open.set(server, open.add(near));
    near.once("close", () => open.delete(near));
    server.emit("connection", far);
    process.nextTick(() => near.emit("connect"));
    return near;
  }

  /** Breaks every connection to the server; while it is down new ones are refused. */
  setReachable(server: Server, isReachable: boolean): void {
    if (isReachable) this.#unreachable.delete(server);
    else this.#unreachable.add(server);
    if (!isReachable) this.breakOff(server);
  }

  breakOff(server: Server): void {
    for (const end of this.#open.get(server) ?? []) end.destroy(new Error("connection reset"));
  }

  /** Every HTTP client of this process uses these connections for addresses routed here; the result undoes it. */
  install(): () => void {
    const { createConnection } = Agent.prototype;
    Agent.prototype.createConnection = (options, callback) => {
      const server = this.#servers.get(`${String(options.host)}:${String(options.port)}`);
      return server === undefined ? createConnection(options, callback) : this.connect(server);
    };
    return () => {
      Agent.prototype.createConnection = createConnection;
    };
  }
}
