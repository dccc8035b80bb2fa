/** Records the actions of staff when their requests are answered. */
import type { RequestHandler } from "express";
import type { Act, Audit } from "../audit/audit.js";
import type { AnswerOf } from "../wire/answer.js";
import type { auditShape } from "../wire/operators.js";
import { contextOf } from "./edge/context.js";
import { instant } from "./presenters.js";

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

export function presentAudit(acts: readonly Act[]): AnswerOf<typeof auditShape> {
  return {
    acts: acts.map(({ id, whenMs, who, what, subject, outcome, times }) => ({
      id,
      when: instant(whenMs),
      who,
      what,
      subject,
      outcome,
      times,
    })),
  };
}
