/** The response headers. A header that the document calls required is on every such answer. */
import type { JsonObject } from "./schemas.js";

function field(description: string, schema: JsonObject, example: string | number): JsonObject {
  return { description, required: true, schema, example };
}

export function optional(header: JsonObject): JsonObject {
  return { ...header, required: false };
}

const CACHEABLE = "Who may cache the answer, and for how long.";

/** For an answer that caches may keep until a promotion changes it. */
export function cacheControlLike(pattern: string, example: string): JsonObject {
  return field(CACHEABLE, { type: "string", pattern }, example);
}

export const NO_STORE = field(CACHEABLE, { type: "string", const: "no-store" }, "no-store");
/** For an answer that can be an event stream. */
export const STORED_NOWHERE: JsonObject = {
  ...NO_STORE,
  schema: { type: "string", enum: ["no-store", "no-store, no-transform"] },
};
export const UNBUFFERED = optional(
  field("On an event stream: tells proxies not to buffer it.", { type: "string", const: "no" }, "no"),
);
export const REQUEST_ID = field(
  "Identifies the request. The client's own id is used if it has 1 to 64 letters, digits, _ or -.",
  { type: "string", pattern: "^[A-Za-z0-9_-]{1,64}$" },
  "3f0c2a9e-5b1d-4c7e-9a53-2f6d8f1e0b44",
);
export const RATE_LIMIT = field(
  "The requests that this client has left (RateLimit header fields, draft 8).",
  { type: "string" },
  '"120-in-1min"; r=117; t=42',
);
export const RATE_LIMIT_POLICY = field(
  "The rate limit of this client (RateLimit header fields, draft 8).",
  { type: "string" },
  '"120-in-1min"; q=120; w=60; pk=:ZjQ5YzA3YjE4ZDJl:',
);
export const RETRY_AFTER = field("Seconds to wait before a retry.", { type: "integer", minimum: 1 }, 17);
export const ETAG = field("A strong entity tag.", { type: "string", pattern: '^"[^"]*"$' }, '"9f2c41d07be3"');
export const ALLOW = field("The methods that this path supports.", { type: "string" }, "GET, HEAD, OPTIONS");
export const AUTHENTICATE = field(
  "Asks for a bearer token.",
  { type: "string", pattern: "^Bearer" },
  'Bearer realm="staff"',
);
