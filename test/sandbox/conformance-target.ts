/** Whom the conformance facts are told of: a sandbox for each preset, or the server that the environment names; asked once per endpoint. */
import { it } from "@jest/globals";
import { z } from "zod";
import { PRESET_NAMES, type PresetName } from "../../src/sandbox/presets.js";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import {
  authHeaders,
  type Call,
  call,
  type Credential,
  credentialShape,
  dataOf,
  type Reply,
} from "./client.js";

const outside = z
  .object({
    CONFORMANCE_BASE_URL: z.url().optional(),
    CONFORMANCE_KEY: z.string().default(""),
    CONFORMANCE_SECRET: z.string().default(""),
    CONFORMANCE_CONTROL_URL: z.url().optional(),
    CONFORMANCE_FREE_NAME: z.string().default("kabul.af"),
  })
  .parse(process.env);
const hasPortal = outside.CONFORMANCE_BASE_URL === undefined || outside.CONFORMANCE_CONTROL_URL !== undefined;

/** Whose facts are told: that of each preset, or that of the server outside. */
export const PLAYED: readonly (PresetName | "another server")[] =
  outside.CONFORMANCE_BASE_URL === undefined ? PRESET_NAMES : ["another server"];

/** A name that is available and not premium. */
export const freeName = outside.CONFORMANCE_FREE_NAME;

export const ENDPOINTS: [method: "GET" | "POST", path: string, body: unknown][] = [
  ["POST", "/api/v1/domains/check", { domain: freeName, years: 1 }],
  ["POST", "/api/v1/pricing", { tld: ".af", action: "renewal", years: 1 }],
  ["GET", "/api/v1/domains", undefined],
  ["GET", "/api/v1/domains/{domain}", undefined],
  ["GET", "/api/v1/account/balance", undefined],
  ["GET", "/api/v1/account/tier", undefined],
];

let own: Sandbox | undefined;
let base = "";
let control = "";
let credential: Credential = { key: "", secret: "" };
let managed = "";
const answers = new Map<string, Reply>();

export async function openTarget(played: PresetName | "another server"): Promise<void> {
  if (outside.CONFORMANCE_BASE_URL === undefined) {
    own = await startSandbox({
      controlPort: 0,
      shapes: { preset: played === "another server" ? undefined : played },
    });
    base = own.url;
    control = own.controlUrl ?? "";
    credential = own.credential();
  } else {
    base = outside.CONFORMANCE_BASE_URL.replace(/\/+$/, "");
    control = (outside.CONFORMANCE_CONTROL_URL ?? "").replace(/\/+$/, "");
    credential = { key: outside.CONFORMANCE_KEY, secret: outside.CONFORMANCE_SECRET };
  }
  const list = await ask("GET", "/api/v1/domains");
  managed = leaves(items(list)[0]).find(isFqdn) ?? "";
  for (const [method, path, body] of ENDPOINTS) {
    answers.set(path, path === "/api/v1/domains" ? list : await ask(method, withName(path), { body }));
  }
}

export async function closeTarget(): Promise<void> {
  await own?.close();
}

function isFqdn(value: unknown): value is string {
  return typeof value === "string" && /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(value);
}

/** A domain that the credential's reseller manages. */
export function managedName(): string {
  return managed;
}

export function mainCredential(): Credential {
  return credential;
}

export function withName(path: string): string {
  return path.replace("{domain}", managed);
}

export function bare(method: string, path: string, options: Call = {}): Promise<Reply> {
  return call(method, base + path, options);
}

export function ask(method: string, path: string, options: Call = {}, as = credential): Promise<Reply> {
  return bare(method, path, { ...options, headers: { ...authHeaders(as), ...options.headers } });
}

export function portal(method: string, path: string, body?: unknown): Promise<Reply> {
  return call(method, control + path, { body });
}

export async function created(reseller: string): Promise<Credential> {
  return credentialShape.parse((await portal("POST", "/credentials", { reseller })).json);
}

/** What the endpoint answered to its plain request before the first fact. */
export function answered(path: string): Reply {
  const reply = answers.get(path);
  if (reply === undefined) throw new Error(`${path} was not asked`);
  return reply;
}

/** The list's items, wherever its undocumented shape carries them: the first array that is met from the outside in. */
export function items(reply: Reply): unknown[] {
  let layer: unknown[] = [dataOf(reply)];
  while (layer.length > 0) {
    const list = layer.find((value) => Array.isArray(value));
    if (list !== undefined) return z.array(z.unknown()).parse(list);
    layer = layer.flatMap((value): unknown[] =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
  throw new Error("there is no list");
}

/** Every value that has none inside it, in their order. */
export function leaves(value: unknown): unknown[] {
  if (value === undefined) return [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value];
}

/** A fact that only someone with the portal at hand can see. */
export function portalFact(title: string, run: () => Promise<void>): void {
  if (hasPortal) it(title, run);
  else it.skip(`${title} [skipped: needs the portal side]`, run);
}
