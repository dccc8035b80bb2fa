/** Who may use a staff route, and what the audit log says about it. */
import type { RequestHandler } from "express";
import { challenge, type ErrorCode } from "../errors.js";
import type { Act, Audit } from "../staff/audit.js";
import type { Scope } from "../wire/scopes.js";
import type { Callers } from "./callers.js";
import { contextOf } from "./edge/context.js";

/** Requires a staff token with the scope. */
export function requireScope(callers: Callers, audit: Audit, scope: Scope): RequestHandler {
  return async (request, response, next) => {
    const refused = (who: string | null, outcome: ErrorCode): void => {
      audit.note({ who, what: "token", subject: contextOf(request).route, outcome });
    };
    response.set("Cache-Control", "no-store");
    const caller = await callers.of(request);
    if (caller.kind === "blocked") throw caller.refusal;
    if (caller.kind !== "staff") {
      if (caller.kind === "wrong") await callers.noteWrong(request, response, "staff");
      refused(null, "unauthenticated");
      const detail = "This endpoint requires a staff token: Authorization: Bearer ….";
      throw challenge("unauthenticated", detail, 'realm="staff"');
    }
    const { name, scopes } = caller.token;
    if (!scopes.includes(scope)) {
      callers.noteMissingScope(request, name, scope);
      refused(name, "forbidden");
      const parameters = `realm="staff", error="insufficient_scope", scope="${scope}"`;
      throw challenge("forbidden", `The token lacks the ${scope} scope.`, parameters);
    }
    contextOf(request).tokenName = name;
    next();
  };
}

/** Records the action when its answer has been sent or the client has disconnected, whichever comes first. */
export function audited(audit: Audit, what: Act["what"]): RequestHandler {
  return (request, response, next) => {
    response.once("close", () => {
      const { tokenName, subject, code } = contextOf(request);
      const outcome = response.writableFinished ? (code ?? "done") : "interrupted";
      audit.note({ who: tokenName, what, subject, outcome });
    });
    next();
  };
}
