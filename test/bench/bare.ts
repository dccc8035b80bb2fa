/** The limit for Node: `node:http` alone, with one prebuilt answer of the same size. */
import { createServer } from "node:http";

const body = Buffer.from(
  JSON.stringify({
    domain: "kabul.af",
    unicodeName: "kabul.af",
    tld: ".af",
    status: "available",
    available: true,
    premium: false,
    years: 1,
    price: { amount: "26.99", currency: "USD" },
    asOf: "2026-01-01T00:00:00.000Z",
    stale: false,
    note: ".".repeat(97),
  }),
);
const headers = { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length };

createServer((_, response) => {
  response.writeHead(200, headers).end(body);
}).listen(Number(process.env["PORT"]), "127.0.0.1");
