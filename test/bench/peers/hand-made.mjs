/** What a reseller would write by hand: the usual Express middleware with its usual settings, in front of the upstream. */
import { Agent } from "node:http";
import apicache from "apicache";
import express from "express";
import { rateLimit } from "express-rate-limit";
import helmet from "helmet";
import { createProxyMiddleware } from "http-proxy-middleware";
import morgan from "morgan";
import winston from "winston";

const logger = winston.createLogger({
  level: "info",
  format: winston.format.combine(winston.format.timestamp(), winston.format.json()),
  transports: [new winston.transports.Console()],
});

const app = express();
app.use(morgan("combined", { stream: { write: (line) => logger.info(line.trim()) } }));
app.use(helmet());
app.use(
  rateLimit({ windowMs: 60_000, limit: 1_000_000_000, standardHeaders: "draft-8", legacyHeaders: false }),
);
app.use(
  "/v1",
  apicache.middleware("15 minutes"),
  createProxyMiddleware({
    target: `${process.env.UPSTREAM}/v1`,
    changeOrigin: true,
    // Without it, the upstream's `Connection: close` is cached too, and every visitor has to open a new connection.
    agent: new Agent({ keepAlive: true }),
  }),
);
app.listen(process.env.PORT, "127.0.0.1");
