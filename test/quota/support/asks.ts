/** Requests and quotas for tests. */
import { ServiceError } from "../../../src/errors.js";
import { Line, type Quota } from "../../../src/quota/line.js";
import type { Ask, QuotaRequest } from "../../../src/quota/quota.js";
import { SlotTable } from "../../../src/quota/slot-table.js";
import { Tickets } from "../../../src/quota/tickets.js";
import { FakeClock } from "../../support/fake-clock.js";

export const WINDOW_MS = 60_000;

export type TestRequest = Partial<Omit<Ask, "waitUntilAt"> & Omit<QuotaRequest, "ask">>;

export function ask({
  lane = "exact",
  client = "a",
  network,
  completes,
  signal = new AbortController().signal,
  ...request
}: TestRequest = {}): QuotaRequest {
  return {
    ask: { lane, client, network, completes, waitUntilAt: Infinity, signal },
    queryKey: "q",
    operation: "check",
    maxWaitMs: 8000,
    isUseful: () => true,
    ...request,
  };
}

export function memoryQuota(
  budget: number,
  windowMs = WINDOW_MS,
): { readonly clock: FakeClock; readonly quota: Quota } {
  const clock = new FakeClock();
  const onFault = (what: string): never => {
    throw new Error(what);
  };
  const table = new SlotTable({ limit: budget + 1, headroom: 1, windowMs, clock });
  return { clock, quota: new Line({ table, clock, onFault, tickets: new Tickets(), mayCall: () => true }) };
}

/** Spends `times` slots with calls that end immediately. */
export async function spend(quota: Quota, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) await quota.run(ask({ client: `spender ${n}` }), async () => {});
}

/** Resolves with the result, or with the `ServiceError` that `work` was rejected with. */
export function outcome<T>(work: Promise<T>): Promise<T | ServiceError> {
  return work.catch((error: unknown) => {
    if (error instanceof ServiceError) return error;
    throw error;
  });
}

export async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  const got = await outcome(work);
  if (got instanceof ServiceError) return got;
  throw new Error("the request was not refused");
}

/** Asks, and resolves with the refusal: the request must be refused at once. */
export function refused(quota: Quota, request: QuotaRequest): Promise<ServiceError> {
  return refusalOf(quota.run(request, async () => {}));
}

/** Pauses all calls: two operations were refused. */
export function pauseAll(quota: Quota, forMs: number): void {
  quota.pause("check", forMs);
  quota.pause("quote", forMs);
}

/** The retry time as clients get it: in whole seconds. */
export function retryTimeMs(refusal: ServiceError): number {
  if (refusal.code !== "quota_exhausted" || refusal.retryAfterMs === undefined) throw refusal;
  return Math.ceil(refusal.retryAfterMs / 1000) * 1000;
}
