/** Assembles the service: the engine, monitoring, and HTTP in front of them. */
import type { IncomingMessage, Server } from "node:http";
import { countingSuspensions } from "./clock.js";
import { createEngine, type EngineSettings } from "./engine.js";
import type { ErrorCode } from "./errors.js";
import { ownUrl } from "./fleet/address.js";
import { createFollower } from "./fleet/follower.js";
import { isHandedOn } from "./http/edge/client.js";
import { createColdLimit } from "./http/edge/cold-limit.js";
import { asks, createAccessLog } from "./http/edge/context.js";
import { createProxyWatch } from "./http/edge/proxy-watch.js";
import { serve } from "./http/edge/server.js";
import { createEventStreams } from "./http/event-stream.js";
import { createFinishedAnswers } from "./http/finished-answers.js";
import type { Phase } from "./http/health.js";
import { createMonitoring } from "./staff/monitoring.js";
import type { Ownership } from "./staff/overview.js";
import { createRouter } from "./http/router.js";
import { createSearchStream, SEARCH_PATIENCE_MS } from "./http/search-stream.js";
import { createMetrics } from "./metrics.js";
import type { Secret } from "./secret.js";

/** Calls that a line of a cart may need, one after the other: a check and three that its price depends on, and all of them again if prices change. */
const MAX_CALLS_IN_A_ROW = 8;

interface AppSettings extends Omit<EngineSettings, "onCall" | "factClock" | "url"> {
  readonly version: string;
  readonly staffTokens: Secret | null;
}

export interface App {
  readonly server: Server;
  /** Starts the background work. */
  start(): Promise<void>;
  /** With other replicas: another one becomes the owner, and requests are handed on to it. */
  stepDown(): Promise<void>;
  /** Isn't ready from now on, but still serves; each answer ends its connection. */
  drain(): void;
  /** Refuses new requests, ends event streams and stops background work. */
  stop(): void;
  /** Refuses the requests that still aren't answered. */
  giveUp(): void;
  /** Releases the quota, its ledger and Redis, once calls in flight have settled. */
  close(): Promise<void>;
}

export function createApp(settings: AppSettings): App {
  const { config, clock, log } = settings;
  const factClock = countingSuspensions(clock);
  const metrics = createMetrics();
  const { maxWaitMs } = config.quota;
  const url = (): string => config.advertiseUrl ?? ownUrl(server.address());
  const engine = createEngine({ ...settings, factClock, url, onCall: metrics.upstreamCall });
  const { fleet } = engine;
  const follower = fleet && createFollower(fleet, engine.takingOver, clock);
  const startedAt = clock.now();
  const owner = (): Ownership =>
    fleet === null
      ? { role: "alone", sinceAt: startedAt, reachesOwner: null }
      : {
          role: fleet.role(),
          sinceAt: fleet.roleSinceAt(),
          reachesOwner: follower?.reachesOwner() ?? null,
        };

  let phase: Phase = "starting";
  let refusedLocally = 0;
  const onProblem = (code: ErrorCode): void => {
    if (code === "invalid_request") refusedLocally += 1;
  };
  const cold = createColdLimit({
    perMinute: config.clientColdPerMinute,
    isContested: (asker) => engine.quota()?.isContested(asker) ?? false,
    clock,
  });
  const ask = asks(cold, maxWaitMs, clock);
  // Leaves the last upstream call of a search enough time to finish.
  const streams = createEventStreams({ longestMs: SEARCH_PATIENCE_MS + config.upstreamTimeoutMs, clock });
  const finished = createFinishedAnswers({
    changes: engine.changes,
    nextChangeAt: () => engine.policies.current().nextTurnAt(clock.now()),
    clock: factClock,
  });
  const accessLog = createAccessLog(log, metrics, clock);
  const proxy = createProxyWatch({ hops: config.trustProxyHops, log });
  const monitoring = createMonitoring({
    ...settings,
    engine,
    metrics,
    owner,
    proxy: proxy.state,
    refusals: () => ({ requests: router.refused(), cold: cold.refused(), locally: refusedLocally }),
  });
  const router = createRouter({
    ...settings,
    factClock,
    engine,
    monitoring,
    metrics,
    finished,
    searchStream: createSearchStream({ streams, ask, clock }),
    ask,
    phase: () => phase,
    accessLog,
    proxyWatch: proxy.watch,
    onProblem,
    handOn: follower && follower.handOn,
    insteadOfFailing: follower && follower.insteadOfFailing,
  });
  /**
   * A handed-on request must reach the handler, which tells the other replica how long it may repeat the answer. While there is no owner, a former one
   * still sends its finished answers.
   */
  const isOwn = (request: IncomingMessage): boolean =>
    follower === null || ((follower.isOwn(request) || fleet?.role() === "none") && !isHandedOn(request));
  const { server, leave, giveUp } = serve(router.app, {
    longestAnswerMs: maxWaitMs + MAX_CALLS_IN_A_ROW * config.upstreamTimeoutMs,
    keepAliveMs: config.keepAliveMs,
    isAnswered: (request, response) =>
      phase !== "stopping" && isOwn(request) && finished.sendAgain(request, response),
    isLeaving: () => phase === "draining" || phase === "stopping",
    onUnreadable({ id, code, status }) {
      onProblem(code);
      accessLog({ id, startedAt: clock.monotonic(), route: "none", code, method: "none" }, status);
    },
  });

  // Before everything else: who the visitor is depends on it.
  if (follower !== null) server.prependListener("request", follower.accept);

  let stopWork = (): void => {};
  return {
    server,
    async start() {
      await engine.open();
      phase = "ready";
      stopWork = engine.work(monitoring.watch);
      if (server.listening) engine.join();
      else server.once("listening", engine.join);
    },
    stepDown: engine.stepDown,
    drain() {
      phase = "draining";
      leave();
    },
    stop() {
      phase = "stopping";
      leave();
      streams.endAll();
      stopWork();
    },
    giveUp,
    async close() {
      await engine.close();
      follower?.close();
    },
  };
}
