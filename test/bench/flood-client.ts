/**
 * A separate process, started by floods.ts, that attacks a server on 127.0.0.1 from one address for a given time.
 */
import { connect, type Socket } from "node:net";
import { z } from "zod";
import { attackSchema } from "./attack.js";

/** Differs from the addresses of the other client. */
const ADDRESS = "127.0.0.2";
/** Often enough that slow connections don't look idle. */
const DRIP_EVERY_MS = 1_000;

const { port, seconds, attack } = z
  .object({ port: z.int(), seconds: z.number(), attack: attackSchema })
  .parse(JSON.parse(process.argv[2] ?? "{}"));

const sockets = new Set<Socket>();

function open(localAddress = ADDRESS): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
  sockets.add(socket);
  return socket;
}

function drip(socket: Socket, first: string, then: string): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(then), DRIP_EVERY_MS);
  socket.on("close", () => {
    clearInterval(timer);
  });
}

function get(path: string, fields = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${fields}\r\n`;
}

switch (attack.kind) {
  case "pipelined": {
    const text = Buffer.from(get(attack.path).repeat(attack.requests));
    for (let made = 0; made < attack.sockets; made += 1) open().pause().write(text);
    break;
  }
  case "connections":
    setInterval(() => {
      open().write(get(attack.path));
    }, 1000 / attack.perSecond);
    break;
  case "slow headers":
    for (let made = 0; made < attack.sockets; made += 1)
      drip(open(), "GET /livez HTTP/1.1\r\nHost: a\r\n", "X-A: b\r\n");
    break;
  case "slow bodies": {
    const head =
      "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 30000\r\n\r\n{";
    for (let made = 0; made < attack.sockets; made += 1) drip(open(), head, " ");
    break;
  }
  case "slow readers":
    // A client may have only a few streams, so fifty addresses are used.
    for (let made = 0; made < attack.sockets; made += 1)
      open(`127.0.2.${1 + (made % 50)}`)
        .pause()
        .write(get(`/v1/search?q=slow-${made}`, "Accept: text/event-stream\r\n"));
    break;
  default:
    attack satisfies never;
}
setTimeout(() => {
  for (const socket of sockets) socket.destroy();
  process.exit(0);
}, seconds * 1000);
