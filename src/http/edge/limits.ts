/** Limits per client and minute, each counted in this process by express-rate-limit: API requests, and wrong tokens. */
import type { Request, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import { ServiceError } from "../../errors.js";
import { markOf } from "./client.js";

const WINDOW_MS = 60_000;
/** More than people mistype, and useless to attackers. */
export const WRONG_PER_MINUTE = 30;

interface Limit {
  /** Counts a request, and refuses it if it exceeds the limit. */
  readonly count: RequestHandler;
  /** The refusal if the client's next request would exceed the limit, or null. */
  refusal(key: string): Promise<ServiceError | null>;
  /** Refusals since startup. */
  refused(): number;
}

interface LimitSettings {
  readonly perMinute: number;
  /** Whether a request counts. Default: every one does. */
  readonly isCounted?: (request: Request) => boolean;
  /** Whom a request counts against. */
  readonly keyOf: (request: Request) => Promise<string> | string;
  readonly detail: string;
  /** Whether answers show it in RateLimit fields. */
  readonly isShown: boolean;
}

export function createLimit(settings: LimitSettings): Limit {
  const { perMinute, isCounted = () => true, keyOf, detail, isShown } = settings;
  let refused = 0;
  // Keyed, because answers show a hash of it.
  const keyGenerator = async (request: Request): Promise<string> => markOf(await keyOf(request));
  const limit = rateLimit({
    windowMs: WINDOW_MS,
    limit: perMinute,
    standardHeaders: isShown ? "draft-8" : false,
    legacyHeaders: false,
    skip: (request) => !isCounted(request),
    keyGenerator,
    async handler(request, _response, next) {
      refused += 1;
      next(refusalUntil((await limit.getKey(await keyGenerator(request)))?.resetTime));
    },
  });

  function refusalUntil(resetTime: Date | undefined): ServiceError {
    const retryAfterMs = Math.max(1, (resetTime?.getTime() ?? 0) - Date.now());
    return new ServiceError("rate_limited", detail, { retryAfterMs });
  }

  return {
    count: limit,
    async refusal(key) {
      const known = await limit.getKey(markOf(key));
      const isSpent =
        known?.resetTime !== undefined &&
        known.resetTime.getTime() > Date.now() &&
        known.totalHits >= perMinute;
      return isSpent ? refusalUntil(known.resetTime) : null;
    },
    refused: () => refused,
  };
}
