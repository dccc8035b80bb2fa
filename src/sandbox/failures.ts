/** How a rejection is written: its status, its code, the shape of its error object, and the header fields of a rate limit answer. */
import type { Failure } from "./facts.js";
import { type FailureReason, FAILURES } from "./failure-table.js";
import type { ShapeSettings } from "./open-points.js";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON; text is sent unchanged. */
  readonly body: unknown;
}

const FIRST_NUMBER = 1001;

export function failureAnswer(failure: Failure, settings: ShapeSettings): Answer {
  const { reason, message } = failure;
  const { status: setting, code } = FAILURES[reason];
  const status = typeof setting === "number" ? setting : settings[setting];
  const headers = fieldsOf(failure, settings);
  if (reason !== "domain_not_found") {
    return refusal(status, spelled(code, reason, settings), message, headers, settings);
  }
  switch (settings.notManaged) {
    case 404:
      return refusal(404, spelled(code, reason, settings), message, headers, settings);
    case 403:
      return refusal(403, spelled("forbidden", reason, settings), message, headers, settings);
    case "refusal-in-200":
      return refusal(200, spelled(code, reason, settings), message, headers, settings);
    case "empty":
      return { status: 200, headers, body: { success: true, data: {} } };
    case "nothing":
      return { status: 200, headers, body: { success: true, data: null } };
    default:
      return settings.notManaged satisfies never;
  }
}

function refusal(
  status: number,
  code: string,
  message: string,
  headers: Answer["headers"],
  { errorFields, errorFlag }: ShapeSettings,
): Answer {
  const flag = errorFlag === "present" ? { success: false } : {};
  const json = (body: object): Answer => ({ status, headers, body: { ...flag, ...body } });
  const typed = (type: string, body: unknown): Answer => ({
    status,
    headers: { ...headers, "Content-Type": type },
    body,
  });
  switch (errorFields) {
    case "nested":
      return json({ error: { code, message } });
    case "flat":
      return json({ code, message });
    case "word":
      return json({ error: code, message });
    case "list":
      return json({ errors: [{ status: String(status), code, detail: message }] });
    case "problem":
      return typed("application/problem+json", {
        type: `https://errors.sandbox-registry.af/${code}`,
        status,
        detail: message,
        ...flag,
      });
    case "text":
      return typed("text/plain; charset=utf-8", message);
    default:
      return errorFields satisfies never;
  }
}

function spelled(code: string, reason: FailureReason, { errorCodes }: ShapeSettings): string {
  switch (errorCodes) {
    case "snake":
      return code;
    case "upper":
      return code.toUpperCase();
    case "kebab":
      return code.replaceAll("_", "-");
    case "pascal":
      return code.replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
    case "number":
      return String(FIRST_NUMBER + Object.keys(FAILURES).indexOf(reason));
    default:
      return errorCodes satisfies never;
  }
}

function fieldsOf({ extras }: Failure, settings: ShapeSettings): Record<string, string> {
  const fields: Record<string, string> = {};
  if (extras.allow !== undefined) fields["Allow"] = extras.allow;
  const seconds = extras.retryAfterSeconds;
  if (seconds === undefined) return fields;
  const retryAfter = retryAfterOf(seconds, settings);
  if (retryAfter !== null) fields["Retry-After"] = retryAfter;
  if (settings.limitFields === "x-ratelimit") {
    fields["X-RateLimit-Remaining"] = "0";
    fields["X-RateLimit-Reset"] = String(seconds);
  }
  if (settings.limitFields === "ratelimit") fields["RateLimit"] = `"default";r=0;t=${seconds}`;
  return fields;
}

function retryAfterOf(seconds: number, { retryAfter }: ShapeSettings): string | null {
  switch (retryAfter) {
    case "seconds":
      return String(seconds);
    case "date":
      // The wall clock, as in the Date header.
      return new Date(Date.now() + seconds * 1000).toUTCString();
    case "milliseconds":
      return String(seconds * 1000);
    case "absurd":
      return "999999999999";
    case "absent":
      return null;
    default:
      return retryAfter satisfies never;
  }
}
