/** What the conformance tests run against: a sandbox for each preset, or the server that the environment names. Each endpoint is called once. */
import { it } from "@jest/globals";
import { z } from "zod";
import { PRESET_NAMES, type PresetName } from "../src/presets.js";
import { type Sandbox, startSandbox } from "../src/sandbox.js";
import {
  authHeaders,
  type Call,
  call,
  type Credential,
  credentialShape,
  dataOf,
  type Reply,
} from "./client.js";

const settings = z
  .object({
    CONFORMANCE_BASE_URL: z.url().optional(),
    CONFORMANCE_KEY: z.string().default(""),
    CONFORMANCE_SECRET: z.string().default(""),
    CONFORMANCE_CONTROL_URL: z.url().optional(),
    CONFORMANCE_FREE_NAME: z.string().default("kabul.af"),
  })
  .parse(process.env);
const hasPortal =
  settings.CONFORMANCE_BASE_URL === undefined || settings.CONFORMANCE_CONTROL_URL !== undefined;

/** Each preset, or the server that the environment names. */
export const TARGETS: readonly (PresetName | "another server")[] =
  settings.CONFORMANCE_BASE_URL === undefined ? PRESET_NAMES : ["another server"];

/** A name that is available and not premium. */
export const availableName = settings.CONFORMANCE_FREE_NAME;

export const ENDPOINTS: [method: "GET" | "POST", path: string, body: unknown][] = [
  ["POST", "/api/v1/domains/check", { domain: availableName, years: 1 }],
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

export async function openTarget(target: PresetName | "another server"): Promise<void> {
  if (settings.CONFORMANCE_BASE_URL === undefined) {
    own = await startSandbox({
      controlPort: 0,
      shapes: { preset: target === "another server" ? undefined : target },
    });
    base = own.url;
    control = own.controlUrl ?? "";
    credential = own.credential();
  } else {
    base = settings.CONFORMANCE_BASE_URL.replace(/\/+$/, "");
    control = (settings.CONFORMANCE_CONTROL_URL ?? "").replace(/\/+$/, "");
    credential = { key: settings.CONFORMANCE_KEY, secret: settings.CONFORMANCE_SECRET };
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

export function askUnauthenticated(method: string, path: string, options: Call = {}): Promise<Reply> {
  return call(method, base + path, options);
}

export function ask(method: string, path: string, options: Call = {}, as = credential): Promise<Reply> {
  return askUnauthenticated(method, path, {
    ...options,
    headers: { ...authHeaders(as), ...options.headers },
  });
}

export function portal(method: string, path: string, body?: unknown): Promise<Reply> {
  return call(method, control + path, { body });
}

export async function createCredential(reseller: string): Promise<Credential> {
  return credentialShape.parse((await portal("POST", "/credentials", { reseller })).json);
}

/** The endpoint's answer to a plain request, made before the first test. */
export function answered(path: string): Reply {
  const reply = answers.get(path);
  if (reply === undefined) throw new Error(`${path} was not called`);
  return reply;
}

/** The list's items, wherever its undocumented shape puts them: in the outermost array. */
export function items(reply: Reply): unknown[] {
  let layer: unknown[] = [dataOf(reply)];
  while (layer.length > 0) {
    const list = layer.find((value) => Array.isArray(value));
    if (list !== undefined) return z.array(z.unknown()).parse(list);
    layer = layer.flatMap((value): unknown[] =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
  throw new Error("the answer contains no list");
}

/** All primitive values, in order. */
export function leaves(value: unknown): unknown[] {
  if (value === undefined) return [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value];
}

/** A test that needs the portal. It is skipped for a server without one. */
export function testWithPortal(title: string, run: () => Promise<void>): void {
  if (hasPortal) it(title, run);
  else it.skip(`${title} [skipped: needs the portal]`, run);
}
