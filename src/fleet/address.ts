/** Where other replicas reach this one, unless ADVERTISE_URL says so. */
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";

/** The address on which the server listens; if these are all addresses of the host, the first that isn't a loopback. */
export function ownUrl(listening: string | AddressInfo | null): string {
  const { address, port } =
    typeof listening === "object" && listening !== null ? listening : { address: "0.0.0.0", port: 0 };
  if (address !== "0.0.0.0" && address !== "::") return urlOf(address, port);
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
  const outside = all.filter(({ internal }) => !internal);
  const best = outside.find(({ family }) => family === "IPv4") ?? outside[0];
  return urlOf(best?.address ?? "127.0.0.1", port);
}

function urlOf(address: string, port: number): string {
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
