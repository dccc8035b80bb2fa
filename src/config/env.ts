/** Reads the environment and the two YAML files into one frozen Config, or returns every fault at once. */
import { isIP } from "node:net";
import { resolve } from "node:path";
import { type CustomerSettings, MIN_CUSTOMER_SECRET_BYTES } from "../customers/customer-tokens.js";
import { parseStaffTokens } from "../staff/staff-tokens.js";
import type { Clock } from "../clock.js";
import { LOG_LEVELS, type LogLevel } from "../logger.js";
import { parseRedisAddress } from "../redis/address.js";
import type { RetailFile } from "../retail/live-policy.js";
import { parsePromiseKeys } from "../retail/promise.js";
import { parseRetailConfig } from "../retail/price-file/parse.js";
import type { RetailConfig } from "../retail/price-file/retail-config.js";
import type { Secret } from "../secret.js";
import type { SecretFile } from "./secret-files.js";
import type { CredentialSource } from "../upstream/credentials.js";
import type { NotebookLimits } from "../facts/notebook.js";
import { readCache } from "./cache.js";
import { type Environment, fileOf, readText, Settings, textOf } from "./settings.js";

export interface Config {
  readonly listen: { readonly port: number; readonly host: string };
  /** Null: the embedded sandbox. */
  readonly upstream: {
    readonly baseUrl: string;
    readonly active: CredentialSource;
    readonly standby: CredentialSource | null;
  } | null;
  readonly upstreamTimeoutMs: number;
  readonly quota: {
    readonly limit: number;
    readonly headroom: number;
    readonly windowMs: number;
    readonly maxWaitMs: number;
    readonly coldStart: "assume-spent" | "assume-free";
  };
  /** Null: there are no other replicas. */
  readonly redisUrl: Secret | null;
  /** Where other replicas reach this one; null: at this host's address and the port. */
  readonly advertiseUrl: string | null;
  readonly stateDir: string;
  readonly retail: RetailConfig;
  /** Where `retail` was read from. */
  readonly retailFile: RetailFile;
  readonly cache: NotebookLimits;
  readonly staffTokens: Secret | null;
  /** Null: no customer routes. */
  readonly customers: CustomerSettings | null;
  /** Null: a random key in sandbox mode; otherwise carts aren't signed. */
  readonly promiseKeys: Secret | null;
  /** Where the portal of the embedded sandbox listens, on this machine only. */
  readonly sandboxPortalPort: number;
  /** Where notices are sent; null: nowhere. */
  readonly notify: Receiver | null;
  readonly corsOrigins: readonly string[];
  /** Where security problems are reported, as a URI; null: there is no security.txt. */
  readonly securityContact: string | null;
  readonly trustProxyHops: number;
  readonly clientPerMinute: number;
  readonly clientColdPerMinute: number;
  /** Whether the demo storefront is served at `/`. */
  readonly demoStorefront: boolean;
  /** Whether `/embed.js`, the search element for other websites, is served. */
  readonly embed: boolean;
  /** Where the demo page posts a signed cart: an address, or `/checkout`, the demo checkout of sandbox mode. Null: nowhere. */
  readonly checkoutUrl: string | null;
  readonly logLevel: LogLevel;
  /** How long everything is still served after a stop was requested. */
  readonly drainMs: number;
  readonly shutdownGraceMs: number;
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number;
  /** The files of secrets, of which each Secret above keeps the last good value. */
  readonly secretFiles: readonly SecretFile[];
}

interface Faulty {
  readonly ok: false;
  readonly faults: readonly string[];
}

/** With the world of the embedded sandbox if it is used and `parseWorld` was given. */
type ConfigResult<World> =
  { readonly ok: true; readonly config: Config; readonly world: World | undefined } | Faulty;

type ParseWorld<World> = (text: string) => { readonly ok: true; readonly world: World } | Faulty;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Whether the embedded sandbox is used in place of an upstream. */
export function usesSandbox(env: Environment): boolean {
  return textOf(env, "UPSTREAM_BASE_URL") === null && textOf(env, "NODE_ENV") !== "production";
}

/**
 * Reads the environment. Configured paths are relative to the working folder, default paths to the package. `parseWorld` reads the text of
 * SANDBOX_CONFIG; it is the caller's, because a service without the sandbox doesn't load its code.
 */
export function readConfig<World>(
  env: Environment,
  clock: Clock,
  parseWorld?: ParseWorld<World>,
): ConfigResult<World> {
  const settings = new Settings(env, clock);
  const production = settings.text("NODE_ENV") === "production";
  const upstream = readUpstream(settings, production);
  const sandbox = usesSandbox(env);
  const limit = settings.integer("UPSTREAM_RATE_LIMIT", 60, 1, 100_000);
  const headroom = settings.integer("UPSTREAM_RATE_HEADROOM", Math.min(3, limit - 1), 0, 100_000);
  if (headroom >= limit) settings.fault("UPSTREAM_RATE_HEADROOM", "must be less than UPSTREAM_RATE_LIMIT");
  const redisUrl = settings.secret("REDIS_URL", (text) => problemsOf(parseRedisAddress(text)));
  const config = {
    listen: { port: settings.integer("PORT", 3000, 0, 65_535), host: readHost(settings) },
    upstream,
    upstreamTimeoutMs: settings.integer("UPSTREAM_TIMEOUT_MS", 5000, 1, 600_000),
    quota: {
      limit,
      headroom,
      windowMs: settings.integer("UPSTREAM_RATE_WINDOW_MS", 60_000, 10, 86_400_000),
      maxWaitMs: settings.integer("QUOTA_MAX_WAIT_MS", 8000, 0, 600_000),
      coldStart: settings.oneOf("QUOTA_COLD_START", "assume-spent", ["assume-spent", "assume-free"]),
    },
    redisUrl,
    // Replicas usually reach each other by http within a private network.
    advertiseUrl: readOrigin(settings, "ADVERTISE_URL", false),
    stateDir: resolve(settings.text("STATE_DIR") ?? "./var"),
    ...readRetail(settings),
    cache: readCache(settings),
    staffTokens: settings.secret("STAFF_TOKENS", (text) => parseStaffTokens(text).problems),
    customers: readCustomers(settings, production),
    promiseKeys: settings.secret("PROMISE_PRIVATE_KEY", (text) => problemsOf(parsePromiseKeys(text))),
    sandboxPortalPort: settings.integer("SANDBOX_CONTROL_PORT", 4001, 0, 65_535),
    notify: readNotify(settings),
    corsOrigins: readOrigins(settings),
    securityContact: readSecurityContact(settings),
    trustProxyHops: settings.integer("TRUST_PROXY_HOPS", 0, 0, 20),
    clientPerMinute: settings.integer("CLIENT_RATE_PER_MINUTE", 3000, 1, 1_000_000_000),
    clientColdPerMinute: settings.integer("CLIENT_COLD_PER_MINUTE", 20, 1, 1_000_000_000),
    demoStorefront: settings.oneOf("DEMO_STOREFRONT", sandbox ? "on" : "off", ["on", "off"]) === "on",
    embed: settings.oneOf("EMBED", "on", ["on", "off"]) === "on",
    checkoutUrl: readAddress(settings, "CHECKOUT_URL", production)?.href ?? (sandbox ? "/checkout" : null),
    logLevel: settings.oneOf("LOG_LEVEL", "info", LOG_LEVELS),
    drainMs: settings.integer("DRAIN_MS", redisUrl === null ? 0 : 3000, 0, 600_000),
    keepAliveMs: settings.integer("KEEP_ALIVE_MS", 65_000, 0, 3_600_000),
    shutdownGraceMs: settings.integer("SHUTDOWN_GRACE_MS", 10_000, 0, 3_600_000),
    secretFiles: settings.secretFiles,
  };
  const text = sandbox ? readText(settings, "SANDBOX_CONFIG", "config/sandbox.yaml") : null;
  const parsed = text === null ? undefined : parseWorld?.(text);
  if (parsed?.ok === false) for (const fault of parsed.faults) settings.fault("SANDBOX_CONFIG", fault);
  const { retail, retailFile, cache } = config;
  if (settings.faults.length > 0 || !retail || !retailFile || cache === null)
    return { ok: false, faults: settings.faults };
  const world = parsed?.ok === true ? parsed.world : undefined;
  return { ok: true, config: Object.freeze({ ...config, retail, retailFile, cache }), world };
}

function readUpstream(settings: Settings, production: boolean): Config["upstream"] {
  const active = settings.credential("UPSTREAM_SERVICE_KEY", "UPSTREAM_SERVICE_SECRET");
  const standby = settings.credential("UPSTREAM_STANDBY_KEY", "UPSTREAM_STANDBY_SECRET");
  if (settings.text("UPSTREAM_BASE_URL") === null) {
    if (!production) return null;
    settings.fault("UPSTREAM_BASE_URL", "is missing: the scheme and host of the upstream, https://…");
  }
  if (active === null) {
    for (const name of ["UPSTREAM_SERVICE_KEY", "UPSTREAM_SERVICE_SECRET"]) {
      const reported = settings.faults.some((fault) => fault.startsWith(`${name}:`));
      if (!settings.isGiven(name) && !reported)
        settings.fault(name, `is missing (or ${name}_FILE, the path of a file that contains it)`);
    }
  }
  const baseUrl = readOrigin(settings, "UPSTREAM_BASE_URL", production);
  return baseUrl === null || active === null ? null : { baseUrl, active, standby };
}

/** Only a scheme and a host; https in production as for every address. */
function readOrigin(settings: Settings, name: string, production: boolean): string | null {
  const url = readAddress(settings, name, production);
  if (url === null) return null;
  if (url.pathname === "/" && url.search === "" && url.hash === "") return url.origin;
  settings.fault(name, "must be only a scheme and host, without a path or query");
  return null;
}

function readHost(settings: Settings): string {
  const host = settings.text("HOST") ?? "0.0.0.0";
  if (isIP(host) === 0 && !/^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/i.test(host))
    settings.fault("HOST", "must be an IP address or a host name");
  return host;
}

/** A URL without credentials, with https in production unless its host is loopback. */
function readAddress(settings: Settings, name: string, production: boolean): URL | null {
  const text = settings.text(name);
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    settings.fault(name, "must be an http or https URL");
  } else if (url.username !== "" || url.password !== "") {
    settings.fault(name, "must not contain credentials");
  } else if (production && url.protocol !== "https:" && !LOOPBACK.test(url.hostname)) {
    settings.fault(name, "must be https in production, unless the host is loopback");
  } else {
    return url;
  }
  return null;
}

function readRetail(settings: Settings): Partial<Pick<Config, "retail" | "retailFile">> {
  const [name, standard] = ["RETAIL_CONFIG", "config/retail.yaml"];
  const text = readText(settings, name, standard);
  if (text === null) return {};
  const result = parseRetailConfig(text);
  if (result.ok)
    return { retail: result.config, retailFile: { path: fileOf(settings, name, standard), text } };
  for (const fault of result.faults) settings.fault(name, fault);
  return {};
}

function problemsOf(
  read: { readonly ok: true } | { readonly ok: false; readonly problem: string },
): string[] {
  return read.ok ? [] : [read.problem];
}

function readCustomers(settings: Settings, production: boolean): CustomerSettings | null {
  const hasAddress = settings.text("CUSTOMER_JWKS_URL") !== null;
  const hasSecret = settings.isGiven("CUSTOMER_JWT_SECRET");
  const url = readAddress(settings, "CUSTOMER_JWKS_URL", production);
  const secret = settings.secret("CUSTOMER_JWT_SECRET", (text) =>
    Buffer.byteLength(text) < MIN_CUSTOMER_SECRET_BYTES
      ? [`must have at least ${MIN_CUSTOMER_SECRET_BYTES} characters`]
      : [],
  );
  if (hasAddress && hasSecret)
    settings.fault("CUSTOMER_JWT_SECRET", "is set together with CUSTOMER_JWKS_URL: remove one");
  const isOn = hasAddress || hasSecret;
  for (const name of ["CUSTOMER_JWT_ISSUER", "CUSTOMER_JWT_AUDIENCE"]) {
    const isSet = settings.text(name) !== null;
    if (isSet && !isOn)
      settings.fault(name, "has no effect without CUSTOMER_JWKS_URL or CUSTOMER_JWT_SECRET");
    if (!isSet && isOn && production)
      settings.fault(
        name,
        "is missing: in production, the issuer and audience of customer tokens must be checked",
      );
  }
  const keys = url !== null ? { jwksUrl: url.href } : secret !== null ? { secret } : null;
  const claims = {
    issuer: settings.text("CUSTOMER_JWT_ISSUER"),
    audience: settings.text("CUSTOMER_JWT_AUDIENCE"),
  };
  return keys && { keys, ...claims };
}

/** RFC 9116, section 2.5.3: a web page, a mail address or a telephone number, as a URI. */
function readSecurityContact(settings: Settings): string | null {
  const contact = settings.text("SECURITY_CONTACT");
  if (contact === null || /^(?:https:\/\/|mailto:[^\s@]+@|tel:\+)[!-~]+$/.test(contact)) return contact;
  settings.fault("SECURITY_CONTACT", "must begin with https://, mailto: or tel:+");
  return null;
}

export interface Receiver {
  readonly url: Secret;
  readonly secret: Secret;
  /** Whether notices may contain amounts. */
  readonly full: boolean;
}

/** The address may contain a secret, as those of chat programs do. */
function readNotify(settings: Settings): Receiver | null {
  const url = settings.secret("NOTIFY_URL", (text) => {
    const parsed = URL.canParse(text) ? new URL(text) : null;
    if (parsed?.protocol === "https:") return [];
    return parsed?.protocol === "http:" && LOOPBACK.test(parsed.hostname)
      ? []
      : ["must be an https URL, or http if the host is loopback"];
  });
  const secret = settings.secret("NOTIFY_SECRET", (text) =>
    text.length < 16 ? ["must have at least 16 characters"] : [],
  );
  const full = settings.oneOf("NOTIFY_DETAILS", "plain", ["plain", "full"]) === "full";
  if (url !== null && !settings.isGiven("NOTIFY_SECRET"))
    settings.fault("NOTIFY_SECRET", "is missing: the receiver verifies notices with it");
  return url && secret && { url, secret, full };
}

function readOrigins(settings: Settings): string[] {
  const origins = (settings.text("CORS_ORIGINS") ?? "").split(",").map((origin) => origin.trim());
  for (const [index, origin] of origins.entries()) {
    if (origin === "" || isExactOrigin(origin)) continue;
    settings.fault(
      "CORS_ORIGINS",
      `entry ${index + 1} must be an exact origin such as https://www.example.af, without a path or wildcard`,
    );
  }
  return origins.filter((origin) => origin !== "");
}

/** A wildcard would be accepted as a host name, but no browser sends it. */
function isExactOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text && !text.includes("*");
}
