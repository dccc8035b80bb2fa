/** Liveness, readiness and health: coarse states without business figures. None of them contacts the upstream. */
import type { IRouter } from "express";
import type { HealthChecks } from "../staff/overview.js";
import type { AnswerOf } from "../wire/answer.js";
import type { healthShape } from "../wire/service.js";
import { route } from "./routes.js";

/** Requests should be sent here only while `ready`. While `draining`, they are still served; while `stopping`, they are refused. */
export type Phase = "starting" | "ready" | "draining" | "stopping";

export interface HealthParts {
  readonly version: string;
  /** Says whether the upstream is the sandbox or live. */
  readonly description: string;
  readonly phase: () => Phase;
  readonly checks: () => HealthChecks;
}

export function addHealthRoutes(router: IRouter, { version, description, phase, checks }: HealthParts): void {
  route(router, "/livez", {
    GET: (_request, response) => {
      response.set("Cache-Control", "no-store").json({ status: "live" });
    },
  });
  route(router, "/readyz", {
    GET: (_request, response) => {
      const now = phase();
      response
        .set("Cache-Control", "no-store")
        .status(now === "ready" ? 200 : 503)
        .json({ status: now });
    },
  });
  route(router, "/health", {
    GET: (_request, response) => {
      const states = checks();
      const grades = new Set(Object.values(states).map(({ status }) => status));
      const worst = (["fail", "warn"] as const).find((grade) => grades.has(grade)) ?? "pass";
      const body: AnswerOf<typeof healthShape> = {
        status: worst,
        version,
        description,
        checks: {
          upstream: [states.upstream],
          quota: [states.quota],
          redis: [states.redis],
          prices: [states.prices],
          owner: [states.owner],
          proxy: [states.proxy],
        },
      };
      response
        .set("Cache-Control", "no-store")
        .status(worst === "fail" ? 503 : 200)
        .type("application/health+json")
        .send(JSON.stringify(body));
    },
  });
}
