/**
 * The demo checkout, to which the storefront posts a signed cart in sandbox mode: an example of what a reseller's own checkout does with a
 * promise. It orders nothing.
 */
import { checkPromise } from "../retail/promise-check.js";
import type { Promises } from "../retail/promise.js";

export const CHECKOUT_PATH = "/checkout";

/** What the page shows: the lines of a good promise, why it was refused, or that nothing was sent. */
export type CheckoutView =
  | { readonly kind: "good"; readonly lines: readonly object[]; readonly validUntil: string }
  | { readonly kind: "expired" | "altered" | "nothing" };

/** Decides by the field `promise` of the form. */
export type DemoCheckout = (form: unknown) => Promise<CheckoutView>;

export function createDemoCheckout(promises: Pick<Promises, "publicKeys">, now: () => number): DemoCheckout {
  return async (form) => {
    const promise = typeof form === "object" && form !== null && "promise" in form ? form.promise : "";
    if (typeof promise !== "string" || promise === "") return { kind: "nothing" };
    // A checkout elsewhere reads these keys from /.well-known/jwks.json.
    const checked = await checkPromise(promise, { keys: [...promises.publicKeys().keys] }, now());
    if (!checked.ok) return { kind: checked.reason };
    return { kind: "good", lines: checked.lines, validUntil: new Date(checked.validUntilMs).toISOString() };
  };
}
