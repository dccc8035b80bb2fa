/** The OpenAPI document is consistent, and answers that differ from it are detected. */
import { describe, expect, it, test } from "@jest/globals";
import { PROBLEMS } from "../../src/errors.js";
import { openApiDocument } from "../../src/wire/document.js";
import { PROBLEM_MEANINGS } from "../../src/wire/problem-kinds.js";
import {
  faultsOf,
  isObject,
  type JsonObject,
  matchesDocument,
  objectAt,
  resolveRef,
  schemaValidator,
} from "../support/openapi.js";

const document = openApiDocument({ version: "1.2.3" });

function* nodes(value: unknown, at = "#"): Generator<{ readonly at: string; readonly value: JsonObject }> {
  if (isObject(value)) yield { at, value };
  if (typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value)) yield* nodes(child, `${at}/${key}`);
}

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(isObject(item) ? item : {}).map(([method, operation]) => ({
    name: `${path} ${method}`,
    path,
    operation: isObject(operation) ? operation : {},
  })),
);

describe("the document", () => {
  // `npm run openapi:lint` checks references, names, summaries and parameters; test/docs/tables.test.ts the paths.
  it("is JSON, contains its version, and has a known tag for every operation", () => {
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } });
    for (const { operation } of operations) {
      expect(operation["operationId"]).toMatch(/^[a-z]+(?:[A-Z][a-z]+)*$/);
      expect(["visitors", "customers", "staff", "service"]).toEqual(
        expect.arrayContaining([operation["tags"]].flat()),
      );
    }
  });

  it("lists the problems that each operation can return, and who may call it", () => {
    for (const { name, path, operation } of operations) {
      const statuses = Object.keys(objectAt(operation, "responses"));
      const isStaffs = path.startsWith("/v1/staff/") || path === "/metrics";
      const isCustomers = path.startsWith("/v1/me/");
      const expected = [
        "500",
        ...(path === "/livez" ? [] : ["503"]),
        ...(path.startsWith("/v1/") ? ["400", "406", "429"] : []),
        ...(operation["requestBody"] ? ["413", "415"] : []),
      ];
      expect([name, ...statuses]).toEqual(expect.arrayContaining([name, ...expected]));
      const closed = statuses.filter((status) => ["401", "403"].includes(status));
      expect([name, ...closed]).toEqual([name, ...(isStaffs ? ["401", "403"] : isCustomers ? ["401"] : [])]);
      const security = [{ staffToken: [expect.any(String)] }, { customerToken: [] }];
      expect(operation["security"]).toEqual(
        isStaffs ? security.slice(0, 1) : isCustomers ? security.slice(1) : [],
      );
    }
  });

  it("has an example of every error code, with its status and meaning", () => {
    const shown = [...nodes(objectAt(document.components, "responses"))].flatMap(({ value }) =>
      typeof value["code"] === "string" ? [value] : [],
    );
    for (const [code, { status, title }] of Object.entries(PROBLEMS)) {
      expect(shown).toContainEqual(
        expect.objectContaining({ code, status, title, type: `/problems/${code}` }),
      );
    }
    expect(Object.keys(PROBLEM_MEANINGS)).toEqual(Object.keys(PROBLEMS));
  });

  it("has an example for every JSON body except the document itself, and each matches its schema", () => {
    let checked = 0;
    for (const { at, value } of nodes({ paths: document.paths, components: document.components })) {
      const { schema } = value;
      if (!isObject(schema)) continue;
      const several = isObject(value["examples"]) ? Object.values(value["examples"]) : [];
      const examples = [
        ...(value["example"] === undefined ? [] : [value["example"]]),
        ...several.map((example) => (isObject(example) ? example["value"] : undefined)),
      ];
      if (/\/application\/[^/]*json$/.test(at) && !at.includes("openapi.json")) {
        expect({ at, examples: examples.length }).not.toEqual({ at, examples: 0 });
      }
      for (const example of examples) {
        const faults = faultsOf(schemaValidator(document, schema), example);
        expect({ at, faults }).toEqual({ at, faults: [] });
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan(60);
  });

  it("forbids unknown fields in requests, allows them in answers, and shows wholesale prices only to staff", () => {
    const schemas = objectAt(document.components, "schemas");
    const open = (name: string): Set<unknown> =>
      new Set(
        [...nodes(schemas[name])]
          .filter(({ value }) => value["type"] === "object" && "properties" in value)
          .map(({ value }) => value["additionalProperties"] ?? true),
      );
    for (const name of Object.keys(schemas))
      expect([name, ...open(name)]).toEqual(
        name.endsWith("Request") ? [name, false] : [name, ...(open(name).size > 0 ? [true] : [])],
      );
    const withWholesale = Object.keys(schemas).filter((name) =>
      JSON.stringify(schemas[name]).includes("wholesale"),
    );
    expect(withWholesale).toEqual(["StaffPrice", "StaffPromiseLine", "FollowedCart", "PreviewedPrice"]);
  });

  it("requires a request id and a cache rule in every answer, and rate limits in every success under /v1", () => {
    for (const { path, operation } of operations) {
      for (const [status, response] of Object.entries(objectAt(operation, "responses"))) {
        const ref = isObject(response) ? response["$ref"] : undefined;
        const headers = objectAt(typeof ref === "string" ? resolveRef(document, ref) : response, "headers");
        // Shared caches may store the price list, so it contains nothing about the client.
        const isShared = path === "/v1/prices" && Number(status) < 400;
        const promised = isShared ? ["Cache-Control"] : ["x-request-id", "Cache-Control"];
        if (Number(status) < 400 && path.startsWith("/v1/") && !isShared)
          promised.push("RateLimit", "RateLimit-Policy");
        for (const name of promised) expect(objectAt(headers, name)).toMatchObject({ required: true });
        if (Number(status) >= 400) {
          expect(objectAt(headers, "Cache-Control")).toMatchObject({ schema: { const: "no-store" } });
        }
      }
    }
  });
});

test("the check of an answer against the document rejects every difference, and says where it is", () => {
  const headers = {
    "x-request-id": "r1",
    ratelimit: '"client"; r=1; t=2',
    "ratelimit-policy": '"client"; q=1',
    "cache-control": "no-store",
    "content-type": "application/json; charset=utf-8",
    etag: '"a"',
  };
  const body = {
    tld: ".af",
    action: "renewal",
    years: 2,
    price: { amount: "49.99", currency: "USD" },
    asOf: "2026-03-01T09:30:00.000Z",
    stale: false,
  };
  const good = { status: 200, headers, body };
  const field = (name: string, value?: string) => ({ ...good, headers: { ...headers, [name]: value } });
  const withField = (name: string, value: unknown) => ({ ...good, body: { ...body, [name]: value } });
  expect(() => matchesDocument(document, "GET", "/v1/quotes?tld=.af", good)).not.toThrow();
  for (const [answer, message] of [
    [{ ...good, status: 418 }, /status is not one of 200, 304, 400/],
    [field("content-type", "text/html"), /text\/html/],
    [field("x-request-id"), /x-request-id is missing/],
    [field("etag"), /ETag is missing/],
    [field("cache-control", "public"), /Cache-Control/],
    [withField("asOf", undefined), /must have required property 'asOf'/],
    [withField("wholesale", 1), /"wholesale"/],
    [withField("asOf", "yesterday"), /\/asOf must match format/],
  ] as const)
    expect(() => matchesDocument(document, "GET", "/v1/quotes", answer)).toThrow(message);
  expect(() => matchesDocument(document, "DELETE", "/v1/quotes", good)).toThrow(/must be 405/);
  expect(() => matchesDocument(document, "GET", "/v1/nothing", good)).toThrow(/must be 404/);
});
