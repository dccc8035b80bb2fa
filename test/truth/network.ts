/**
 * HTTP without a network. Connections are pairs of streams in this process, so the order in which data arrives doesn't depend on the kernel.
 * Node's own HTTP client and server use them unchanged.
 */
import { Agent, type Server } from "node:http";
import { Duplex } from "node:stream";

class Endpoint extends Duplex {
  readonly remoteAddress = "127.0.0.1";
  peer: Endpoint | null = null;
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
    // As with a socket, the other end is closed later and without a reason.
    process.nextTick(() => peer?.destroy());
    done(error);
  }

  arrive(chunk: unknown, done: () => void): void {
    if (this.destroyed) return done();
    if (this.push(chunk) || chunk === null) done();
    else this.#arrived = done;
  }

  // The methods of a socket that Node's HTTP calls.
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
  /** Increases whenever anything is sent. */
  activity = 0;
  readonly #servers = new Map<string, Server>();
  readonly #open = new WeakMap<Server, Set<Endpoint>>();
  readonly #unreachable = new WeakSet<Server>();

  /** Routes requests for this address to the server. */
  route(url: string, server: Server): void {
    this.#servers.set(new URL(url).host, server);
  }

  /** Opens a connection to the server. It is refused while the server is unreachable. */
  connect(server: Server): Duplex {
    const count = (): void => {
      this.activity += 1;
    };
    const [near, far] = [new Endpoint(count), new Endpoint(count)];
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

  /** Makes the server reachable or unreachable. The latter breaks its connections, and new ones are refused. */
  setReachable(server: Server, isReachable: boolean): void {
    if (isReachable) this.#unreachable.delete(server);
    else this.#unreachable.add(server);
    if (!isReachable) this.disconnect(server);
  }

  disconnect(server: Server): void {
    for (const end of this.#open.get(server) ?? []) end.destroy(new Error("connection reset"));
  }

  /** Makes every HTTP client of this process use these connections for routed addresses. Returns a function that undoes this. */
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
