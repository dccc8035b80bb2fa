/**
 * The files that pages load, at URLs that contain a hash of the content, so that browsers can keep them forever. They are prepared when
 * they are first needed, then kept in memory, and compressed once.
 */
import { hash } from "node:crypto";
import type { IRouter } from "express";
import { ServiceError } from "../errors.js";
import { route } from "./routes.js";
import { type StaticFile, staticFile } from "./edge/static-files.js";

export interface AssetFile {
  readonly type: string;
  readonly content: string | Buffer;
}

export interface Assets {
  /** Serves only these files below the prefix. */
  serve(router: IRouter): void;
  /** The page with the URL of each of these files replaced by the one with its hash. */
  linkedIn(page: string): string;
}

interface AssetSettings {
  /** Ends with a slash. */
  readonly prefix: string;
  /** The Cache-Control for a URL without the hash, or with that of another release. */
  readonly otherwise: string;
}

const FOR_GOOD = "public, max-age=31536000, immutable";
const HASHED = /^(.+)\.([0-9a-f]{12})(\.\w+)$/;

interface ServedFile {
  readonly digest: string;
  readonly hashed: StaticFile;
  readonly unhashed: StaticFile;
}

/** `files` is called once, when a file or its hash is first needed. */
export function createAssets(
  files: () => ReadonlyMap<string, AssetFile>,
  { prefix, otherwise }: AssetSettings,
): Assets {
  let prepared: ReadonlyMap<string, ServedFile> | null = null;
  const served = (): ReadonlyMap<string, ServedFile> =>
    (prepared ??= new Map(
      [...files()].map(([name, { type, content }]) => {
        const digest = hash("sha256", content, "hex").slice(0, 12);
        const hashed = staticFile(content, { type, cacheControl: FOR_GOOD });
        return [name, { digest, hashed, unhashed: staticFile(content, { type, cacheControl: otherwise }) }];
      }),
    ));

  /** During an upgrade, the page of one release may be loaded with the assets of another. */
  function find(path: string): StaticFile | undefined {
    const [, stem, digest, extension] = HASHED.exec(path) ?? [];
    const file = served().get(digest === undefined ? path : `${stem}${extension}`);
    return digest === file?.digest ? file?.hashed : file?.unhashed;
  }

  return {
    serve(router) {
      route(router, `${prefix}*path`, {
        GET: (request, response) => {
          const file = find([request.params["path"]].flat().join("/"));
          if (file === undefined) throw new ServiceError("not_found", "There is nothing at this address.");
          return file(request, response);
        },
      });
    },
    linkedIn: (page) =>
      [...served()].reduce(
        (text, [name, { digest }]) =>
          text.replaceAll(`"${prefix}${name}"`, `"${prefix}${name.replace(/\.\w+$/, `.${digest}$&`)}"`),
        page,
      ),
  };
}
