/** The answer that every peer gives: an availability answer, padded to 300 bytes of JSON. */
const known = {
  domain: "kabul.af",
  unicodeName: "kabul.af",
  tld: ".af",
  status: "available",
  available: true,
  premium: false,
  years: 1,
  price: { amount: "26.99", currency: "USD" },
  asOf: "2026-01-01T00:00:00.000Z",
  stale: false,
};
const BYTES = 300;

export const answer = {
  ...known,
  note: "".padEnd(BYTES - JSON.stringify({ ...known, note: "" }).length, "."),
};
