/** The network between a replica and Redis: slow, cut off in silence, or reset, as a test says. */
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisServer } from "./redis-server.js";

export interface LinkProxy {
  /** For REDIS_URL. */
  readonly url: string;
  /** Every byte takes half of this in either direction; 0 = none. */
  roundTrip(ms: number): void;
  /** From now on nothing arrives on either side, and connections stay open. */
  cut(): void;
  /** Ends the cut; what was sent meanwhile is lost with its connection. */
  heal(): void;
  /** Resets all connections now. */
  reset(): void;
  /** Resets every connection this long after it was opened; null = no more. */
  resetAfter(ms: number | null): void;
  close(): Promise<void>;
}

export async function startLinkProxy({ url }: Pick<RedisServer, "url">): Promise<LinkProxy> {
  const path = url.replace(/^unix:\/\//, "");
  const sockets = new Set<Socket>();
  let halfTripMs = 0;
  let isCut = false;
  let lifeMs: number | null = null;

  const reset = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  function carry(from: Socket, to: Socket): void {
    sockets.add(from);
    from.on("error", () => {});
    from.on("close", () => {
      sockets.delete(from);
      if (!isCut) to.destroy();
    });
    let underWay = 0;
    let before: Promise<unknown> = Promise.resolve();
    const deliver = (bytes: Buffer): void => {
      if (!isCut && !to.destroyed) to.write(bytes);
    };
    from.on("data", (bytes) => {
      if (isCut) return;
      if (halfTripMs === 0 && underWay === 0) return deliver(bytes);
      underWay += 1;
      // Never before what was sent earlier, also when the network becomes faster.
      before = Promise.all([before, sleep(halfTripMs)]).then(() => {
        underWay -= 1;
        deliver(bytes);
      });
    });
  }

  const server = createServer((client) => {
    const redis = connect(path);
    carry(client, redis);
    carry(redis, client);
    if (lifeMs !== null) setTimeout(() => client.resetAndDestroy(), lifeMs);
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
      lifeMs = ms;
      if (ms !== null) reset();
    },
    async close() {
      reset();
      await new Promise((done) => server.close(done));
    },
  };
}
