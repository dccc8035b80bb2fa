/** A crowd in front of replicas of the quota over one real Redis, in real time: what it is told, and whether that holds wherever it returns. */
import { setMaxListeners } from "node:events";
import { setTimeout as pass } from "node:timers/promises";
import { systemClock } from "../../../src/clock.js";
import { ServiceError } from "../../../src/errors.js";
import { createQuotas, type Quotas } from "../../../src/quota/quotas.js";
import type { Quota } from "../../../src/quota/quota.js";
import { connectRedis, type RedisLink } from "../../../src/redis.js";
import { fixedSecret } from "../../../src/secret.js";
import { recordingLog } from "../../support/service.js";
import { ask } from "./asks.js";

export interface FleetCrowdSettings {
  readonly redisUrl: string;
  readonly replicas: number;
  readonly budget: number;
  readonly windowMs: number;
  /** First asks, as a multiple of the budget, from obedient visitors and such as never return, half each. */
  readonly load: number;
  readonly windows: number;
  /** Which replica the n-th request of all reaches. */
  readonly balance: (request: number) => number;
}

export interface FleetCrowdSeen {
  /** Those who came back at the second for which a call was reserved, and how many of them were served. */
  readonly kept: { came: number; served: number };
  readonly arrivals: number[];
}

/** Whoever returns later than this isn't on time. */
const ON_TIME_MS = 500;

/** As late as 200 ms in a window of a minute. */
const LATEST_SHARE = 1 / 300;

export async function fleetCrowd(settings: FleetCrowdSettings): Promise<FleetCrowdSeen> {
  const { redisUrl, replicas, budget, windowMs, load, windows, balance } = settings;
  const links: RedisLink[] = [];
  const fleet: Quotas[] = [];
  const quotas: Quota[] = [];
  for (let count = 0; count < replicas; count += 1) {
    const redis = connectRedis({ url: fixedSecret(redisUrl), clock: systemClock, log: recordingLog([]) });
    links.push(redis);
    await redis.firstContact(2000);
    const one = createQuotas({
      limit: budget,
      headroom: 0,
      windowMs,
      coldStart: "assume-free",
      replicasMax: replicas,
      longestCallMs: 500,
      home: { redis },
      clock: systemClock,
      onFault: () => {},
    });
    fleet.push(one);
    quotas.push(await one.of("abc"));
  }
  const seen: FleetCrowdSeen = { kept: { came: 0, served: 0 }, arrivals: [] };
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let requests = 0;
  const next = (): Quota => {
    requests += 1;
    const quota = quotas[balance(requests) % replicas];
    if (quota === undefined) throw new Error("there is no such replica");
    return quota;
  };
  async function call(): Promise<void> {
    await pass(5 + Math.random() * 10);
    seen.arrivals.push(performance.now());
    await pass(5 + Math.random() * 10);
  }
  async function visit(client: string, isObedient: boolean): Promise<void> {
    let isKept = false;
    while (!over.signal.aborted) {
      try {
        if (isKept) seen.kept.came += 1;
        await next().run(ask({ client, question: client, maxWaitMs: (windowMs * 8) / 60 }), call);
        if (isKept) seen.kept.served += 1;
        return;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== "quota_exhausted") {
          if (isKept) seen.kept.came -= 1;
          return;
        }
        if (!isObedient) return;
        const inMs = Math.ceil((error.retryAfterMs ?? 0) / 1000) * 1000;
        const dueAt = performance.now() + inMs;
        await pass(inMs + Math.random() * LATEST_SHARE * windowMs, undefined, over).catch(() => undefined);
        // On a busy machine a timer may be so late that its visitor is.
        isKept = error.kept === true && performance.now() < dueAt + ON_TIME_MS;
      }
    }
  }
  const endsAt = performance.now() + windows * windowMs;
  const visits: Promise<void>[] = [];
  for (let visitor = 0; performance.now() < endsAt; visitor += 1) {
    visits.push(visit(`visitor ${visitor}`, visitor % 2 === 0));
    await pass((-Math.log(1 - Math.random()) * windowMs) / (load * budget));
  }
  over.abort();
  await Promise.all(fleet.map((one) => one.close()));
  await Promise.all(visits);
  for (const link of links) link.close();
  return seen;
}
