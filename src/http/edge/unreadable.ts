/** Answers bytes that aren't an HTTP request: a problem like any other, with a request id and a line in the access log. */
import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Clock } from "../../clock.js";
import type { ErrorCode, ServiceError } from "../../errors.js";
import type { AccessLog } from "./context.js";
import { renderProblem } from "./problems.js";
import { SECURITY_HEADERS } from "./headers.js";

interface UnreadableParts {
  readonly accessLog: AccessLog;
  readonly onProblem: (code: ErrorCode) => void;
  readonly clock: Clock;
}

/** Returns a function that logs the problem and renders it as the last answer of a connection. */
export function unreadableRequests({ accessLog, onProblem, clock }: UnreadableParts) {
  return (problem: ServiceError): string => {
    const id = randomUUID();
    const { status, headers, entityHeaders, body } = renderProblem(problem, id);
    onProblem(problem.code);
    accessLog(
      { id, startedAtMs: clock.monotonic(), route: "none", code: problem.code, method: "none" },
      status,
    );
    const fields = ["x-request-id", id, ...SECURITY_HEADERS, ...headers, ...entityHeaders];
    const lines = fields.flatMap((value, at) => (at % 2 === 1 ? [`${fields[at - 1]}: ${value}`] : []));
    const date = `Date: ${new Date(clock.now()).toUTCString()}`;
    return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, date, "Connection: close", "", body].join(
      "\r\n",
    );
  };
}
