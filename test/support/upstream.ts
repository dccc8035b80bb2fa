/** The settings of a service that uses a sandbox as its live upstream, with the credential of one of the sandbox's resellers. */
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";

export function upstreamAt(sandbox: Pick<Sandbox, "url" | "credential">, reseller?: string) {
  const { key, secret } = sandbox.credential(reseller);
  return {
    UPSTREAM_BASE_URL: sandbox.url,
    UPSTREAM_SERVICE_KEY: key,
    UPSTREAM_SERVICE_SECRET: secret,
  };
}
