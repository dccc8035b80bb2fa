/** The body of an answer, read strictly: JSON in UTF-8, or text with the reason why it can't be read as JSON. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { parse } from "lossless-json";
import { ServiceError } from "../errors.js";
import { notUnderstood } from "./failures.js";

export type Body =
  | { readonly json: unknown }
  /** The text may be cut off. */
  | { readonly text: string; readonly fault: ServiceError };

/** A number with a fraction or an exponent, with its original digits, which a float can't always represent. */
export class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** 1000 typical domain records fit. */
export const MAX_BODY_BYTES = 256 * 1024;
/** More than any object of the upstream needs. The many keys of a hostile object would only cost time. */
const MAX_FIELDS = 200;
/** How much of a body that isn't JSON is searched for the words of an error. */
const MAX_TEXT_BYTES = 4096;

/** Reads the bytes as they arrived. Inflates them, up to the size limit, if the upstream compressed them although it was asked not to. */
export function readBody(bytes: Uint8Array, encoding: unknown): Body {
  let plain: Uint8Array = new Uint8Array();
  try {
    plain = inflated(bytes, encoding);
    return { json: parseJson(new TextDecoder("utf-8", { fatal: true }).decode(plain)) };
  } catch (error) {
    const text = new TextDecoder().decode(plain.subarray(0, MAX_TEXT_BYTES));
    return { text, fault: error instanceof ServiceError ? error : notUnderstood("its body") };
  }
}

const INFLATE = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync };

function inflated(bytes: Uint8Array, encoding: unknown): Uint8Array {
  const coding = typeof encoding === "string" ? encoding.toLowerCase() : "identity";
  if (coding === "" || coding === "identity") return bytes;
  if (coding !== "gzip" && coding !== "deflate" && coding !== "br") throw notUnderstood("its body");
  return INFLATE[coding](bytes, { maxOutputLength: MAX_BODY_BYTES });
}

/**
 * Throws if the text isn't JSON, is nested too deeply, or has an object with more than 200 fields or with two different values for one field.
 */
export function parseJson(text: string): unknown {
  const value = parse(text, undefined, {
    parseNumber: (digits) => (/[.e]/i.test(digits) ? new WrittenNumber(digits) : Number(digits)),
    onDuplicateKey: () => {
      throw notUnderstood("a field that appears twice");
    },
  });
  limitFields(value);
  return value;
}

function limitFields(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const inner: unknown[] = Object.values(value);
  if (!Array.isArray(value) && inner.length > MAX_FIELDS) throw notUnderstood("its body");
  for (const one of inner) limitFields(one);
}

/** The number as a float if it has a fraction; any other value unchanged. */
export function unwritten(value: unknown): unknown {
  return value instanceof WrittenNumber ? Number(value.text) : value;
}
