/** Parses REDIS_URL. A problem never quotes the text, which may contain a password. */

interface RedisEndpoint {
  readonly host: string;
  readonly port: number;
}

interface RedisAddress {
  /** A host, a socket, or the sentinels of a named Redis. */
  readonly at:
    | RedisEndpoint
    | { readonly path: string }
    | { readonly sentinels: readonly RedisEndpoint[]; readonly name: string };
  readonly tls: boolean;
  readonly username: string | null;
  readonly password: string | null;
  readonly db: number;
}

type RedisAddressResult =
  { readonly ok: true; readonly address: RedisAddress } | { readonly ok: false; readonly problem: string };

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;

const URL_PARTS = /^([a-z+]+):\/\/(?:([^/]*)@)?([^/?#]*)(\/[^?#]*)?$/i;
const ENDPOINT = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/i;
const SCHEME = /^(?:redis|valkey)(s?)(\+sentinel)?$/i;

const FORMS =
  "must be redis://, rediss://, valkey:// or valkeys:// with host:port, redis+sentinel://host:port,host:port/name, or the path of a socket";

/** Throws an Error with the problem. */
function parse(text: string): RedisAddress {
  if (text.startsWith("/")) return { at: { path: text }, tls: false, username: null, password: null, db: 0 };
  const [, scheme = "", userInfo = "", hosts = "", path = ""] = URL_PARTS.exec(text) ?? [];
  const credentials = credentialsOf(userInfo);
  if (/^unix$/i.test(scheme) && hosts === "" && path !== "")
    return { at: { path }, tls: false, db: 0, ...credentials };
  if (/^(?:redis|valkey)s?\+cluster$/i.test(scheme)) throw new Error(NO_CLUSTER);
  const [match, tls, sentinel] = SCHEME.exec(scheme) ?? [];
  if (match === undefined) throw new Error(FORMS);
  const secured = { tls: tls !== "", ...credentials };
  if (sentinel === undefined) {
    if (hosts.includes(","))
      throw new Error("must have one host, or be redis+sentinel://host:port,host:port/name");
    return { at: endpointOf(hosts, REDIS_PORT), db: databaseOf(path.slice(1)), ...secured };
  }
  const [name = "", db = "", ...rest] = path.slice(1).split("/");
  if (name === "" || rest.length > 0)
    throw new Error("must end with the name of the Redis: redis+sentinel://host:port/name");
  const sentinels = hosts.split(",").map((host) => endpointOf(host, SENTINEL_PORT));
  return { at: { sentinels, name: decoded(name) }, db: databaseOf(db), ...secured };
}

/** Why a cluster can't be used. */
export const NO_CLUSTER =
  "is a Redis Cluster, which can't be used: the quota needs a single Redis with all keys, alone or behind Sentinel";

export function parseRedisAddress(text: string): RedisAddressResult {
  try {
    return { ok: true, address: parse(text) };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : FORMS };
  }
}

function credentialsOf(userInfo: string): Pick<RedisAddress, "username" | "password"> {
  const [, user = "", password = ""] = /^([^:]*):?(.*)$/s.exec(userInfo) ?? [];
  return { username: decoded(user) || null, password: decoded(password) || null };
}

function endpointOf(text: string, standardPort: number): RedisEndpoint {
  const [, ipv6, name, digits] = ENDPOINT.exec(text) ?? [];
  const host = ipv6 ?? name;
  if (host === undefined) throw new Error(FORMS);
  const port = Number(digits ?? standardPort);
  if (port < 1 || port > 65_535) throw new Error("must have a port from 1 to 65535");
  return { host, port };
}

function databaseOf(text: string): number {
  if (!/^\d{0,5}$/.test(text)) throw new Error("must end with a database number such as /0, or with nothing");
  return Number(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("must have its user, password and name percent-encoded");
  }
}
