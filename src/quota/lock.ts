/**
 * Refuses a second process early, by a socket next to a file on which the owner of the file listens. The kernel closes it when the process ends, so
 * nothing is left over after kill -9. It isn't what keeps two processes within one quota: that is the record itself.
 */
import { chmod, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { resolve } from "node:path";
import { hash } from "node:crypto";
import { systemCodeOf } from "../system-error.js";

/** Longer socket paths don't fit into a socket address. */
const MAX_SOCKET_PATH_LENGTH = 100;

export class InUseError extends Error {
  constructor(path: string) {
    super(
      `${path} is in use by another running process: several processes share a quota only through REDIS_URL`,
    );
    this.name = "InUseError";
  }
}

/** Owns `path` until the returned function is called or the process ends; rejects with InUseError while another process owns it. */
export async function claimLock(path: string): Promise<() => Promise<void>> {
  const isWindows = process.platform === "win32";
  const address = isWindows ? `\\\\.\\pipe\\quota-${hash("sha256", resolve(path), "hex")}` : `${path}.lock`;
  if (!isWindows && Buffer.byteLength(address) > MAX_SOCKET_PATH_LENGTH) return async () => {};
  if (await answers(address)) throw new InUseError(path);
  if (!isWindows) await rm(address, { force: true });
  const server = createServer((socket) => socket.destroy()).unref();
  try {
    await new Promise<void>((done, failed) => server.once("error", failed).listen(address, done));
    // A socket gets its mode from the umask; STATE_DIR promises files for the owner alone.
    if (!isWindows) await chmod(address, 0o600);
  } catch (error) {
    if (systemCodeOf(error) === "EADDRINUSE") throw new InUseError(path);
    // Some shared file systems don't support sockets.
  }
  return () =>
    new Promise((done) => {
      server.close(() => {
        done();
      });
    });
}

/** Whether an owner answers. Only a refused connection or a missing socket proves that there is none. */
function answers(address: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(address);
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", (error) => {
      done(!["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(systemCodeOf(error)));
    });
  });
}
