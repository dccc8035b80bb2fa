/** `node:http` alone, which answers every request with the headers and the body in the file BYTES. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const { headers, body } = JSON.parse(readFileSync(process.env.BYTES, "utf8"));
const bytes = Buffer.from(body, "latin1");

// The same as the service's, so that slow and idle clients are dropped at the same time.
const timeouts = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 65_000,
};

createServer(timeouts, (_, response) => {
  response.writeHead(200, headers).end(bytes);
}).listen(process.env.PORT, "127.0.0.1");
