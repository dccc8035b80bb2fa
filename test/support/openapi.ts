/**
 * Checks a live answer against the OpenAPI document: its status, required header fields, content type and body. A method that the document
 * doesn't list must be answered with 405, and an unknown path with 404.
 */
import { type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormatsModule from "ajv-formats";

export interface LiveAnswer {
  readonly status: number;
  readonly headers: Headers | Readonly<Record<string, unknown>>;
  /** Parsed JSON, or the text as received. */
  readonly body: unknown;
}

export type JsonObject = Record<string, unknown>;

// In an ES module, the default import of this CommonJS package is the whole module.
const addFormats = addFormatsModule.default;
const compilers = new WeakMap<object, Ajv2020>();
const compiled = new WeakMap<object, ValidateFunction>();

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asObject(value: unknown, name: string): JsonObject {
  if (!isObject(value)) throw new Error(`${name} is not an object`);
  return value;
}

/** A member of an object; both must be objects. */
export function objectAt(parent: unknown, key: string): JsonObject {
  return asObject(asObject(parent, `the parent of ${key}`)[key], key);
}

/** The member, or an empty object if it is absent. */
function objectIfAny(parent: JsonObject, key: string): JsonObject {
  return asObject(parent[key] ?? {}, key);
}

/** Resolves a JSON pointer such as `#/components/schemas/Money`. Throws if there is nothing at it. */
export function resolveRef(document: object, ref: string): unknown {
  if (!ref.startsWith("#/")) throw new Error(`${ref} points outside the document`);
  return ref
    .slice(2)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((parent, key) => {
      const children = asObject(parent, key);
      if (!Object.hasOwn(children, key)) throw new Error(`${ref} can't be resolved: there is no ${key}`);
      return children[key];
    }, document);
}

function dereferenced(document: object, value: unknown): JsonObject {
  const { $ref, ...rest } = asObject(value, "a part of the document");
  return typeof $ref === "string" ? dereferenced(document, resolveRef(document, $ref)) : rest;
}

/** Forbids unknown fields. Clients must accept them, but the document must contain every field that the service sends today. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isObject(schema)) return schema;
  const inside = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  // A schema that is combined with others lists only some of the fields.
  const isWhole = schema["type"] === "object" && "properties" in schema && !("allOf" in schema);
  return isWhole ? { additionalProperties: false, ...inside } : inside;
}

const closedComponents = new WeakMap<object, JsonObject>();

function componentsOf(document: object): JsonObject {
  const known = closedComponents.get(document);
  if (known) return known;
  const components = asObject(closed(objectAt(document, "components")), "components");
  closedComponents.set(document, components);
  return components;
}

/** A validator for a schema that may refer to the document's components. Unknown fields are faults. */
export function schemaValidator(document: object, schema: JsonObject): ValidateFunction {
  const known = compiled.get(schema);
  if (known) return known;
  const validate = compilerOf(document).compile({
    ...schema,
    components: componentsOf(document),
  });
  compiled.set(schema, validate);
  return validate;
}

function compilerOf(document: object): Ajv2020 {
  const known = compilers.get(document);
  if (known) return known;
  const ajv = new Ajv2020({ allErrors: true });
  addFormats(ajv);
  ajv.addKeyword("components");
  compilers.set(document, ajv);
  return ajv;
}

export function faultsOf(validate: ValidateFunction, value: unknown): string[] {
  return validate(value) ? [] : (validate.errors ?? []).map(errorText);
}

function errorText({ instancePath, message = "is not valid", params }: ErrorObject): string {
  return `${instancePath === "" ? "the value" : instancePath} ${message} ${JSON.stringify(params)}`;
}

/** The path template that matches a path. Literal paths take precedence over templates with parameters. */
function templateFor(paths: JsonObject, path: string): string | null {
  const [pathname = ""] = path.split("?");
  if (Object.hasOwn(paths, pathname)) return pathname;
  const parts = pathname.split("/");
  const fits = (template: string): boolean => {
    const wanted = template.split("/");
    return (
      wanted.length === parts.length &&
      wanted.every((part, at) => part === parts[at] || (/^\{.+\}$/.test(part) && parts[at] !== ""))
    );
  };
  return Object.keys(paths).find(fits) ?? null;
}

function responseFor(document: object, method: string, path: string, status: number): JsonObject {
  const paths = objectAt(document, "paths");
  const components = objectAt(objectAt(document, "components"), "responses");
  const template = templateFor(paths, path);
  if (template === null) {
    if (status !== 404) throw new Error("the document has no such path, so the status must be 404");
    return objectAt(components, "NotFound");
  }
  const item = objectAt(paths, template);
  const verb = method.toLowerCase() === "head" ? "get" : method.toLowerCase();
  if (!Object.hasOwn(item, verb)) {
    if (status !== 405) throw new Error(`${template} doesn't have this method, so the status must be 405`);
    return objectAt(components, "MethodNotAllowed");
  }
  const responses = objectAt(objectAt(item, verb), "responses");
  const response = responses[String(status)];
  if (response === undefined) {
    throw new Error(`the status is not one of ${Object.keys(responses).join(", ")}`);
  }
  return dereferenced(document, response);
}

function fieldOf(headers: LiveAnswer["headers"], name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
  if (Array.isArray(found)) return found.join(", ");
  return typeof found === "string" ? found : null;
}

function headerFaults(document: object, response: JsonObject, headers: LiveAnswer["headers"]): string[] {
  return Object.entries(objectIfAny(response, "headers")).flatMap(([name, declared]) => {
    const { required, schema } = dereferenced(document, declared);
    const text = fieldOf(headers, name);
    if (text === null) return required === true ? [`the field ${name} is missing`] : [];
    const shape = asObject(schema, `the schema of ${name}`);
    const value = shape["type"] === "integer" && /^\d+$/.test(text) ? Number(text) : text;
    return faultsOf(schemaValidator(document, shape), value).map((fault) => `the field ${name}: ${fault}`);
  });
}

function parsedBody(type: string, body: unknown): unknown {
  if (typeof body !== "string" || !/[/+]json$/.test(type)) return body;
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

function bodyFaults(document: object, response: JsonObject, { headers, body }: LiveAnswer): string[] {
  const content = objectIfAny(response, "content");
  const types = Object.keys(content);
  const [type = ""] = (fieldOf(headers, "content-type") ?? "").split(";").map((part) => part.trim());
  if (types.length === 0) {
    const empty = body === undefined || body === null || body === "" || JSON.stringify(body) === "{}";
    return empty ? [] : ["there is a body, but none is expected"];
  }
  if (!types.includes(type)) return [`the content type is ${type || "absent"}, not ${types.join(" or ")}`];
  const schema = objectAt(objectAt(content, type), "schema");
  return faultsOf(schemaValidator(document, schema), parsedBody(type, body)).map((fault) => `body: ${fault}`);
}

/** Throws an error that lists every mismatch between the answer and the document. `path` is the requested path, with or without its query. */
export function matchesDocument(document: object, method: string, path: string, answer: LiveAnswer): void {
  const request = `${method.toUpperCase()} ${path} answered ${answer.status}`;
  let response: JsonObject;
  try {
    response = responseFor(document, method, path, answer.status);
  } catch (error) {
    throw new Error(`${request}: ${error instanceof Error ? error.message : "not in the document"}`, {
      cause: error,
    });
  }
  const isHead = method.toUpperCase() === "HEAD";
  const faults = [
    // HEAD never makes an upstream call, so the body that the ETag identifies may be unknown.
    ...headerFaults(document, response, answer.headers).filter(
      (fault) => !(isHead && fault.includes(" ETag ")),
    ),
    ...(isHead ? [] : bodyFaults(document, response, answer)),
  ];
  if (faults.length > 0) throw new Error(`${request}:\n- ${faults.join("\n- ")}`);
}
