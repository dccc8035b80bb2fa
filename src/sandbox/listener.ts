/** One HTTP server: it listens when the promise resolves, answers what is no HTTP with `unreadable`, and closes without waiting for idle sockets. */
import { createServer, type Server } from "node:http";
import type { Express } from "express";

export interface Listener {
  readonly url: string;
  readonly server: Server;
  close(): Promise<void>;
}

export async function listen(
  app: Express,
  port: number,
  host: string,
  unreadable: unknown,
): Promise<Listener> {
  const server = createServer(app);
  const answer = JSON.stringify(unreadable);
  server.on("clientError", (_error, socket) => {
    if (!socket.writable) return;
    socket.end(
      `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(answer)}\r\nConnection: close\r\n\r\n${answer}`,
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const anywhere = host === "0.0.0.0" || host === "::";
  const name = anywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${address.port}`,
    server,
    close: () =>
      new Promise((resolve, reject) => {
        const { listening } = server;
        server.close((error) => {
          if (error === undefined || !listening) resolve();
          else reject(error);
        });
        server.closeAllConnections();
      }),
  };
}
