/** Files that are held in memory. Each compressed form is made once and has its own strong ETag. */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Request, Response } from "express";
import { type Answer, send } from "./answers.js";

/** Sends the file in the smallest form that the client accepts. */
export type StaticFile = (request: Request, response: Response) => Promise<void>;

interface FileOptions extends Pick<Answer, "type" | "cacheControl"> {
  /** Default: 200. */
  readonly status?: number;
}

const compressWithBrotli = promisify(brotliCompress);
const compressWithGzip = promisify(gzip);
/** Nearly as small as with the highest quality, in a tenth of the time. */
const BROTLI_QUALITY = 9;

/** Smallest first. */
const CODINGS = {
  br: (plain: Buffer) =>
    compressWithBrotli(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (plain: Buffer) => compressWithGzip(plain, { level: 9 }),
};
const CODING_NAMES = ["br", "gzip"] as const satisfies readonly (keyof typeof CODINGS)[];

/** Compresses on first request. */
export function staticFile(
  content: string | Buffer,
  { status = 200, type, cacheControl }: FileOptions,
): StaticFile {
  const plain = typeof content === "string" ? Buffer.from(content) : content;
  const compressed = new Map<string, Promise<Buffer>>();

  async function bodyIn(coding: keyof typeof CODINGS): Promise<Buffer> {
    const smaller = compressed.get(coding) ?? CODINGS[coding](plain);
    compressed.set(coding, smaller);
    const body = await smaller;
    return body.length < plain.length ? body : plain;
  }

  return async (request, response) => {
    response.vary("Accept-Encoding").status(status);
    const coding = CODING_NAMES.find((name) => request.acceptsEncodings(name) === name);
    const body = coding === undefined ? plain : await bodyIn(coding);
    if (coding !== undefined && body !== plain) response.set("Content-Encoding", coding);
    // An error must not be answered with 304.
    send(response, { body, type, cacheControl, tagged: status === 200 });
  };
}
