/** Wrong tokens, staff's and customers': each leaves a line in the log, and after a few in a minute the client's tokens are not looked at. */
import type { Request } from "express";
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import type { Log } from "../../logger.js";
import { ClientWindows } from "../client-windows.js";
import { contextOf } from "../context.js";
import { markOf } from "./client.js";
import type { SharedCounts } from "./shared-counts.js";

/** More than people mistype, and nothing for those who guess. */
const WRONG_PER_MINUTE = 30;

export interface TokenGuesses {
  /** Throws `rate_limited` when the client has sent too many wrong tokens, before its next one is compared. */
  admit(request: Request): void;
  /** Counts a wrong token and writes an audit line with the client, hashed, and the route. */
  wrong(request: Request, kind: "staff" | "customer"): void;
  /** Writes an audit line about a good token that lacks a scope. */
  lacksScope(request: Request, name: string, scope: string): void;
}

/** Counts wrong tokens per client; with `share`, for all replicas together. */
export function createTokenGuesses(
  clock: Clock,
  log: Log,
  share: (onCounted: (client: string, count: number) => void) => SharedCounts | null = () => null,
): TokenGuesses {
  const windows = new ClientWindows(clock);
  const count = (client: string, times = 1): void => {
    windows.of(client).count += times;
  };
  const shared = share(count);
  return {
    admit(request) {
      const window = windows.of(contextOf(request).client);
      if (window.count + (shared?.untold(window.client) ?? 0) < WRONG_PER_MINUTE) return;
      throw new ServiceError("rate_limited", "Too many wrong tokens from this client within a minute.", {
        retryAfterMs: windows.untilResetMs(window),
      });
    },
    wrong(request, kind) {
      const { id, client, route } = contextOf(request);
      if (shared === null) count(client);
      else shared.add(client);
      log.warn("auth.token.wrong", { requestId: id, kind, route, client: markOf(client) });
    },
    lacksScope(request, name, scope) {
      const { id, client, route } = contextOf(request);
      log.warn("auth.scope.missing", { requestId: id, token: name, scope, route, client: markOf(client) });
    },
  };
}
