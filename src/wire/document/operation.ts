/** Builds the operations of the document, so that all of them describe headers and errors in the same way. */
import { z } from "zod";
import type { Scope } from "../scopes.js";
import { ETAG, NO_STORE, RATE_LIMIT, RATE_LIMIT_POLICY, REQUEST_ID } from "./headers.js";
import { problemRefs, type ProblemResponse } from "./problems.js";
import { type JsonObject, type SchemaName, schemaRef } from "./schemas.js";

interface OperationFacts {
  readonly id: string;
  readonly tag: "visitors" | "customers" | "staff" | "service";
  readonly summary: string;
  readonly description?: string;
  /** The scope that the staff token needs. */
  readonly scope?: Scope;
  readonly parameters?: readonly JsonObject[];
  readonly body?: Content;
  /** By status code. */
  readonly answers: JsonObject;
  readonly problems: readonly ProblemResponse[];
}

/** Problems that can occur before a request reaches its route. */
const ANY_REQUEST = ["ExpectationFailed", "HeadersTooLarge"] as const satisfies readonly ProblemResponse[];

export function operation(facts: OperationFacts): JsonObject {
  const { scope, description, body, answers } = facts;
  const parameters = [...(facts.parameters ?? []), ...("304" in answers ? [IF_NONE_MATCH] : [])];
  return {
    operationId: facts.id,
    tags: [facts.tag],
    summary: facts.summary,
    ...(description !== undefined && { description }),
    security:
      scope !== undefined
        ? [{ staffToken: [scope] }]
        : facts.tag === "customers"
          ? [{ customerToken: [] }]
          : [],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: contentOf(body) } }),
    responses: { ...answers, ...problemRefs([...facts.problems, ...ANY_REQUEST]) },
  };
}

interface Content {
  /** Media type; default: JSON. */
  readonly type?: string;
  readonly schema: SchemaName | JsonObject;
  readonly example?: unknown;
}

interface AnswerFacts {
  readonly description: string;
  /** Omitted for an answer without a body; several if the client chooses by `Accept`. */
  readonly content?: Content | readonly Content[];
  readonly cache?: JsonObject;
  readonly headers?: JsonObject;
}

function contentOf(content: Content | readonly Content[]): JsonObject {
  return Object.fromEntries(
    [content].flat().map(({ type = "application/json", schema, example }: Content) => [
      type,
      {
        schema: typeof schema === "string" ? schemaRef(schema) : schema,
        ...(example !== undefined && { example }),
      },
    ]),
  );
}

/** An answer without RateLimit headers. */
export function answer(facts: AnswerFacts): JsonObject {
  return sharedAnswer({ ...facts, headers: { "x-request-id": REQUEST_ID, ...facts.headers } });
}

/** An answer that a shared cache may store, so it carries nothing about the client that asked. */
export function sharedAnswer({ description, content, cache = NO_STORE, headers }: AnswerFacts): JsonObject {
  return {
    description,
    headers: { ...headers, "Cache-Control": cache },
    ...(content !== undefined && { content: contentOf(content) }),
  };
}

/** An answer under /v1, with RateLimit headers. */
export function countedAnswer(facts: AnswerFacts): JsonObject {
  return answer({
    ...facts,
    headers: { RateLimit: RATE_LIMIT, "RateLimit-Policy": RATE_LIMIT_POLICY, ...facts.headers },
  });
}

/**
 * The answers of a GET whose body can repeat: it has an ETag, and a client that sends this with `If-None-Match` gets no body. `answerOf` is one of the
 * functions above.
 */
export function repeatable(answerOf: (facts: AnswerFacts) => JsonObject, facts: AnswerFacts): JsonObject {
  const tagged = { ...facts, headers: { ETag: ETAG, ...facts.headers } };
  const { content: _, ...bodiless } = tagged;
  return {
    200: answerOf(tagged),
    304: answerOf({ ...bodiless, description: "The stored answer is still valid." }),
  };
}

/** The parameters that a shape of `wire/queries.ts` reads. */
export function queryOf(shape: z.ZodObject): JsonObject[] {
  return Object.entries(shape.shape).map(([name, field]) => {
    const { $schema: _, description, example, ...schema } = z.toJSONSchema(field);
    return {
      name,
      in: "query",
      ...(!z.safeParse(field, undefined).success && { required: true }),
      description,
      schema,
      ...(schema.type === "array" && { style: "form", explode: false }),
      ...(example !== undefined && { example }),
    };
  });
}

const IF_NONE_MATCH: JsonObject = {
  name: "If-None-Match",
  in: "header",
  description: "The ETag of a stored answer.",
  schema: { type: "string" },
};

export function inPath(name: string, description: string, schema: JsonObject, example: string): JsonObject {
  return { name, in: "path", required: true, description, schema, example };
}
