/** The documented operations and their routes. */
export const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;
export type Operation = (typeof OPERATIONS)[number];

interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
}

export const ROUTES: Readonly<Record<Operation, Route>> = {
  check: { method: "POST", path: "/api/v1/domains/check" },
  quote: { method: "POST", path: "/api/v1/pricing" },
  domains: { method: "GET", path: "/api/v1/domains" },
  domain: { method: "GET", path: "/api/v1/domains/{domain}" },
  balance: { method: "GET", path: "/api/v1/account/balance" },
  tier: { method: "GET", path: "/api/v1/account/tier" },
};

/** The documented operation that a request is for, or undefined. */
export function operationOf(method: string, path: string): Operation | undefined {
  const route = path.replace(/^(\/api\/v1\/domains\/)(?!check$)[^/]+$/, "$1{domain}");
  return OPERATIONS.find((one) => ROUTES[one].method === method && ROUTES[one].path === route);
}
