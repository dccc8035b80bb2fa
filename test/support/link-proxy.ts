/** The network between a replica and Redis, which a test can slow down, cut silently or reset. */
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisServer } from "./redis-server.js";

export interface LinkProxy {
  /** For REDIS_URL. */
  readonly url: string;
  /** Sets the round-trip time; half of it is added in each direction. */
  roundTrip(ms: number): void;
  /** From now on nothing arrives on either side, but connections stay open. */
  cut(): void;
  /** Ends the cut and resets all connections. What was sent during the cut is lost. */
  heal(): void;
  /** Resets all connections now. */
  reset(): void;
  /** Resets each connection this long after it was opened; null stops this. */
  resetAfter(ms: number | null): void;
  close(): Promise<void>;
}

export async function startLinkProxy({ url }: Pick<RedisServer, "url">): Promise<LinkProxy> {
  const path = url.replace(/^unix:\/\//, "");
  const sockets = new Set<Socket>();
  let halfTripMs = 0;
  let isCut = false;
  let lifetimeMs: number | null = null;

  const reset = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  function forward(from: Socket, to: Socket): void {
    sockets.add(from);
    from.on("error", () => {});
    from.on("close", () => {
      sockets.delete(from);
      if (!isCut) to.destroy();
    });
    let inFlight = 0;
    let earlier: Promise<unknown> = Promise.resolve();
    const deliver = (bytes: Buffer): void => {
      if (!isCut && !to.destroyed) to.write(bytes);
    };
    from.on("data", (bytes) => {
      if (isCut) return;
      if (halfTripMs === 0 && inFlight === 0) return deliver(bytes);
      inFlight += 1;
      // Keeps the order when the round-trip time is reduced.
      earlier = Promise.all([earlier, sleep(halfTripMs)]).then(() => {
        inFlight -= 1;
        deliver(bytes);
      });
    });
  }

  const server = createServer((client) => {
    const redis = connect(path);
    forward(client, redis);
    forward(redis, client);
    if (lifetimeMs !== null) setTimeout(() => client.resetAndDestroy(), lifetimeMs);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the proxy has no port");

  return {
    url: `redis://127.0.0.1:${address.port}`,
    roundTrip(ms) {
      halfTripMs = ms / 2;
    },
    cut() {
      isCut = true;
    },
    heal() {
      isCut = false;
      reset();
    },
    reset,
    resetAfter(ms) {
      lifetimeMs = ms;
      if (ms !== null) reset();
    },
    async close() {
      reset();
      await new Promise((done) => server.close(done));
    },
  };
}
