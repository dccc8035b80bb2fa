/** `npm run token -- NAME SCOPE…`: prints a new staff token, and its entry for STAFF_TOKENS with only its SHA-256 hash. */
import { hash, randomBytes } from "node:crypto";
import { parseStaffTokens } from "../staff/staff-tokens.js";

const [name = "", ...scopes] = process.argv.slice(2);
const token = randomBytes(32).toString("base64url");
const entry = `${name}:${hash("sha256", token, "hex")}:${scopes.join("+")}`;
if (parseStaffTokens(entry).problems.length > 0) {
  console.error(
    "usage: npm run token -- NAME SCOPE…   (NAME: letters, digits, _ . -; SCOPE: read, operate, metrics)",
  );
  process.exit(1);
}
console.log(`token (shown once, for the Authorization header): ${token}`);
console.log(`entry for STAFF_TOKENS: ${entry}`);
