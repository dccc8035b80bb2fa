/** The limit for Node: `node:http` alone, with one prebuilt buffer. It is also the upstream of the peers that proxy. */
import { createServer } from "node:http";
import { answer } from "./answer.mjs";

const body = Buffer.from(JSON.stringify(answer));
const headers = { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length };

createServer((_, response) => {
  response.writeHead(200, headers).end(body);
}).listen(process.env.PORT, "127.0.0.1");
