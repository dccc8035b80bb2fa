/** The client's only error class: a problem reported by the service, or a service that couldn't be reached or understood. */
import type { components } from "./schema.js";

type Problem = components["schemas"]["Problem"];

/**
 * `unreachable`: there was no complete answer, or only a proxy's that the service can't be reached. `unreadable`: another answer that isn't from
 * the service.
 */
export type ProblemCode = Problem["code"] | "unreachable" | "unreadable";
export type FieldError = NonNullable<Problem["errors"]>[number];

/** What is known of a problem besides its code and text. */
export interface ProblemFacts {
  readonly status?: number;
  readonly retryAfter?: number | undefined;
  readonly errors?: readonly FieldError[] | undefined;
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
  const facts = {
    status,
    retryAfter: /^\d{1,9}$/.test(seconds) ? Number(seconds) : undefined,
    requestId: headers.get("x-request-id") ?? undefined,
  };
  // Only the service's own problems have a code. Proxies answer 502 and above while they can't reach the service, as during a restart.
  const body = await response
    .text()
    .then(shaped<Partial<Problem> | null>)
    .catch(() => null);
  const { code, detail, errors } = body ?? {};
  return typeof code === "string" && typeof detail === "string"
    ? new StorefrontProblem(code, detail, { ...facts, errors })
    : new StorefrontProblem(status < 502 ? "unreadable" : "unreachable", `Status ${status}.`, facts);
}

/** Parses JSON without checking its shape, because the service's tests check every answer against the OpenAPI document. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what it asked for
export function shaped<T>(text: string): T {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a parser of every shape would be most of the client
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new StorefrontProblem("unreadable", "Not JSON.", { cause });
  }
}
