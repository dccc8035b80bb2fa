/** The `shop` section of a price file that says nothing in it. */
export const NO_SHOP = {
  name: null,
  logo: null,
  email: null,
  phone: null,
  terms: null,
  privacy: null,
  restoreIncludesRenewal: null,
} as const;
