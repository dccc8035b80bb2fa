/** `npm run promise-key`: prints a new private key in PEM on stdout, to redirect into a file, and instructions on stderr. */
import { newPromiseKey } from "../retail/promise.js";

process.stdout.write(newPromiseKey());
console.error(`
This private key signs the prices of carts. Keep it secret. Set PROMISE_PRIVATE_KEY_FILE to a file with it, or PROMISE_PRIVATE_KEY to its text.
To rotate it, put the new key before the old one in the same file. The first key signs, and all keys are published at /.well-known/jwks.json.
`);
