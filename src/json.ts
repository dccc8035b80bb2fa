/** Parses a JSON text that may be malformed. */

/** The value of a JSON text; null for anything else. */
export function parseJson(text: unknown): unknown {
  if (typeof text !== "string") return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
