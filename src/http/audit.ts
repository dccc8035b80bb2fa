/** Notes the acts of staff as their requests are answered. */
import type { Request, RequestHandler, Response } from "express";
import type { Act, Audit } from "../audit/audit.js";
import { contextOf } from "./context.js";
import { instant } from "./presenters.js";

const holders = new WeakMap<Request, string>();
const subjects = new WeakMap<Request, string>();

/** Remembers whose token the request carries. */
export function carriesTokenOf(request: Request, name: string): void {
  holders.set(request, name);
}

/** Says what the act is about. */
export function isAbout(request: Request, subject: string): void {
  subjects.set(request, subject);
}

/** Notes the act once it has been answered, or the client has left. */
export function audited(audit: Audit, what: Act["what"]): RequestHandler {
  return (request: Request, response: Response, next) => {
    let isNoted = false;
    const note = (outcome: string): void => {
      if (isNoted) return;
      isNoted = true;
      const who = holders.get(request) ?? null;
      audit.note({ who, what, subject: subjects.get(request) ?? null, outcome });
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

export function presentAudit(acts: readonly Act[]) {
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
