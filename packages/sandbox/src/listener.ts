/** One HTTP server. It listens when the promise resolves, answers invalid HTTP with `unreadable`, and closes without waiting for idle sockets. */
import { once } from "node:events";
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Express } from "express";

interface Listener {
  readonly url: string;
  readonly server: Server;
  close(): Promise<void>;
}

/**
 * Express changes the prototype of every message, which makes property access on all HTTP messages of the process slow in V8 (Node 18 to 22,
 * nodejs/node#37457). Messages of these classes have that prototype from the start.
 */
function bornAsExpress(app: Express) {
  class Incoming extends IncomingMessage {}
  class Outgoing extends ServerResponse<Incoming> {}
  Object.setPrototypeOf(Incoming.prototype, app.request);
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  Object.assign(app, { request: Incoming.prototype, response: Outgoing.prototype });
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
}

export async function listen(
  app: Express,
  port: number,
  host: string,
  unreadable: unknown,
): Promise<Listener> {
  const server = createServer(bornAsExpress(app), app);
  const answer = JSON.stringify(unreadable);
  server.on("clientError", (_error, socket) => {
    if (!socket.writable) return;
    socket.end(
      `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(answer)}\r\nConnection: close\r\n\r\n${answer}`,
    );
  });
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const anywhere = host === "0.0.0.0" || host === "::";
  const name = anywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${address.port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
