/** Recognizes from the requests that TRUST_PROXY_HOPS doesn't fit what is in front of the service. */
import type { RequestHandler } from "express";
import type { Log } from "../../logger.js";
import type { ProxyFit } from "../../staff/overview.js";
import { addressOf, isHandedOn, NO_ADDRESS } from "./client.js";

/** The last requests that are looked at, and how many it takes. */
const LOOKED_AT = 50;
const ENOUGH = 20;
/** With too few hops set, nearly all requests come through the proxies. */
const NEARLY_ALL = 0.9;
/** With a proxy in front, none should come past it; a flood with invented addresses mustn't hide those that do. */
const TOO_MANY_PAST_IT = 0.2;

const WHAT_TO_DO = {
  more: "A proxy adds more addresses to X-Forwarded-For than TRUST_PROXY_HOPS expects, so all visitors count as few. Set TRUST_PROXY_HOPS to the number of proxies in front of the service.",
  fewer:
    "Requests arrive with fewer addresses in X-Forwarded-For than TRUST_PROXY_HOPS expects, so anyone can invent an address. Let only the proxies reach the port, or lower TRUST_PROXY_HOPS.",
} as const;

export interface ProxyWatch {
  readonly watch: RequestHandler;
  /** `fits` also while there are too few requests to tell. */
  readonly state: () => ProxyFit;
}

/** Logs `proxy.misconfigured` once for each state other than `fits`, however often it comes back. */
export function createProxyWatch({ hops, log }: { readonly hops: number; readonly log: Log }): ProxyWatch {
  const last: ProxyFit[] = [];
  const logged = new Set<ProxyFit>();

  function state(): ProxyFit {
    if (last.length < ENOUGH) return "fits";
    const share = (of: ProxyFit): number => last.filter((one) => one === of).length / last.length;
    if (share("more") >= NEARLY_ALL) return "more";
    return share("fewer") >= TOO_MANY_PAST_IT ? "fewer" : "fits";
  }

  return {
    state,
    watch(request, _response, next) {
      // Prometheus usually comes past the proxy.
      if (!isHandedOn(request) && request.path !== "/metrics") {
        const found = addressesIn(request.headers["x-forwarded-for"]);
        last.push(found > hops ? "more" : found < hops ? "fewer" : "fits");
        if (last.length > LOOKED_AT) last.shift();
        const now = state();
        if (now !== "fits" && !logged.has(now))
          log.warn("proxy.misconfigured", { hops, what: WHAT_TO_DO[now] });
        logged.add(now);
      }
      next();
    },
  };
}

function addressesIn(forwarded: string | readonly string[] | undefined): number {
  const entries = forwarded?.toString().split(",") ?? [];
  return entries.filter((entry) => addressOf({ ip: entry.trim() }) !== NO_ADDRESS).length;
}
