/** Servers on free loopback ports. */
import { once } from "node:events";
import type { Server, Socket } from "node:net";

/** Starts listening and returns the port. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

export async function closed(server: Server, sockets: readonly Socket[]): Promise<void> {
  const ended = once(server, "close");
  server.close();
  for (const socket of sockets) socket.destroy();
  await ended;
}
