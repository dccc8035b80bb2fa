/** The one error of the client: a problem reported by the service, or a service that could not be reached or understood. */
import type { components } from "./schema.js";

type Problem = components["schemas"]["Problem"];

/** `unreachable`: there was no answer. `unreadable`: the answer was not the service's, such as a proxy's own page. */
export type ProblemCode = Problem["code"] | "unreachable" | "unreadable";
export type FieldError = NonNullable<Problem["errors"]>[number];

export class StorefrontProblem extends Error {
  override readonly name = "StorefrontProblem";
  readonly code: ProblemCode;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Whole seconds after which a retry is worth it; undefined when nobody knows. */
  readonly retryAfter: number | undefined;
  /** Each field at fault. */
  readonly errors: readonly FieldError[];
  /** Names the request in the service's log. */
  readonly requestId: string | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    facts: {
      readonly status?: number;
      readonly retryAfter?: number | undefined;
      readonly errors?: readonly FieldError[];
      readonly requestId?: string | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: facts.cause });
    this.code = code;
    this.status = facts.status ?? 0;
    this.retryAfter = facts.retryAfter;
    this.errors = facts.errors ?? [];
    this.requestId = facts.requestId;
  }
}

/** What an answer that is no success says; never rejects. */
export async function problemOf(response: Response): Promise<StorefrontProblem> {
  const { status, headers } = response;
  const seconds = headers.get("retry-after") ?? "";
  const retryAfter = /^\d{1,9}$/.test(seconds) ? Number(seconds) : undefined;
  const requestId = headers.get("x-request-id") ?? undefined;
  const body = await response.text().then(parsed, () => undefined);
  if (!isProblem(body))
    return new StorefrontProblem(
      "unreadable",
      `The answer is no problem of the service's, status ${status}.`,
      {
        status,
        retryAfter,
        requestId,
      },
    );
  const { code, detail, errors = [] } = body;
  return new StorefrontProblem(code, detail, { status, retryAfter, errors, requestId });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The code tells the service's own problems from anybody else's; what is beside it is the document's word. */
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
