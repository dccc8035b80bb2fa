/** Assembles the service: the engine, monitoring, and HTTP in front of them. */
import type { Server } from "node:http";
import { countingSuspensions } from "./clock.js";
import { createEngine, type EngineSettings } from "./engine.js";
import type { ErrorCode } from "./errors.js";
import { createClientLimit } from "./http/edge/client-limit.js";
import { createColdLimit } from "./http/edge/cold-limit.js";
import type { Arrived } from "./http/edge/arrived.js";
import { asks, createAccessLog, requestId } from "./http/edge/context.js";
import { addressOf, clientOf } from "./http/edge/client.js";
import { headersOfAnswers } from "./http/edge/headers.js";
import { serve } from "./http/edge/server.js";
import { createSharedCounts, ofOneReplica, type Share } from "./http/edge/shared-counts.js";
import { createTokenGuesses } from "./http/edge/token-guesses.js";
import { unreadableRequests } from "./http/edge/unreadable.js";
import { createEventStreams } from "./http/event-stream.js";
import { fastPath } from "./http/fast-path.js";
import { HEALTH_PATHS, type Phase } from "./http/health.js";
import { createMonitoring } from "./http/monitoring.js";
import { refuseAndAbort } from "./http/edge/problems.js";
import { visitorQuestions } from "./http/questions.js";
import { quickRefusals } from "./http/quick-refusals.js";
import { createRouter } from "./http/router.js";
import { createSearchStream, SEARCH_PATIENCE_MS } from "./http/search-stream.js";
import { createMetrics } from "./metrics.js";
import { MAX_CONFIG_BYTES } from "./retail/price-file/yaml.js";
import type { Secret } from "./secret.js";

/**
 * Calls that a line of a cart may need, one after the other: a check, four to sign its price and two for the term of a premium name; and all of them
 * again if its price changes meanwhile.
 */
const MAX_CALLS_IN_A_ROW = 14;

interface AppSettings extends Omit<EngineSettings, "onCall" | "factClock"> {
  readonly version: string;
  readonly staffTokens: Secret | null;
}

export interface App {
  readonly server: Server;
  /** Starts the background work. */
  start(): Promise<void>;
  /** Refuses new requests from now on, ends event streams and stops background work. */
  drain(): void;
  /** Refuses the requests that still aren't answered. */
  giveUp(): void;
  /** Releases the quota, its ledger and Redis, once calls in flight have settled. */
  close(): Promise<void>;
}

export function createApp(settings: AppSettings): App {
  const { config, clock, log } = settings;
  const factClock = countingSuspensions(clock);
  const metrics = createMetrics();
  const engine = createEngine({ ...settings, factClock, onCall: metrics.upstreamCall });
  const { shop, prices, upstream } = engine;

  let phase: Phase = "starting";
  let refusedLocally = 0;
  const onProblem = (code: ErrorCode): void => {
    if (code === "invalid_request") refusedLocally += 1;
  };
  const { maxWaitMs, replicasMax } = config.quota;
  const replicas = engine.redis && replicasMax > 1 ? { link: engine.redis, replicasMax } : null;
  const share = (name: string): Share =>
    replicas === null
      ? ofOneReplica
      : (onCounted) => createSharedCounts({ ...replicas, name, clock, onCounted });
  const limit = createClientLimit(config.clientPerMinute, clock, replicas);
  const cold = createColdLimit({
    perMinute: config.clientColdPerMinute,
    isContested: (asker) => engine.quota()?.isContested(asker) ?? false,
    clock,
    share: share("cold"),
  });
  const monitoring = createMonitoring({
    ...settings,
    engine,
    metrics,
    refusals: () => ({ requests: limit.refused(), cold: cold.refused(), locally: refusedLocally }),
  });

  const ask = asks(cold, maxWaitMs, clock);
  // Leaves the last upstream call of a search enough time to finish.
  const streams = createEventStreams({ longestMs: SEARCH_PATIENCE_MS + config.upstreamTimeoutMs, clock });
  const searchStream = createSearchStream({ streams, ask, clock });
  const refuse = quickRefusals({ shop, upstream, cold, maxWaitMs, clock });
  const questions = visitorQuestions({ shop, prices, searchStream, ask, refuse, clock });

  const windowOf = (request: Arrived) => limit.windowOf(clientOf(addressOf(request)));
  const accessLog = createAccessLog(log, metrics, clock);
  const toBoth = { questions, limit, accessLog, onProblem, clock };
  const isAnswered = fastPath({
    ...toBoth,
    shop,
    headersFor: headersOfAnswers(config.corsOrigins),
    isServing: () => phase !== "draining",
  });
  const router = createRouter({
    ...settings,
    ...toBoth,
    factClock,
    engine,
    monitoring,
    metrics,
    ask,
    guesses: createTokenGuesses(clock, log, share("wrong-tokens")),
    phase: () => phase,
  });

  const { server, drain, giveUp } = serve(router, {
    maxBodyBytes: MAX_CONFIG_BYTES,
    longestAnswerMs: maxWaitMs + MAX_CALLS_IN_A_ROW * config.upstreamTimeoutMs,
    isAnswered,
    isUrgent: ({ url = "" }) => HEALTH_PATHS.has(url),
    deferred: (request) => {
      const startedAtMs = clock.monotonic();
      return () => {
        limit.take(windowOf(request));
        const { method = "" } = request;
        accessLog({ id: requestId(request), startedAtMs, route: "none", code: null, method }, 499);
      };
    },
    isDraining: () => phase === "draining",
    isFlooding: (request) => limit.isFlooding(windowOf(request)),
    refuse: refuseAndAbort,
    unreadable: unreadableRequests({ accessLog, onProblem, clock }),
  });

  let stopWork = (): void => {};
  return {
    server,
    async start() {
      await engine.open();
      phase = "ready";
      const stops = [engine.work(), monitoring.keepHistory()];
      stopWork = () => {
        for (const stop of stops) stop();
      };
    },
    drain() {
      phase = "draining";
      drain();
      streams.endAll();
      stopWork();
    },
    giveUp,
    async close() {
      await monitoring.close();
      await engine.close();
    },
  };
}
