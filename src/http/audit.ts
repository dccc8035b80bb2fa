/** Records the actions of staff when their requests are answered. */
import type { RequestHandler } from "express";
import type { Act, Audit } from "../staff/audit.js";
import { contextOf } from "./edge/context.js";

/** Records the action when its answer has been sent or the client has disconnected. */
export function audited(audit: Audit, what: Act["what"]): RequestHandler {
  return (request, response, next) => {
    let isNoted = false;
    const note = (outcome: string): void => {
      if (isNoted) return;
      isNoted = true;
      const { tokenName, subject } = contextOf(request);
      audit.note({ who: tokenName, what, subject, outcome });
    };
    response.once("finish", () => {
      note(contextOf(request).code ?? "done");
    });
    response.once("close", () => {
      note("interrupted");
    });
    next();
  };
}
