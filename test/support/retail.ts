/** What the shop of most tests sells, and at what price; `config/retail.yaml` is the operator's to change. */
export const RETAIL = `
currency: USD
rates: { USD: "1" }
catalog:
  - tld: .af
    years: { registration: [1, 2, 3], renewal: [1, 2, 3], transfer: [1], restore: [1] }
  - tld: .com.af
    years: { registration: [1, 2, 3], renewal: [1, 2, 3], transfer: [1], restore: [1] }
  - tld: .net.af
    years: { registration: [1, 2], renewal: [1, 2], transfer: [1], restore: [1] }
  - tld: .org.af
    years: { registration: [1, 2], renewal: [1, 2], transfer: [1], restore: [1] }
rules:
  - match: { tld: .af, action: registration, years: 1 }
    markupPercent: "25"
    addFixed: "1.00"
    minMargin: "2.00"
    ending: "0.99"
  - match: { action: restore }
    markupPercent: "15"
    addFixed: "5.00"
    minMargin: "5.00"
    ending: "0.00"
  - match: {}
    markupPercent: "22"
    addFixed: "0.50"
    minMargin: "2.00"
    ending: "0.99"
premium: { markupPercent: "15" }
promotions: []
promise: { validMs: 900000 }
suggestions:
  prefixes: [my, get, zama]
  suffixes: ["-af", online, khana, dokan]
  most: 6
shop: {}
`;

/** A shop with few prices, which are known at once and seldom asked for: for tests of anything but prices. */
export const SMALL_SHOP = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1], renewal: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;
