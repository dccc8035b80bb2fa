/** Finds ports for servers in separate processes that have to be given one. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range for outgoing connections, one of which could otherwise be given the port before the server listens. */
const [FIRST, LAST] = [20_000, 32_000];

/** A port on 127.0.0.1 that isn't in use. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
