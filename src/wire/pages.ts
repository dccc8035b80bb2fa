/** What the service embeds in its pages as JSON, by the id of the element: one type for writing and reading it. */

export interface PageData {
  readonly shop: ShopData;
  readonly view: CheckoutView;
}

/** The shop's identity; null where the page has words of its own, or nothing to show. */
interface ShopData {
  readonly name: Readonly<Record<"en" | "fa" | "ps", string>> | null;
  readonly logo: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly terms: string | null;
  readonly privacy: string | null;
  readonly restoreIncludesRenewal: boolean | null;
  /** Whether carts can be ordered here. */
  readonly sells: boolean;
}

/** The demo checkout: the lines of a valid promise, why it was rejected, or that nothing was sent. */
export type CheckoutView =
  /** A duration and not a time, because the visitor's clock may be wrong. */
  | { readonly kind: "good"; readonly lines: readonly CheckoutLine[]; readonly validForMs: number }
  | { readonly kind: "expired" | "altered" | "nothing" };

export interface CheckoutLine {
  readonly unicodeName: string;
  readonly years: number;
  readonly price: { readonly amount: string; readonly currency: string };
}
