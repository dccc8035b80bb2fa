/** Searches what the service says for private data. Parts that are random or hashes are left out, because their letters can spell any word. */
import { withPromisesDecoded } from "./promise.js";
import type { Answer } from "./service.js";

/** The whole answer without its ETag and without the hash of its client (`pk`). */
export function legible({ status, headers, text }: Answer): string {
  const shown = JSON.stringify({ ...headers, etag: undefined }).replace(/pk=:[^:]+:/, "");
  return `${status} ${shown} ${text}`;
}

/** Those of the words that are in the text or in a promise in it, in upper or lower case. */
export function revealed(text: string, words: readonly string[]): string[] {
  const said = withPromisesDecoded(text).toLowerCase();
  return words.filter((word) => said.includes(word.toLowerCase()));
}
