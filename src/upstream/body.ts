/** The body of an answer, read strictly: JSON in UTF-8, or text with the reason why it can't be read as JSON. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { ServiceError } from "../errors.js";
import { notUnderstood } from "./failures.js";
import { parseWrittenJson, RepeatedFieldError } from "./written-json.js";

export type Body =
  | { readonly json: unknown }
  /** The text may be cut off. */
  | { readonly text: string; readonly fault: ServiceError };

/** 1000 typical domain records fit. */
export const MAX_BODY_BYTES = 256 * 1024;
/** How much of a body that isn't JSON is searched for the words of an error. */
const MAX_TEXT_BYTES = 4096;

/** Reads the bytes as they arrived. Inflates them, up to the size limit, if the upstream compressed them although it was asked not to. */
export function readBody(bytes: Uint8Array, encoding: unknown): Body {
  let plain: Uint8Array;
  try {
    plain = inflated(bytes, encoding);
  } catch {
    return { text: "", fault: unreadable() };
  }
  try {
    return { json: parseWrittenJson(new TextDecoder("utf-8", { fatal: true }).decode(plain)) };
  } catch (error) {
    const fault =
      error instanceof RepeatedFieldError ? notUnderstood("a field that appears twice") : unreadable();
    return { text: new TextDecoder().decode(plain.subarray(0, MAX_TEXT_BYTES)), fault };
  }
}

const INFLATE = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync };

function inflated(bytes: Uint8Array, encoding: unknown): Uint8Array {
  const coding = typeof encoding === "string" ? encoding.toLowerCase() : "identity";
  if (coding === "" || coding === "identity") return bytes;
  if (coding !== "gzip" && coding !== "deflate" && coding !== "br") throw unreadable();
  return INFLATE[coding](bytes, { maxOutputLength: MAX_BODY_BYTES });
}

function unreadable(): ServiceError {
  return notUnderstood("its body");
}
