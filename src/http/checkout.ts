/**
 * The demo checkout, which receives signed carts from the storefront in sandbox mode. It shows how a reseller's own checkout verifies a
 * promise, and orders nothing.
 */
import { parseDomainName } from "../domain-name.js";
import type { Promises } from "../retail/promise.js";
import type { CheckoutView } from "../wire/pages.js";

export const CHECKOUT_PATH = "/checkout";

/** Checks the form's `promise` field. */
export type DemoCheckout = (form: unknown) => Promise<CheckoutView>;

export function createDemoCheckout(promises: Pick<Promises, "publicKeys">, now: () => number): DemoCheckout {
  return async (form) => {
    const promise = typeof form === "object" && form !== null && "promise" in form ? form.promise : "";
    if (typeof promise !== "string" || promise === "") return { kind: "nothing" };
    const { checkPromise } = await import("../retail/promise-check.js");
    // A real checkout fetches these keys from /.well-known/jwks.json.
    const checked = await checkPromise(promise, { keys: [...promises.publicKeys().keys] }, now());
    if (!checked.ok) return { kind: checked.reason };
    const lines = checked.lines.map(({ domain, tld, years, price }) => ({
      unicodeName: parseDomainName(domain, [tld], "domain").unicode,
      years,
      price,
    }));
    return { kind: "good", lines, validForMs: checked.validUntilMs - now() };
  };
}
