/** Ports for servers that are given one, as processes of their own. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections: until its server listens, a connection could be given the port. */
const [FIRST, LAST] = [20_000, 32_000];

/** A port of 127.0.0.1 that nobody listens on. */
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
