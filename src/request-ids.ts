/**
 * The ids of the request that is being served: its own and, if the client sent a valid `traceparent` (W3C Trace Context), that of its trace.
 * They are on every log line that is written meanwhile, and are sent upstream with its calls.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

export interface RequestIds {
  readonly requestId: string;
  readonly trace: { readonly id: string; readonly isSampled: boolean } | null;
}

const current = new AsyncLocalStorage<RequestIds | null>();

/** The ids of the request that is being served, or null in background work. */
export function currentIds(): RequestIds | null {
  return current.getStore() ?? null;
}

/** Calls `run`; it, and everything that it awaits, serves this request, or none. */
export function serving<T>(ids: RequestIds | null, run: () => T): T {
  return current.run(ids, run);
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const IS_SAMPLED = 1;

/** Reads a `traceparent` field; null if it isn't valid. Versions after 00 may add to it. */
export function traceIn(traceparent: unknown): RequestIds["trace"] {
  if (typeof traceparent !== "string") return null;
  const [, version = "ff", id = "", parent = "", flags = "", more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(id) || /^0+$/.test(parent)) return null;
  return { id, isSampled: (parseInt(flags, 16) & IS_SAMPLED) !== 0 };
}

/** The header fields that connect a call to the request that is being served, under a parent id of its own. */
export function tracingHeaders(): Readonly<Record<string, string>> {
  const ids = currentIds();
  if (ids === null) return {};
  const { requestId, trace } = ids;
  if (trace === null) return { "x-request-id": requestId };
  const parent = randomBytes(8).toString("hex");
  return {
    "x-request-id": requestId,
    traceparent: `00-${trace.id}-${parent}-${trace.isSampled ? "01" : "00"}`,
  };
}
