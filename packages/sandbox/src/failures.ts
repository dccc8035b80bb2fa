/** How a rejection is written: status, code, error object, and the header fields of a rate limit answer. */
import { type Failure, type FailureReason, FAILURES } from "./facts.js";
import type { BySetting, ShapeSettings } from "./open-points.js";

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
  const headers = fieldsOf(failure, settings);
  const refused = (status: number, word: string): Answer =>
    refusal(status, CODES[settings.errorCodes](word, reason), message, headers, settings);
  if (reason !== "domain_not_found")
    return refused(typeof setting === "number" ? setting : settings[setting], code);
  const success = (data: object | null): Answer => ({ status: 200, headers, body: { success: true, data } });
  return {
    404: refused(404, code),
    403: refused(403, "forbidden"),
    "refusal-in-200": refused(200, code),
    empty: success({}),
    nothing: success(null),
  }[settings.notManaged];
}

const CONTENT_TYPES: Partial<BySetting<"errorFields", string>> = {
  problem: "application/problem+json",
  text: "text/plain; charset=utf-8",
};

function refusal(
  status: number,
  code: string,
  message: string,
  headers: Answer["headers"],
  { errorFields, errorFlag }: ShapeSettings,
): Answer {
  const flag = errorFlag === "present" ? { success: false } : {};
  const type = CONTENT_TYPES[errorFields];
  const body = {
    nested: { ...flag, error: { code, message } },
    flat: { ...flag, code, message },
    word: { ...flag, error: code, message },
    list: { ...flag, errors: [{ status: String(status), code, detail: message }] },
    problem: { type: `https://errors.sandbox-registry.af/${code}`, status, detail: message, ...flag },
    text: message,
  }[errorFields];
  return { status, headers: { ...headers, ...(type && { "Content-Type": type }) }, body };
}

const CODES: BySetting<"errorCodes", (code: string, reason: FailureReason) => string> = {
  snake: (code) => code,
  upper: (code) => code.toUpperCase(),
  kebab: (code) => code.replaceAll("_", "-"),
  pascal: (code) => code.replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
  number: (_code, reason) => String(FIRST_NUMBER + Object.keys(FAILURES).indexOf(reason)),
};

function fieldsOf({ extras }: Failure, settings: ShapeSettings): Record<string, string> {
  const { allow, retryAfterSeconds: seconds } = extras;
  if (seconds === undefined) return allow === undefined ? {} : { Allow: allow };
  const retryAfter = {
    seconds: String(seconds),
    // The wall clock, as in the Date header.
    date: new Date(Date.now() + seconds * 1000).toUTCString(),
    milliseconds: String(seconds * 1000),
    absurd: "999999999999",
    absent: null,
  }[settings.retryAfter];
  const limitFields = {
    none: {},
    "x-ratelimit": { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(seconds) },
    ratelimit: { RateLimit: `"default";r=0;t=${seconds}` },
  }[settings.limitFields];
  return { ...(retryAfter !== null && { "Retry-After": retryAfter }), ...limitFields };
}
