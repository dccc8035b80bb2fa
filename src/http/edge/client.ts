/** Identifies clients by IP address (IPv6 by /56), in whatever form a proxy writes it. Anything that isn't an address is one client. */
import { createHmac, createSecretKey, randomBytes } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import type { Request } from "express";
import { ipKeyGenerator } from "express-rate-limit";
import type { Ask } from "../../quota/quota.js";

/** Has no space, like every client key, because spaces separate the words of messages between replicas. */
export const NO_ADDRESS = "no-address";
/** The longest IPv6 address, with brackets, zone and port. */
const MAX_ADDRESS_LENGTH = 80;

/** The addresses of visitors whose requests other replicas have handed on. */
const handedOn = new WeakMap<object, string>();

/** Another replica, which may be trusted, has handed on the request of the visitor at this address. */
export function wasHandedOn(request: object, address: string): void {
  handedOn.set(request, address);
}

export function isHandedOn(request: object): boolean {
  return handedOn.has(request);
}

/** The address behind the trusted proxies, without port, brackets and zone. */
export function addressOf(request: Pick<Request, "ip">): string {
  const address = handedOn.get(request);
  if (address !== undefined) return address;
  const { ip } = request;
  if (ip === undefined || ip.length > MAX_ADDRESS_LENGTH) return NO_ADDRESS;
  if (isIPv4(ip)) return ip;
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(ip) ?? [];
  const bare = (bracketed ?? withPort ?? ip).replace(/%.*$/, "");
  return isIP(bare) === 0 ? NO_ADDRESS : bare;
}

/** The client as counted by the limits: an IPv4 address or IPv6 /56. */
export function clientOf(address: string): string {
  return address.includes(":") ? ipKeyGenerator(address, 56) : address;
}

/** The client as counted by the quota: an IPv4 address, or an IPv6 /64 in its /48, the most that one customer usually gets. */
export function askerOf(address: string): Pick<Ask, "client" | "network"> {
  if (!address.includes(":")) return { client: address };
  const client = ipKeyGenerator(address, 64);
  const network = ipKeyGenerator(address, 48);
  return network === client ? { client } : { client, network };
}

/** Keyed because anyone could hash all IPv4 addresses. A key object, because Node 24 needs 10 µs more with bytes. */
const key = createSecretKey(randomBytes(32));

/** Distinguishes the clients of this process without revealing their addresses. */
export function markOf(client: string): string {
  return createHmac("sha256", key).update(client).digest("hex").slice(0, 12);
}
