/**
 * `npm run token -- NAME SCOPE…`: prints a new staff token, its entry for STAFF_TOKENS with only its SHA-256 hash, and with the scope `read` a
 * signed link to the calendar of expiring domains, which is valid as long as the entry is configured.
 */
import { hash, randomBytes } from "node:crypto";
import { parseStaffTokens, signedPath } from "../staff/staff-tokens.js";

const [name = "", ...scopes] = process.argv.slice(2);
const token = randomBytes(32).toString("base64url");
const calendar = "/v1/staff/domains/expiring.ics";
const entry = `${name}:${hash("sha256", token, "hex")}:${scopes.join("+")}`;
const { tokens, problems } = parseStaffTokens(entry);
if (problems.length > 0) {
  console.error(
    "usage: npm run token -- NAME SCOPE…   (NAME: letters, digits, _ . -; SCOPE: read, operate, order, metrics)",
  );
  process.exit(1);
}
console.log(`token (shown once, for the Authorization header): ${token}`);
console.log(`entry for STAFF_TOKENS: ${entry}`);
for (const { sha256, scopes: granted } of tokens)
  if (granted.includes("read"))
    console.log(`link for a calendar: ${calendar}?name=${name}&signature=${signedPath(sha256, calendar)}`);
