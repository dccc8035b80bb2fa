/** `npm run promise-key`: a new key for price promises in PEM on stdout, where it may go into a file, and what to do with it on stderr. */
import { newPromiseKey } from "../retail/promise.js";

process.stdout.write(newPromiseKey());
console.error(`
This private key signs price promises. Keep it secret: PROMISE_PRIVATE_KEY_FILE=<a file with it>, or PROMISE_PRIVATE_KEY=<its text>.
To replace it, put the new key before the old one in the same file. The first signs, all are published under /.well-known/jwks.json.
`);
