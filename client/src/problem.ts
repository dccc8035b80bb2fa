/** The client's only error class: a problem reported by the service, or a service that couldn't be reached or understood. */
import type { components } from "./schema.js";

type Problem = components["schemas"]["Problem"];

/** `unreachable`: there was no complete answer. `unreadable`: the answer isn't from the service, such as a proxy's error page. */
export type ProblemCode = Problem["code"] | "unreachable" | "unreadable";
export type FieldError = NonNullable<Problem["errors"]>[number];

/** What is known of a problem besides its code and text. */
export interface ProblemFacts {
  readonly status?: number;
  readonly retryAfter?: number | undefined;
  readonly errors?: readonly FieldError[];
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

export class StorefrontProblem extends Error {
  override readonly name = "StorefrontProblem";
  readonly code: ProblemCode;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** Whole seconds to wait before a retry; undefined if unknown. */
  readonly retryAfter: number | undefined;
  /** The invalid fields. */
  readonly errors: readonly FieldError[];
  /** Identifies the request in the service's log. */
  readonly requestId: string | undefined;

  constructor(code: ProblemCode, detail: string, facts: ProblemFacts = {}) {
    super(detail, { cause: facts.cause });
    this.code = code;
    this.status = facts.status ?? 0;
    this.retryAfter = facts.retryAfter;
    this.errors = facts.errors ?? [];
    this.requestId = facts.requestId;
  }
}

/** Any error as a problem. */
export function asProblem(error: unknown): StorefrontProblem {
  return error instanceof StorefrontProblem
    ? error
    : new StorefrontProblem("unreadable", "", { cause: error });
}

/** Reads the problem from an unsuccessful answer. Never rejects. */
export async function problemOf(response: Response): Promise<StorefrontProblem> {
  const { status, headers } = response;
  const seconds = headers.get("retry-after") ?? "";
  const retryAfter = /^\d{1,9}$/.test(seconds) ? Number(seconds) : undefined;
  const requestId = headers.get("x-request-id") ?? undefined;
  const body: unknown = await response.json().catch(() => undefined);
  if (!isProblem(body))
    return new StorefrontProblem("unreadable", `Unexpected status ${status}.`, {
      status,
      retryAfter,
      requestId,
    });
  const { code, detail, errors = [] } = body;
  return new StorefrontProblem(code, detail, { status, retryAfter, errors, requestId });
}

/** Only the service's own problems have a `code`. Their other members are trusted to match the OpenAPI document. */
function isProblem(body: unknown): body is Problem {
  return (
    typeof body === "object" &&
    body !== null &&
    "code" in body &&
    typeof body.code === "string" &&
    "detail" in body &&
    typeof body.detail === "string"
  );
}
