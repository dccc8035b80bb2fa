/** Slows down token guessing: every wrong token is logged, and a client that sends too many in a minute is rate-limited. */
import type { Request } from "express";
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import type { Log } from "../../logger.js";
import { ClientWindows } from "./client-windows.js";
import { contextOf } from "./context.js";
import { markOf } from "./client.js";
import type { Share } from "./shared-counts.js";

/** More than people mistype, and useless to attackers. */
const WRONG_PER_MINUTE = 30;

export interface TokenGuesses {
  /** Throws `rate_limited` if the client has sent too many wrong tokens; call it before comparing the next one. */
  admit(request: Request): void;
  /** Counts a wrong token and logs it with the hashed client and the route. */
  wrong(request: Request, kind: "staff" | "customer"): void;
  /** Logs that a valid token lacks a scope. */
  lacksScope(request: Request, name: string, scope: string): void;
}

/** Counts wrong tokens per client. */
export function createTokenGuesses(clock: Clock, log: Log, share: Share): TokenGuesses {
  const windows = new ClientWindows(clock);
  const shared = share((client, times) => {
    windows.of(client).count += times;
  });
  return {
    admit(request) {
      const window = windows.of(contextOf(request).client);
      if (window.count + shared.unpublished(window.client) < WRONG_PER_MINUTE) return;
      throw new ServiceError("rate_limited", "Too many wrong tokens from this client within a minute.", {
        retryAfterMs: windows.untilResetMs(window),
      });
    },
    wrong(request, kind) {
      const { id, client, route } = contextOf(request);
      shared.add(client);
      log.warn("auth.token.wrong", { requestId: id, kind, route, client: markOf(client) });
    },
    lacksScope(request, name, scope) {
      const { id, client, route } = contextOf(request);
      log.warn("auth.scope.missing", { requestId: id, token: name, scope, route, client: markOf(client) });
    },
  };
}
