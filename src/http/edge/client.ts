/** Who asks: a client is an IP address (IPv6 by /56), whatever form a proxy writes it in. What is no address counts as one client. */
import { createHmac, randomBytes } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import { ipKeyGenerator } from "express-rate-limit";
import type { Ask } from "../../quota/quota.js";
import type { Arrived } from "./arrived.js";

const NO_ADDRESS = "no address";
/** The longest IPv6 address, with brackets, zone and port. */
const LONGEST_ADDRESS = 80;

/** A prefix costs as much to compute as an answer; about 2 MB. When full it is cleared. */
const clients = new Map<string, string>();
const MOST_CLIENTS_KEPT = 10_000;

/** The address behind the trusted proxies, without port, brackets and zone. */
export function addressOf(request: Arrived): string {
  // Express would first look for proxies.
  const isDirect = request.headers["x-forwarded-for"] === undefined;
  const ip = isDirect ? request.socket.remoteAddress : request.ip;
  if (ip === undefined || ip.length > LONGEST_ADDRESS) return NO_ADDRESS;
  if (isIPv4(ip)) return ip;
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(ip) ?? [];
  const bare = (bracketed ?? withPort ?? ip).replace(/%.*$/, "");
  return isIP(bare) === 0 ? NO_ADDRESS : bare;
}

/** IPv4 address or IPv6 /56, as the limits count clients. */
export function clientOf(address: string): string {
  if (!address.includes(":")) return address;
  const known = clients.get(address);
  if (known !== undefined) return known;
  if (clients.size >= MOST_CLIENTS_KEPT) clients.clear();
  const client = ipKeyGenerator(address, 56);
  clients.set(address, client);
  return client;
}

/** IPv4 address, or IPv6 /64 in its /48, as the quota counts clients. A /48 is what one customer can be given. */
export function askerOf(address: string): Pick<Ask, "client" | "network"> {
  if (!address.includes(":")) return { client: address };
  const client = ipKeyGenerator(address, 64);
  const network = ipKeyGenerator(address, 48);
  return network === client ? { client } : { client, network };
}

/** Keyed because anyone could hash all IPv4 addresses. */
const key = randomBytes(32);

/** Tells clients of this process apart without revealing their address. */
export function markOf(client: string): string {
  return createHmac("sha256", key).update(client).digest("hex").slice(0, 12);
}
