/** Builds the operations of the document, so that all of them describe headers and errors in the same way. */
import { z } from "zod";
import type { Scope } from "../scopes.js";
import { ETAG, NO_STORE, RATE_LIMIT, RATE_LIMIT_POLICY, REQUEST_ID } from "./headers.js";
import { problemRefs, type ProblemResponse } from "./problems.js";
import { exampleOf, type JsonObject, type SchemaName, schemaRef } from "./schemas.js";

interface OperationFacts {
  readonly id: string;
  readonly tag: "visitors" | "customers" | "staff" | "service";
  readonly summary: string;
  readonly description?: string;
  /** The scope that the staff token needs. */
  readonly scope?: Scope;
  readonly parameters?: readonly JsonObject[];
  readonly body?: Content;
  readonly answer: AnswerFacts;
  /** Whether the answer has an ETag, so that a client that sends it with `If-None-Match` gets a 304. Default: unless there is a body. */
  readonly isRepeatable?: boolean;
  /** The answer with the status 503, if that isn't a problem. */
  readonly unavailable?: AnswerFacts;
  readonly problems: readonly ProblemResponse[];
}

interface AnswerFacts {
  readonly description: string;
  /** Several if the client chooses by `Accept`. */
  readonly content: Content | readonly Content[];
  readonly cache?: JsonObject;
  readonly headers?: JsonObject;
  /** Whether a shared cache may store it, so that it carries nothing about the client that asked. */
  readonly isShared?: true;
}

interface Content {
  /** Media type; default: JSON. */
  readonly type?: string;
  readonly schema: SchemaName | JsonObject;
  /** Default: that of the named schema. */
  readonly example?: unknown;
}

/** Problems that can occur before a request reaches its route. */
const ANY_REQUEST = ["ExpectationFailed", "HeadersTooLarge"] as const satisfies readonly ProblemResponse[];

export function operation(facts: OperationFacts): JsonObject {
  const { id, tag, summary, scope, description, body, answer, unavailable } = facts;
  const isRepeatable = facts.isRepeatable ?? body === undefined;
  const parameters = [...(facts.parameters ?? []), ...(isRepeatable ? [IF_NONE_MATCH] : [])];
  const headers = {
    ...(answer.isShared !== true && { "x-request-id": REQUEST_ID }),
    ...(answer.isShared !== true &&
      tag !== "service" && { RateLimit: RATE_LIMIT, "RateLimit-Policy": RATE_LIMIT_POLICY }),
    ...(isRepeatable && { ETag: ETAG }),
    ...answer.headers,
    "Cache-Control": answer.cache ?? NO_STORE,
  };
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security:
      scope !== undefined ? [{ staffToken: [scope] }] : tag === "customers" ? [{ customerToken: [] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: contentOf(body) } }),
    responses: {
      200: { description: answer.description, headers, content: contentOf(answer.content) },
      ...(isRepeatable && { 304: { description: "The stored answer is still valid.", headers } }),
      ...(unavailable && {
        503: { description: unavailable.description, headers, content: contentOf(unavailable.content) },
      }),
      ...problemRefs([...facts.problems, ...ANY_REQUEST]),
    },
  };
}

function contentOf(content: Content | readonly Content[]): JsonObject {
  return Object.fromEntries(
    [content]
      .flat()
      .map(({ type = "application/json", schema, example }: Content) => [
        type,
        typeof schema === "string"
          ? { schema: schemaRef(schema), example: example ?? exampleOf(schema) }
          : { schema, ...(example !== undefined && { example }) },
      ]),
  );
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
